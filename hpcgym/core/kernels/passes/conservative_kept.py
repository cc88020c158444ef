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
from hpcgym.core.kernels.queue.waiting_rows import seat_of
from hpcgym.core.kernels.running_jobs import next_release, start_waiting
from hpcgym.core.kernels.types import Jobs, Row
from hpcgym.core.state import (
    CORRECT,
    FIRST_UNPLANNED,
    FREE,
    N_PLANNED,
    N_SEATS,
    NEXT_JOB,
    NOW,
    REPLAN,
    SHADOW,
)


@kernel(inlined=True)
def plans_are_due(row: Row) -> bool:
    """Tell whether reservations are to be made or may have to move at this pass.

    Args:
        row: The simulation.

    Returns:
        True if a job has come, or one has not ended when it was estimated to or was corrected.

    Source:
        Specification, section 4, "Conservative", `compress="shift"`.
    """
    return (
        row.counter[REPLAN] == 1
        or row.counter[FIRST_UNPLANNED] < row.counter[NEXT_JOB]
        or next_release(row) <= row.counter[NOW]
    )


@kernel(inlined=True)
def take_reservations(jobs: Jobs, row: Row, n: int) -> None:
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
        job = row.scratch[place]
        if job >= row.counter[FIRST_UNPLANNED]:
            continue
        seat = seat_of(row, job)
        if row.planned_start[seat] < row.counter[NOW]:
            row.planned_start[seat] = -1
            row.counter[REPLAN] = 1
        else:
            take_interval(jobs, row, job, row.planned_start[seat])


@kernel(inlined=True)
def shift_reservations(jobs: Jobs, row: Row, n: int) -> bool:
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
        job = row.scratch[place]
        if job >= row.counter[FIRST_UNPLANNED]:
            continue
        seat = seat_of(row, job)
        before = row.planned_start[seat]
        if before == row.counter[NOW] and row.setting[CORRECT] == 0:
            continue
        if before >= 0:
            give_back_interval(jobs, row, job, before)
        row.planned_start[seat] = reserve_hole(jobs, row, job)
        moved = moved or row.planned_start[seat] != before
    return moved


@kernel
def plan_starts(jobs: Jobs, row: Row, n: int) -> None:
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
    make_profile(jobs, row)
    take_reservations(jobs, row, n)
    while row.counter[REPLAN] == 1:
        row.counter[REPLAN] = int(shift_reservations(jobs, row, n))
    for place in range(n):
        job = row.scratch[place]
        if job >= row.counter[FIRST_UNPLANNED]:
            row.planned_start[seat_of(row, job)] = reserve_hole(jobs, row, job)
    row.counter[N_PLANNED] = row.counter[N_SEATS]
    row.counter[FIRST_UNPLANNED] = row.counter[NEXT_JOB]


@kernel(inlined=True)
def start_planned(jobs: Jobs, row: Row, n: int) -> None:
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
        job = row.scratch[place]
        is_now = row.planned_start[seat_of(row, job)] == row.counter[NOW]
        if is_now and jobs.processors[job] <= row.counter[FREE]:
            start_waiting(jobs, row, job, some_wait)
        else:
            some_wait = True


@kernel
def shift_pass(jobs: Jobs, row: Row, contested: bool) -> None:
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
    row.counter[SHADOW] = -1
    n = list_in_order(jobs, row, contested)
    if plans_are_due(row):
        plan_starts(jobs, row, n)
    start_planned(jobs, row, n)
