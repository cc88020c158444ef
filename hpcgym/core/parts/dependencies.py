"""Jobs that wait out of sight: behind the job before them, for a think time, or held.

A job that is not eligible yet is not submitted to the scheduler. So the kernels number the jobs of
an episode by the instant at which each becomes eligible, ties by position in the job table; that
instant is `Jobs.submit_time`. Queues, thresholds and modes know of nothing else. Jobs not eligible
yet are numbered from `next_job` on, in any order: the first of them is the one to come next.

*Rows* are positions in the job table; the numbers of the kernels are *jobs*. Each simulation has
its own copies of the columns of `Jobs`, whose rows it exchanges. `Jobs.submit_time` is `NEVER` of
jobs from `next_job` on, but for the one to come next.

A job whose condition can no longer hold is *cancelled*: it takes the last number that no cancelled
job has, and is done. So the first `next_job` jobs are those that came.

An episode begins when the clock first moves. Each row is its job then, and the columns are as the
job table has them (`hpcgym.core.dependencies.begin`).

Cost, for n jobs: O(log n) for a submission, and for each successor of a job that ends.

Source: Specification, section 15, "Dependencies and holds".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import has_nodes
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.moments import event_number
from hpcgym.core.events import Event
from hpcgym.core.kernels.types import Counter, IntVector, Jobs, Sim, empty
from hpcgym.core.workload import Workload

HEARS = s.ON_SUBMIT | s.ON_END | s.ON_LOSE | s.COUNT_COMING


@dataclass(frozen=True)
class Dependencies(Event):
    """Jobs wait for the job before them, and for the end of holds."""

    NAME: ClassVar[str] = "dependencies"
    KNOWS: ClassVar[tuple[str, ...]] = ("nodes",)

    kind: str = "ignore"  # as `SettingList.dependencies`
    kills: bool = True  # whether jobs are killed at their requests, and then fail

    def cancels(self, workload: Workload) -> bool:
        """Tell whether jobs of a workload may be cancelled."""
        return self.kind != "ignore" and workload.condition is not None

    def numbers(self, workload: Workload) -> Sequence[int]:
        """Return n_jobs, then by row: where its successors begin, think time and earliest instant.

        The successors themselves follow, by predecessor and position; then, by row, conditions, and
        1 for jobs that fail.
        """
        n = len(workload)
        after = predecessors_of(workload, self.kind)
        think_time = np.zeros(n) if workload.think_time is None else workload.think_time
        successors = np.argsort(after, kind="stable")
        first = np.searchsorted(after[successors], np.arange(n + 1))
        condition = np.zeros(n) if workload.condition is None else workload.condition
        waits = think_time, earliest_of(workload, self.kind)
        columns = first, *waits, successors, condition, failing(workload, self.kills)
        numbers: list[int] = np.concatenate(columns).astype(np.int64).tolist()
        return [n, *numbers]


def predecessors_of(workload: Workload, kind: str) -> NDArray[np.int64]:
    """Return the row of the job that each waits for, shape (n_jobs,), -1 = none."""
    if kind == "ignore" or workload.after is None:
        return np.full(len(workload), -1)
    return workload.after


def failing(workload: Workload, kills: bool) -> NDArray[np.bool_]:
    """Tell which jobs fail if they run, shape (n_jobs,); with `kills` those over their requests."""
    fails = np.zeros(len(workload), dtype=np.bool_) if workload.fails is None else workload.fails
    return fails | (workload.run_time > workload.requested_time) if kills else fails


def earliest_of(workload: Workload, kind: str) -> NDArray[np.int64]:
    """Return when each job is eligible at the earliest, shape (n_jobs,), s."""
    earliest = workload.submit_time.copy()
    if kind == "feedback":
        earliest[predecessors_of(workload, kind) >= 0] = 0
    return earliest if workload.eligible is None else np.maximum(earliest, workload.eligible)


class DependencySim(Sim):
    """What dependencies add to a simulation."""

    n_coming: Counter  # jobs whose eligible instant is known, and to come
    has_begun: Counter  # 1 once those without a job before them are known

    coming: IntVector = empty("jobs")  # heap of their rows, by (instant, row)
    comes_at: IntVector = empty("jobs")  # when each row becomes eligible, s; `NEVER` = not known
    cancelled: IntVector = empty("jobs")  # the rows of cancelled jobs, in turn
    row_of: IntVector = empty("jobs")  # the row of each job
    job_of: IntVector = empty("jobs")  # the job of each row


@kernel(inlined=True)
def comes_before(sim: DependencySim, row: int, other: int) -> bool:
    """Tell whether a row becomes eligible before another; rows of one instant by position."""
    return sim.comes_at[row] < sim.comes_at[other] or (
        sim.comes_at[row] == sim.comes_at[other] and row < other
    )


@kernel
def push_coming(sim: DependencySim, row: int) -> None:
    """Put a row into the heap of those to come; write `coming` and `n_coming`."""
    position = sim.n_coming
    sim.n_coming = position + 1
    while position > 0:
        parent = (position - 1) // 2
        if not comes_before(sim, row, sim.coming[parent]):
            break
        sim.coming[position] = sim.coming[parent]
        position = parent
    sim.coming[position] = row


@kernel
def pop_coming(sim: DependencySim) -> None:
    """Take the first row out of the heap of those to come; write `coming` and `n_coming`."""
    n = sim.n_coming - 1
    sim.n_coming = n
    moved = sim.coming[n]
    position = 0
    while 2 * position + 1 < n:
        child = 2 * position + 1
        if child + 1 < n and comes_before(sim, sim.coming[child + 1], sim.coming[child]):
            child += 1
        if not comes_before(sim, sim.coming[child], moved):
            break
        sim.coming[position] = sim.coming[child]
        position = child
    sim.coming[position] = moved


@kernel(inlined=True)
def exchange(column: NDArray[Any], first: int, other: int) -> None:
    """Exchange two elements of a column."""
    column[first], column[other] = column[other], column[first]


@kernel
def exchange_rows(table: NDArray[Any], first: int, other: int) -> None:
    """Exchange two rows of a table."""
    for column in range(table.shape[1]):
        kept = table[first, column]
        table[first, column] = table[other, column]
        table[other, column] = kept


@kernel
def renumber(jobs: Jobs, sim: DependencySim, job: int, other: int) -> None:
    """Exchange the numbers of two jobs that are not eligible yet; write their columns and rows."""
    exchange(jobs.submit_time, job, other)
    exchange(jobs.run_time, job, other)
    exchange(jobs.estimate, job, other)
    exchange(jobs.requested_time, job, other)
    exchange(jobs.processors, job, other)
    exchange(jobs.size_class, job, other)
    exchange(jobs.user, job, other)
    exchange_rows(jobs.feature, job, other)
    exchange_rows(jobs.keys, job, other)
    if len(jobs.reward_rate) > 0:
        exchange(jobs.reward_rate, job, other)
        exchange(jobs.reward_onset, job, other)
    if len(jobs.field) > 0:
        exchange_rows(jobs.field, job, other)
    if has_nodes(jobs):
        exchange(jobs.chunks, job, other)
        exchange(jobs.shape, job, other)
        exchange(jobs.request, job, other)
        exchange(jobs.placed_first, job, other)
    if len(jobs.requeue) > 0:
        exchange(jobs.requeue, job, other)
    if len(jobs.known) > 0:
        exchange_rows(jobs.known, job, other)
    exchange(sim.row_of, job, other)
    sim.job_of[sim.row_of[job]] = job
    sim.job_of[sim.row_of[other]] = other


@kernel(inlined=True)
def come_at(jobs: Jobs, job: int, instant: int) -> None:
    """Write when a job comes, and with it from when on its wait costs."""
    if len(jobs.reward_onset) > 0:
        jobs.reward_onset[job] += instant - jobs.submit_time[job]
    jobs.submit_time[job] = instant


@kernel
def number_next(jobs: Jobs, sim: DependencySim) -> None:
    """Let the job to come next be `next_job`; write its submit time, `NEVER` if none is known."""
    if sim.next_job + sim.n_cancelled == sim.n_jobs:
        return
    come_at(jobs, sim.next_job, s.NEVER)
    if sim.n_coming == 0:
        return
    row = sim.coming[0]
    job = sim.job_of[row]
    if job != sim.next_job:
        renumber(jobs, sim, job, sim.next_job)
    come_at(jobs, sim.next_job, sim.comes_at[row])
    jobs.feature[sim.next_job, s.FEATURE_SUBMIT] = float(sim.comes_at[row])


@kernel
def begin(jobs: Jobs, sim: DependencySim) -> None:
    """Find the jobs without a job before them, and number the first to come."""
    sim.has_begun = 1
    n = sim.n_jobs
    for row in range(n):
        come_at(jobs, row, s.NEVER)
        sim.comes_at[row] = s.NEVER
    # Those that have one are successors, behind where those of row 0 begin.
    for rank in range(event_number(jobs, sim, 1)):
        row = event_number(jobs, sim, 2 + 3 * n + rank)
        sim.comes_at[row] = event_number(jobs, sim, 2 + 2 * n + row)
        push_coming(sim, row)
    number_next(jobs, sim)


@kernel
def count_coming(sim: DependencySim) -> int:
    """Count the jobs that come now; costs O(that number)."""
    n, position = 0, 0
    while True:
        # Whatever is below a job that comes later comes later, too.
        if position < sim.n_coming and sim.comes_at[sim.coming[position]] == sim.now:
            n += 1
            position = 2 * position + 1
            continue
        while position > 0 and position % 2 == 0:
            position = position // 2 - 1
        if position == 0:
            return n
        position += 1


@kernel
def on_submit(jobs: Jobs, sim: DependencySim, job: int) -> None:
    """Go on to the next job to come, unless this one was submitted before, and waits anew."""
    if sim.n_coming > 0 and sim.coming[0] == sim.row_of[job]:
        pop_coming(sim)
        number_next(jobs, sim)


@kernel
def cancel(jobs: Jobs, sim: DependencySim, row: int) -> None:
    """Let the job of a row, which has not come, be done; the caller numbers the next anew."""
    sim.n_cancelled += 1
    job = sim.n_jobs - sim.n_cancelled
    if sim.job_of[row] != job:
        renumber(jobs, sim, sim.job_of[row], job)
    come_at(jobs, job, s.NEVER)
    sim.n_started += 1
    sim.comes_at[row] = sim.start_time[job] = sim.now
    sim.flag[job] = s.FLAG_NO_RUN
    if len(sim.wasted) > 0:
        sim.wasted[job] = 0
    sim.cancelled[sim.n_cancelled - 1] = row


@kernel
def release(jobs: Jobs, sim: DependencySim, row: int, failed: bool) -> None:
    """Find when the successors of a job that is done become eligible, or cancel them."""
    n = event_number(jobs, sim, 0)
    for edge in range(event_number(jobs, sim, 1 + row), event_number(jobs, sim, 2 + row)):
        other = event_number(jobs, sim, 2 + 3 * n + edge)
        condition = event_number(jobs, sim, 2 + 4 * n + other)
        if condition != s.AFTER_END and (condition == s.AFTER_FAILURE) != failed:
            cancel(jobs, sim, other)
            continue
        begun = sim.now + event_number(jobs, sim, 2 + n + other)
        sim.comes_at[other] = max(begun, event_number(jobs, sim, 2 + 2 * n + other))
        push_coming(sim, other)


@kernel
def on_end(jobs: Jobs, sim: DependencySim, job: int) -> None:
    """Find what becomes of the jobs that wait for a job that ends, and for those cancelled then.

    A lost job has failed.
    """
    n, row = event_number(jobs, sim, 0), sim.row_of[job]
    if event_number(jobs, sim, 1 + row) == event_number(jobs, sim, 2 + row):
        return
    done = sim.n_cancelled
    is_lost = sim.flag[job] & s.FLAG_NO_RUN != 0
    release(jobs, sim, row, is_lost or event_number(jobs, sim, 2 + 5 * n + row) == 1)
    while done < sim.n_cancelled:
        release(jobs, sim, sim.cancelled[done], True)
        done += 1
    number_next(jobs, sim)


def work(jobs: Jobs, sim: DependencySim, task: int, argument: int) -> int:
    """Do a task for a simulation; `argument` is a job."""
    if task == s.NEXT_INSTANT:
        if sim.has_begun == 0:
            begin(jobs, sim)
        return s.NEVER
    if task == s.COUNT_COMING:
        return count_coming(sim)
    if task == s.ON_SUBMIT:
        on_submit(jobs, sim, argument)
    elif task in (s.ON_END, s.ON_LOSE):
        on_end(jobs, sim, argument)
    return 0
