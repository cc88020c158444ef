"""One EASY pass in kept orders: start in order, reserve for the head, backfill behind it."""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.queue.btree import raise_estimate, size_class_of
from hpcgym.core.kernels.queue.ordered_queue import first_job
from hpcgym.core.kernels.running_jobs import start_waiting
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    BACKFILL,
    BACKFILL_EASY,
    BASE,
    CHECKED_HEAD,
    EXTRA,
    FILL,
    FILL_KEEPS,
    FREE,
    N_GROUPS,
    N_RELEASES,
    N_WAITING,
    NEVER,
    NOW,
    SHADOW,
)


@kernel(inlined=True)
def start_in_order(jobs: Jobs, sim: Sim) -> int:
    """Start jobs from the front of the base order while they fit (step 1).

    Args:
        jobs: The job table.
        row: The simulation.

    Returns:
        The head: the first job that does not fit, -1 if none waits.

    Writes:
        What `start_waiting` writes.

    Source:
        Specification, section 1, "EASY pass", step 1.
    """
    while sim.counter[N_WAITING] > 0:
        job = first_job(sim, BASE)
        if jobs.processors[job] > sim.counter[FREE]:
            return job
        start_waiting(jobs, sim, job, False)
        sim.counter[CHECKED_HEAD] = -1  # a start ahead of the head may delay it
    return -1


@kernel(inlined=True)
def reserve(jobs: Jobs, sim: Sim, head: int) -> None:
    """Find the head's reservation (step 2), in as many steps as releases come before it.

    A running job past its estimate is taken to end now, never in the past.

    Args:
        jobs: The job table.
        row: The simulation.
        head: Index of a job that does not fit now.

    Writes:
        SHADOW: earliest instant at which the head fits by the estimated ends, s.
        EXTRA: processors left over at that instant, all releases tied with it counted.

    Source:
        Specification, section 1, "EASY pass", step 2.
    """
    now = sim.counter[NOW]
    free = sim.counter[FREE]
    wanted = jobs.processors[head]
    shadow = now
    for place in range(sim.counter[N_RELEASES] - 1, -1, -1):
        release = max(sim.release_time[place], now)
        if free >= wanted and release > shadow:
            break
        shadow = release
        free += jobs.processors[sim.release_job[place]]
    sim.counter[SHADOW] = shadow
    sim.counter[EXTRA] = free - wanted


@kernel(inlined=True)
def fits_behind(jobs: Jobs, job: int, free: int, extra: int, slack: int) -> bool:
    """Tell whether a waiting job may start now without delaying the head.

    Args:
        jobs: The job table.
        job: Index of a waiting job that is not the head.
        free: Processors free.
        extra: Processors left over at the shadow time.
        slack: Time left until the shadow time, s.

    Returns:
        True if it fits now, and ends by the shadow time or needs no more than the extra processors.

    Source:
        Specification, section 1, "EASY pass", step 3.
    """
    wanted = jobs.processors[job]
    return wanted <= free and (wanted <= extra or jobs.estimate[job] <= slack)


@kernel(inlined=True)
def backfills(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a waiting job may start now without delaying the head.

    Args:
        jobs: The job table.
        row: The simulation, its reservation known.
        job: Index of a waiting job that is not the head.

    Returns:
        As `fits_behind`, for the reservation as it is.

    Source:
        Specification, section 1, "EASY pass", step 3.
    """
    slack = sim.counter[SHADOW] - sim.counter[NOW]
    return fits_behind(jobs, job, sim.counter[FREE], sim.counter[EXTRA], slack)


@kernel(inlined=True)
def charge_extra(jobs: Jobs, sim: Sim, job: int) -> None:
    """Keep the head's reservation true to a job that starts behind it (step 3).

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a job for which `backfills` holds.

    Writes:
        EXTRA, if the job outlasts the shadow time.

    Source:
        Specification, section 1, "EASY pass", step 3.
    """
    if sim.counter[NOW] + jobs.estimate[job] > sim.counter[SHADOW]:
        sim.counter[EXTRA] -= jobs.processors[job]


@kernel(inlined=True)
def is_ruled_out(sim: Sim, node: int, free: int, extra: int, slack: int, fitting: int) -> bool:
    """Tell by its bounds that no job of a node may start behind the head.

    Args:
        row: The simulation.
        node: A block or a group.
        free: Processors free.
        extra: Processors left over at the shadow time.
        slack: Time left until the shadow time, s.
        fitting: Size class of `free`.

    Returns:
        True if all its jobs are too wide, or end too late and are too wide for the extra
        processors.

    Source:
        House rule: no work per event that grows with the queue where it need not.
    """
    least = sim.node_processors[node]
    return least > free or (least > extra and sim.node_estimate[node, fitting] > slack)


@kernel(inlined=True)
def choose_from_block(
    jobs: Jobs,
    sim: Sim,
    block: int,
    head: int,
    free: int,
    extra: int,
    slack: int,
    fitting: int,
    chosen: int,
) -> tuple[int, int, int]:
    """Choose every job of a block that may start behind the head.

    Args:
        jobs: The job table.
        row: The simulation.
        block: The block.
        head: Index of the head.
        free: Processors free.
        extra: Processors left over at the shadow time.
        slack: Time left until the shadow time, s.
        fitting: Size class of `free`, or of a larger number.
        chosen: Jobs chosen so far.

    Returns:
        `free`, `extra` and `chosen` with this block's jobs.

    Writes:
        `scratch`, the jobs chosen; the bound of the block that let the search in.

    Source:
        Specification, section 1, "EASY pass", step 3.
    """
    shortest = NEVER  # of the jobs that stay, of the class or narrower
    for spot in range(sim.node_size[block]):
        job = sim.node_child[block, spot]
        wanted = jobs.processors[job]
        outlasts = jobs.estimate[job] > slack
        if wanted > free or job == head or (outlasts and wanted > extra):
            if jobs.size_class[job] <= fitting:
                shortest = min(shortest, jobs.estimate[job])
            continue
        free -= wanted
        if outlasts:
            extra -= wanted
        sim.scratch[chosen] = job
        chosen += 1
        if free < sim.node_processors[block]:
            return free, extra, chosen
    raise_estimate(sim, block, fitting, shortest)
    return free, extra, chosen


@kernel(inlined=True)
def backfill(jobs: Jobs, sim: Sim, which: int, head: int) -> None:
    """Start every job that may start behind the head, in backfill order (step 3).

    One sweep suffices: a start never makes an earlier refused job eligible. The jobs are chosen
    first and started after, so that the queue stays as it is while it is walked.

    Args:
        jobs: The job table.
        row: The simulation, its reservation known.
        which: Queue in backfill order.
        head: Index of the head.

    Writes:
        What `start_waiting` and `charge_extra` write; `scratch`; bounds of the queue's nodes.

    Source:
        Specification, section 1, "EASY pass", step 3.
    """
    free = sim.counter[FREE]
    extra = sim.counter[EXTRA]
    slack = sim.counter[SHADOW] - sim.counter[NOW]
    fitting = size_class_of(free)
    chosen = 0
    for at in range(sim.queue_used[which, N_GROUPS]):
        group = sim.group_order[which, at]
        if is_ruled_out(sim, group, free, extra, slack, fitting):
            continue
        shortest_of_group = NEVER
        for place in range(sim.node_size[group]):
            block = sim.node_child[group, place]
            if not is_ruled_out(sim, block, free, extra, slack, fitting):
                free, extra, chosen = choose_from_block(
                    jobs, sim, block, head, free, extra, slack, fitting, chosen
                )
            shortest_of_group = min(shortest_of_group, sim.node_estimate[block, fitting])
        raise_estimate(sim, group, fitting, shortest_of_group)
        if free == 0:
            break
    for place in range(chosen):
        charge_extra(jobs, sim, sim.scratch[place])
        start_waiting(jobs, sim, sim.scratch[place], True)


@kernel(inlined=True)
def may_backfill(sim: Sim, head: int) -> bool:
    """Tell whether a job may start behind the head.

    Args:
        row: The simulation, after step 1 of its pass.
        head: Index of the head, < 0 if there is none.

    Returns:
        False if none waits behind a head, or nothing is free, or backfilling is off.

    Source:
        Specification, section 1, "EASY pass", step 2.
    """
    return (
        head >= 0
        and sim.setting[BACKFILL] == BACKFILL_EASY
        and sim.counter[N_WAITING] > 1
        and sim.counter[FREE] > 0
    )


@kernel(inlined=True)
def easy_pass(jobs: Jobs, sim: Sim) -> None:
    """Make one scheduling pass in orders that are kept.

    Args:
        jobs: The job table.
        row: The simulation; its orders keep, or any order gives the same starts.

    Writes:
        What `start_waiting` writes; SHADOW and EXTRA, -1 where they were not needed.

    Source:
        Mu'alem and Feitelson 2001; specification, section 1, "EASY pass".
    """
    sim.counter[SHADOW] = -1
    head = start_in_order(jobs, sim)
    if may_backfill(sim, head):
        reserve(jobs, sim, head)
        backfill(jobs, sim, FILL if sim.setting[FILL_KEEPS] == 1 else BASE, head)
