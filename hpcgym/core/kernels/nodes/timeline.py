"""The events to come, by estimates: running jobs release nodes, reservations take and return them.

A *cursor* walks these events in order of time. `later` holds what is then free of each node beyond
what is free now, and `row` how many chunks of one shape the nodes take. There are two cursors:

- `TRIAL` looks for the start of a reservation. Its row is about the instant it has reached.
- `WINDOW` goes on from there to the end of the reservation. Its row is about the whole of it: the
  least room of each node. Only starts of reservations lower a room, so no other event is compared.

A *plan* holds the reservations of a pass. There are two: the plan, and one that is tried.

Cost: O(nodes) to begin, then a step for each node of each event.

Source: Specification, section 13, "EASY and depth k" and "Conservative".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import begins_at, is_on_trial
from hpcgym.core.kernels.nodes.bound import find_hole
from hpcgym.core.kernels.nodes.placement import place_chunks
from hpcgym.core.kernels.nodes.rooms import component_of, room_with, rooms_of, usable
from hpcgym.core.kernels.nodes.trials import nodes_released, place_on_own, set_apart
from hpcgym.core.kernels.types import Jobs, Sim

TRIAL, WINDOW = 0, 1
"""Cursors."""

PLAN, OTHER_PLAN = 0, 1
"""Plans: the reservations of the pass, and those that are tried in their place."""


@kernel(inlined=True)
def room_at(jobs: Jobs, sim: Sim, at: int, shape: int, node: int) -> int:
    """Return how many chunks of a shape a node takes at the instant of a cursor."""
    return room_with(
        jobs,
        shape,
        node,
        sim.free_on[node, s.CPUS] + sim.later[at, node, s.CPUS],
        sim.free_on[node, s.GPUS] + sim.later[at, node, s.GPUS],
        sim.free_on[node, s.MEMORY] + sim.later[at, node, s.MEMORY],
    )


@kernel
def forget_touched(sim: Sim, at: int) -> None:
    """Set `later` of a cursor back to zero."""
    for position in range(sim.cursor[at, s.CURSOR_TOUCHED]):
        node = sim.touched_node[at, position]
        sim.is_touched[at, node] = 0
        for resource in range(s.N_RESOURCES):
            sim.later[at, node, resource] = 0
    sim.cursor[at, s.CURSOR_TOUCHED] = 0


@kernel
def begin_cursor(jobs: Jobs, sim: Sim, at: int, shape: int) -> None:
    """Set a cursor before all events, with the rooms of a shape as of now."""
    forget_touched(sim, at)
    sim.cursor[at, s.CURSOR_RELEASE] = sim.n_releases - 1  # the soonest release is last
    sim.cursor[at, s.CURSOR_START] = 0
    sim.cursor[at, s.CURSOR_END] = 0
    sim.cursor[at, s.CURSOR_OUTAGE] = 0
    kept = rooms_of(jobs, sim, shape)
    sim.cursor[at, s.CURSOR_TOTAL] = sim.room_total[kept]
    for node in range(len(jobs.capacity)):
        sim.row[at, node] = sim.room[kept, node]


@kernel
def copy_cursor(jobs: Jobs, sim: Sim, at: int, to: int) -> None:
    """Set the cursor `to` to where the cursor `at` is."""
    forget_touched(sim, to)
    for column in range(s.N_CURSOR_FIELDS):
        sim.cursor[to, column] = sim.cursor[at, column]
    for position in range(sim.cursor[at, s.CURSOR_TOUCHED]):
        node = sim.touched_node[at, position]
        sim.touched_node[to, position] = node
        sim.is_touched[to, node] = 1
        for resource in range(s.N_RESOURCES):
            sim.later[to, node, resource] = sim.later[at, node, resource]
    for node in range(len(jobs.capacity)):
        sim.row[to, node] = sim.row[at, node]


@kernel(inlined=True)
def touch(sim: Sim, at: int, node: int) -> None:
    """List a node of which a cursor's `later` is about to be written."""
    if sim.is_touched[at, node] == 0:
        sim.is_touched[at, node] = 1
        sim.touched_node[at, sim.cursor[at, s.CURSOR_TOUCHED]] = node
        sim.cursor[at, s.CURSOR_TOUCHED] += 1


@kernel(inlined=True)
def change_node(
    jobs: Jobs, sim: Sim, at: int, shape: int, node: int, chunks: int, sign: int
) -> None:
    """Return chunks of a job to a node, or take them (`sign` -1), at the instant of a cursor."""
    touch(sim, at, node)
    if jobs.need[shape, s.NEED_EXCLUSIVE] == 1:
        for resource in range(s.N_RESOURCES):
            sim.later[at, node, resource] += sign * jobs.capacity[node, resource]
        return
    sim.later[at, node, s.CPUS] += sign * chunks * jobs.need[shape, s.CPUS]
    if jobs.need[shape, s.GPUS] > 0:
        sim.later[at, node, s.GPUS] += sign * chunks * jobs.need[shape, s.GPUS]
    # Memory that a node does not count is never free: its capacity is 0.
    if jobs.need[shape, s.MEMORY] > 0 and jobs.capacity[node, s.MEMORY] > 0:
        sim.later[at, node, s.MEMORY] += sign * chunks * jobs.need[shape, s.MEMORY]


@kernel(inlined=True)
def show_change(jobs: Jobs, sim: Sim, at: int, shape: int, node: int) -> None:
    """Write the room of a node at the instant of a cursor into its row."""
    if jobs.member[jobs.need[shape, s.NEED_PARTITION], node] == 0:
        return
    room = room_at(jobs, sim, at, shape, node)
    change = usable(jobs, shape, room) - usable(jobs, shape, sim.row[at, node])
    sim.cursor[at, s.CURSOR_TOTAL] += change
    sim.row[at, node] = room


@kernel(inlined=True)
def change_whole_node(jobs: Jobs, sim: Sim, at: int, shape: int, node: int, sign: int) -> None:
    """Return all that a node has, or take it (`sign` -1); `TRIAL` has its row follow."""
    touch(sim, at, node)
    for resource in range(s.N_RESOURCES):
        sim.later[at, node, resource] += sign * jobs.capacity[node, resource]
    if at == TRIAL:
        show_change(jobs, sim, at, shape, node)


@kernel(inlined=True)
def is_easys(sim: Sim) -> bool:
    """Tell whether the pass is EASY's: also with trials, a cap or costs, which have parts."""
    return sim.backfill == s.BACKFILL_EASY or sim.hears & s.EASY_ON_NODES != 0


@kernel(inlined=True)
def depth_of(sim: Sim) -> float:
    """Return how many reservations a partition may have."""
    if sim.backfill == s.BACKFILL_NONE:
        return 0.0
    return 1.0 if is_easys(sim) else sim.depth


@kernel(inlined=True)
def release_end(sim: Sim, position: int) -> int:
    """Return when the running job at a place in the list of releases is taken to end, s."""
    release = sim.release_time[position]
    if release > sim.now:
        return release
    # Such a job is past its estimate. With reservations for all, it ends a second from now.
    return sim.now + 1 if depth_of(sim) == float("inf") else sim.now


@kernel(inlined=True)
def pass_releases(jobs: Jobs, sim: Sim, at: int, shape: int, component: int, until: int) -> None:
    """Move a cursor past the releases up to an instant; `TRIAL` has its row follow."""
    position = sim.cursor[at, s.CURSOR_RELEASE]
    while position >= 0 and release_end(sim, position) <= until:
        job = sim.release_job[position]
        position -= 1
        if component_of(jobs, job) != component:
            continue
        nodes, chunks, first, n = nodes_released(jobs, sim, position + 1)
        for each in range(first, first + n):
            node = nodes[each]
            change_node(jobs, sim, at, jobs.shape[job], node, chunks[each], 1)
            if at == TRIAL:
                show_change(jobs, sim, at, shape, node)
    sim.cursor[at, s.CURSOR_RELEASE] = position


@kernel
def pass_reservation(
    jobs: Jobs, sim: Sim, at: int, plan: int, shape: int, number: int, sign: int
) -> None:
    """Move a cursor past the start (`sign` -1) or the end of a reservation."""
    job = sim.plan_job[plan, number]
    first = sim.plan_first[plan, number]
    for each in range(first, first + sim.plan_on[plan, number]):
        node = sim.planned_node[plan, each]
        change_node(jobs, sim, at, jobs.shape[job], node, sim.planned_chunks[plan, each], sign)
        if at == TRIAL:
            show_change(jobs, sim, at, shape, node)


@kernel
def pass_ends(jobs: Jobs, sim: Sim, at: int, plan: int, shape: int, until: int) -> None:
    """Move a cursor past the ends of reservations up to an instant."""
    position = sim.cursor[at, s.CURSOR_END]
    while position < sim.n_reservations:
        number = sim.plan_by_end[plan, position]
        if sim.plan_end[plan, number] > until:
            break
        pass_reservation(jobs, sim, at, plan, shape, number, 1)
        position += 1
    sim.cursor[at, s.CURSOR_END] = position


@kernel
def pass_outages(jobs: Jobs, sim: Sim, at: int, shape: int, until: int) -> None:
    """Move a cursor past the nodes that go down or come back up to an instant."""
    position = sim.cursor[at, s.CURSOR_OUTAGE]
    while position < sim.n_foreseen:
        row = sim.foreseen[position]
        if jobs.node_change[row, s.CHANGE_TIME] > until:
            break
        node, sign = jobs.node_change[row, s.CHANGE_NODE], jobs.node_change[row, s.CHANGE_SIGN]
        change_whole_node(jobs, sim, at, shape, node, sign)
        position += 1
    sim.cursor[at, s.CURSOR_OUTAGE] = position


@kernel
def advance(
    jobs: Jobs, sim: Sim, at: int, plan: int, shape: int, component: int, until: int
) -> None:
    """Move a cursor past all events up to an instant."""
    pass_releases(jobs, sim, at, shape, component, until)
    pass_ends(jobs, sim, at, plan, shape, until)
    if sim.n_foreseen > 0:
        pass_outages(jobs, sim, at, shape, until)
    position = sim.cursor[at, s.CURSOR_START]
    while position < sim.n_reservations:
        number = sim.plan_by_start[plan, position]
        if sim.plan_start[plan, number] > until:
            break
        pass_reservation(jobs, sim, at, plan, shape, number, -1)
        position += 1
    sim.cursor[at, s.CURSOR_START] = position


@kernel
def next_outage(jobs: Jobs, sim: Sim, at: int, sign: int) -> int:
    """Return when a node goes down next (`sign` -1) or comes back, after a cursor, s."""
    for position in range(sim.cursor[at, s.CURSOR_OUTAGE], sim.n_foreseen):
        row = sim.foreseen[position]
        if jobs.node_change[row, s.CHANGE_SIGN] == sign:
            return jobs.node_change[row, s.CHANGE_TIME]
    return s.NEVER


@kernel(inlined=True)
def next_start(jobs: Jobs, sim: Sim, at: int, plan: int) -> int:
    """Return the next instant at which nodes are taken, s; `NEVER` if there is none.

    It is the start of a reservation, or an outage's, that a cursor has before it.
    """
    instant = s.NEVER
    if sim.n_foreseen > 0:
        instant = next_outage(jobs, sim, at, -1)
    position = sim.cursor[at, s.CURSOR_START]
    if position == sim.n_reservations:
        return instant
    return min(instant, sim.plan_start[plan, sim.plan_by_start[plan, position]])


@kernel
def pass_others(jobs: Jobs, sim: Sim, at: int, component: int) -> None:
    """Move a cursor past the releases of other components that come before the next of its own."""
    position = sim.cursor[at, s.CURSOR_RELEASE]
    while position >= 0 and component_of(jobs, sim.release_job[position]) != component:
        position -= 1
    sim.cursor[at, s.CURSOR_RELEASE] = position


@kernel(inlined=True)
def next_return(jobs: Jobs, sim: Sim, at: int, plan: int, component: int) -> int:
    """Return the next instant at which nodes become free, s; `NEVER` if there is none.

    Who lost the nodes of a trial may fit elsewhere now, and so at any instant. Others do not fit
    before nodes of their own component are free, whatever other instants are looked at.
    """
    instant = s.NEVER
    if sim.n_foreseen > 0:
        instant = next_outage(jobs, sim, at, 1)
    if sim.n_trials > 0 and len(sim.due) > 1:
        pass_others(jobs, sim, at, component)
    if sim.cursor[at, s.CURSOR_RELEASE] >= 0:
        instant = min(instant, release_end(sim, sim.cursor[at, s.CURSOR_RELEASE]))
    position = sim.cursor[at, s.CURSOR_END]
    if position < sim.n_reservations:
        instant = min(instant, sim.plan_end[plan, sim.plan_by_end[plan, position]])
    return instant


@kernel
def narrow_window(jobs: Jobs, sim: Sim, plan: int, job: int, until: int) -> None:
    """Lower the rooms of the cursor `WINDOW` to the least before an instant.

    The window is empty of events but for those before `until` that the cursor has before it. It
    ends early where the rooms are too few for the job: they only fall.
    """
    shape, component, wanted = jobs.shape[job], component_of(jobs, job), jobs.chunks[job]
    start = next_start(jobs, sim, WINDOW, plan)
    while start < until and sim.cursor[WINDOW, s.CURSOR_TOTAL] >= wanted:
        first, outage = sim.cursor[WINDOW, s.CURSOR_START], sim.cursor[WINDOW, s.CURSOR_OUTAGE]
        advance(jobs, sim, WINDOW, plan, shape, component, start)
        for position in range(first, sim.cursor[WINDOW, s.CURSOR_START]):
            number = sim.plan_by_start[plan, position]
            begin = sim.plan_first[plan, number]
            for each in range(begin, begin + sim.plan_on[plan, number]):
                node = sim.planned_node[plan, each]
                if room_at(jobs, sim, WINDOW, shape, node) < sim.row[WINDOW, node]:
                    show_change(jobs, sim, WINDOW, shape, node)
        for position in range(outage, sim.cursor[WINDOW, s.CURSOR_OUTAGE]):
            node = jobs.node_change[sim.foreseen[position], s.CHANGE_NODE]
            if room_at(jobs, sim, WINDOW, shape, node) < sim.row[WINDOW, node]:
                show_change(jobs, sim, WINDOW, shape, node)
        start = next_start(jobs, sim, WINDOW, plan)


@kernel
def place_now(jobs: Jobs, sim: Sim, plan: int, job: int) -> int:
    """Place a job on what is free now in fact and, by estimates, for its whole estimate.

    Return the number of nodes, -1 if there is no placement. Writes `chosen_*` and both cursors.
    """
    shape = jobs.shape[job]
    set_apart(jobs, sim, job, 1)
    begin_cursor(jobs, sim, WINDOW, shape)
    until = begins_at(sim, job) + jobs.estimate[job]
    narrow_window(jobs, sim, plan, job, until)
    set_apart(jobs, sim, job, -1)
    if is_on_trial(sim, job):
        return place_on_own(jobs, sim, WINDOW, job)
    return place_chunks(jobs, sim, WINDOW, shape, jobs.chunks[job])


@kernel
def leave_out_down(jobs: Jobs, sim: Sim, at: int, shape: int, until: int) -> None:
    """Leave out of a cursor's row the nodes that go down before an instant."""
    for position in range(sim.n_foreseen):
        row = sim.foreseen[position]
        if jobs.node_change[row, s.CHANGE_TIME] >= until:
            break
        if jobs.node_change[row, s.CHANGE_SIGN] < 0:
            node = jobs.node_change[row, s.CHANGE_NODE]
            sim.cursor[at, s.CURSOR_TOTAL] -= usable(jobs, shape, sim.row[at, node])
            sim.row[at, node] = 0


@kernel
def place_before_outages(jobs: Jobs, sim: Sim, job: int, until: int) -> int:
    """Place a job on what is free now, on nodes that stay up until an instant.

    Return the number of nodes, -1 if there is no placement. Writes `chosen_*` and `WINDOW`.
    """
    shape = jobs.shape[job]
    set_apart(jobs, sim, job, 1)
    begin_cursor(jobs, sim, WINDOW, shape)
    set_apart(jobs, sim, job, -1)
    leave_out_down(jobs, sim, WINDOW, shape, until)
    if is_on_trial(sim, job):
        return place_on_own(jobs, sim, WINDOW, job)
    return place_chunks(jobs, sim, WINDOW, shape, jobs.chunks[job])


@kernel
def place_from(jobs: Jobs, sim: Sim, plan: int, job: int, start: int) -> int:
    """Place a job for its whole estimate from where the cursor `TRIAL` is, the instant `start`.

    Return the number of nodes, -1 if there is no placement. Writes `chosen_*` and `WINDOW`.
    """
    shape, wanted = jobs.shape[job], jobs.chunks[job]
    if sim.cursor[TRIAL, s.CURSOR_TOTAL] < wanted:
        return -1
    until = start + jobs.estimate[job]
    if next_start(jobs, sim, TRIAL, plan) >= until:
        return place_chunks(jobs, sim, TRIAL, shape, wanted)
    copy_cursor(jobs, sim, TRIAL, WINDOW)
    narrow_window(jobs, sim, plan, job, until)
    return place_chunks(jobs, sim, WINDOW, shape, wanted)


@kernel
def add_reservation(jobs: Jobs, sim: Sim, plan: int, job: int, start: int, n: int) -> None:
    """Add a reservation on the n nodes of the placement found last; write the plan."""
    add_interval(sim, plan, job, start, start + jobs.estimate[job], n)


@kernel(inlined=True)
def add_interval(sim: Sim, plan: int, job: int, start: int, end: int, n: int) -> None:
    """Add a reservation from `start` to `end` as `add_reservation` does."""
    number = sim.n_reservations
    first = sim.n_planned_nodes
    sim.plan_job[plan, number] = job
    sim.plan_start[plan, number] = start
    sim.plan_end[plan, number] = end
    sim.plan_first[plan, number] = first
    sim.plan_on[plan, number] = n
    for chosen in range(n):
        sim.planned_node[plan, first + chosen] = sim.chosen_node[chosen]
        sim.planned_chunks[plan, first + chosen] = sim.chosen_chunks[chosen]
    sim.n_planned_nodes = first + n
    position = number
    while position > 0 and sim.plan_start[plan, sim.plan_by_start[plan, position - 1]] > start:
        sim.plan_by_start[plan, position] = sim.plan_by_start[plan, position - 1]
        position -= 1
    sim.plan_by_start[plan, position] = number
    position = number
    while position > 0 and sim.plan_end[plan, sim.plan_by_end[plan, position - 1]] > end:
        sim.plan_by_end[plan, position] = sim.plan_by_end[plan, position - 1]
        position -= 1
    sim.plan_by_end[plan, position] = number
    sim.n_reservations = number + 1


@kernel
def begin_before(jobs: Jobs, sim: Sim, job: int, start: int) -> None:
    """Set the cursor `TRIAL` past all events before an instant, with the rooms of then.

    Writes both cursors. No row follows the cursor `WINDOW`, so it is the one that moves.
    """
    shape = jobs.shape[job]
    begin_cursor(jobs, sim, WINDOW, shape)
    advance(jobs, sim, WINDOW, PLAN, shape, component_of(jobs, job), start - 1)
    for position in range(sim.cursor[WINDOW, s.CURSOR_TOUCHED]):
        show_change(jobs, sim, WINDOW, shape, sim.touched_node[WINDOW, position])
    copy_cursor(jobs, sim, WINDOW, TRIAL)


@kernel
def reserve_earliest(jobs: Jobs, sim: Sim, job: int, is_bounded: bool) -> int:
    """Reserve for a job at the earliest instant that has a placement; return that instant, s.

    `is_bounded` says that the profile of `make_bound` holds all that is reserved. Writes the plan,
    `chosen_*` and both cursors.
    """
    shape = jobs.shape[job]
    component = component_of(jobs, job)
    least = find_hole(jobs, sim, job, sim.now) if is_bounded else sim.now
    if least > sim.now:
        begin_before(jobs, sim, job, least)
    else:
        begin_cursor(jobs, sim, TRIAL, shape)
    while True:
        # On an empty partition every job has a placement, so the search ends.
        start = next_return(jobs, sim, TRIAL, PLAN, component)
        advance(jobs, sim, TRIAL, PLAN, shape, component, start)
        if start < least:
            continue
        n = place_from(jobs, sim, PLAN, job, start)
        if n > 0:
            add_reservation(jobs, sim, PLAN, job, start, n)
            return start
        if is_bounded:
            least = find_hole(jobs, sim, job, start + 1)
