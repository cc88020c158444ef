"""The delay of long jobs, and how it adapts to the slowdown of short ones.

A job of the last class is held out of sight from its submission until the delay of that instant is
over: it is no pivot, holds no reservation and is not started. The end of its delay is an event.
Jobs that are held stand in a list with the soonest end last: O(1) to look for it, and a shift of
the entries that end sooner to put a job in. The delay is looked at once in `BATCH_JOBS`
completions; the work for each completion is constant.
"""

import math

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.multi_queue_partitions import class_of
from hpcgym.core.kernels.types import Jobs, Row
from hpcgym.core.state import (
    BATCH_JOBS,
    BATCH_SLOWDOWN,
    DELAY,
    FIRST_DELAY,
    HELD,
    LAST_SLOWDOWN,
    N_BATCH,
    N_BATCH_SHORT,
    N_CLASSES,
    N_EVENTS,
    N_HELD,
    NEVER,
    PRINTED_DELTA,
    TOLERANCE,
)


@kernel(inlined=True)
def is_held(row: Row, job: int) -> bool:
    """Tell whether a waiting job is out of sight.

    Args:
        row: The simulation.
        job: Index of a waiting job.

    Returns:
        True until its delay is over.

    Source:
        Lawson, Smirni, Puiu 2002, section 4.2.
    """
    return row.flag[job] & HELD != 0


@kernel(inlined=True)
def next_eligible(row: Row) -> int:
    """Return the instant at which the next delay is over.

    Args:
        row: The simulation.

    Returns:
        s, `NEVER` if no job is held.

    Source:
        Specification, section 7: the expiry is an event.
    """
    if row.counter[N_HELD] == 0:
        return NEVER
    return row.held_time[row.counter[N_HELD] - 1]


@kernel
def hold_job(jobs: Jobs, row: Row, job: int) -> None:
    """Hold a newcomer back if it is of the last class and there is a delay now.

    Args:
        jobs: The job table.
        row: The simulation, its clock at the submission.
        job: Index of the newcomer.

    Writes:
        HELD in the job's flag, `held_*` (ties: the earlier job first), N_HELD.

    Source:
        Lawson, Smirni, Puiu 2002, section 4.2: not before t_s + D, the D of its submission.
    """
    is_last = class_of(jobs, row, job) == int(row.backfill_parameter[N_CLASSES]) - 1
    if not is_last or row.gauge[DELAY] <= 0.0:
        return
    end = jobs.submit_time[job] + math.ceil(row.gauge[DELAY])
    place = row.counter[N_HELD]
    row.counter[N_HELD] = place + 1
    while place > 0 and row.held_time[place - 1] <= end:
        row.held_time[place] = row.held_time[place - 1]
        row.held_job[place] = row.held_job[place - 1]
        place -= 1
    row.held_time[place] = end
    row.held_job[place] = job
    row.flag[job] = HELD


@kernel(inlined=True)
def admit_job(row: Row) -> None:
    """Let the job whose delay is over next be seen.

    Args:
        row: The simulation, its clock at that instant.

    Writes:
        The job's flag, N_HELD, N_EVENTS.

    Source:
        Specification, section 7: the expiry is an event.
    """
    row.counter[N_HELD] -= 1
    row.counter[N_EVENTS] += 1
    row.flag[row.held_job[row.counter[N_HELD]]] = 0


@kernel
def record_slowdown(jobs: Jobs, row: Row, job: int) -> None:
    """Count a completed job into its batch, and close the batch if it is the last one.

    Args:
        jobs: The job table.
        row: The simulation, its clock at the job's end.
        job: Index of the job.

    Writes:
        N_BATCH, N_BATCH_SHORT, BATCH_SLOWDOWN; what `close_batch` writes.

    Source:
        Lawson, Smirni, Puiu 2002, section 4.2; specification, section 7: short means class 1, and
        jobs without a run time have no slowdown.
    """
    run_time = jobs.run_time[job]
    if run_time > 0 and class_of(jobs, row, job) == 0:
        wait = row.start_time[job] - jobs.submit_time[job]
        row.gauge[BATCH_SLOWDOWN] += 1.0 + wait / run_time
        row.counter[N_BATCH_SHORT] += 1
    row.counter[N_BATCH] += 1
    if row.counter[N_BATCH] >= row.backfill_parameter[BATCH_JOBS]:
        close_batch(row)


@kernel
def close_batch(row: Row) -> None:
    """Change the delay by how much the slowdown of short jobs has changed (steps 1 to 3).

    A batch without short jobs changes nothing; the first batch with some is the first of all.

    Args:
        row: The simulation.

    Writes:
        DELAY, LAST_SLOWDOWN; the batch's sums, to 0.

    Source:
        Lawson, Smirni, Puiu 2002, section 4.2; specification, section 7, "Adaptive delay".
    """
    if row.counter[N_BATCH_SHORT] > 0:
        slowdown = row.gauge[BATCH_SLOWDOWN] / row.counter[N_BATCH_SHORT]
        last = row.gauge[LAST_SLOWDOWN]
        change = 0.0
        if last > 0.0:
            change = (slowdown - last) / max(slowdown, last)  # step 1
        elif row.backfill_parameter[PRINTED_DELTA] == 1.0:
            change = slowdown
        if abs(change) > row.backfill_parameter[TOLERANCE]:  # step 2, else step 3
            changed = row.gauge[DELAY] + change * row.backfill_parameter[FIRST_DELAY]
            row.gauge[DELAY] = max(changed, 0.0)
        row.gauge[LAST_SLOWDOWN] = slowdown
    row.gauge[BATCH_SLOWDOWN] = 0.0
    row.counter[N_BATCH] = 0
    row.counter[N_BATCH_SHORT] = 0
