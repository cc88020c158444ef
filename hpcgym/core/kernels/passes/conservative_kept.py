"""Conservative backfilling whose reservations are kept, and move to earlier holes as they open.

A newcomer takes the earliest hole beside the reservations of the others. When a job ends before its
estimate, the waiting jobs are swept in queue order, overdue ones first. Each gives its interval
back and takes the earliest hole, never later than before. One move may make room for a job before
it in queue order, so such sweeps are made until no job moves.

A reservation is lost only where a job runs past its estimate: its job takes the earliest hole at
that sweep. Where an estimate is corrected, each job whose reservation no longer fits moves later at
that sweep.

Since no job can move, the earliest reservation is always the estimated end of a running job. So an
event comes with it, and reservations need no events themselves.

Cost of a pass, with n waiting and m running jobs: O(n) to list and start. Where jobs have come, it
is O(n (m + n)) for the profile and O(m + n) for each newcomer. After an early end it is
O(n (m + n)) for each sweep; most such passes need one that moves jobs and one that finds none to
move.

Source: Mu'alem and Feitelson 2001; Specification, section 4, "Conservative" (`compress="shift"`).
"""

from hpcgym.core.constants import CORRECT_NOT
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.conservative import reserve_hole
from hpcgym.core.kernels.passes.easy_dynamic import list_in_order
from hpcgym.core.kernels.passes.profile import give_back_interval, make_profile, take_interval
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.running_jobs import next_release, start_waiting
from hpcgym.core.kernels.types import Jobs, Sim


@kernel(inlined=True)
def plans_are_due(sim: Sim) -> bool:
    """Tell whether reservations must be made or may have to move at this pass."""
    # An early end or a correction; a newcomer; a job that has not ended when it was estimated to.
    return sim.replan == 1 or sim.first_unplanned < sim.next_job or next_release(sim) <= sim.now


@kernel(inlined=True)
def take_reservations(jobs: Jobs, sim: Sim, n: int) -> None:
    """Take the kept reservations of n listed jobs out of the profile of the running jobs.

    Writes the profile; for a missed reservation `planned_start` = -1 and `replan` = 1.
    """
    for place in range(n):
        job = sim.scratch[place]
        if job >= sim.first_unplanned:
            continue
        entry = entry_of(sim, job)
        # It passed without a start: a job ran past its estimate.
        if sim.planned_start[entry] < sim.now:
            sim.planned_start[entry] = -1
            sim.replan = 1
        else:
            take_interval(jobs, sim, job, sim.planned_start[entry])


@kernel(inlined=True)
def shift_reservations(jobs: Jobs, sim: Sim, n: int) -> bool:
    """Move the reservation of each of n listed jobs, in queue order, to its earliest hole.

    Return True if one moved. Writes the profile and `planned_start`.
    """
    moved = False
    for place in range(n):
        job = sim.scratch[place]
        if job >= sim.first_unplanned:
            continue
        entry = entry_of(sim, job)
        before = sim.planned_start[entry]
        # It cannot move earlier. After a correction, however, it may not fit any more.
        if before == sim.now and sim.correct == CORRECT_NOT:
            continue
        if before >= 0:
            give_back_interval(jobs, sim, job, before)
        sim.planned_start[entry] = reserve_hole(jobs, sim, job)
        moved = moved or sim.planned_start[entry] != before
    return moved


@kernel
def plan_starts(jobs: Jobs, sim: Sim, n: int) -> None:
    """Shift the kept reservations of n jobs listed in queue order, then make the newcomers'.

    Writes the profile, `planned_start`, `n_planned`, `first_unplanned` and `replan`.
    """
    make_profile(jobs, sim)
    take_reservations(jobs, sim, n)
    while sim.replan == 1:
        sim.replan = int(shift_reservations(jobs, sim, n))
    for place in range(n):
        job = sim.scratch[place]
        if job >= sim.first_unplanned:
            sim.planned_start[entry_of(sim, job)] = reserve_hole(jobs, sim, job)
    sim.n_planned = sim.n_entries
    sim.first_unplanned = sim.next_job


@kernel(inlined=True)
def start_planned(jobs: Jobs, sim: Sim, n: int) -> None:
    """Start those of n listed jobs whose reservation is now, in queue order.

    Writes what `start_waiting` writes.
    """
    some_wait = False
    for place in range(n):
        job = sim.scratch[place]
        is_now = sim.planned_start[entry_of(sim, job)] == sim.now
        # A job past its estimate may still hold processors that the plan counts on.
        if is_now and jobs.processors[job] <= sim.free:
            # It counts as backfilled if a job before it in queue order keeps waiting.
            start_waiting(jobs, sim, job, some_wait)
        else:
            some_wait = True


@kernel
def shift_pass(jobs: Jobs, sim: Sim, contested: bool) -> None:
    """Make a conservative pass with reservations that are kept.

    Writes what `plan_starts` and `start_planned` write.
    """
    n = list_in_order(jobs, sim, contested)
    if plans_are_due(sim):
        plan_starts(jobs, sim, n)
    start_planned(jobs, sim, n)
