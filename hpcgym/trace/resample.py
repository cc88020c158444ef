"""Make other workloads from one: resample its users' weeks, jitter submissions, scale the load.

Source: Carastan-Santos et al. 2019, Algorithm 1, and specification, section 3, "Resampler"
(resampling); Tsafrir, Ouaknine and Feitelson 2007, and specification, section 10, "Evaluation
protocol" (jitter); specification, section 9, "Arrivals" (load).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import TraceError, unknown_name
from hpcgym.core.columns import COLUMNS, referring
from hpcgym.core.predecessors import held_as_long
from hpcgym.core.workload import Workload
from hpcgym.trace.split import WEEK_S

Mode = Literal["permute", "draw"]

MODES = ("permute", "draw")
"""How a user's weeks are taken: each once in another order, or independently with replacement."""

JITTER_S = 600  # largest move of a submission in a jittered copy, s, in evaluation and in training


def resample(
    workload: Workload, generator: np.random.Generator, mode: Mode = "permute"
) -> Workload:
    """Make a sample of a log by moving each user's weeks to other weeks.

    One grid of weeks from time 0 cuts the jobs of all users; the last, partial week counts. Each
    week of the sample takes one week of each user, empty ones included, and keeps the times of
    week. All unknown users form one profile. A job stays behind the job before it where both are of
    one user and one week, and move together. Jobs are renumbered from 1 by (new submit time, old
    position). The sample has no recorded waits and no history.

    Mode "permute" takes each user's weeks in random order, so that all work is kept. Mode "draw"
    takes uniform draws with replacement.

    Raises:
        TraceError: The mode is not known.

    Example:
        >>> import numpy as np
        >>> from hpcgym.trace import load_workload
        >>> resample(load_workload("synthetic-256"), np.random.default_rng(1))
        Workload('synthetic-256 resampled', 10000 jobs, 256 processors)
    """
    if mode not in MODES:
        raise TraceError(unknown_name("mode", mode, MODES))
    week, time_of_week = np.divmod(workload.submit_time, WEEK_S)
    n_weeks = int(week[-1]) + 1
    users, user = np.unique(workload.user, return_inverse=True)
    if mode == "permute":
        source = np.arange(len(workload))
        order = np.argsort(generator.random((len(users), n_weeks)), axis=1, kind="stable")
        new_week = order[user, week]
    else:
        taken = generator.integers(n_weeks, size=(len(users), n_weeks))
        source, new_week = _copies(user * n_weeks + week, taken)
    submit = new_week * WEEK_S + time_of_week[source]
    order = np.lexsort((source, submit))
    source, submit = source[order], submit[order]
    columns: dict[str, Any] = workload.columns(source)
    columns |= {"submit_time": submit, "job_id": None, "wait_time": None}
    if workload.eligible is not None:
        moved = submit - workload.submit_time[source]
        columns["eligible"] = held_as_long(workload.eligible[source], moved)
    copy = user[source] * n_weeks + new_week[order]
    for key in referring(columns):
        there = getattr(workload, key)
        columns[key] = _moved_together(there, user * n_weeks + week, source, copy)
    return Workload.from_arrays(
        **columns,
        machine_processors=workload.machine_processors,
        machine=workload.machine,
        name=f"{workload.name} resampled",
        time_offset=workload.time_offset,
        unix_start=workload.unix_start,
        source=workload.source,
        source_row=None if workload.source_row is None else workload.source_row[source],
    )


def join_weeks(parts: Sequence[Workload]) -> Workload:
    """Put weeks of one log end to end on one clock, named after the first.

    Jobs keep their ids; week k begins at k * 604,800 s. The result has no waits and no history.

    Raises:
        TraceError: A part is longer than a week.
    """
    for part in parts:
        if part.submit_time[-1] >= WEEK_S:
            raise TraceError(
                f"{part.name} is no week: its jobs come until {part.submit_time[-1]} s, and a week "
                f"has {WEEK_S} s"
            )
    starts = np.repeat(WEEK_S * np.arange(len(parts)), [len(part) for part in parts])
    columns = [part.columns() for part in parts]
    joined: dict[str, Any] = {}
    for key in dict.fromkeys(key for part in columns for key in part):
        usual = [np.full(len(part), COLUMNS[key].default) for part in parts]
        filled = [part.get(key, other) for part, other in zip(columns, usual, strict=True)]
        joined[key] = np.concatenate(filled)
    joined |= {"submit_time": joined["submit_time"] + starts, "wait_time": None}
    if "eligible" in joined:
        joined["eligible"] = held_as_long(joined["eligible"], starts)
    sizes = [len(part) for part in parts]
    before = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
    for key in referring(joined):
        joined[key] = np.where(joined[key] >= 0, joined[key] + before, -1)
    first = parts[0]
    return Workload.from_arrays(
        **joined,
        machine_processors=first.machine_processors,
        name=first.name,
        time_offset=first.time_offset,
        unix_start=first.unix_start,
        machine=first.machine,
    )


def resample_week(workload: Workload, generator: np.random.Generator) -> Workload:
    """Make one week from one random week of each user, without waits or history.

    It has the distribution of any week of a sample by `resample`, in either mode, at a fraction of
    the work. An empty week is drawn again. Jobs keep their ids, and are in order of (submit time,
    old position).
    """
    week, time_of_week = np.divmod(workload.submit_time, WEEK_S)
    n_users, n_weeks = len(workload.history.completed), int(week[-1]) + 1
    jobs = np.zeros(0, dtype=np.int64)
    while not len(jobs):
        taken = generator.integers(n_weeks, size=n_users)
        jobs = np.flatnonzero(week == taken[workload.user_index])
    part = workload.select(jobs, name=f"{workload.name} resampled")
    for key in referring(key for key in COLUMNS if getattr(part, key) is not None):
        there = getattr(part, key)
        known = week[jobs][there] == week[jobs]
        apart = workload.user_index[jobs][there] != workload.user_index[jobs]
        moved: dict[str, Any] = {key: np.where(known & ~apart, there, -1)}
        part = replace(part, **moved)
    part = part.resubmitted(time_of_week[jobs])
    return replace(part, wait_time=np.full(len(part), -1))


def jitter(workload: Workload, generator: np.random.Generator, seconds: int = JITTER_S) -> Workload:
    """Move every submission by up to so many seconds to either side, and sort again.

    Times before 0 become 0. Users and history stay.

    Raises:
        TraceError: `seconds` is negative.

    Example:
        >>> import numpy as np
        >>> from hpcgym.trace import load_workload
        >>> jitter(load_workload("tiny"), np.random.default_rng(1))
        Workload('tiny', 8 jobs, 4 processors)
    """
    if seconds < 0:
        raise TraceError(f"jitter must be at least 0 s, got {seconds}")
    moved = workload.submit_time + generator.integers(-seconds, seconds + 1, size=len(workload))
    return workload.resubmitted(np.maximum(moved, 0))


def scale_load(workload: Workload, factor: float) -> Workload:
    """Multiply the load by dividing all submit times by a factor, rounded to whole seconds.

    Raises:
        TraceError: The factor is not a positive finite number.

    Example:
        >>> from hpcgym.trace import load_workload
        >>> scale_load(load_workload("tiny"), 2).submit_time.tolist()
        [0, 0, 0, 0, 3, 8, 15, 15]
    """
    if not (np.isfinite(factor) and factor > 0):
        raise TraceError(f"a load factor must be a positive number, got {factor}")
    scaled = np.floor(workload.submit_time / factor + 0.5)
    return workload.resubmitted(scaled, name=f"{workload.name} at {factor:g} times the load")


def _moved_together(
    after: NDArray[np.int64],
    split: NDArray[np.int64],
    source: NDArray[np.int64],
    copy: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the predecessors of a sample's jobs, -1 where they did not move together.

    `after` and `split` are of the log's jobs, where `split` is equal for jobs that move together.
    `source` is the log's job of each of the sample, `copy` equal for jobs that moved together.
    """
    n_jobs = len(after)
    wanted = after[source]
    together = (wanted >= 0) & (split[wanted] == split[source])
    key = copy * n_jobs + source
    by_key = np.argsort(key)
    position = np.searchsorted(key[by_key], copy * n_jobs + wanted)
    return np.where(together, by_key[np.minimum(position, len(key) - 1)], -1)


def _copies(
    split: NDArray[np.int64], taken: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which jobs are in the sample, and in which week, where weeks may repeat.

    `split` is user * n_weeks + week of each job, shape (n_jobs,). `taken` is the week whose jobs
    each user submits in each week, shape (n_users, n_weeks).
    """
    n_users, n_weeks = taken.shape
    by_split = np.argsort(split, kind="stable")
    edges = np.searchsorted(split[by_split], np.arange(n_users * n_weeks + 1))
    wanted = (taken + n_weeks * np.arange(n_users)[:, np.newaxis]).ravel()
    sizes = edges[wanted + 1] - edges[wanted]
    first_of_copy = np.repeat(edges[wanted] - (np.cumsum(sizes) - sizes), sizes)
    source = by_split[first_of_copy + np.arange(sizes.sum())]
    new_week = np.repeat(np.tile(np.arange(n_weeks), n_users), sizes)
    return source, new_week
