"""One pass with reservations that are kept: conservative backfilling that shifts them.

A newcomer takes the earliest hole beside the reservations that others have. When a job ends before
its estimate, each waiting job in queue order, thresholded ones first, is taken out of the profile
and put in again at the earliest hole, never later than before; one job's move may make room for a
job before it, so this is done until none moves. A reservation can be lost only where jobs run past
their estimates: its job then takes the earliest hole at that sweep. Where an estimate is corrected,
each job whose reservation no longer fits moves later at that sweep.

Since no job could move, the earliest reservation is always the estimated end of a running job, so
that an event comes with it. A job counts as backfilled where it starts ahead of a job before it in
queue order that keeps waiting at that pass.

Cost of a pass, with n waiting and k running jobs: O(n) to list and start; where jobs have come,
O(n (k + n)) to make the profile and O(k + n) for each; after an early end O(n (k + n)) for each
sweep, and all but few passes need one that moves jobs and one that finds none to move.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.conservative import reserve_hole
from hpcgym.core.kernels.passes.easy_dynamic import list_in_order
from hpcgym.core.kernels.passes.profile import give_back_interval, make_profile, take_interval
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.running_jobs import next_release, start_waiting
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    CORRECT,
    FIRST_UNPLANNED,
    FREE,
    N_ENTRIES,
    N_PLANNED,
    NEXT_JOB,
    NOW,
    REPLAN,
    SHADOW,
)


@kernel(inlined=True)
def plans_are_due(sim: Sim) -> bool:
    """Tell whether reservations are to be made or may have to move at this pass.

    Args:
        row: The simulation.

    Returns:
        True if a job has come, or one has not ended when it was estimated to or was corrected.

    Source:
        Specification, section 4, "Conservative", `compress="shift"`.
    """
    return (
        sim.counter[REPLAN] == 1
        or sim.counter[FIRST_UNPLANNED] < sim.counter[NEXT_JOB]
        or next_release(sim) <= sim.counter[NOW]
    )


@kernel(inlined=True)
def take_reservations(jobs: Jobs, sim: Sim, n: int) -> None:
    """Take the reservations that are kept out of the profile of the running jobs.

    Args:
        jobs: The job table.
        row: The simulation, its profile just made, the waiting jobs listed in `scratch`.
        n: Number of jobs listed.

    Writes:
        The profile; `planned_start`, -1 for a reservation that has passed without a start, and then
        REPLAN = 1.

    Source:
        Specification, section 4, "Conservative", `compress="shift"`.
    """
    for place in range(n):
        job = sim.scratch[place]
        if job >= sim.counter[FIRST_UNPLANNED]:
            continue
        entry = entry_of(sim, job)
        if sim.planned_start[entry] < sim.counter[NOW]:
            sim.planned_start[entry] = -1
            sim.counter[REPLAN] = 1
        else:
            take_interval(jobs, sim, job, sim.planned_start[entry])


@kernel(inlined=True)
def shift_reservations(jobs: Jobs, sim: Sim, n: int) -> bool:
    """Let each job with a reservation move to the earliest hole, in queue order.

    Args:
        jobs: The job table.
        row: The simulation, all reservations taken out of its profile, the waiting jobs listed in
            `scratch` in queue order.
        n: Number of jobs listed.

    Returns:
        True if one has moved.

    Writes:
        The profile and `planned_start`.

    Source:
        Specification, section 4, "Conservative", `compress="shift"`.
    """
    moved = False
    for place in range(n):
        job = sim.scratch[place]
        if job >= sim.counter[FIRST_UNPLANNED]:
            continue
        entry = entry_of(sim, job)
        before = sim.planned_start[entry]
        if before == sim.counter[NOW] and sim.setting[CORRECT] == 0:
            continue
        if before >= 0:
            give_back_interval(jobs, sim, job, before)
        sim.planned_start[entry] = reserve_hole(jobs, sim, job)
        moved = moved or sim.planned_start[entry] != before
    return moved


@kernel
def plan_starts(jobs: Jobs, sim: Sim, n: int) -> None:
    """Shift the reservations there are, then make those of the newcomers, each in queue order.

    Args:
        jobs: The job table.
        row: The simulation, the waiting jobs listed in `scratch` in queue order.
        n: Number of jobs listed.

    Writes:
        The profile, `planned_start` of every waiting job, N_PLANNED, FIRST_UNPLANNED, REPLAN.

    Source:
        Mu'alem and Feitelson 2001; specification, section 4, "Conservative", `compress="shift"`.
    """
    make_profile(jobs, sim)
    take_reservations(jobs, sim, n)
    while sim.counter[REPLAN] == 1:
        sim.counter[REPLAN] = int(shift_reservations(jobs, sim, n))
    for place in range(n):
        job = sim.scratch[place]
        if job >= sim.counter[FIRST_UNPLANNED]:
            sim.planned_start[entry_of(sim, job)] = reserve_hole(jobs, sim, job)
    sim.counter[N_PLANNED] = sim.counter[N_ENTRIES]
    sim.counter[FIRST_UNPLANNED] = sim.counter[NEXT_JOB]


@kernel(inlined=True)
def start_planned(jobs: Jobs, sim: Sim, n: int) -> None:
    """Start the jobs whose reservation is now, in queue order.

    Args:
        jobs: The job table.
        row: The simulation, the waiting jobs listed in `scratch` in queue order, all with a
            reservation.
        n: Number of jobs listed.

    Writes:
        What `start_waiting` writes.

    Source:
        Specification, section 4, "Conservative", `compress="shift"`.
    """
    some_wait = False
    for place in range(n):
        job = sim.scratch[place]
        is_now = sim.planned_start[entry_of(sim, job)] == sim.counter[NOW]
        if is_now and jobs.processors[job] <= sim.counter[FREE]:
            start_waiting(jobs, sim, job, some_wait)
        else:
            some_wait = True


@kernel
def shift_pass(jobs: Jobs, sim: Sim, contested: bool) -> None:
    """Make one scheduling pass with reservations that are kept.

    Args:
        jobs: The job table.
        row: The simulation.
        contested: Whether the order of this instant decides; else the kept one does, or any order
            gives the same reservations.

    Writes:
        What `plan_starts` and `start_waiting` write; SHADOW = -1; `scratch`, keys of orders that
        are not kept.

    Source:
        Mu'alem and Feitelson 2001; specification, section 4, "Conservative", `compress="shift"`.
    """
    sim.counter[SHADOW] = -1
    n = list_in_order(jobs, sim, contested)
    if plans_are_due(sim):
        plan_starts(jobs, sim, n)
    start_planned(jobs, sim, n)
