"""One pass with reservations made anew: of the first k misfits, or of every job that waits.

The jobs are walked in queue order, thresholded ones first. One that fits now for its whole estimate
starts; a misfit takes its reservation, the earliest hole, until k misfits have one. The others are
then tried in backfill order. With one reservation that is EASY, with infinitely many conservative
backfilling that is rebuilt at each pass.

A job counts as backfilled where it starts ahead of a job before it in queue order that keeps
waiting at that pass.

Cost of a pass, with n waiting and k running jobs and r reservations: O(k) for the profile, and
O(k + r) for each job that is walked or tried, so at worst O(n (k + n)). No profile is made while
jobs fit in order, and the walk ends behind the last job that is narrow enough to start.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.easy_dynamic import make_backfill_order, start_front
from hpcgym.core.kernels.passes.profile import find_start, is_free_now, make_profile, take_interval
from hpcgym.core.kernels.queue.ordered_queue import least_processors, list_jobs
from hpcgym.core.kernels.queue.selection import take_first
from hpcgym.core.kernels.running_jobs import start_waiting
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    BACKFILL_RULE,
    BASE,
    BY_BASE,
    DEPTH,
    FREE,
    N_WAITING,
    NOW,
)


@kernel(inlined=True)
def starts_now(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a waiting job may start now without delaying a reservation.

    Args:
        jobs: The job table.
        row: The simulation, its profile made.
        job: Index of a waiting job without a reservation.

    Returns:
        True if it fits now, really and by the profile for its whole estimate.

    Source:
        Specification, section 8, "Reservation depth k".
    """
    wanted = jobs.processors[job]
    return wanted <= sim.counter[FREE] and is_free_now(sim, wanted, jobs.estimate[job])


@kernel(inlined=True)
def reserve_hole(jobs: Jobs, sim: Sim, job: int) -> int:
    """Give a waiting job the earliest hole.

    Args:
        jobs: The job table.
        row: The simulation, its profile made.
        job: Index of a waiting job without a reservation.

    Returns:
        Its reservation, s.

    Writes:
        The profile.

    Source:
        Specification, section 4, "Conservative".
    """
    start = find_start(sim, jobs.processors[job], jobs.estimate[job])
    take_interval(jobs, sim, job, start)
    return start


@kernel(inlined=True)
def start_behind(jobs: Jobs, sim: Sim, job: int) -> None:
    """Start a job behind one that keeps waiting.

    Args:
        jobs: The job table.
        row: The simulation, its profile made.
        job: Index of a job for which `starts_now` holds.

    Writes:
        The profile; what `start_waiting` writes.

    Source:
        Specification, section 4, "Conservative".
    """
    take_interval(jobs, sim, job, sim.counter[NOW])
    start_waiting(jobs, sim, job, True)


@kernel(inlined=True)
def count_narrow(jobs: Jobs, sim: Sim, first: int, n: int) -> int:
    """Count the listed jobs that are narrow enough to start now.

    Args:
        jobs: The job table.
        row: The simulation, jobs listed in `scratch`.
        first: Place of the first of them.
        n: Number of jobs listed.

    Returns:
        How many want no more processors than are free.

    Source:
        House rule: behind the last of them no reservation matters to this pass.
    """
    narrow = 0
    for place in range(first, first + n):
        narrow += int(jobs.processors[sim.scratch[place]] <= sim.counter[FREE])
    return narrow


@kernel(inlined=True)
def walk_queue(jobs: Jobs, sim: Sim, primary: int, first: int, n: int) -> int:
    """Start what fits in queue order, and reserve for misfits as long as there are reservations.

    Args:
        jobs: The job table.
        row: The simulation, its profile made, the head's reservation taken out of it; the jobs
            behind the head listed in `scratch`.
        primary: The primary order.
        first: Place of the first of them, where they are listed in queue order; else 0.
        n: Number of jobs listed.

    Returns:
        How many of them have been walked.

    Writes:
        The profile and `scratch`; what `start_waiting` writes.

    Source:
        Specification, section 8, "Reservation depth k".
    """
    most = sim.backfill_parameter[DEPTH]
    is_walked_whole = sim.setting[BACKFILL_RULE] == BY_BASE
    free = sim.counter[FREE]
    narrow = count_narrow(jobs, sim, first, n)
    misfits = 1
    walked = 0
    while narrow > 0 and least_processors(sim, BASE) <= sim.counter[FREE]:
        if misfits >= most and not is_walked_whole:
            break
        if first > 0:
            job = sim.scratch[first + walked]
        else:
            job = take_first(sim, primary, n - walked, walked)
        walked += 1
        narrow -= int(jobs.processors[job] <= free)
        if starts_now(jobs, sim, job):
            start_behind(jobs, sim, job)
        elif misfits < most:
            reserve_hole(jobs, sim, job)
            misfits += 1
    return walked


@kernel(inlined=True)
def fill_up(jobs: Jobs, sim: Sim, primary: int, first: int, n: int) -> None:
    """Start what fits beside all reservations, in backfill order.

    Args:
        jobs: The job table.
        row: The simulation, its profile made and all reservations taken out of it; the jobs that
            were not walked listed in `scratch`.
        primary: The primary order.
        first: Place of the first of them.
        n: Number of jobs listed.

    Writes:
        The profile and `scratch`; what `start_waiting` writes.

    Source:
        Specification, section 8, "Reservation depth k".
    """
    left = 0
    for place in range(first, first + n):
        job = sim.scratch[place]
        if starts_now(jobs, sim, job):
            sim.scratch[left] = job
            left += 1
    which = make_backfill_order(jobs, sim, primary, left)
    for taken in range(left):
        job = take_first(sim, which, left - taken, taken)
        if starts_now(jobs, sim, job):
            start_behind(jobs, sim, job)
            if least_processors(sim, BASE) > sim.counter[FREE]:
                return


@kernel
def depth_pass(jobs: Jobs, sim: Sim, contested: bool) -> bool:
    """Make one scheduling pass with reservations for the first k misfits.

    Args:
        jobs: The job table.
        row: The simulation.
        contested: Whether orders of this instant decide; else the kept ones do, or any order gives
            the same starts.

    Returns:
        False if the picked job started and the pass stopped there, for a new decision.

    Writes:
        What `start_waiting` writes; SHADOW = -1; the profile, `scratch`, keys of orders that are
        not kept.

    Source:
        Mu'alem and Feitelson 2001; specification, section 4, "Conservative", `compress="rebuild"`,
        and section 8, "Reservation depth k".
    """
    primary, head = start_front(jobs, sim, contested)
    first = 0
    if not contested:
        list_jobs(sim, BASE, sim.scratch)
        first = 1  # the head is listed before the others; it was not taken out of the list
    if head >= 0 and sim.counter[N_WAITING] > 1 and sim.counter[FREE] > 0:
        make_profile(jobs, sim)
        reserve_hole(jobs, sim, head)
        n = sim.counter[N_WAITING] - 1
        walked = walk_queue(jobs, sim, primary, first, n)
        if walked < n and sim.setting[BACKFILL_RULE] != BY_BASE:
            fill_up(jobs, sim, primary, first and first + walked, n - walked)
    return head != -2
