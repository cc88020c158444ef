"""Attempts: how often each job was started, what ended each in vain, and what that wasted.

A schedule has attempts where its mode may take a job off the machine again, as trials do, or an
event, as outages do. The last attempt of a job is its useful run, but for lost jobs, which have
none. The processor time of the others is waste, and so is the time that an attempt holds processors
before it runs usefully or after it was killed.

Source: Specification, section 15.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.core.simulator import Simulator
    from hpcgym.core.state import State
    from hpcgym.core.workload import Workload

IntArray = NDArray[np.int64]

REASONS = ("trial over", "evicted", "gave way", "node down")
"""Why an attempt ended in vain, in the order of `hpcgym.core.constants.TRIAL_OVER` and so on."""

COMPLETED, KILLED = "completed", "killed at its request"  # how a job's last attempt ended

ATTEMPT_COLUMNS = ("attempts", "kills", "wasted_time", "reason")
"""Columns that a job's row has where jobs may have several attempts."""


@dataclass(frozen=True, eq=False)
class Attempts:
    """The attempts of a schedule that ended in vain, in the order of their ends, and totals."""

    job: IntArray  # row of the job that each was of, shape (n_vain,)
    taken: IntArray  # when it took processors, s
    start: IntArray  # since when it ran usefully, s; later than `taken` by what overhead there is
    end: IntArray  # when it ended, s
    reason: IntArray  # why, as a place in `REASONS`
    # When each job's last attempt took processors, shape (n_jobs,), s; -1 = none did.
    last_taken: IntArray
    # Time that each job held processors without a useful run, shape (n_jobs,), s.
    wasted_time: IntArray

    @property
    def kills(self) -> IntArray:
        """Return how often each job was killed, shape (n_jobs,)."""
        return np.bincount(self.job, minlength=len(self.wasted_time)).astype(np.int64)

    @property
    def last_reason(self) -> NDArray[np.str_]:
        """Return why each job's latest attempt in vain ended, "" where none did."""
        why = np.full(len(self.wasted_time), "", dtype=f"U{max(map(len, REASONS))}")
        why[self.job] = np.array(REASONS)[self.reason]
        return why

    def columns(self, is_started: NDArray[np.bool_]) -> dict[str, NDArray[np.generic]]:
        """Return the columns `ATTEMPT_COLUMNS` of each job."""
        kills = self.kills
        columns = (kills + is_started, kills, self.wasted_time, self.last_reason)
        return dict(zip(ATTEMPT_COLUMNS, columns, strict=True))

    def summary(self, workload: Workload, makespan: int) -> dict[str, float]:
        """Return the share of the machine wasted, of the jobs killed, and kills for each job.

        The machine counts for the makespan, or longer, up to the end of the last attempt.
        """
        wasted = int((self.wasted_time * workload.processors).sum())
        kills = self.kills
        lasted = int(self.end.max() - workload.submit_time.min()) if len(self.end) else 0
        return {
            "waste": wasted / max(max(makespan, lasted) * workload.machine_processors, 1),
            "share_killed": float((kills > 0).mean()) if len(kills) else 0.0,
            "kills_per_job": float(kills.mean()) if len(kills) else 0.0,
        }


def frame_of(schedule: Any, vain: Attempts) -> pd.DataFrame:
    """Return what `Schedule.attempts_frame` does."""
    import pandas as pd

    jobs = schedule.workload
    last = np.flatnonzero(schedule.start_time >= 0)
    cut = jobs.run_time[last] > schedule.run_time[last]
    rows = np.concatenate([vain.job, last])
    ended = [np.array(REASONS)[vain.reason], np.where(cut, KILLED, COMPLETED)]
    frame = pd.DataFrame(
        {
            "row": rows,
            "job_id": jobs.job_id[rows],
            "taken_time": schedule.in_log(np.concatenate([vain.taken, vain.last_taken[last]])),
            "start_time": schedule.in_log(np.concatenate([vain.start, schedule.start_time[last]])),
            "end_time": schedule.in_log(np.concatenate([vain.end, schedule.end_time[last]])),
            "processors": jobs.processors[rows],
            "reason": np.concatenate(ended),
        }
    ).sort_values(["row", "taken_time"], kind="stable", ignore_index=True)
    frame.insert(1, "attempt", frame.groupby("row").cumcount() + 1)
    return frame.drop(columns="row")[["job_id", "attempt", *frame.columns[3:]]]


def attempts_of(simulator: Simulator) -> Attempts | None:
    """Return the attempts of a simulation; None where a job has one only."""
    is_renumbered = simulator.episode.dependencies is not None
    return attempts_in(simulator.state, 0, simulator.start_time, is_renumbered)


def attempts_in(
    state: State, env: int, start_time: NDArray[np.int64], is_renumbered: bool
) -> Attempts | None:
    """Return the attempts in row `env` of a state; None where a job has one, or none are kept.

    Environments side by side keep none: they would need more room than all else.

    Args:
        start_time: Of each job of the table, shape (n_jobs,), s; negative = not started.
        is_renumbered: Whether kernels number jobs by when they came, and not as the table does.
    """
    if state.attempt.shape[1] == 0:
        return None
    n, n_jobs = int(state.n_attempts[env]), len(start_time)
    rows = state.attempt[env, :n]
    table = state.job_of[env, :n_jobs] if is_renumbered else np.arange(n_jobs)
    is_started = start_time >= 0
    taken = state.taken[env, table]
    taken = np.where(is_started, np.where(taken < 0, start_time, taken), -1)
    submitted = state.start_time[env, table] != -1
    wasted = np.where(submitted, state.wasted[env, table], 0)
    wasted += np.where(is_started, start_time - taken, 0)
    columns = (
        s.ATTEMPT_JOB, s.ATTEMPT_TAKEN, s.ATTEMPT_SINCE, s.ATTEMPT_END, s.ATTEMPT_REASON
    )  # fmt: skip
    job, began, since, end, reason = (rows[:, column].copy() for column in columns)
    job = state.row_of[env, job] if is_renumbered else job
    return Attempts(job, began, since, end, reason, taken, wasted)
