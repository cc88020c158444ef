"""EASY backfilling, in orders that queues keep from pass to pass.

EASY gives a reservation to one job only, the head. A pass has three steps:

1. Start jobs from the front of the queue while they fit. The first that does not fit is the head.
2. Reserve for the head. Its shadow time is the earliest instant at which enough processors are free
   for it by the estimated ends of the running jobs. The extra processors are those left over then.
3. Backfill: try the other jobs in backfill order. Start each that fits now and does not delay the
   head. A job does not delay it if it ends by the shadow time, or needs no more than the extra
   processors. Only in the second case does it use them up.

For example, take 4 processors and a job on 2 of them that is estimated to end at 10 s. A head that
needs 3 has its shadow time at 10 s, and 1 processor is extra. A job of 1 processor starts now
however long it is. A job of 2 starts only if it ends by 10 s.

One sweep of step 3 suffices. During it the shadow time stays, and `free` and `extra` only fall. So
a job that is refused once would be refused again.

The sweep skips most of a long queue. Nodes of the queue bound what their jobs request
(`hpcgym.core.kernels.queue.btree`), and a node is skipped if its bounds refuse all of its jobs.

Cost, with n waiting jobs: O(log n) for each job that starts. The reservation costs a step for each
running job that is estimated to end by the shadow time. The sweep costs a step for each group of
the queue, and for each job of the blocks that are not skipped.

A decision may pick a job. It goes before all jobs within the threshold, in both orders unless the
backfill order has a queue of its own, and its start ends the pass.

Source: Mu'alem and Feitelson 2001; Specification, section 1, "EASY pass".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import start_waiting
from hpcgym.core.kernels.queue.btree import raise_estimate, size_class_of
from hpcgym.core.kernels.queue.entries import entry_of, is_overdue
from hpcgym.core.kernels.queue.ordered_queue import first_job, put_in, take_out
from hpcgym.core.kernels.types import Jobs, Sim

LOWEST_KEY = -1.7976931348623157e308
"""Key of a job that goes before all jobs within the threshold, and after those beyond it."""


@kernel(inlined=True)
def start_in_order(jobs: Jobs, sim: Sim) -> int:
    """Start jobs from the front of the base order while they fit, the picked job first (step 1).

    Return the head; `NO_HEAD` if no job waits any more, `PICK_STARTED` if the picked job started.
    Writes what `start_waiting` writes.
    """
    pick = sim.pick
    while sim.n_waiting > 0:
        job = first_job(sim, s.BASE_ORDER)
        if pick >= 0 and not is_overdue(sim, job):
            job = pick
        if jobs.processors[job] > sim.free:
            return job
        start_waiting(jobs, sim, job, False)
        sim.checked_head = -1  # a start ahead of the head may delay it
        if job == pick:
            return s.PICK_STARTED
    return s.NO_HEAD


@kernel(inlined=True)
def reserve(jobs: Jobs, sim: Sim, head: int) -> None:
    """Find the reservation of a head that does not fit now (step 2); write `shadow` and `extra`."""
    reserve_room(jobs, sim, head, 0)


@kernel(inlined=True)
def reserve_room(jobs: Jobs, sim: Sim, head: int, spared: int) -> None:
    """Do the same for a head that must leave so many processors free at its start."""
    now = sim.now
    free = sim.free
    wanted = jobs.processors[head] + spared
    shadow = now
    for position in range(sim.n_releases - 1, -1, -1):
        # A running job past its estimate is taken to end now, never in the past.
        release = max(sim.release_time[position], now)
        # All releases tied with the shadow time count towards the extra processors.
        if free >= wanted and release > shadow:
            break
        shadow = release
        free += jobs.processors[sim.release_job[position]]
    sim.shadow = shadow
    sim.extra = free - jobs.processors[head]


@kernel
def free_at(jobs: Jobs, sim: Sim, instant: int) -> int:
    """Return the processors free at an instant, s, not past, by estimates."""
    free, position = sim.free, sim.n_releases - 1  # the soonest release is last
    while position >= 0 and sim.release_time[position] <= instant:
        free += jobs.processors[sim.release_job[position]]
        position -= 1
    return free


@kernel(inlined=True)
def fits_behind(jobs: Jobs, job: int, free: int, extra: int, time_left: int) -> bool:
    """Tell whether a waiting job may start without delaying the head (step 3).

    `time_left` is the time left until the shadow time, s.
    """
    wanted = jobs.processors[job]
    return wanted <= free and (wanted <= extra or jobs.estimate[job] <= time_left)


@kernel(inlined=True)
def backfills(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a waiting job may start now without delaying the head (step 3)."""
    time_left = sim.shadow - sim.now
    return fits_behind(jobs, job, sim.free, sim.extra, time_left)


@kernel(inlined=True)
def charge_extra(jobs: Jobs, sim: Sim, job: int) -> None:
    """Take a job that starts behind the head out of `extra`, if it outlasts the shadow time."""
    # A job that ends by the shadow time is back before the head needs its processors.
    if sim.now + jobs.estimate[job] > sim.shadow:
        sim.extra -= jobs.processors[job]


@kernel(inlined=True)
def is_ruled_out(sim: Sim, node: int, free: int, extra: int, time_left: int, fitting: int) -> bool:
    """Tell whether the bounds of a node refuse all of its jobs.

    `fitting` is the size class of `free`, or of a larger number.
    """
    # The bound of the size class covers every job narrow enough to fit, perhaps some wider ones.
    # More jobs make a bound lower, never too high.
    least = sim.node_processors[node]
    return least > free or (least > extra and sim.node_estimate[node, fitting] > time_left)


@kernel(inlined=True)
def choose_from_block(
    jobs: Jobs,
    sim: Sim,
    block: int,
    head: int,
    free: int,
    extra: int,
    time_left: int,
    fitting: int,
    chosen: int,
) -> tuple[int, int, int]:
    """Choose every job of a block that may start behind the head.

    `chosen` jobs are listed in `scratch` so far. Return `free`, `extra` and `chosen` after this
    block. Writes `scratch` and the estimate bound of the block.
    """
    shortest = s.NEVER  # of the jobs that stay, of the class or narrower
    for spot in range(sim.node_size[block]):
        job = sim.node_child[block, spot]
        wanted = jobs.processors[job]
        outlasts = jobs.estimate[job] > time_left
        if wanted > free or job == head or (outlasts and wanted > extra):
            if jobs.size_class[job] <= fitting:
                shortest = min(shortest, jobs.estimate[job])
            continue
        free -= wanted
        if outlasts:
            extra -= wanted
        sim.scratch[chosen] = job
        chosen += 1
        # No other job of the block fits. Some were not looked at, so the bound stays as it is.
        if free < sim.node_processors[block]:
            return free, extra, chosen
    # Chosen jobs leave the queue; the shortest of the others is the exact bound.
    raise_estimate(sim, block, fitting, shortest)
    return free, extra, chosen


@kernel(inlined=True)
def backfill(jobs: Jobs, sim: Sim, which: int, head: int) -> None:
    """Start every job that may start behind the head, in the order of queue `which` (step 3).

    Writes what `start_waiting` writes, `extra`, `scratch` and bounds of the queue's nodes.
    """
    free = sim.free
    extra = sim.extra
    time_left = sim.shadow - sim.now
    # `free` falls during the sweep, so this class stays wide enough.
    fitting = size_class_of(free)
    chosen = 0
    for at in range(sim.n_groups[which]):
        group = sim.group_order[which, at]
        if is_ruled_out(sim, group, free, extra, time_left, fitting):
            continue
        shortest_of_group = s.NEVER
        for position in range(sim.node_size[group]):
            block = sim.node_child[group, position]
            if not is_ruled_out(sim, block, free, extra, time_left, fitting):
                free, extra, chosen = choose_from_block(
                    jobs, sim, block, head, free, extra, time_left, fitting, chosen
                )
            shortest_of_group = min(shortest_of_group, sim.node_estimate[block, fitting])
        raise_estimate(sim, group, fitting, shortest_of_group)
        if free == 0:
            break
    # Jobs start after the sweep, which walks the queue that a start changes.
    for position in range(chosen):
        charge_extra(jobs, sim, sim.scratch[position])
        start_waiting(jobs, sim, sim.scratch[position], True)


@kernel(inlined=True)
def kept_backfill_order(sim: Sim) -> int:
    """Return the queue in which candidates are tried, where the orders of this instant are kept."""
    return s.BACKFILL_ORDER if sim.backfill_order_is_static == 1 else s.BASE_ORDER


@kernel(inlined=True)
def may_backfill(sim: Sim, head: int) -> bool:
    """Tell whether a job may start behind the head, which is `NO_HEAD` or less if there is none."""
    return head >= 0 and sim.backfill == s.BACKFILL_EASY and sim.n_waiting > 1 and sim.free > 0


@kernel
def move_in_base(jobs: Jobs, sim: Sim, job: int, key: float) -> None:
    """Give a waiting job another key in the base order; write the key and the queue."""
    take_out(jobs, sim, s.BASE_ORDER, job)
    sim.key[s.BASE_ORDER, entry_of(sim, job)] = key
    put_in(jobs, sim, s.BASE_ORDER, job)


@kernel
def backfill_with_pick(jobs: Jobs, sim: Sim, head: int) -> None:
    """Start every job that may start behind a head that is not the picked job, that job first.

    Writes what `backfill` writes, and a key of `PASS_ORDER`.
    """
    pick = sim.pick
    # Beyond the threshold a job has its place, and in a queue of its own the backfill order has.
    is_moved = not is_overdue(sim, pick) and sim.backfill_rule == s.BY_BASE
    if is_moved:
        key = sim.key[s.BASE_ORDER, entry_of(sim, pick)]
        sim.key[s.PASS_ORDER, entry_of(sim, pick)] = key
        move_in_base(jobs, sim, pick, LOWEST_KEY)
    backfill(jobs, sim, kept_backfill_order(sim), head)
    if is_moved and sim.start_time[pick] < 0:
        move_in_base(jobs, sim, pick, sim.key[s.PASS_ORDER, entry_of(sim, pick)])


@kernel(inlined=True)
def easy_pass(jobs: Jobs, sim: Sim) -> bool:
    """Make an EASY pass in orders that are kept; return False if it stopped at the picked job.

    Writes what `start_waiting` and `backfill` write, `shadow` and `extra`; `shadow` is -1 where no
    reservation was needed.
    """
    sim.shadow = -1
    head = start_in_order(jobs, sim)
    if may_backfill(sim, head):
        reserve(jobs, sim, head)
        if sim.pick >= 0 and head != sim.pick:
            backfill_with_pick(jobs, sim, head)
        else:
            backfill(jobs, sim, kept_backfill_order(sim), head)
    return head != s.PICK_STARTED
