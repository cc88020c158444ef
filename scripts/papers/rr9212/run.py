"""Run RR-9212 again: twelve pure policies on the weeks of four logs, in several readings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.core import metrics
from hpcgym.core.policy import Policy
from hpcgym.core.workload import Workload
from hpcgym.evaluation.executors import AnyExecutor
from hpcgym.evaluation.store import Row, digest
from hpcgym.schedule.simulate import simulate
from hpcgym.trace import load_workload
from hpcgym.trace.split import WEEK_S, Rule, months, weeks
from papers.common.readings import PURE, OverLimit, bsld_bounded_by, newest_first, with_over_limit
from papers.common.resume import Part, run_parts

LOGS = {
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln", 100),
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln", 45),
    "CTC-SP2": ("CTC-SP2-1996-3.1-cln", 45),
    "SDSC-BLUE": ("SDSC-BLUE-2000-4.2-cln", 100),
}
"""The report's name of each log, ours, and how many weeks of it."""

POLICIES = tuple(PURE)
THRESHOLDS_S = (None, 200_000, 72_000)
"""None, 2.31 days, 20 hours."""

DEFAULT_THRESHOLD_S = 200_000
DAY_S = 86_400


@dataclass(frozen=True)
class Reading:
    """One way to read what the report leaves open.

    Attributes:
        name: What the tables call it.
        over_limit: What happens to jobs that ran beyond their request.
        missing_request: What happens to jobs without a request: "max", the log's largest; "drop".
        rule: Which jobs a week has, as in `hpcgym.trace.split.weeks`.
        offset: Where week 0 begins, s after the first submission, or "log": where time 0 of the
            log's own clock puts it.
        first_week: Number of the first week used; week 0 holds the first submission.
        newest_first: Whether ties go to the latest job, and those of the backfill by the primary
            order; else to the earliest.
        bound_s: Bound of the slowdown (tau), s.
    """

    name: str
    over_limit: OverLimit = "kill"
    missing_request: Literal["max", "drop"] = "max"
    rule: Rule = "rr9212"
    offset: int | Literal["log"] = 0
    first_week: int = 1
    newest_first: bool = False
    bound_s: int = metrics.BSLD_BOUND_S


PLAIN = Reading("plain")
"""The plainest reading of the report's text: that of the scenarios `rr9212-*`."""

SIMULATOR = Reading(
    "simulator",
    over_limit="drop",
    missing_request="drop",
    rule="whole",
    offset="log",
    first_week=3,
    newest_first=True,
    bound_s=60,
)
"""What the simulator that the report thanks for does with a log (freuk/ocst)."""

IN_FULL = (
    PLAIN,
    replace(PLAIN, name="plain, over-limit jobs run on", over_limit="keep"),
    replace(PLAIN, name="plain, request raised to the run time", over_limit="raise"),
    SIMULATOR,
)
"""Read with every threshold."""

STEPS = (
    replace(PLAIN, name="weeks on the log's clock", offset="log"),
    replace(PLAIN, name="weeks 3 on, on the log's clock", offset="log", first_week=3),
    replace(PLAIN, name="plain, over-limit jobs left out", over_limit="drop"),
    replace(PLAIN, name="plain, no filter", rule="whole"),
    replace(
        PLAIN, name="plain, no filter, over-limit jobs left out", over_limit="drop", rule="whole"
    ),
    replace(PLAIN, name="plain, newest first", newest_first=True),
    replace(PLAIN, name="plain, tau 60 s", bound_s=60),
    replace(SIMULATOR, name="simulator, but over-limit jobs killed", over_limit="kill"),
    replace(SIMULATOR, name="simulator, but filtered by the logged end", rule="rr9212"),
    replace(SIMULATOR, name="simulator, but weeks from the first submission", offset=0),
    replace(SIMULATOR, name="simulator, but weeks 1 on", first_week=1),
    replace(SIMULATOR, name="simulator, but weeks 2 on", first_week=2),
    replace(SIMULATOR, name="simulator, but weeks 4 on", first_week=4),
    replace(SIMULATOR, name="simulator, but oldest first", newest_first=False),
    replace(SIMULATOR, name="simulator, but tau 10 s", bound_s=10),
)
"""Steps between the two readings, each change alone; read with the default threshold."""

OFFSETS = tuple(
    replace(reading, name=f"{reading.name}, offset {days} d", offset=days * DAY_S)
    for reading in (PLAIN, replace(SIMULATOR, first_week=1))
    for days in range(7)
)
"""Where the week begins; read with the default threshold."""


def log_of(name: str, missing_request: Literal["max", "drop"]) -> Workload:
    """Read a log by the report's name, once per process.

    Raises:
        TraceError: The log is not at hand.

    Source: RR-9212, table 1.
    """
    return _load(LOGS[name][0], missing_request)


@cache
def _load(trace: str, missing_request: Literal["max", "drop"]) -> Workload:
    """Read a log."""
    return load_workload(trace, missing_request=missing_request)


def weeks_of(name: str, reading: Reading, *, length_s: int = WEEK_S) -> list[Workload]:
    """Cut a log into the weeks that the report uses, or into all months.

    Args:
        name: The report's name of the log.
        reading: How to cut, and what happens to some jobs.
        length_s: `WEEK_S` or `MONTH_S` of `hpcgym.trace.split`.

    Source: RR-9212, sections 5.1 and 11; rules of reruns, "Two readings of weeks".
    """
    log = with_over_limit(log_of(name, reading.missing_request), reading.over_limit)
    if reading.offset == "log":
        offset, origin = -log.time_offset % length_s, log.time_offset // length_s * length_s
    else:
        offset, origin = reading.offset, log.time_offset + reading.offset
    cut = weeks if length_s == WEEK_S else months
    parts = cut(log, rule=reading.rule, offset=offset)
    used = [p for p in parts if (p.time_offset - origin) // length_s >= reading.first_week]
    return used[: LOGS[name][1]] if length_s == WEEK_S else used


def mean_bsld(
    parts: Sequence[Workload],
    reading: Reading,
    primary: str | Policy,
    backfill: str | Policy = "SPF",
    threshold: int | None = DEFAULT_THRESHOLD_S,
) -> NDArray[np.float64]:
    """Simulate weeks, each alone on an empty machine: mean bounded slowdowns, shape (n_weeks,).

    Source: RR-9212, equations 2 and 4.
    """
    means = []
    for week in parts:
        schedule = simulate(
            week,
            primary,
            backfill_order=backfill,
            threshold=threshold,
            kill_at_limit=reading.over_limit != "keep",
        )
        means.append(bsld_bounded_by(schedule, reading.bound_s).mean())
    return np.array(means)


def orders_of(policy: str, reading: Reading) -> tuple[str | Policy, str | Policy]:
    """Return the primary and the backfill order of a pure policy under a reading.

    Source: RR-9212, section 2.2: backfilling by SPF.
    """
    return newest_first(policy) if reading.newest_first else (policy, "SPF")


@dataclass(frozen=True)
class Tables:
    """The results of the pure policies.

    Attributes:
        weekly: One row per reading, log, threshold (s, 0 for none), policy and week: `bsld`.
        facts: One row per log: jobs, mean run time and size, in two ways of counting.
        longest: The jobs of table 7 as the log has them.
        seconds: Wall time, s.
    """

    weekly: pd.DataFrame
    facts: pd.DataFrame
    longest: pd.DataFrame
    seconds: float


def tables(
    store: str | Path,
    *,
    executor: AnyExecutor = None,
    logs: Sequence[str] = tuple(LOGS),
    in_full: Sequence[Reading] = IN_FULL,
    others: Sequence[Reading] = (*STEPS, *OFFSETS),
) -> Tables:
    """Simulate the weeks of the logs under the twelve pure policies, in every reading.

    Args:
        store: File in which finished parts are kept; a second run goes on from it.
        executor: Whose workers share the parts, as of `hpcgym.evaluate`.
        logs: The report's names.
        in_full: Readings with every threshold.
        others: Readings with the default threshold only.

    Raises:
        TraceError: A log is not at hand.

    Source: RR-9212, sections 6 and 10.
    """
    parts = [
        Part(
            digest(log_of(log, reading.missing_request), "RR-9212", reading, log, chosen),
            f"{log}, {reading.name}",
            partial(_run_weeks, log, reading, chosen),
        )
        for readings, chosen in ((in_full, THRESHOLDS_S), (others, (DEFAULT_THRESHOLD_S,)))
        for reading in readings
        for log in logs
    ]
    done = run_parts(parts, store, "RR-9212, tables", executor=executor)
    rows = [row for part in done.rows for row in part]
    return Tables(
        pd.DataFrame(rows).explode(["week", "bsld"], ignore_index=True).astype({"bsld": float}),
        facts_of(logs),
        longest_jobs(),
        done.seconds,
    )


def _run_weeks(log: str, reading: Reading, thresholds: Sequence[int | None]) -> list[Row]:
    """Simulate the weeks of one log in one reading."""
    parts = weeks_of(log, reading)
    return [
        {
            "reading": reading.name,
            "log": log,
            "threshold": threshold or 0,
            "policy": policy,
            "week": list(range(1, len(parts) + 1)),
            "bsld": mean_bsld(parts, reading, *orders_of(policy, reading), threshold).tolist(),
        }
        for threshold in thresholds
        for policy in POLICIES
    ]


def facts_of(logs: Iterable[str]) -> pd.DataFrame:
    """Count the jobs of each log, and those that the report's simulator would have taken.

    Returns:
        One row per log: `jobs`, `run` (mean run time, s) and `size` (mean processors), each of
        "all" jobs and of those of the "simulator": with a run time, a request no shorter, and
        neither in the first nor in the last week of the log's own clock.

    Source: RR-9212, table 1.
    """
    rows = []
    for name in logs:
        every, log = log_of(name, "max"), log_of(name, "drop")
        week = (log.submit_time + log.time_offset) // WEEK_S
        inner = (week > week[0]) & (week < week[-1])
        taken = log.select(inner & (log.run_time > 0) & (log.run_time <= log.requested_time))
        row: Row = {"log": name}
        for label, jobs in (("all", every), ("simulator", taken)):
            row[f"jobs_{label}"] = len(jobs)
            row[f"run_{label}"] = float(jobs.run_time.mean())
            row[f"size_{label}"] = float(jobs.processors.mean())
        rows.append(row)
    return pd.DataFrame(rows)


def longest_jobs() -> pd.DataFrame:
    """Return the ten longest jobs of SDSC-SP2, with submit times as in the file.

    Source: RR-9212, table 7.
    """
    log = log_of("SDSC-SP2", "max")
    frame = log.to_frame().assign(submit_time=log.submit_time + log.time_offset)
    columns = ["job_id", "submit_time", "run_time", "processors"]
    return frame.nlargest(10, "run_time", keep="all")[columns].reset_index(drop=True)
