"""Cut a workload into weeks, months, windows of jobs or any stretch of time.

A part is a workload like any other: its clock starts with it, and the machine is empty then. Its
history is warm: it holds what was known of each user at that instant. `held_out`, boolean, shape
(n_jobs,), marks jobs to leave out of histories: those of a held-out block.

Source: Specification, section 10, "Episodes" and "Information".
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.base.errors import TraceError, unknown_name
from hpcgym.core.workload import Workload

Rule = Literal["whole", "rr9212"]

RULES = ("whole", "rr9212")
"""Which jobs belong to a period: all submitted in it, or of these only those that end in it."""

WEEK_S = 604_800
MONTH_S = 30 * 86_400  # a month has 30 days, so that all are alike


class Past:
    """The jobs of a workload in order of their logged ends, to look back from any instant.

    Where the workload is itself a part, its own history comes before.
    """

    def __init__(self, workload: Workload, held_out: ArrayLike | None = None) -> None:
        end = logged_end_time(workload)
        kept = np.ones(len(workload), dtype=bool)
        if held_out is not None:
            mask = np.asarray(held_out)
            if mask.dtype != np.bool_ or mask.shape != kept.shape:
                raise TraceError(
                    f"{workload.name}: held_out must be a boolean array of shape "
                    f"({len(workload)},), got {mask.dtype} of shape {mask.shape}"
                )
            kept = ~mask
        if workload.history.completed.any():
            kept &= end > 0  # what ended at the very start of a part is in its history
        order = np.flatnonzero(kept)
        order = order[np.argsort(end[order], kind="stable")]
        self._end_time = end[order]
        self._columns = {
            "user": workload.user[order],
            "run_time": np.minimum(workload.run_time, workload.requested_time)[order],
            "requested_time": workload.requested_time[order],
            "processors": workload.processors[order],
            "end_time": self._end_time,
        }

    def until(self, instant: int) -> dict[str, NDArray[np.int64]]:
        """Return the jobs that had ended by an instant, s, as `Workload.select` takes them.

        Arrays user, run_time (as executed), requested_time, processors and end_time, by end.
        """
        n = int(np.searchsorted(self._end_time, instant, side="right"))
        return {key: values[:n] for key, values in self._columns.items()}


def logged_end_time(workload: Workload) -> NDArray[np.int64]:
    """Return the end of each job in the log, shape (n_jobs,), s; an unknown wait counts as 0."""
    return workload.submit_time + np.maximum(workload.wait_time, 0) + workload.run_time


def weeks(
    workload: Workload, *, rule: Rule = "whole", offset: int = 0, held_out: ArrayLike | None = None
) -> list[Workload]:
    """Cut a workload into weeks, named "<log> week <number>" and in order of time.

    Week k holds the jobs submitted from offset + k * 604,800 s on. Week 0 and the last, partial
    week are left out, so the first one returned is week 1. A week without jobs is left out too; the
    others keep their numbers.

    Args:
        rule: "whole", every job submitted in the week; "rr9212", of these the ones whose logged end
            lies in the same week.
        offset: Where week 0 begins, s on the workload's clock, >= 0.
        held_out: Jobs to leave out of histories.

    Raises:
        TraceError: The rule is not known, the offset is negative, or no whole week remains.

    Source: RR-9212, section 5, as read in specification, section 6, "Weeks" ("rr9212").

    Example:
        >>> from hpcgym.trace import load_workload
        >>> weeks(load_workload("synthetic-256"))[0].name
        'synthetic-256 week 1'
    """
    return _periods(workload, WEEK_S, "week", rule, offset, held_out)


def months(
    workload: Workload, *, rule: Rule = "whole", offset: int = 0, held_out: ArrayLike | None = None
) -> list[Workload]:
    """Cut a workload into months of 30 days, named "<log> month <number>", as `weeks` does.

    Source: RR-9212, section 11.
    """
    return _periods(workload, MONTH_S, "month", rule, offset, held_out)


def windows(
    workload: Workload, n_jobs: int, *, held_out: ArrayLike | None = None, warm: bool = True
) -> list[Workload]:
    """Cut a workload into consecutive windows of n jobs; a shorter rest is left out.

    Args:
        held_out: Jobs to leave out of histories.
        warm: Whether windows have histories, which take most of the time; else these are empty.

    Raises:
        TraceError: The log has fewer than n_jobs jobs, or n_jobs is below 1.
    """
    _check_window(workload, n_jobs)
    past = Past(workload, held_out) if warm else None
    firsts = range(0, len(workload) - n_jobs + 1, n_jobs)
    return [_window(workload, first, n_jobs, past) for first in firsts]


def window(
    workload: Workload, first_job: int, n_jobs: int, *, past: Past | None = None
) -> Workload:
    """Cut out n consecutive jobs from `first_job` (from 0) on, named such as "<log> jobs 1-256".

    The window begins with its first submission. `past` saves time where many windows are cut.

    Raises:
        TraceError: The window reaches beyond the log, or n_jobs is below 1.
    """
    _check_window(workload, n_jobs)
    if not 0 <= first_job <= len(workload) - n_jobs:
        raise TraceError(
            f"{workload.name}: a window of {n_jobs} jobs may begin at job 0 to "
            f"{len(workload) - n_jobs}, not at {first_job}"
        )
    return _window(workload, first_job, n_jobs, Past(workload) if past is None else past)


def _window(workload: Workload, first_job: int, n_jobs: int, past: Past | None) -> Workload:
    """Cut out n consecutive jobs, with a history where there is a past."""
    start = int(workload.submit_time[first_job])
    return workload.select(
        np.arange(first_job, first_job + n_jobs),
        start=start,
        name=f"{workload.name} jobs {first_job + 1}-{first_job + n_jobs}",
        past=None if past is None else past.until(start),
    )


def between(
    workload: Workload, start: int, end: int, *, held_out: ArrayLike | None = None
) -> Workload:
    """Cut out the jobs submitted in start <= t < end, s; start becomes time 0.

    Raises:
        TraceError: No job is submitted in that stretch.
    """
    submit = workload.submit_time
    first, last = np.searchsorted(submit, [start, end])
    if start < 0 or last <= first:
        raise TraceError(
            f"{workload.name}: no job is submitted from {start} to {end} s; its jobs come from "
            f"{submit[0]} to {submit[-1]} s"
        )
    return workload.select(
        np.arange(first, last),
        start=start,
        name=f"{workload.name} from {start} to {end} s",
        past=Past(workload, held_out).until(start),
    )


def _periods(
    workload: Workload, length: int, word: str, rule: Rule, offset: int, held_out: ArrayLike | None
) -> list[Workload]:
    """Cut a workload into numbered periods of one length."""
    if rule not in RULES:
        raise TraceError(unknown_name("rule", rule, RULES))
    if offset < 0:
        raise TraceError(f"{workload.name}: offset must be at least 0 s, got {offset}")
    submit, end = workload.submit_time, logged_end_time(workload)
    past = Past(workload, held_out)
    n_whole = max(int(submit[-1]) - offset, 0) // length
    edges = np.searchsorted(submit, offset + length * np.arange(1, n_whole + 1))
    parts = []
    for number in range(1, n_whole):
        start = offset + length * number
        jobs = np.arange(edges[number - 1], edges[number])
        if rule == "rr9212":
            jobs = jobs[end[jobs] < start + length]
        if len(jobs):
            name = f"{workload.name} {word} {number}"
            parts.append(workload.select(jobs, start=start, name=name, past=past.until(start)))
    if not parts:
        raise TraceError(
            f"{workload.name}: no whole {word} remains after the first; its jobs come over "
            f"{int(submit[-1]) - offset} s from the offset on, and a {word} has {length} s"
        )
    return parts


def _check_window(workload: Workload, n_jobs: int) -> None:
    """Refuse a window without jobs, or with more jobs than the log has."""
    if not 1 <= n_jobs <= len(workload):
        raise TraceError(
            f"{workload.name}: a window may hold 1 to {len(workload)} jobs, not {n_jobs}"
        )
