"""Multiple-queue backfilling: a reservation for the first eligible job of each class, its pivot.

Classes go by estimate (`hpcgym.core.kernels.passes.multi_queue_partitions`). The paper starts one
job and begins anew: the first pivot that fits now, else the first other job that fits beside the
reservations of all pivots. Here one walk and one sweep start the same jobs:

- A pivot that starts fits beside the pivots before it in queue order, so their reservations stay.
  The next pivot of its class is behind it. So one walk in queue order meets all pivots, and each
  takes the earliest hole beside those before it.
- A job that starts beside all reservations moves none and lets no refused job fit. So one sweep
  over the other jobs suffices.

The queue order is the policy's, overdue jobs first; with FCFS it is the paper's. Held jobs are
skipped (`hpcgym.core.kernels.passes.multi_queue_delay`).

Cost, with n waiting and m running jobs and c classes: O(n) to list, and O(n log n) where the order
changes with time. If an eligible job is narrow enough to start, the profile costs O(m). Each pivot
met, and each other job that is narrow enough, costs O(m + c).

Source: Lawson, Smirni, Puiu 2002, metric 4; Specification, section 7, "Multiple queue".
"""

from hpcgym.core.constants import BASE_ORDER, PICK_STARTED
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
from hpcgym.core.kernels.queue.ordered_queue import list_jobs, some_job_fits
from hpcgym.core.kernels.queue.selection import sort_listed
from hpcgym.core.kernels.running_jobs import start_waiting
from hpcgym.core.kernels.types import Jobs, Sim


@kernel(inlined=True)
def drop_held(sim: Sim, n: int) -> int:
    """Remove held jobs from n listed ones, keeping the order; return how many are left."""
    left = 0
    for place in range(n):
        job = sim.scratch[place]
        if not is_held(sim, job):
            sim.scratch[left] = job
            left += 1
    return left


@kernel(inlined=True)
def list_eligible(jobs: Jobs, sim: Sim, contested: bool) -> int:
    """List the eligible jobs in queue order in `scratch`, and return their number."""
    n = list_jobs(sim, BASE_ORDER, sim.scratch)
    primary = make_primary_order(jobs, sim, n) if contested else BASE_ORDER
    if sim.n_held > 0:
        n = drop_held(sim, n)
    if primary != BASE_ORDER:
        sort_listed(sim, primary, n)
    return n


@kernel(inlined=True)
def walk_pivots(jobs: Jobs, sim: Sim, n: int, narrow: int) -> int:
    """Start the pivots that fit now, and reserve for the others (the walk).

    Of n jobs listed in queue order, `narrow` want no more than the free processors. Return how many
    other jobs, listed first now in queue order, may still start; `PICK_STARTED` if the picked job
    started. Writes the profile, `scratch` and what `start_waiting` writes.
    """
    free = sim.free
    waiting = 0  # classes whose pivot waits, a bit each
    left = 0
    for place in range(n):
        job = sim.scratch[place]
        bit = 1 << class_of(jobs, sim, job)
        if waiting & bit != 0:
            sim.scratch[left] = job
            left += 1
            continue
        # A job that starts takes the hole at now; the next of its class becomes pivot.
        start = reserve_hole(jobs, sim, job)
        if start > sim.now or jobs.processors[job] > sim.free:
            waiting |= bit
        else:
            # It counts as backfilled if an eligible job before it keeps waiting; then a pivot does,
            # too.
            start_waiting(jobs, sim, job, waiting != 0)
            if waiting == 0:
                sim.checked_head = -1  # a start ahead of the head may delay it
            if job == sim.pick:
                return PICK_STARTED
        narrow -= int(jobs.processors[job] <= free)
        # Jobs set aside above still count as `narrow`, so at 0 none of them can start.
        if narrow == 0 or not some_job_fits(sim):
            return 0
    return left


@kernel
def multi_queue_pass(jobs: Jobs, sim: Sim, contested: bool) -> bool:
    """Make a pass with one reservation per class; return False if it stopped at the picked job.

    Writes what `walk_pivots` and `start_behind` write, and keys of `PASS_ORDER`.
    """
    n = list_eligible(jobs, sim, contested)
    narrow = count_narrow(jobs, sim, 0, n)
    if narrow == 0:
        return True
    make_profile(jobs, sim)
    left = walk_pivots(jobs, sim, n, narrow)
    for place in range(left):  # the sweep over the other jobs
        if starts_now(jobs, sim, sim.scratch[place]):
            start_behind(jobs, sim, sim.scratch[place])
    return left >= 0
