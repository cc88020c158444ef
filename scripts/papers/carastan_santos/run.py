"""Run Carastan-Santos 2019 again: four policies on ten resamples of five whole logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.core import metrics
from hpcgym.core.workload import Workload
from hpcgym.evaluation.executors import AnyExecutor
from hpcgym.evaluation.store import Row, digest
from hpcgym.schedule.schedule import Schedule
from hpcgym.schedule.simulate import simulate
from hpcgym.trace import load_workload
from hpcgym.trace.resample import resample
from papers.common.readings import OverLimit, bsld_bounded_by, with_over_limit
from papers.common.resume import Part, run_parts

LOGS = {
    "HPC2N": "HPC2N-2002-2.2-cln",
    "SDSC Blue": "SDSC-BLUE-2000-4.2-cln",
    "SDSC SP2": "SDSC-SP2-1998-4.2-cln",
    "CTC SP2": "CTC-SP2-1996-3.1-cln",
    "KTH SP2": "KTH-SP2-1996-2.1-cln",
}
"""The paper's name of each log, and ours."""

POLICIES = ("FCFS", "SPF", "SQF", "SAF")
METRICS = ("bsld", "wait_time", "pp_bsld")
SHARES = ("1", "1-10", "10-100", "100+")
"""Classes of the bounded slowdown, from executed at once to poorly scheduled."""

N_SAMPLES = 10
N_WORST = 100
SEED = 2019
PREMATURE_RATIO = 100
"""A job is premature where its request is at least this many times its run time."""


@dataclass(frozen=True)
class Reading:
    """One way to read what the paper leaves open.

    Attributes:
        name: What the tables call it.
        resampling: "permute" or "draw", as in `resample`; "none" takes the log itself, once.
        over_limit: What happens to jobs that ran beyond their request.
        limit: The largest request a platform allows, a third of the threshold: the log's "largest",
            its 99.9th percentile "p99.9", or "none" for no threshold.
        backfill_order: Order of the backfill, None for the primary one.
        bound_s: Bound of the slowdown (tau), s.
        logs: Paper's name -> ours.
    """

    name: str
    resampling: Literal["permute", "draw", "none"] = "permute"
    over_limit: OverLimit = "kill"
    limit: Literal["largest", "p99.9", "none"] = "largest"
    backfill_order: str | None = None
    bound_s: int = metrics.BSLD_BOUND_S
    logs: tuple[tuple[str, str], ...] = tuple(LOGS.items())


MAIN = Reading("as the paper says")
BATSIM = Reading("Batsim's converter", over_limit="double")
"""The converter that comes with the paper's simulator sets requests to max(request, 2 run)."""

GIVEN = Reading("given requests only", over_limit="drop")
"""With that option off, the same converter leaves out jobs that ran beyond their request."""

TRIED = (
    BATSIM,
    GIVEN,
    Reading("Batsim's converter, p99.9 threshold", over_limit="double", limit="p99.9"),
    Reading("given requests only, p99.9 threshold", over_limit="drop", limit="p99.9"),
    Reading("weeks drawn with replacement", resampling="draw"),
    Reading("the logs themselves, no resampling", resampling="none"),
    Reading("over-limit jobs run on", over_limit="keep"),
    Reading("no threshold", limit="none"),
    Reading("p99.9 threshold", limit="p99.9"),
    Reading("SPF backfilling", backfill_order="SPF"),
    Reading("FCFS backfilling", backfill_order="FCFS"),
    Reading("tau 60 s", bound_s=60),
    Reading("KTH SP2 uncleaned", logs=(("KTH SP2", "KTH-SP2-1996-2"),)),
)
"""What might explain differences."""

SHOWN = (MAIN, BATSIM, GIVEN)
"""The readings that the page shows in full."""

PREMATURE = {"HPC2N": 17.4, "SDSC Blue": 30.2, "SDSC SP2": 16.1, "CTC SP2": 9.5, "KTH SP2": 12.4}
"""Table III: share of premature jobs, %."""

_LISTS = (*METRICS, "worst")


@dataclass(frozen=True)
class Rerun:
    """The results.

    Attributes:
        runs: One row per reading, log, sample and policy.
        weekly: Cumulative averages by log, sample, policy and week, in long form, of `SHOWN`.
        worst: Processors of the jobs with the largest slowdowns, in long form, of `SHOWN`.
        facts: One row per log, for tables II and III.
        seconds: Wall time of all simulations, s.
    """

    runs: pd.DataFrame
    weekly: pd.DataFrame
    worst: pd.DataFrame
    facts: pd.DataFrame
    seconds: float


def rerun(
    store: str | Path,
    *,
    executor: AnyExecutor = None,
    readings: Sequence[Reading] = (MAIN, *TRIED),
    samples: int = N_SAMPLES,
) -> Rerun:
    """Simulate every sample of every log under every policy.

    Each sample has its own random generator, so all readings and policies get the same samples.

    Args:
        store: File in which finished parts are kept; a second run goes on from it.
        executor: Whose workers share the parts, as of `hpcgym.evaluate`.
        readings: Readings of the paper, `MAIN` first.
        samples: Samples of each log.

    Raises:
        TraceError: A log is not at hand.

    Source: Carastan-Santos et al. 2019, sections IV and V; specification, section 3.
    """
    names = dict.fromkeys(name for reading in readings for _, name in reading.logs)
    logs = {name: load_workload(name, missing_request="max") for name in names}
    parts = [
        Part(
            digest(logs[name], "Carastan-Santos 2019", reading, paper_name, number, SEED),
            f"{paper_name}, {reading.name}",
            partial(_run_sample, logs[name], reading, paper_name, number),
        )
        for reading in readings
        for paper_name, name in reading.logs
        for number in range(1 if reading.resampling == "none" else samples)
    ]
    done = run_parts(parts, store, "Carastan-Santos 2019", executor=executor)
    rows = [row for part in done.rows for row in part]
    shown = [row for row in rows if "worst" in row]
    scalar = [{k: v for k, v in row.items() if k not in _LISTS} for row in rows]
    facts = [
        {"log": paper_name, **log_facts(logs[name], PREMATURE[paper_name])}
        for paper_name, name in readings[0].logs
    ]
    return Rerun(
        pd.DataFrame(scalar),
        pd.concat([_long(row, METRICS, "week") for row in shown], ignore_index=True),
        pd.concat([_long(row, ("worst",), "rank") for row in shown], ignore_index=True),
        pd.DataFrame(facts),
        done.seconds,
    )


def sample_of(log: Workload, reading: Reading, number: int) -> Workload:
    """Draw the sample of a log that has this number.

    Source: Carastan-Santos et al. 2019, algorithm 1.
    """
    jobs = with_over_limit(log, reading.over_limit)
    if reading.resampling == "none":
        return jobs
    return resample(jobs, np.random.default_rng([SEED, number]), reading.resampling)


def threshold_of(log: Workload, reading: Reading) -> int | None:
    """Return three times the largest request that a log's platform allowed, s, or None for none.

    Source: Carastan-Santos et al. 2019, section III-C; specification, section 3, "Threshold".
    """
    if reading.limit == "none":
        return None
    if reading.limit == "p99.9":
        return 3 * int(np.percentile(log.requested_time, 99.9))
    stated = None if log.source is None else log.source.header_number("MaxRuntime")
    return 3 * int(stated or log.largest_request)


def is_premature(workload: Workload) -> NDArray[np.bool_]:
    """Tell which jobs asked for at least a hundred times what they ran, shape (n_jobs,).

    Source: Carastan-Santos et al. 2019, section V-C; rules of reruns, "Premature job".
    """
    run, request = workload.run_time, workload.requested_time
    return (request >= PREMATURE_RATIO * run) & (run > 0)


def log_facts(log: Workload, published: float) -> Row:
    """Count what tables II and III say of a log, by all definitions that the paper may mean.

    Args:
        log: The log as loaded.
        published: The paper's share of premature jobs, %.

    Returns:
        Lines of the file, jobs kept, utilisation (%), span (months of 30 days); the largest request
        and its 99.9th percentile, s; shares (%) of premature jobs by several definitions; and the
        ratio of request to run time that would give the published share.

    Source: Carastan-Santos et al. 2019, tables II and III.
    """
    run, request = log.run_time, log.requested_time
    end = int((log.submit_time + np.maximum(log.wait_time, 0) + run).max())
    work = int((run * log.processors).sum())
    ok = log.source.records["status"].to_numpy()[log.source_row] == 1
    premature = is_premature(log)
    return {
        "lines": len(log.source),
        "jobs": len(log),
        "processors": log.machine_processors,
        "utilisation": 100 * work / (log.machine_processors * end),
        "months": end / (30 * 86_400),
        "largest_request": log.largest_request,
        "p99.9_request": int(np.percentile(request, 99.9)),
        "premature": 100 * float(premature.mean()),
        "premature_difference": 100 * float((request - run >= PREMATURE_RATIO * run).mean()),
        "premature_successful": 100 * float(premature[ok].mean()) if ok.any() else float("nan"),
        "premature_within_limit": 100 * float(premature[run <= request].mean()),
        "ratio_published": float(np.percentile(request / np.maximum(run, 1), 100 - published)),
    }


def _run_sample(log: Workload, reading: Reading, paper_name: str, number: int) -> list[Row]:
    """Simulate one sample under every policy."""
    jobs = sample_of(log, reading, number)
    threshold = threshold_of(log, reading)
    key = {"reading": reading.name, "log": paper_name, "sample": number}
    is_shown = reading.name in [shown.name for shown in SHOWN]
    rows = []
    for policy in POLICIES:
        schedule = simulate(
            jobs,
            policy,
            backfill_order=reading.backfill_order,
            threshold=threshold,
            kill_at_limit=reading.over_limit != "keep",
        )
        row = {**key, "policy": policy, "threshold": threshold, **measured(schedule, reading)}
        rows.append(row if is_shown else {k: v for k, v in row.items() if k not in _LISTS})
    return rows


def measured(schedule: Schedule, reading: Reading) -> dict[str, Any]:
    """Measure what the paper shows of a run.

    Returns:
        Means of the three metrics; counts of jobs by class of slowdown, of backfilled and
        thresholded jobs, and of large thresholded jobs (area at or above the median); mean
        slowdown of premature and of other jobs; cumulative weekly averages of each metric; and as
        `worst` the processors of the `N_WORST` jobs with the largest slowdowns.

    Source: Carastan-Santos et al. 2019, figures 1-4, table IV.
    """
    jobs = schedule.workload
    bsld = bsld_bounded_by(schedule, reading.bound_s)
    run = np.maximum(schedule.run_time, reading.bound_s)
    turnaround = schedule.wait_time + schedule.run_time
    values = {
        "bsld": bsld,
        "wait_time": schedule.wait_time.astype(np.float64),
        "pp_bsld": np.maximum(turnaround / (run * jobs.processors), 1.0),
    }
    premature = is_premature(jobs)
    area = jobs.requested_time * jobs.processors
    reached = [len(jobs), *(int((bsld >= edge).sum()) for edge in (1 + 1e-12, 10, 100)), 0]
    worst = np.argsort(-bsld, kind="stable")[:N_WORST]
    return {
        "n_jobs": len(jobs),
        **{f"mean_{name}": float(column.mean()) for name, column in values.items()},
        **{
            f"share_{name}": (below - above) / len(jobs)
            for name, below, above in zip(SHARES, reached[:-1], reached[1:], strict=True)
        },
        "n_backfilled": int(schedule.backfilled.sum()),
        "n_thresholded": int(schedule.thresholded.sum()),
        "n_thresholded_large": int((area[schedule.thresholded] >= np.median(area)).sum()),
        "bsld_premature": float(bsld[premature].mean()),
        "bsld_standard": float(bsld[~premature].mean()),
        "worst": jobs.processors[worst].tolist(),
        **{name: _cumulative(column, schedule.end_time) for name, column in values.items()},
    }


def _cumulative(values: NDArray[np.float64], end_time: NDArray[np.int64]) -> list[float]:
    """Average a metric over the jobs finished by the end of each week."""
    series = metrics.weekly(values, end_time)["cumulative_mean"]
    return [float(value) for value in series]


def _long(row: Row, columns: Sequence[str], index: str) -> pd.DataFrame:
    """Turn the lists of one row into a frame of one line per entry."""
    key = {name: row[name] for name in ("reading", "log", "sample", "policy")}
    lists = {name: row[name] for name in columns}
    frame = pd.DataFrame(lists).rename_axis(index).reset_index()
    return frame.assign(**key)[[*key, index, *columns]]
