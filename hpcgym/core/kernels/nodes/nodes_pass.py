"""The pass on a machine of nodes: EASY, reservation depth k, and conservative backfilling.

Partitions that share nodes form a component. Only a component of which a job was submitted or ended
at this instant has a pass. Its jobs are walked in queue order, higher tiers first:

1. Start jobs until one has no placement on what is free now.
2. Go on from it. A job whose partition has k reservations already is left for step 3. Any other
   starts if it has a placement for its whole estimate beside the reservations, or else gets one.
3. Try the jobs left in backfill order. A job starts where its rule places it now if every
   reservation can be placed again beside it. Otherwise it starts if it has a placement beside
   the reservations.

EASY is k = 1. With k = 0 the pass ends at the first job without a placement. With k infinite it is
conservative backfilling, and step 3 is empty.

Shortcuts leave the starts as they are. Between two ends of jobs, what is free now only shrinks. So
a shape without a placement for some number of chunks has none for as many or more until the next
job ends. Once no job of the walk has a placement now, nobody needs a reservation.

Cost, with n waiting jobs: O(n) comparisons, and for each shape that waits a step for each node
changed. A reservation walks the events up to its start. A trial in step 3 costs as much for each
reservation. Equal requests share its answer until a job starts; under "lowest" and "tightest", so
do most jobs of one shape with more chunks.

Under a cap or a limit a job that is blocked is left out of all steps. Where costs are weighed, a
job of step 3 that may not start otherwise starts if the mode finds that this pays.

Source: Specification, section 13, "Machine", "EASY and depth k" and "Cap and costs on nodes".
"""

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import ask_mode
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.calendar import add_release, remove_release
from hpcgym.core.engine.life import begins_at, is_guaranteed, is_on_trial, promote, start_from
from hpcgym.core.engine.moments import is_withheld
from hpcgym.core.kernels.nodes.bound import make_bound
from hpcgym.core.kernels.nodes.placement import is_sum_enough, place_chunks
from hpcgym.core.kernels.nodes.replan import (
    choose_planned,
    clear_plan,
    count_begun,
    is_refused,
    place_beside,
    try_beside,
)
from hpcgym.core.kernels.nodes.rooms import component_of, occupy, partition_of, rooms_of
from hpcgym.core.kernels.nodes.spares import change_spares, is_too_wide, spare_beside
from hpcgym.core.kernels.nodes.timeline import (
    OTHER_PLAN,
    PLAN,
    TRIAL,
    begin_cursor,
    depth_of,
    is_easys,
    place_before_outages,
    place_now,
    reserve_earliest,
)
from hpcgym.core.kernels.nodes.trials import (
    choose_own,
    has_own_nodes,
    make_room,
    mark_over,
    take_idle,
)
from hpcgym.core.kernels.passes.easy_dynamic import list_in_order, make_backfill_order
from hpcgym.core.kernels.passes.profile import is_free_now, take_interval
from hpcgym.core.kernels.queue.entries import is_overdue
from hpcgym.core.kernels.queue.ordered_queue import list_jobs
from hpcgym.core.kernels.queue.selection import sort_listed
from hpcgym.core.kernels.types import Jobs, Sim


@kernel
def mark_submitted(jobs: Jobs, sim: Sim) -> None:
    """Mark the components of jobs submitted, and of trials over, at this instant; write `due`."""
    for job in range(sim.next_unseen, sim.next_job):
        sim.due[component_of(jobs, job)] = 1
    sim.next_unseen = sim.next_job
    mark_over(jobs, sim)


@kernel(inlined=True)
def has_placement(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether the rule has a placement for a job now: as the next, before outages to come."""
    if not has_placement_on_free(jobs, sim, job):
        return False
    if sim.n_foreseen == 0:
        return True
    return place_before_outages(jobs, sim, job, begins_at(sim, job) + jobs.estimate[job]) > 0


@kernel
def has_placement_on_free(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether the rule has a placement for a job on what is free now.

    Writes `unplaced_*`, `placeable_*`, the rooms of the shape and the cursor `TRIAL`.
    """
    if is_on_trial(sim, job):
        return has_own_nodes(jobs, sim, job)
    shape, wanted = jobs.shape[job], jobs.chunks[job]
    # What is free only shrinks from one end of a job to the next.
    known = sim.unplaced_at[shape] == sim.n_vacated
    if known and wanted >= sim.unplaced_chunks[shape]:
        return False
    # Without as many free cpus the rooms need no look.
    if jobs.processors[job] > sim.free_cpus[jobs.need[shape, s.NEED_PARTITION]]:
        return False
    row = rooms_of(jobs, sim, shape)
    if sim.room_total[row] >= wanted:
        if is_sum_enough(jobs, sim, shape):
            return True
        # Where more chunks have a placement, fewer have one.
        known = sim.placeable_at[shape] == sim.n_changes
        if known and wanted <= sim.placeable_chunks[shape]:
            return True
        begin_cursor(jobs, sim, TRIAL, shape)
        if place_chunks(jobs, sim, TRIAL, shape, wanted) > 0:
            sim.placeable_at[shape] = sim.n_changes
            sim.placeable_chunks[shape] = wanted
            return True
    sim.unplaced_at[shape] = sim.n_vacated
    sim.unplaced_chunks[shape] = wanted
    return False


@kernel
def place_in_fact(jobs: Jobs, sim: Sim, job: int) -> int:
    """Place a job that has a placement now on what is free; return the number of nodes.

    Writes `chosen_*` and the cursor `TRIAL`.
    """
    if is_on_trial(sim, job):
        return choose_own(jobs, sim, job)
    if sim.n_foreseen > 0:
        return place_before_outages(jobs, sim, job, sim.now + jobs.estimate[job])
    begin_cursor(jobs, sim, TRIAL, jobs.shape[job])
    return place_chunks(jobs, sim, TRIAL, jobs.shape[job], jobs.chunks[job])


@kernel
def try_on_idle(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Have a waiting job go on trial on nodes that idle.

    Return False if it has no placement there until trials are over, or its component had no pass
    now.
    """
    had_pass = sim.passed_at[component_of(jobs, job)] == sim.n_passes
    if not had_pass or not has_placement_on_free(jobs, sim, job):
        return False
    placed = place_before_outages(jobs, sim, job, sim.idle_until)
    if placed > 0:
        take_idle(jobs, sim, job, placed)
    return placed > 0


@kernel
def take_nodes(jobs: Jobs, sim: Sim, job: int, n: int, backfilled: bool) -> None:
    """Start a job on the n nodes of the placement found last, on which one on trial is already."""
    if is_on_trial(sim, job):
        promote(jobs, sim, job, backfilled)
    else:
        since = begins_at(sim, job)
        occupy(jobs, sim, job, n)
        start_from(jobs, sim, job, backfilled, since)
        if sim.n_trials > 0:
            sim.begun_job[sim.n_begun] = job
            sim.n_begun += 1
    sim.refused_state += 1


@kernel
def start_chosen(jobs: Jobs, sim: Sim, job: int, n: int, backfilled: bool) -> None:
    """Start a job as `take_nodes` does; write what the reservations leave idle, too."""
    since = sim.over[job] if is_guaranteed(sim, job) else sim.now
    take_nodes(jobs, sim, job, n, backfilled)
    change_spares(jobs, sim, job, n, since)


@kernel(inlined=True)
def has_cap(sim: Sim) -> bool:
    """Tell whether a cap or a limit may block jobs."""
    return (sim.hears | sim.events_hear) & s.IS_BLOCKED != 0


@kernel
def is_blocked(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a cap or a limit has the pass go on as if a job did not wait."""
    if (
        sim.hears & s.IS_BLOCKED != 0
        and ask_mode(jobs.mode_pass, jobs, sim, s.IS_BLOCKED, job) == 1
    ):
        return True
    return is_withheld(jobs, sim, job)


@kernel
def start_in_order_on_nodes(jobs: Jobs, sim: Sim, n: int) -> int:
    """Start jobs of the walk until one has no placement now (step 1); return its place, n if none.

    Return less than 0 if the picked job started.
    """
    caps, some_wait = has_cap(sim), False
    for position in range(n):
        job = sim.component_walk[position]
        if caps and is_blocked(jobs, sim, job):
            some_wait = True
            continue
        if not has_placement(jobs, sim, job):
            return position
        # It counts as backfilled if one before it in queue order keeps waiting.
        start_chosen(jobs, sim, job, place_in_fact(jobs, sim, job), some_wait)
        if job == sim.pick:
            return -1
    return n


@kernel(inlined=True)
def may_start_now(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether the cpus of its component are enough for a job's whole estimate from now on."""
    return is_free_now(sim, jobs.processors[job], jobs.estimate[job])


@kernel
def next_placeable(jobs: Jobs, sim: Sim, first: int, n: int) -> int:
    """Return the first place of the walk from `first` on whose job may start now, else n."""
    caps, is_bounded = has_cap(sim), depth_of(sim) == np.inf
    for position in range(first, n):
        job = sim.component_walk[position]
        if (
            has_placement(jobs, sim, job)
            and not (is_bounded and not may_start_now(jobs, sim, job))
            and not (caps and is_blocked(jobs, sim, job))
        ):
            return position
    return n


@kernel
def walk_on(jobs: Jobs, sim: Sim, first: int, n: int, depth: float) -> int:
    """Start or reserve for the jobs behind the first misfit (step 2).

    Return how many jobs are left for step 3, listed in `scratch`. Writes the plan.
    """
    sim.planned_of[:] = 0
    is_bounded = depth == np.inf
    if is_bounded:
        make_bound(jobs, sim, sim.component_walk[first])
    left = 0
    hopeful = first - 1  # no job of the walk between here and there may start
    # Without a bound and a cap, that holds until a job starts.
    stays = not (is_bounded or has_cap(sim))
    for position in range(first, n):
        if left == 0 and not (stays and position <= hopeful):
            hopeful = next_placeable(jobs, sim, max(hopeful, position), n)
            # Nobody can start any more, so nobody needs a reservation.
            if hopeful == n:
                return 0
        job = sim.component_walk[position]
        partition = partition_of(jobs, job)
        is_known = stays and left == 0
        is_placeable = position == hopeful if is_known else has_placement(jobs, sim, job)
        if sim.planned_of[partition] >= depth:
            if is_placeable:
                sim.scratch[left] = job
                left += 1
            continue
        if has_cap(sim) and is_blocked(jobs, sim, job):
            continue
        placed = -1
        if is_placeable and (not is_bounded or may_start_now(jobs, sim, job)):
            placed = place_now(jobs, sim, PLAN, job)
        if placed > 0:
            start_chosen(jobs, sim, job, placed, True)
            if is_bounded:
                take_interval(jobs, sim, job, sim.now)
            continue
        if left == 0 and position == hopeful:
            hopeful = next_placeable(jobs, sim, position + 1, n)
            if hopeful == n:
                return 0
        start = reserve_earliest(jobs, sim, job, is_bounded)
        sim.planned_of[partition] += 1
        if is_bounded:
            take_interval(jobs, sim, job, start)
        else:
            spare = spare_beside(jobs, sim, job, start)
            sim.plan_spare[sim.n_reservations - 1] = spare
    return left


@kernel
def list_by_tier(jobs: Jobs, sim: Sim, n: int, column: int) -> None:
    """List the first n jobs of `scratch` in `component_walk`, higher tiers first.

    `column` is where `Jobs.limit` has the ranks of tiers.
    """
    listed, tier = 0, 0
    if jobs.limit[:, column].max() == 0:
        sim.component_walk[:n] = sim.scratch[:n]
        listed = n
    while listed < n:
        for position in range(n):
            job = sim.scratch[position]
            if jobs.limit[partition_of(jobs, job), column] == tier:
                sim.component_walk[listed] = job
                listed += 1
        tier += 1


@kernel
def order_left(jobs: Jobs, sim: Sim, left: int) -> None:
    """List the jobs left for step 3 in backfill order in `component_walk`, higher tiers first."""
    which = make_backfill_order(jobs, sim, s.BASE_ORDER, left)
    if which != s.BASE_ORDER:  # else they are listed in queue order
        sort_listed(sim, which, left)
    list_by_tier(jobs, sim, left, s.LIMIT_TIER)


@kernel(inlined=True)
def place_left(jobs: Jobs, sim: Sim, job: int) -> int:
    """Place a job of step 3 that has a placement now; return its nodes, -1 if it may not start.

    Writes the plan and `chosen_*`.
    """
    reach = count_begun(sim, begins_at(sim, job) + jobs.estimate[job])
    if reach > 0 and (is_too_wide(jobs, sim, job, reach) or is_refused(jobs, sim, job, reach)):
        return -1
    placed = place_in_fact(jobs, sim, job)
    return place_beside(jobs, sim, job, reach, placed) if reach > 0 else placed


@kernel
def start_if_it_pays(jobs: Jobs, sim: Sim, job: int) -> None:
    """Start a job that would delay a reservation, if the mode finds that this pays.

    Until the pass ends it is listed as one that ends now, so that no reservation counts with it.
    """
    number = try_beside(jobs, sim, job, place_in_fact(jobs, sim, job))
    other = sim.plan_job[PLAN, number]
    sim.delayed, sim.delayed_until = other, sim.plan_start[PLAN, number]
    lacking = jobs.chunks[other] - sim.cursor[TRIAL, s.CURSOR_TOTAL]
    # There is room for all, but the rule has no placement: then no chunk counts as placed.
    sim.lacking = lacking if lacking > 0 else jobs.chunks[other]
    if ask_mode(jobs.mode_pass, jobs, sim, s.PAYS, job) == 1:
        take_nodes(jobs, sim, job, choose_planned(sim, OTHER_PLAN, 0), True)
        remove_release(sim, job, sim.start_time[job] + jobs.estimate[job])
        add_release(sim, job, sim.now)


@kernel
def list_true_releases(jobs: Jobs, sim: Sim) -> None:
    """List when the jobs that `start_if_it_pays` has started are expected to end."""
    position = sim.n_releases - 1
    while position >= 0 and sim.release_time[position] <= sim.now:
        job = sim.release_job[position]
        release = sim.start_time[job] + jobs.estimate[job]
        if sim.release_time[position] != release:
            remove_release(sim, job, sim.now)
            add_release(sim, job, release)  # the others move up by a place
        else:
            position -= 1


@kernel
def backfill_on_nodes(jobs: Jobs, sim: Sim, left: int, weighs: bool) -> None:
    """Start the jobs left that leave every reservation its time, or whose start pays (step 3)."""
    sim.refused_state += 1
    for position in range(left):
        job = sim.component_walk[position]
        if not has_placement(jobs, sim, job) or (has_cap(sim) and is_blocked(jobs, sim, job)):
            continue
        placed = place_left(jobs, sim, job)
        if placed > 0:
            start_chosen(jobs, sim, job, placed, True)
        elif weighs and not is_guaranteed(sim, job):
            start_if_it_pays(jobs, sim, job)


@kernel
def add_costs(jobs: Jobs, sim: Sim, n: int) -> None:
    """Tell the mode of the waiting jobs of the walk that have no placement now."""
    for position in range(n):
        job = sim.component_walk[position]
        if sim.start_time[job] < -1 and not has_placement(jobs, sim, job):
            ask_mode(jobs.mode_pass, jobs, sim, s.ADD_COST, job)


@kernel
def list_component(jobs: Jobs, sim: Sim, component: int, waiting: int) -> int:
    """List the waiting jobs of a component, higher tiers first; return how many there are.

    The `waiting` jobs in queue order are in `walk`, and in `scratch` before the first component.
    Writes `scratch`, too.
    """
    n = waiting if len(sim.due) == 1 else 0
    for position in range(n, waiting):
        job = sim.walk[position]
        if sim.start_time[job] < -1 and component_of(jobs, job) == component:
            sim.scratch[n] = job
            n += 1
    list_by_tier(jobs, sim, n, s.LIMIT_TIER)
    return n


@kernel
def component_pass(jobs: Jobs, sim: Sim, component: int, waiting: int) -> bool:
    """Make the pass of a component; return False if it stopped at the picked job."""
    n = list_component(jobs, sim, component, waiting)
    depth = depth_of(sim)
    weighs = False
    if sim.hears & s.IS_BLOCKED != 0:
        sim.n_walked = n
        weighs = ask_mode(jobs.mode_pass, jobs, sim, s.ON_COMPONENT, component) == 1
    if sim.backfill > s.BACKFILL_EASY and not is_easys(sim) and sim.planned < n:
        n = int(sim.planned)
    clear_plan(sim)
    started = start_in_order_on_nodes(jobs, sim, n)
    if started < 0:
        return False
    if started < n and depth > 0.0:
        left = walk_on(jobs, sim, started, n, depth)
        if weighs and left > 0:
            add_costs(jobs, sim, n)
        order_left(jobs, sim, left)
        backfill_on_nodes(jobs, sim, left, weighs)
        if weighs:
            list_true_releases(jobs, sim)
    return True


@kernel
def nodes_pass(jobs: Jobs, sim: Sim, contested: bool) -> bool:
    """Make the pass of each component that is due; return False if it stopped at the picked job."""
    mark_submitted(jobs, sim)
    waiting = list_in_order(jobs, sim, contested)
    for position in range(waiting):
        sim.walk[position] = sim.scratch[position]
    # The picked job's component goes first: where the job starts, the others wait for a new pick.
    picked = component_of(jobs, sim.pick) if sim.pick >= 0 else -1
    for turn in range(-1, len(sim.due)):
        component = picked if turn < 0 else turn
        if component < 0 or sim.due[component] == 0:
            continue
        finished = component_pass(jobs, sim, component, waiting)
        make_room(jobs, sim)
        if not finished:
            return False
        sim.due[component] = 0
        if len(sim.passed_at) > 0:
            sim.passed_at[component] = sim.n_passes
    return True


@kernel
def is_contested_on_nodes(jobs: Jobs, sim: Sim) -> bool:
    """Tell whether the order can matter in the pass of a component that is due.

    It can where two of its jobs within the threshold wait that no limit holds, and one of them has
    a placement now.
    """
    mark_submitted(jobs, sim)
    waiting = list_jobs(sim, s.BASE_ORDER, sim.scratch)
    for component in range(len(sim.due)):
        if sim.due[component] == 0:
            continue
        count, fits = 0, False
        for position in range(waiting):
            job = sim.scratch[position]
            if is_overdue(sim, job) or component_of(jobs, job) != component:
                continue
            if is_withheld(jobs, sim, job):
                continue
            count += 1
            fits = fits or has_placement(jobs, sim, job)
            if fits and count >= 2:
                return True
    return False
