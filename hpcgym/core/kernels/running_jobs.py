"""Jobs on the machine: in order of their true ends, and in order of their estimated ends.

The simulation moves by the true ends; the scheduler sees the estimated ones. Both lists are kept
with the soonest end last: a start or an end costs a shift of the entries that end sooner, few where
jobs end near their estimates, at most n_running.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.env.reward import end_cost
from hpcgym.core.kernels.passes.multi_queue_delay import record_slowdown
from hpcgym.core.kernels.passes.multi_queue_partitions import occupy_partition, vacate_partition
from hpcgym.core.kernels.queue.ordered_queue import take_out
from hpcgym.core.kernels.queue.waiting_rows import leave_seat
from hpcgym.core.kernels.scoring.regression_update import learn_from
from hpcgym.core.kernels.scoring.user_estimates import is_expected
from hpcgym.core.kernels.scoring.user_history import record_completion
from hpcgym.core.kernels.types import Jobs, Row
from hpcgym.core.state import (
    BACKFILL,
    BACKFILL_MULTI_QUEUE,
    BACKFILLED,
    BASE,
    EXPECT_BY_REGRESSION,
    FILL,
    FILL_KEEPS,
    FIRST_DELAY,
    FREE,
    KEEP_HISTORY,
    KEEP_REWARD,
    N_EVENTS,
    N_OVERDUE,
    N_RELEASES,
    N_RUNNING,
    N_STARTED,
    NEVER,
    NEXT_OVERDUE,
    NOW,
    PYSS,
    REPLAN,
    SEMANTICS,
    THRESHOLDED,
    WAITING_AREA,
    WAITING_PROCESSORS,
)


@kernel(inlined=True)
def is_overdue(row: Row, job: int) -> bool:
    """Tell whether a waiting job is beyond the threshold.

    Args:
        row: The simulation.
        job: Index of a waiting job.

    Returns:
        True if it was found beyond the threshold at this pass or an earlier one.

    Source:
        Specification, section 1, "Queue order": crossing is not an event.
    """
    return job < row.counter[NEXT_OVERDUE]


@kernel(inlined=True)
def add_running(jobs: Jobs, row: Row, job: int) -> None:
    """Enter a job that starts now into both lists.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of the job.

    Writes:
        `ending_*` (ties: the earlier job ends first; in `pyss` semantics, the one that started
        first) and `release_*`, N_RUNNING, N_RELEASES.

    Source:
        House rule: struct of arrays.
    """
    now = row.counter[NOW]
    end = now + jobs.run_time[job]
    place = row.counter[N_RUNNING]
    row.counter[N_RUNNING] = place + 1
    in_turn = row.setting[SEMANTICS] == PYSS
    while place > 0 and (
        row.ending_time[place - 1] < end
        or (row.ending_time[place - 1] == end and (in_turn or row.ending_job[place - 1] < job))
    ):
        row.ending_time[place] = row.ending_time[place - 1]
        row.ending_job[place] = row.ending_job[place - 1]
        place -= 1
    row.ending_time[place] = end
    row.ending_job[place] = job

    release = now + jobs.estimate[job]
    place = row.counter[N_RELEASES]
    row.counter[N_RELEASES] = place + 1
    while place > 0 and row.release_time[place - 1] < release:
        row.release_time[place] = row.release_time[place - 1]
        row.release_job[place] = row.release_job[place - 1]
        place -= 1
    row.release_time[place] = release
    row.release_job[place] = job


@kernel(inlined=True)
def remove_release(jobs: Jobs, row: Row, job: int) -> bool:
    """Strike a job out of the list of estimated ends.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a job that has started.

    Returns:
        False if it had been struck out before.

    Writes:
        `release_*`, N_RELEASES.

    Source:
        House rule: struct of arrays.
    """
    release = row.start_time[job] + jobs.estimate[job]
    last = row.counter[N_RELEASES] - 1
    place = last
    while place >= 0 and (row.release_time[place] < release or row.release_job[place] != job):
        if row.release_time[place] > release:
            return False
        place -= 1
    if place < 0:
        return False
    for other in range(place, last):
        row.release_time[other] = row.release_time[other + 1]
        row.release_job[other] = row.release_job[other + 1]
    row.counter[N_RELEASES] = last
    return True


@kernel(inlined=True)
def start_job(jobs: Jobs, row: Row, job: int, backfilled: bool) -> None:
    """Start a job now that stands in no queue.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a submitted job that fits.
        backfilled: Whether it starts ahead of a job before it in queue order that keeps waiting.

    Writes:
        The job's seat, start and flags, both running lists, partitions, all counts.

    Source:
        Specification, section 1, "EASY pass".
    """
    flag = BACKFILLED if backfilled else 0
    if is_overdue(row, job):
        flag |= THRESHOLDED
        row.counter[N_OVERDUE] -= 1
    leave_seat(row, job)
    row.start_time[job] = row.counter[NOW]
    row.flag[job] = flag
    row.counter[FREE] -= jobs.processors[job]
    row.counter[N_STARTED] += 1
    row.counter[WAITING_PROCESSORS] -= jobs.processors[job]
    row.counter[WAITING_AREA] -= jobs.processors[job] * jobs.estimate[job]
    add_running(jobs, row, job)
    if row.setting[BACKFILL] == BACKFILL_MULTI_QUEUE:
        occupy_partition(jobs, row, job)
    if row.setting[KEEP_REWARD] == 1:
        end_cost(jobs, row, job)


@kernel
def start_waiting(jobs: Jobs, row: Row, job: int, backfilled: bool) -> None:
    """Start a job of the queues now.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a waiting job that fits.
        backfilled: Whether it starts ahead of a job before it in queue order that keeps waiting.

    Writes:
        The queues the job stands in, and what `start_job` writes.

    Source:
        Specification, section 1, "EASY pass".
    """
    take_out(jobs, row, BASE, job)
    if row.setting[FILL_KEEPS] == 1:
        take_out(jobs, row, FILL, job)
    start_job(jobs, row, job, backfilled)


@kernel(inlined=True)
def next_completion(row: Row) -> int:
    """Return the instant at which the next running job ends.

    Args:
        row: The simulation.

    Returns:
        s, `NEVER` if nothing runs.

    Source:
        House rule: one word per thing.
    """
    if row.counter[N_RUNNING] == 0:
        return NEVER
    return row.ending_time[row.counter[N_RUNNING] - 1]


@kernel(inlined=True)
def next_release(row: Row) -> int:
    """Return the instant at which the next running job is estimated to end.

    Args:
        row: The simulation.

    Returns:
        s, perhaps past; `NEVER` if nothing runs.

    Source:
        House rule: one word per thing.
    """
    if row.counter[N_RELEASES] == 0:
        return NEVER
    return row.release_time[row.counter[N_RELEASES] - 1]


@kernel(inlined=True)
def complete_job(jobs: Jobs, row: Row) -> None:
    """Let the next running job end.

    Args:
        jobs: The job table.
        row: The simulation, its clock at that job's end.

    Writes:
        Both running lists, FREE, partitions and the delay, the user's history and the regression;
        REPLAN = 1 if the job was not estimated to end now. In `pyss` semantics the processors of a
        job whose estimated end has come are free already.

    Source:
        Specification, section 1, "One instant".
    """
    last = row.counter[N_RUNNING] - 1
    job = row.ending_job[last]
    row.counter[N_RUNNING] = last
    row.counter[N_EVENTS] += 1
    has_classes = row.setting[BACKFILL] == BACKFILL_MULTI_QUEUE
    if remove_release(jobs, row, job):
        row.counter[FREE] += jobs.processors[job]
        if has_classes:
            vacate_partition(jobs, row, job)
        if row.start_time[job] + jobs.estimate[job] != row.counter[NOW]:
            row.counter[REPLAN] = 1
    if has_classes and row.backfill_parameter[FIRST_DELAY] > 0.0:
        record_slowdown(jobs, row, job)
    if row.setting[KEEP_HISTORY] != 0:
        if is_expected(row, EXPECT_BY_REGRESSION):
            learn_from(jobs, row, job)
        record_completion(jobs, row, job)


@kernel(inlined=True)
def release_estimated(jobs: Jobs, row: Row) -> None:
    """Count as free the processors of every job whose estimated end has come (`pyss` semantics).

    Args:
        jobs: The job table.
        row: The simulation.

    Writes:
        N_RELEASES, FREE, partitions.

    Source:
        Specification, section 1, `event_semantics="pyss"`.
    """
    if row.setting[SEMANTICS] != PYSS:
        return
    last = row.counter[N_RELEASES] - 1
    while last >= 0 and row.release_time[last] <= row.counter[NOW]:
        row.counter[FREE] += jobs.processors[row.release_job[last]]
        if row.setting[BACKFILL] == BACKFILL_MULTI_QUEUE:
            vacate_partition(jobs, row, row.release_job[last])
        last -= 1
    row.counter[N_RELEASES] = last + 1
