"""Forecasts of past queues: what was known at a submission, and what came.

The queue is put together again from the accounting, and its starts are forecast by limits, in order
of submission: the order of its day is not in the accounting.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.progress import steps
from hpcgym.core.threads import checked_threads
from hpcgym.core.workload import Workload
from hpcgym.schedule.simulate import simulate
from hpcgym.site.live.readings import UNLIMITED_S
from hpcgym.site.live.run_times import Past
from hpcgym.site.live.snapshot import Snapshot
from hpcgym.site.live.stage import BACKFILL, Stage

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

INSTANTS = 500  # queues that are put together, at most

NEVER = 2**62  # the start or the end of what has not started or ended, s

_WORK = 2e8  # squares of queue lengths, summed over all instants, at most
UNKNOWN_S = NEVER // 2  # waits beyond it have not ended
_FEW = 20  # instants whatever the work


class Jobs(NamedTuple):
    """Jobs of a machine in the order of the queue, by submission; arrays (n_jobs,), times s."""

    submit_time: IntArray
    start_time: IntArray  # `NEVER` of a job that waits
    end_time: IntArray  # `NEVER` of a job that runs or waits
    requested_time: IntArray
    processors: IntArray


class Forecasts(NamedTuple):
    """Forecasts, and what came; arrays (n_forecasts,), times s."""

    instant: IntArray
    is_new: BoolArray  # whether the job was submitted at the instant
    expected: IntArray  # wait from the instant on
    came: IntArray  # likewise, > `UNKNOWN_S` of a job that waits to this day

    def at(self, kept: BoolArray) -> Forecasts:
        """Return those that a mask keeps."""
        return Forecasts(
            self.instant[kept], self.is_new[kept], self.expected[kept], self.came[kept]
        )


def replay_of(stage: Stage) -> Forecasts:
    """Return forecasts of the past queues of a machine."""
    return replay(jobs_of(stage.snapshot, stage.past), stage.snapshot.cpus)


def jobs_of(snapshot: Snapshot, past: Past) -> Jobs:
    """Return the jobs that have ended, that run, and that wait on a machine."""
    here = np.isin(past.partition.astype(str), [*snapshot.partitions, ""])
    here &= (past.processors >= 1) & (past.processors <= snapshot.cpus)
    kept = np.flatnonzero(here)[np.argsort(past.row[here])]
    rows = np.column_stack(
        [
            past.submit_time[kept],
            past.end_time[kept] - past.run_time[kept],
            past.end_time[kept],
            np.where(past.requested_time >= 1, past.requested_time, UNLIMITED_S)[kept],
            past.processors[kept],
        ]
    )
    live = [
        (job.eligible_time or job.submit_time, job.start_time, NEVER, job.limit_s, cpus)
        for job, cpus in snapshot.running
    ]
    for job in snapshot.waiting:
        live += [(snapshot.begins(job), NEVER, NEVER, job.limit_s, job.cpus)] * job.tasks
    rows = np.concatenate([rows, np.array(live, dtype=np.int64).reshape(-1, 5)])
    return Jobs(*rows[np.argsort(rows[:, 0], kind="stable")].T)


def replay(jobs: Jobs, processors: int, most: int = INSTANTS) -> Forecasts:
    """Forecast the starts of past queues, each at a submission.

    What had ended before the first end that is known is not in the accounting, so instants are
    later ones. A job that started at an instant counts only where it was submitted then: a queue is
    read after what fits has started.
    """
    instants, made = _instants(jobs, most), [np.zeros((0, 4), np.int64)]

    def at(row: int) -> IntArray:
        now = jobs.submit_time[row]
        runs, waits = _queue_at(jobs, row)
        if not len(waits):  # the job itself took no time
            return made[0]
        starts = _starts(jobs, processors, now, runs, waits)
        came = jobs.start_time[waits] - now
        is_new = waits == row
        columns = (np.full(len(waits), now), is_new, starts, came)
        counted: IntArray = np.column_stack(columns)[is_new | (came > 0)]
        return counted

    with (
        steps(len(instants), "replaying the accounting", "queues") as progress,
        ThreadPoolExecutor(checked_threads(None)) as pool,
    ):
        for each in pool.map(at, instants.tolist()):
            made.append(each)
            progress.advance()
    instant, is_new, expected, came = np.concatenate(made).T
    return Forecasts(instant, is_new == 1, expected, came)


def _instants(jobs: Jobs, most: int) -> IntArray:
    """Return rows at whose submissions queues are put together, evenly spaced among rows."""
    ended = jobs.end_time < NEVER
    if not ended.any():
        return np.zeros(0, dtype=np.int64)
    since, until = jobs.end_time[ended].min(), jobs.end_time[ended].max()
    rows = np.flatnonzero((jobs.submit_time >= since) & (jobs.submit_time <= until))
    submitted = jobs.submit_time[rows]
    begun = np.searchsorted(jobs.submit_time, submitted, "right")
    there = begun - np.searchsorted(np.sort(jobs.end_time), submitted, "right")
    mean_work = float(np.mean(there.astype(float) ** 2)) if len(rows) else 1.0
    count = min(most, len(rows), max(int(_WORK / max(mean_work, 1.0)), _FEW))
    return rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]


def _queue_at(jobs: Jobs, row: int) -> tuple[IntArray, IntArray]:
    """Return the rows that ran and that waited when one was submitted, itself the last."""
    now = jobs.submit_time[row]
    alive = np.flatnonzero(jobs.end_time[: row + 1] > now)
    running = jobs.start_time[alive] < now
    return alive[running], alive[~running]


def _starts(jobs: Jobs, processors: int, now: int, runs: IntArray, waits: IntArray) -> IntArray:
    """Forecast starts of jobs that wait, s from now on, as `Stage.starts` does by limits."""
    left = np.maximum(jobs.requested_time[runs] + jobs.start_time[runs] - now, 1)
    limits = np.concatenate([left, jobs.requested_time[waits]])
    held = jobs.processors[np.concatenate([runs, waits])]
    queue = Workload.from_arrays(
        np.zeros(len(held), dtype=np.int64),
        limits,
        limits,
        held,
        machine_processors=max(processors, int(held[: len(runs)].sum())),
    )
    starts: IntArray = simulate(queue, "FCFS", backfill=BACKFILL).start_time[len(runs) :]
    return starts
