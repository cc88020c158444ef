"""How often ranges of starts hold, on logs and on queues that a real Slurm printed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import LiveError
from hpcgym.evaluation.statistics import ratio_of_sums
from hpcgym.schedule.simulate import simulate
from hpcgym.site.live.advice import ranges_now
from hpcgym.site.live.ranges import Backtest, Range, as_backtest, backtest, ranges
from hpcgym.site.live.readings import read_queue, text_of
from hpcgym.site.live.replay import Forecasts, Jobs, jobs_of, replay
from hpcgym.site.live.run_times import no_past, read_past
from hpcgym.site.live.snapshot import Snapshot, snapshots_of
from hpcgym.site.live.stage import Stage
from hpcgym.trace import load_workload
from research.recorded_queues import READINGS

DAY_S = 86_400
WINDOW_S = 14 * DAY_S  # as of `hpcgym advise --days`
STRETCHES = 10
"""Parts of a log in a row, for the interval."""


def of_log(log: str, setting: str, most: int) -> Forecasts:
    """Forecast past starts of a log, as recorded or under FCFS with a kind of backfilling."""
    jobs = load_workload(log)
    as_recorded = setting == "recorded"
    schedule = simulate(jobs, "recorded") if as_recorded else simulate(jobs, backfill=setting)
    columns = (jobs.submit_time, schedule.start_time, schedule.end_time, jobs.requested_time)
    return replay(Jobs(*columns, jobs.processors), jobs.machine_processors, most)


KINDS: dict[str, Callable[[Forecasts], NDArray[np.bool_]]] = {
    "submitted, room at once": lambda each: each.is_new & (each.expected < 1),
    "submitted, no room": lambda each: each.is_new & (each.expected >= 1),
    "waiting": lambda each: ~each.is_new,
}


def rows_of_log(name: str, forecasts: Forecasts) -> Iterator[list[str]]:
    """Yield a row of the table for each kind of job; ranges are of like jobs, so of one kind."""
    for what, kept in KINDS.items():
        each = backtest(forecasts.at(kept(forecasts)), what != "waiting", WINDOW_S, DAY_S)
        yield row(f"{name}, {what}", each, np.array_split(np.arange(len(each.came)), STRETCHES))


def row(name: str, each: Backtest, parts: Sequence[NDArray[np.int64]]) -> list[str]:
    """Return a row: the share that each part's ranges hold has an interval over parts."""
    has, tells = each.has_range, each.tells
    width = np.where(np.isinf(each.high), np.inf, each.high - np.where(has, each.low, 0.0))[has]
    error = np.abs(each.middle - each.came)[has]
    return [
        name,
        f"{len(has):,}",
        f"{100 * has.mean():.0f}",
        interval([each.holds[part][has[part]] for part in parts]),
        f"{100 * tells.mean():.1f}",
        interval([each.holds[part][tells[part]] for part in parts]),
        *(_in_hours(float(np.median(each))) if len(each) else "-" for each in (error, width)),
    ]


def _in_hours(seconds: float) -> str:
    """Return hours with two digits that count."""
    return np.format_float_positional(seconds / 3600, 2, fractional=False, trim="-")


def interval(parts: Sequence[NDArray[np.bool_]]) -> str:
    """Return the share of all, and its 95 % t interval over parts, weighed by their sizes, %."""
    kept = [part for part in parts if len(part)]
    if len(kept) < 2:
        return ""
    hits, sizes = ([float(count(part)) for part in kept] for count in (np.sum, len))
    share = ratio_of_sums(np.array(hits)[:, None], np.array(sizes)[:, None])
    low, high = share.ends() or (math.nan, math.nan)
    return f"{100 * share.value:.0f} ({100 * low:.0f} to {100 * min(high, 1):.0f})"


def rows_of_readings(folder: Path) -> Iterator[list[str]]:
    """Yield a row for each kind of job: what ranges of earlier runs held in each later run.

    Submitted jobs are those of the accounting; waiting ones stand in what `squeue` printed.
    """
    runs = sorted(
        (path.parent for path in folder.glob("*/sacct.txt")), key=lambda run: int(run.name)
    )
    rows: dict[str, list[list[tuple[float, Range | None]]]] = {what: [] for what in KINDS}
    for number in range(1, len(runs)):
        known = _replayed(runs[:number])
        now = _replayed(runs[: number + 1])
        later = now.instant > known.instant.max()
        for what, kept in list(KINDS.items())[:2]:
            new = now.at(later & kept(now))
            likely = ranges(known, new.expected.tolist(), True)
            rows[what].append(list(zip(new.came.tolist(), likely, strict=True)))
        rows["waiting"].append(list(_waiting(runs[number], known)))
    for name, by_run in rows.items():
        parts, at = [], 0
        for run in by_run:
            parts.append(np.arange(at, at + len(run)))
            at += len(run)
        flat = [each for run in by_run for each in run]
        yield row(f"toy, {name}", as_backtest(flat), parts)


def _replayed(runs: Sequence[Path]) -> Forecasts:
    """Forecast past starts of runs, by their accounting alone."""
    texts = [(run / "sacct.txt").read_text(encoding="utf-8") for run in runs]
    lines = [texts[0].splitlines()[0], *(line for text in texts for line in text.splitlines()[1:])]
    with TemporaryDirectory() as where:
        path = Path(where, "sacct.txt")
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        past = read_past(path, 2**40)
    machine = replace(next(_snapshots(runs[-1])), waiting=(), running=())
    return replay(jobs_of(machine, past), machine.cpus)


def _snapshots(run: Path) -> Iterator[Snapshot]:
    """Yield the queue of each reading; those that contradict themselves are refused, as ever."""
    for folder in _in_order(run.glob("*/squeue.txt")):
        texts = (text_of(name, folder / f"{name}.txt") for name in READINGS)
        with suppress(LiveError):
            (snapshot,) = snapshots_of(read_queue(*texts))
            yield snapshot


def _waiting(run: Path, known: Forecasts) -> Iterator[tuple[float, Range | None]]:
    """Yield the wait that came of each job that a run's readings show waiting, and its range."""
    text = (run / "sacct.txt").read_text(encoding="utf-8")
    head, *cells = (line.split("|") for line in text.splitlines())
    job, start = head.index("JobID"), head.index("Start")
    started = {each[job]: int(each[start]) for each in cells}
    for snapshot in _snapshots(run):
        likely = ranges_now(Stage(snapshot, no_past()), known)
        for each, its_range in zip(snapshot.waiting, likely, strict=True):
            yield float(started[each.array_id] - snapshot.now), its_range


def _in_order(paths: Iterable[Path]) -> list[Path]:
    """Return the folders of files, by their numbers."""
    return sorted((path.parent for path in paths), key=lambda folder: int(folder.name))
