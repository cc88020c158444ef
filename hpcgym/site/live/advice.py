"""What an order would do to a live queue: each waiting job's rank and start, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.text_table import duration
from hpcgym.core.metrics import bsld
from hpcgym.site.live.ranges import Range, in_words, ranges
from hpcgym.site.live.readings import UNLIMITED_S, WaitingJob
from hpcgym.site.live.replay import Forecasts
from hpcgym.site.live.run_times import no_past
from hpcgym.site.live.stage import BACKFILL, Stage

IntArray = NDArray[np.int64]


_OF_JOBS = ("user", "account", "partition", "cpus", "limit_s", "tasks", "submit_time", "priority")


@dataclass(frozen=True)
class AdvisedJob:
    """A waiting job, or the waiting tasks of an array."""

    job: WaitingJob
    # Its place in the queue as Slurm takes it; None where no order can help it now.
    rank_now: int | None
    rank: int | None  # its place in the advised order, likewise
    # When it, or its first task, is expected to start as things are, Unix s; None where that is not
    # known.
    start_now: int | None
    start: int | None  # the same under the advised order
    why: str  # in words
    range_now: Range | None = None  # of the start as things are; None where none is known

    def row(self, now: int) -> dict[str, Any]:
        """Return it as a row of a table for programs; `now` is Unix s."""
        job = self.job
        return {
            "job": job.array_id,
            **{name: getattr(job, name) for name in _OF_JOBS},
            **{name: getattr(self, name) for name in ("rank_now", "rank", "start_now", "start")},
            "slurm_start": job.start_time,
            **range_columns(self.range_now, now),
            "why": self.why,
        }


@dataclass(frozen=True)
class Advice:
    """What an order would do on one machine."""

    now: int  # the instant of the snapshot, Unix s
    # Those that an order can help, best first; then those that none can help now.
    jobs: tuple[AdvisedJob, ...]
    notes: tuple[str, ...]  # what is simplified, and where run times come from, in sentences
    totals: tuple[str, ...]  # what changes over all, in sentences


def advise(
    stage: Stage,
    order: Sequence[int],
    name: str,
    backfill: str = BACKFILL,
    known: Forecasts | None = None,
) -> Advice:
    """Compare a live queue in Slurm's order with the same queue in another.

    Args:
        order: Positions in `stage.snapshot.waiting`, best first.
        name: What the order is called.
        backfill: Slurm's backfilling, as of `hpcgym.simulate`.
        known: Past forecasts, of which ranges are made; None = no ranges.
    """
    now_order = stage.slurm_order()
    starts_now, starts = (stage.starts(each, backfill) for each in (now_order, order))
    first_now, first = _first_starts(stage, starts_now), _first_starts(stage, starts)
    ranks_now, ranks = _ranks(stage, now_order), _ranks(stage, order)
    why = _Reasons(stage, ranks_now, order, starts)
    waiting = stage.snapshot.waiting
    likely = dict(enumerate(ranges_now(stage, known, shown=first_now))) if known else {}
    jobs = [
        AdvisedJob(
            waiting[at],
            ranks_now.get(at),
            ranks.get(at),
            first_now[at],
            first[at],
            why.of(at),
            likely.get(at),
        )
        for at in order
    ]
    jobs.sort(key=lambda job: job.rank is None)
    jobs += [
        AdvisedJob(kept.job, None, None, None, None, kept.why) for kept in stage.snapshot.kept_out
    ]
    notes = (
        *stage.snapshot.notes,
        f"{stage.idle} cpus are idle; {stage.past.says}",
        *([in_words(known)] if known else []),
        *_no_limit(stage),
    )
    return Advice(
        stage.snapshot.now, tuple(jobs), notes, tuple(_totals(stage, starts_now, starts, name))
    )


def ranges_now(
    stage: Stage, known: Forecasts, *, is_new: bool = False, shown: Sequence[int] | None = None
) -> list[Range | None]:
    """Return the range of each waiting job, of starts that limits and Slurm's order forecast.

    What asks for more than is idle, or is at its limit of tasks, does not start now.

    Args:
        is_new: Whether the jobs are submitted now.
        shown: Starts that stand beside the ranges, and that they hold, Unix s; None = none.
    """
    snapshot, by_limits = stage.snapshot, replace(stage, past=no_past())
    starts = _first_starts(stage, by_limits.starts(stage.slurm_order()))
    likely = ranges(known, [start - snapshot.now for start in starts], is_new)
    least = [
        max(snapshot.begins(job) - snapshot.now, job.cpus > stage.idle or _at_its_limit(job))
        for job in snapshot.waiting
    ]
    held = [None] * len(least) if shown is None else [start - snapshot.now for start in shown]
    each_of = zip(likely, least, held, strict=True)
    return [each and each.holding(earliest, start) for each, earliest, start in each_of]


def range_columns(known: Range | None, now: int) -> dict[str, Any]:
    """Return a range as columns of a table for programs: Unix s, and whether it tells anything."""
    low, high = (math.inf, math.inf) if known is None else (known.low, known.high)
    return {
        "range_from": None if math.isinf(low) else now + int(low),
        "range_to": None if math.isinf(high) else now + int(high),
        "range_tells": None if known is None else known.tells,
    }


def _first_starts(stage: Stage, starts: IntArray) -> list[int]:
    """Return when the first task of each waiting job starts, Unix s."""
    first = np.full(len(stage.snapshot.waiting), np.iinfo(np.int64).max)
    np.minimum.at(first, stage.tasks, starts)
    return [int(start) for start in first]


def _ranks(stage: Stage, order: Sequence[int]) -> dict[int, int]:
    """Return the place in line, from 1, of each job that may be scheduled now."""
    snapshot = stage.snapshot
    begun = [at for at in order if snapshot.begins(snapshot.waiting[at]) <= snapshot.now]
    return {at: rank for rank, at in enumerate(begun, start=1)}


_COMPARED: dict[str, Callable[[WaitingJob], int]] = {
    "less work": lambda job: job.cpus * job.limit_s,
    "shorter": lambda job: job.limit_s,
    "fewer cpus": lambda job: job.cpus,
    "older": lambda job: job.submit_time,
    "more cpus": lambda job: -job.cpus,
    "longer": lambda job: -job.limit_s,
}
"""In what a job may be ahead of others, if its value is lower than that of each."""


class _Reasons:
    """Why each job stands and starts where it does, in words.

    Args:
        order: Positions in `snapshot.waiting` in the advised order.
        starts: When each task starts in it, Unix s.
    """

    def __init__(
        self, stage: Stage, ranks_now: dict[int, int], order: Sequence[int], starts: IntArray
    ) -> None:
        self.stage, self.first = stage, _first_starts(stage, starts)
        waiting, now = stage.snapshot.waiting, stage.snapshot.now
        order = [at for at in order if at in ranks_now]
        self.here = {at: here for here, at in enumerate(order)}
        self.rank_now = np.array([ranks_now[at] for at in order], dtype=np.int64)
        self.values = {
            words: np.array([value(waiting[at]) for at in order], dtype=np.int64)
            for words, value in _COMPARED.items()
        }
        self.head = next(
            (at for at in order if self.first[at] > now and not _at_its_limit(waiting[at])), None
        )
        taken = (waiting[at].cpus for at in stage.tasks[starts == now])
        self.idle = stage.idle - sum(taken)

    def of(self, at: int) -> str:
        """Return the reason of the job at a position in `snapshot.waiting`."""
        return "; ".join(filter(None, (self._moves(at), self._starts(at))))

    def _moves(self, at: int) -> str:
        """Say which jobs it passes, or which pass it."""
        if at not in self.here:
            return ""
        here, rank = self.here[at], self.rank_now[self.here[at]]
        passed = here + 1 + np.flatnonzero(self.rank_now[here + 1 :] < rank)
        passing = np.flatnonzero(self.rank_now[:here] > rank)
        if len(passed) > len(passing):
            return f"passes {_counted(passed)}{self._ahead(np.array([here]), passed)}"
        if len(passing) > len(passed):
            return f"lets {_counted(passing)} pass{self._ahead(passing, np.array([here]))}"
        return ""

    def _ahead(self, winners: IntArray, losers: IntArray) -> str:
        """Say in what all of some jobs are ahead of all of others, "" if in nothing."""
        for words, value in self.values.items():
            worst, best = value[winners].max(), value[losers].min()
            if worst < best:
                return f" ({words})"
            if worst == best and words == "less work":
                return " (no more work)"
        return ""

    def _starts(self, at: int) -> str:
        snapshot = self.stage.snapshot
        job, now = snapshot.waiting[at], snapshot.now
        if at not in self.here:
            return f"may begin in {duration(snapshot.begins(job) - now)}"
        if self.first[at] == now:
            return "starts now" if job.tasks == 1 else f"starts now, a task of {job.tasks}"
        if _at_its_limit(job):
            return f"at most {job.at_once} of its tasks run at once"
        stay = f"{self.idle} stay idle" if self.idle > 1 else "1 stays idle"
        needs = f"needs {_cpus(job.cpus)}; {stay if self.idle > 0 else 'none stays idle'}"
        if at == self.head:
            return f"first in line: {needs}; enough in {duration(self.first[at] - now)}"
        if job.cpus <= self.idle:
            return "the idle cpus suffice, but it would delay a job before it"
        return needs


def _at_its_limit(job: WaitingJob) -> bool:
    """Tell whether as many tasks of an array run as may."""
    return job.at_once is not None and job.reason == "JobArrayTaskLimit"


def _no_limit(stage: Stage) -> Iterator[str]:
    """Say how many jobs have no limit."""
    jobs = (*stage.snapshot.waiting, *(job for job, _ in stage.snapshot.running))
    if n_jobs := sum(job.limit_s >= UNLIMITED_S for job in jobs):
        yield f"jobs without a limit: {n_jobs}; a year is planned for each, as Slurm does"


def _cpus(count: int) -> str:
    return "1 cpu" if count == 1 else f"{count} cpus"


def _counted(jobs: IntArray) -> str:
    return "1 job" if len(jobs) == 1 else f"{len(jobs)} jobs"


def _totals(stage: Stage, starts_now: IntArray, starts: IntArray, name: str) -> Iterator[str]:
    """Say what changes over all tasks."""
    n_tasks, waiting = len(stage.tasks), stage.snapshot.waiting
    if not n_tasks:
        yield "No job waits that an order can help."
        return
    earlier, later = (
        int((change > 0).sum()) for change in (starts_now - starts, starts - starts_now)
    )
    now = stage.snapshot.now
    yield (
        f"Of {n_tasks:,} waiting jobs, tasks of arrays counted one by one, {name} starts "
        f"{earlier:,} earlier and {later:,} later, if nobody submits more."
    )
    left = [duration(float(np.mean(each - now))) for each in (starts_now, starts)]
    begins = np.array([stage.snapshot.begins(waiting[at]) for at in stage.tasks])
    runs = np.array(
        [stage.past.expected(waiting[at].user, waiting[at].limit_s) for at in stage.tasks]
    )
    slowdowns = [float(bsld(each - begins, runs).mean()) for each in (starts_now, starts)]
    yield (
        f"Mean time until the start: {left[0]} in Slurm's order, {left[1]} under {name}; mean "
        f"bounded slowdown: {slowdowns[0]:.2f} and {slowdowns[1]:.2f}."
    )
    if later:
        worst = int(np.argmax(starts - starts_now))
        delayed = waiting[stage.tasks[worst]]
        yield (
            f"Delayed most: job {delayed.array_id} of {delayed.user}, by "
            f"{duration(float(starts[worst] - starts_now[worst]))}."
        )
