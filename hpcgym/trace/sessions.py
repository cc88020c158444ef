"""A generated log of users who work in sessions: heavy weeks, habits, requests in round times.

Each week has a load of its own, tied to that of the week before. Sessions are drawn until their
work reaches it. Sizes and the daily cycle are those of the Lublin-Feitelson model; all else is our
choice, so that the numbers of `hpcgym.trace.statistics` are in the range of real logs.

Source: Specification, section 9, "Log of sessions".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import TraceError
from hpcgym.core.workload import Workload
from hpcgym.trace.estimates import HOUR_S, MINUTE_S
from hpcgym.trace.lublin import BUCKET_S, draw_sizes, half_hour_weights
from hpcgym.trace.split import WEEK_S

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]

MONDAY_UNIX_S = 1_767_571_200  # 2026-01-05 00:00 UTC, when generated logs begin

LONGEST_S = 18 * HOUR_S
COMMON_S = np.array(
    [minutes * MINUTE_S for minutes in (5, 10, 15, 30)]
    + [hours * HOUR_S for hours in (1, 2, 4, 6, 8, 12, 18)]
)
"""The requests of half of the programs; the others' are multiples of `ROUND_S`."""

ROUND_S = 10 * MINUTE_S
PROGRAMS = 4  # programs of each user, by popularity 1/rank

TEST_SHARE = 0.45
"""Share of the programs that are tests: short, and on an eighth of the machine at most."""

USUAL_S = {"test": 120, "production": 5000}
"""Medians of the programs' usual run times; the standard deviation of their logarithm is 1.4."""

WEEKEND = 0.4  # sessions that begin on a day of the weekend, relative to another day

LARGEST_SESSION = 0.05
"""A session's expected work over that of the machine in a week, unless it is one job."""


def session_workload(
    n_weeks: int,
    generator: np.random.Generator,
    *,
    machine_processors: int = 128,
    n_users: int = 200,
    load: float = 0.78,
    wide: float = 0.0,
    session_jobs: float = 4.0,
    name: str = "sessions",
) -> Workload:
    """Draw a log of users who work in sessions; its time 0 begins a Monday.

    Args:
        n_weeks: Weeks in which sessions begin, >= 1.
        machine_processors: Processors of the machine, >= 32.
        n_users: Users, >= 1, numbered from 1 by popularity.
        load: Processor-seconds of a week's jobs over those the machine has, in a usual week.
        wide: Share of the programs but tests that take half of the machine to all of it, beside
            those of the model, 0 to 1.
        session_jobs: Mean jobs of a session, but for its bound of work, >= 1: more are a burst.

    Raises:
        TraceError: A number is out of range.

    Example:
        >>> import numpy as np
        >>> log = session_workload(1, np.random.default_rng(1))
        >>> log.machine_processors, bool((log.run_time <= log.requested_time).all())
        (128, True)
    """
    for what, number in (("n_weeks", n_weeks), ("n_users", n_users)):
        if number < 1:
            raise TraceError(f"{what} must be at least 1, got {number}")
    if machine_processors < 32:
        raise TraceError(f"machine_processors must be at least 32, got {machine_processors}")
    if not 0 < load < np.inf:
        raise TraceError(f"load must be a positive number, got {load}")
    if not 0 <= wide <= 1 or not 1 <= session_jobs < np.inf:
        raise TraceError(f"wide must be 0 to 1, session_jobs 1 or more; got {wide}, {session_jobs}")
    programs = _draw_programs(n_users * PROGRAMS, machine_processors, wide, generator)
    popularity = np.arange(1, n_users + 1) ** -0.6
    favourite = np.zeros(n_users, dtype=np.int64)
    half_hours = _summed(_week_weights())
    sessions: list[IntArray] = []
    log_load = 0.0
    for week in range(n_weeks):
        log_load = 0.5 * log_load + 0.15 * generator.standard_normal()
        work = load * np.exp(log_load) * machine_processors * WEEK_S
        activity = popularity * np.exp(generator.standard_normal(n_users))
        by_activity = _summed(activity / activity.sum())
        while work > 0:
            user = _chosen(by_activity, generator)
            if generator.random() < 0.4:
                favourite[user] = _chosen(_BY_RANK, generator)
            begin = week * WEEK_S + BUCKET_S * _chosen(half_hours, generator)
            row = user * PROGRAMS + int(favourite[user])
            jobs = programs.session(row, begin, session_jobs, generator)
            jobs[4] = user + 1
            sessions.append(jobs)
            work -= float(jobs[1] @ jobs[3])
    columns = np.concatenate(sessions, axis=1)
    columns = columns[:, np.argsort(columns[0], kind="stable")]
    submit, run, request, size, users = columns
    return Workload.from_arrays(
        submit, run, request, size, machine_processors=machine_processors, user=users, name=name
    )


def _summed(shares: FloatArray) -> FloatArray:
    """Return shares added up, the last one 1, as `_chosen` takes them."""
    summed: FloatArray = shares.cumsum()
    summed /= summed[-1]
    return summed


def _chosen(summed: FloatArray, generator: np.random.Generator) -> int:
    """Draw a number from 0 on by shares, as the slower `generator.choice` does."""
    return int(summed.searchsorted(generator.random(), side="right"))


_BY_RANK = _summed(1 / np.arange(1, PROGRAMS + 1) / (1 / np.arange(1, PROGRAMS + 1)).sum())


@dataclass(frozen=True)
class _Programs:
    """What users run, a row for each program."""

    machine_processors: int
    size: IntArray  # processors
    run: FloatArray  # usual run time, s, at most the request
    request: IntArray  # requested time, s
    spread: FloatArray  # standard deviation of log run time within a session

    def session(
        self, row: int, begin: int, mean_jobs: float, generator: np.random.Generator
    ) -> IntArray:
        """Draw a session's jobs: submit, run and requested times, sizes, and a row for users.

        Shape (5, n_jobs).
        """
        room = LARGEST_SESSION * WEEK_S * self.machine_processors
        most = max(int(room // (self.size[row] * self.run[row])), 1)
        n = min(int(generator.geometric(1 / mean_jobs)), most)
        today = self.run[row] * np.exp(0.3 * generator.standard_normal())
        run = today * np.exp(self.spread[row] * generator.standard_normal(n))
        failed = np.exp(generator.uniform(0, np.log(300), n))
        run = np.where(generator.random(n) < 0.05, failed, run)
        run = np.minimum(np.maximum(run, 1), self.request[row]).astype(np.int64)
        think = np.exp(generator.normal(np.log(60), 1.8, n))
        if generator.random() < 0.3:  # the user looks at each result first
            think[1:] += run[:-1]
        submit = begin + generator.integers(BUCKET_S) + np.cumsum(think).astype(np.int64)
        scale = 2.0 ** ((2 * generator.integers(2, size=n) - 1) * (generator.random(n) < 0.1))
        size = np.minimum(np.maximum(self.size[row] * scale, 1), self.machine_processors)
        jobs = np.empty((5, n), dtype=np.int64)
        jobs[0], jobs[1], jobs[2], jobs[3] = submit, run, self.request[row], size
        return jobs


def _draw_programs(
    n: int, machine_processors: int, wide: float, generator: np.random.Generator
) -> _Programs:
    """Draw n programs; sizes of wide ones last, so that all else is the same with and without."""
    is_test = generator.random(n) < TEST_SHARE
    size = draw_sizes(n, generator, machine_processors=machine_processors)
    size = np.where(is_test, np.minimum(size, machine_processors // 8), size)
    median = np.where(is_test, USUAL_S["test"], USUAL_S["production"])
    run = np.minimum(median * np.exp(1.4 * generator.standard_normal(n)), LONGEST_S)
    wanted = np.minimum(run * np.exp(generator.exponential(1.6, n)), LONGEST_S)
    common = COMMON_S[np.searchsorted(COMMON_S, wanted)]
    rounded = np.ceil(wanted / ROUND_S).astype(np.int64) * ROUND_S
    request = np.where(generator.random(n) < 0.5, common, rounded)
    spread = 0.15 * np.exp(generator.standard_normal(n))
    if wide > 0:
        is_wide = (generator.random(n) < wide) & ~is_test
        drawn = generator.integers(machine_processors // 2, machine_processors + 1, n)
        size = np.where(is_wide, drawn, size)
    return _Programs(machine_processors, size, run, request, spread)


def _week_weights() -> FloatArray:
    """Return the share of sessions that begin in each half hour of a week, shape (336,)."""
    week = np.tile(half_hour_weights(), (7, 1))
    week[5:] *= WEEKEND
    shares: FloatArray = week.ravel() / week.sum()
    return shares
