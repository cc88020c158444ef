"""Gang scheduling: the rows of a matrix take turns on the machine, all processes of a job together.

A row of the Ousterhout matrix is a time slot, its columns are processors. It is no backfilling: a
job is suspended while other rows run. In plain Python, since its rates are exact fractions.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError, WorkloadError
from hpcgym.base.progress import steps
from hpcgym.core.backfill import OwnSimulator
from hpcgym.core.dependencies import dependencies_of
from hpcgym.core.prepare import executed_run_time
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.schedule.schedule import Schedule


@dataclass(frozen=True)
class Gang(OwnSimulator):
    """How gangs share the machine.

    Jobs are placed in order of submission, so the policy must be FCFS; estimates and the threshold
    have no effect.

    Source: Ousterhout 1982; lecture on batch scheduling; specification, section 4, "Gang
    scheduling".
    """

    NAME: ClassVar[str] = "gang"
    REASON: ClassVar[str] = "lets jobs take turns on processors"

    quantum: int = 600  # length of a row's turn, whole s >= 1
    switch: int = 0  # part of the quantum that switching takes, whole s, less than the quantum
    rows: float = math.inf  # largest number of rows, >= 1; infinite = as many as jobs need

    def __post_init__(self) -> None:
        for key, value, least in (("quantum", self.quantum, 1), ("switch", self.switch, 0)):
            if type(value) is not int or value < least:
                raise PolicyError(f"backfill 'gang': {key} must be whole s >= {least}, got {value}")
        if self.switch >= self.quantum:
            raise PolicyError(
                f"backfill 'gang': a switch of {self.switch} s leaves nothing of a quantum of "
                f"{self.quantum} s"
            )
        if self.rows != math.inf and (type(self.rows) is not int or self.rows < 1):
            raise PolicyError(f"backfill 'gang': rows must be >= 1 or inf, got {self.rows!r}")

    def simulate(self, workload: Workload, settings: SchedulerSettings) -> Schedule:
        """Schedule a workload for `hpcgym.simulate`."""
        schedule = simulate_gang(workload, self, kill_at_limit=settings.kill_at_limit)
        return replace(schedule, settings=settings)


def simulate_gang(
    workload: Workload, gang: Gang | None = None, *, kill_at_limit: bool = True
) -> Schedule:
    """Schedule a whole workload by gangs, as `hpcgym.simulate(workload, backfill="gang")` does.

    The schedule's `suspended_time` says how long each job was suspended.

    Raises:
        WorkloadError: The workload is empty.
        PolicyError: The machine has nodes, or jobs are held.

    Source: Ousterhout 1982; specification, section 4, "Gang scheduling".

    Example:
        >>> jobs = Workload.from_arrays([0, 0], [100, 200], [100, 200], [4, 4],
        ...                             machine_processors=4)
        >>> simulate_gang(jobs).end_time
        array([200, 300])
    """
    chosen = Gang() if gang is None else gang
    settings = SchedulerSettings(backfill=chosen, kill_at_limit=kill_at_limit)
    settings.refuse_on(workload.machine)
    dependencies_of(workload, settings)
    run_time = executed_run_time(workload, kill_at_limit)
    start_time, end_time = share_in_time(workload, run_time, chosen)
    never = np.zeros(len(workload), dtype=np.bool_)
    suspended = end_time - start_time - run_time
    return Schedule(workload, start_time, run_time, never, never, settings, suspended)


def share_in_time(
    workload: Workload, run_time: NDArray[np.int64], gang: Gang
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return start and end of jobs of given run times by gangs; all have shape (n_jobs,), s.

    A job starts when it gets its row; its end is rounded up to a whole second.

    At an instant, ends come first, then submissions, then jobs are placed in order of submission. A
    job without room does not block later ones. O(log n) for each of n jobs in the matrix, and a
    look at each row for each job that is placed or waits at an end.

    Raises:
        WorkloadError: The workload is empty.
    """
    if not len(workload):
        raise WorkloadError(f"{workload.name}: no job to schedule")
    matrix = Matrix(workload.machine_processors, gang)
    submit_time, processors = workload.submit_time.tolist(), workload.processors.tolist()
    n_jobs = len(submit_time)
    start_time, end_time = np.zeros(n_jobs, np.int64), np.zeros(n_jobs, np.int64)
    waiting: list[int] = []
    submitted = 0
    with steps(n_jobs, f"scheduling {workload.name}", "jobs", count=lambda: submitted):
        while submitted < n_jobs or matrix.ends:
            submission = submit_time[submitted] if submitted < n_jobs else math.inf
            matrix.advance(int(min(submission, matrix.next_end())))
            ended = matrix.remove_ended()
            end_time[ended] = matrix.now
            arrived = []
            while submitted < n_jobs and submit_time[submitted] == matrix.now:
                arrived.append(submitted)
                submitted += 1
            tried = waiting + arrived if ended else arrived
            placed = {
                job for job in tried if matrix.place(job, processors[job], int(run_time[job]))
            }
            start_time[list(placed)] = matrix.now
            waiting = [job for job in waiting + arrived if job not in placed]
    return start_time, end_time


class Matrix:
    """The Ousterhout matrix, its clock, and the clock of progress that all its jobs share.

    `rows` has the jobs of each row with their processors, no row empty; `ends` is a heap of the
    progress at which each job in the matrix ends.
    """

    def __init__(self, processors: int, gang: Gang) -> None:
        self.processors = processors
        self.gang = gang
        self.now = 0
        self.rows: list[dict[int, int]] = []
        self.ends: list[tuple[Fraction, int]] = []
        self._progress = Fraction(0)
        self._row_of: dict[int, dict[int, int]] = {}
        self._used = 0  # by all rows together
        self._busy, self._there = Fraction(0), 0

    @property
    def rate(self) -> Fraction:
        """Return the progress of each job per second."""
        turn = Fraction(self.gang.quantum - self.gang.switch, self.gang.quantum)
        return turn / len(self.rows)

    @property
    def utilisation(self) -> float:
        """Return the share of the processors that ran a job while the matrix held one.

        What is lost by switching counts as used.
        """
        return float(self._busy / self._there) if self._there else 0.0

    def next_end(self) -> float:
        """Return the whole second at which the next job will have ended, infinity if none runs."""
        if not self.ends:
            return math.inf
        return self.now + math.ceil((self.ends[0][0] - self._progress) / self.rate)

    def advance(self, instant: int) -> None:
        """Let the rows take turns until an instant."""
        if self.rows:
            span = instant - self.now
            self._progress += self.rate * span
            self._busy += Fraction(self._used * span, len(self.rows))
            self._there += self.processors * span
        self.now = instant

    def remove_ended(self) -> list[int]:
        """Remove the jobs that have ended, and rows that are empty; return the jobs."""
        ended = []
        while self.ends and self.ends[0][0] <= self._progress:
            job = heapq.heappop(self.ends)[1]
            self._used -= self._row_of.pop(job).pop(job)
            ended.append(job)
        if ended:
            self.rows = [row for row in self.rows if row]
        return ended

    def place(self, job: int, processors: int, run_time: int) -> bool:
        """Put a job into the first row with room, else into a new one; False if there is none."""
        for row in self.rows:
            if sum(row.values()) + processors <= self.processors:
                break
        else:
            if len(self.rows) >= self.gang.rows:
                return False
            row = {}
            self.rows.append(row)
        row[job] = processors
        self._row_of[job] = row
        self._used += processors
        heapq.heappush(self.ends, (self._progress + run_time, job))
        return True
