"""One pass with a reservation for the first job of each class: multiple-queue backfilling.

Classes go by estimate (`hpcgym.core.kernels.passes.multi_queue_partitions`). The first eligible
job of a class in
queue order is its pivot. The paper starts one job and begins anew: the first pivot that fits now,
else the first other job that fits beside the reservations of all pivots. Here one walk and one
sweep do the same:

- A start leaves the reservations of the pivots before it in queue order as they were, since it fits
  beside them, and the next pivot of its class stands behind it. So pivots are met in one walk in
  queue order, each taking the earliest hole beside those before it.
- A start that fits beside all reservations moves none, and lets no job fit that was refused. So one
  sweep over the others suffices.

The queue order is that of the policy, thresholded jobs first; with FCFS it is the paper's. A
job whose delay is not over is skipped (`hpcgym.core.kernels.passes.multi_queue_delay`). A job
counts as backfilled
where it starts ahead of an eligible job before it in queue order that keeps waiting at that pass.

Cost of a pass, with n waiting and k running jobs and c classes: O(n) to list, O(k) for the profile,
O(k + c) for each pivot that is met and each other job narrow enough to be tried; O(n log n) more
where the order changes with time. No profile is made where no eligible job is narrow enough.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.conservative import (
    count_narrow,
    reserve_hole,
    start_behind,
    starts_now,
)
from hpcgym.core.kernels.passes.easy_dynamic import make_primary_order
from hpcgym.core.kernels.passes.multi_queue_delay import is_held
from hpcgym.core.kernels.passes.multi_queue_partitions import class_of
from hpcgym.core.kernels.passes.profile import make_profile
from hpcgym.core.kernels.queue.ordered_queue import least_processors, list_jobs
from hpcgym.core.kernels.queue.selection import sort_listed
from hpcgym.core.kernels.running_jobs import start_waiting
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import BASE, CHECKED_HEAD, FREE, N_HELD, NOW, PICK, SHADOW


@kernel(inlined=True)
def drop_held(sim: Sim, n: int) -> int:
    """Leave the jobs out of a list that are out of sight.

    Args:
        row: The simulation, the waiting jobs listed in `scratch`.
        n: Number of jobs listed.

    Returns:
        Number of jobs listed from now on, in the same order.

    Writes:
        `scratch`.

    Source:
        Specification, section 7: a job not yet eligible is invisible.
    """
    left = 0
    for place in range(n):
        job = sim.scratch[place]
        if not is_held(sim, job):
            sim.scratch[left] = job
            left += 1
    return left


@kernel(inlined=True)
def list_eligible(jobs: Jobs, sim: Sim, contested: bool) -> int:
    """List the waiting jobs that can be seen, in queue order.

    Args:
        jobs: The job table.
        row: The simulation.
        contested: Whether the order of this instant decides; else the kept one does.

    Returns:
        Number of jobs listed.

    Writes:
        `scratch`; keys of orders that are not kept.

    Source:
        Specification, section 1, "Queue order".
    """
    n = list_jobs(sim, BASE, sim.scratch)
    primary = make_primary_order(jobs, sim) if contested else BASE
    if sim.counter[N_HELD] > 0:
        n = drop_held(sim, n)
    if primary != BASE:
        sort_listed(sim, primary, n)
    return n


@kernel(inlined=True)
def walk_pivots(jobs: Jobs, sim: Sim, n: int, narrow: int) -> int:
    """Start the pivots that fit now, and reserve for those that do not (steps 1 and 2).

    Args:
        jobs: The job table.
        row: The simulation, its profile made, the eligible jobs listed in `scratch` in queue order.
        n: Number of jobs listed.
        narrow: How many of them want no more processors than are free.

    Returns:
        Number of other jobs that may still start, the first of `scratch` in queue order; -1 if the
        picked job started.

    Writes:
        The profile and `scratch`; what `start_waiting` writes.

    Source:
        Lawson, Smirni, Puiu 2002, figure 4; specification, section 7, steps 1 and 2.
    """
    free = sim.counter[FREE]
    waiting = 0  # classes whose pivot waits, a bit each
    left = 0
    for place in range(n):
        job = sim.scratch[place]
        bit = 1 << class_of(jobs, sim, job)
        if waiting & bit != 0:
            sim.scratch[left] = job
            left += 1
            continue
        start = reserve_hole(jobs, sim, job)
        if start > sim.counter[NOW] or jobs.processors[job] > sim.counter[FREE]:
            waiting |= bit
        else:
            start_waiting(jobs, sim, job, waiting != 0)
            if waiting == 0:
                sim.counter[CHECKED_HEAD] = -1  # a start ahead of the head may delay it
            if job == sim.counter[PICK]:
                return -1
        narrow -= int(jobs.processors[job] <= free)
        if narrow == 0 or least_processors(sim, BASE) > sim.counter[FREE]:
            return 0
    return left


@kernel
def multi_queue_pass(jobs: Jobs, sim: Sim, contested: bool) -> bool:
    """Make one scheduling pass with a reservation for the pivot of each class.

    Args:
        jobs: The job table.
        row: The simulation.
        contested: Whether the order of this instant decides; else the kept one does, or any order
            gives the same starts.

    Returns:
        False if the picked job started and the pass stopped there, for a new decision.

    Writes:
        What `start_waiting` writes; SHADOW = -1; the profile, `scratch`, keys of orders that are
        not kept.

    Source:
        Lawson, Smirni, Puiu 2002, figure 4; specification, section 7, "Multiple queue".
    """
    sim.counter[SHADOW] = -1
    n = list_eligible(jobs, sim, contested)
    narrow = count_narrow(jobs, sim, 0, n)
    if narrow == 0:
        return True
    make_profile(jobs, sim)
    left = walk_pivots(jobs, sim, n, narrow)
    for place in range(left):  # step 3
        if starts_now(jobs, sim, sim.scratch[place]):
            start_behind(jobs, sim, sim.scratch[place])
    return left >= 0
