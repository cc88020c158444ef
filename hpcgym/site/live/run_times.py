"""How long live jobs are expected to run, by what the last weeks of accounting say of their users.

Source: Tsafrir, Etsion and Feitelson 2007: the mean of a user's last two jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.base.text_table import duration
from hpcgym.site.live.readings import printed
from hpcgym.trace.accounting import read_accounting
from hpcgym.trace.accounting.charged import held_processors
from hpcgym.trace.accounting.slurm import COMMAND

IntArray = NDArray[np.int64]

LAST = 2  # jobs of a user whose run times are averaged


@dataclass(frozen=True, eq=False)
class Past:
    """Jobs that have ended, by the end of their runs; arrays (n_past,), times s."""

    user: NDArray[np.object_]  # names
    submit_time: IntArray
    run_time: IntArray
    requested_time: IntArray
    processors: IntArray
    end_time: IntArray  # Unix s
    partition: NDArray[np.object_]  # names, "" = not stated
    row: IntArray  # their order by submission and id
    predicts: bool  # whether users' last jobs are nearer to run times than limits are
    says: str  # where expected run times come from, in a sentence

    def expected(self, user: str, limit_s: int) -> int:
        """Return how long a job of a user is expected to run, s, at most its limit."""
        last = self._last.get(user)
        return limit_s if last is None else int(np.clip(last, 1, limit_s))

    @cached_property
    def _last(self) -> dict[str, float]:
        """Return the mean of each user's last jobs, s; none where limits are nearer."""
        runs: dict[str, list[int]] = {}
        for user, run_time in zip(self.user, self.run_time, strict=True):
            runs.setdefault(user, []).append(int(run_time))
        return {
            user: float(np.mean(of_user[-LAST:])) for user, of_user in runs.items() if self.predicts
        }

    def expected_left(self, user: str, limit_s: int, elapsed_s: int) -> int:
        """Return how long a running job is expected to go on, s, >= 1.

        A job that has outlived what was expected is expected to run twice as long, and so on.
        """
        total = self.expected(user, limit_s)
        while total <= elapsed_s and total < limit_s:
            total = min(2 * total, limit_s)
        return max(total - elapsed_s, 1)


def no_past() -> Past:
    """Return what is known without accounting: jobs run until their limits."""
    none = np.zeros(0, dtype=np.int64)
    says = "run times are the limits, as no accounting was read; so expected starts are late ones"
    names = np.zeros(0, dtype=object)
    return Past(names, none, none, none, none, none, names, none, False, says)


def ask_accounting(days: int, now: int) -> str:
    """Return what `sacct` prints of the last days. LiveError: it fails."""
    fields = COMMAND.partition(" -o ")[2]
    begin = datetime.fromtimestamp(now - days * 86_400).isoformat(timespec="seconds")
    return printed("sacct", "-a", "-X", "-P", "--duplicates", "-S", begin, "-o", fields)


def read_past(path: str | Path, now: int) -> Past:
    """Read accounting, and find whether users' last jobs tell run times better than limits do."""
    runs = read_accounting(path).runs
    end = runs["submit_time"] + runs["wait_time"] + runs["run_time"]
    ended = runs.assign(end_time=end, processors=held_processors(runs))[
        (runs["wait_time"] >= 0) & (runs["run_time"] > 0)
    ]
    ended = ended[ended["end_time"] <= now].sort_values("end_time", kind="stable")
    columns = {
        key: ended[key].to_numpy(dtype=np.int64)
        for key in ("submit_time", "run_time", "requested_time", "processors", "end_time")
    }
    columns["row"] = ended.index.to_numpy(dtype=np.int64)
    partition = ended["partition"].to_numpy(dtype=object)
    user = ended["user"].to_numpy(dtype=object)
    predicted = _predicted(user, columns)
    known = predicted > 0
    limits, run_times = columns["requested_time"][known], columns["run_time"][known]
    if not known.any():
        says = "run times are the limits, as the accounting has no user with two jobs after another"
        return Past(user, **columns, partition=partition, predicts=False, says=says)
    by_users = float(np.mean(np.abs(np.minimum(predicted[known], limits) - run_times)))
    by_limits = float(np.mean(np.abs(limits - run_times)))
    which = "each user's last two jobs" if by_users < by_limits else "the limits"
    says = (
        f"run times by {which}: over {known.sum():,} jobs of the accounting, users' last jobs were "
        f"off by {duration(by_users)} in the mean and limits by {duration(by_limits)}"
    )
    return Past(user, **columns, partition=partition, predicts=by_users < by_limits, says=says)


def _predicted(user: NDArray[np.object_], columns: dict[str, IntArray]) -> NDArray[np.float64]:
    """Return what users' last jobs told of each job at its submission, s; 0 = nothing."""
    predicted = np.zeros(len(user))
    for jobs in pd.Series(user).groupby(user).indices.values():
        ended = np.searchsorted(columns["end_time"][jobs], columns["submit_time"][jobs], "right")
        total = np.concatenate([[0], np.cumsum(columns["run_time"][jobs])])
        counted = np.minimum(ended, LAST)
        sums = total[ended] - total[ended - counted]
        predicted[jobs] = sums / np.maximum(counted, 1)
    return predicted
