"""Run Lawson, Smirni, Puiu 2002 again: single and multiple queues on four whole logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.core import metrics
from hpcgym.core.predictor import Estimates
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.evaluation.executors import AnyExecutor
from hpcgym.evaluation.store import Row, digest
from hpcgym.schedule.schedule import Schedule
from hpcgym.schedule.simulate import simulate
from hpcgym.trace import load_workload
from papers.common.resume import Part, run_parts

LOGS = {
    "CTC": "CTC-SP2-1996-3.1-cln",
    "KTH": "KTH-SP2-1996-2.1-cln",
    "PAR": "SDSC-Par-1996-3.1-cln",
    "SP2": "SDSC-SP2-1998-4.2-cln",
}
"""The paper's name of each log, and ours."""

SINGLE, MULTIPLE = "easy", "multi-queue"
DELAYED = "multi-queue:delay=2500"
PRINTED = "multi-queue:delay=2500,delta1=printed"
SCHEDULERS = {
    SINGLE: "single queue",
    MULTIPLE: "multiple queues",
    DELAYED: "with adaptive delay",
    PRINTED: "the same, first change as printed",
}
"""Backfilling modes, and what tables call them."""

CLASSES = (1, 2, 3, 4)
DAY_S = 86_400
BATCH_JOBS = 1_000
"""Jobs of a batch of figure 6, in order of submission."""

TABLE_1 = {
    "CTC": (79_302, 512, 10_983, 946, 1.65, 11, 2, 2.26),
    "KTH": (28_490, 100, 8_876, 845, 2.19, 8, 3, 1.61),
    "PAR": (38_723, 416, 7_416, 175, 2.01, 16, 8, 1.46),
    "SP2": (67_667, 128, 6_118, 514, 2.37, 10, 4, 1.59),
}
"""Section 2 and table 1: jobs, processors; mean, median and C.V. of run time and of processors."""


@dataclass(frozen=True)
class Reading:
    """One way to read what the paper leaves open.

    Attributes:
        name: What the tables call it.
        estimates: What the scheduler plans with, "exact" or "requested".
        kill_at_limit: Whether a job ends at its request; else it runs as long as the log says.
        printed_machines: Whether machines have the processors that the paper states, where those
            are more than the log's.
        logs: Paper's name -> ours.
    """

    name: str
    estimates: Estimates = "exact"
    kill_at_limit: bool = False
    printed_machines: bool = False
    logs: tuple[tuple[str, str], ...] = tuple(LOGS.items())


EXACT = Reading("exact estimates")
"""As the paper says: it takes arrival, run time and processors from each log, nothing else."""

USER = Reading("user estimates", estimates="requested", kill_at_limit=True)
SHOWN = (EXACT, USER)
"""The readings that the page shows in full."""

TRIED = (
    Reading("exact, machines as printed", printed_machines=True),
    Reading("exact, jobs killed at their requests", kill_at_limit=True),
    Reading("exact, KTH uncleaned", logs=(("KTH", "KTH-SP2-1996-2"),)),
)
"""What might explain differences."""

_LISTS = ("batches", "delays")


@dataclass(frozen=True)
class Rerun:
    """The results.

    Attributes:
        runs: One row per reading, log and scheduler: jobs and mean slowdowns, over all and by
            class, and the mean bounded slowdown.
        batches: Mean slowdown of each batch of 1000 submissions, in long form.
        delays: The adaptive delay at the beginning of each day, s, in long form.
        facts: One row per log and version of it, for table 1 and figure 2.
        seconds: Wall time of all simulations, s.
    """

    runs: pd.DataFrame
    batches: pd.DataFrame
    delays: pd.DataFrame
    facts: pd.DataFrame
    seconds: float


def rerun(
    store: str | Path,
    *,
    executor: AnyExecutor = None,
    readings: Sequence[Reading] = (*SHOWN, *TRIED),
) -> Rerun:
    """Simulate every log under every scheduler.

    Args:
        store: File in which finished parts are kept; a second run goes on from it.
        executor: Whose workers share the parts, as of `hpcgym.evaluate`.
        readings: Readings of the paper, `EXACT` first.

    Raises:
        TraceError: A log is not at hand.

    Source: Lawson, Smirni, Puiu 2002, section 4; specification, section 7.
    """
    names = dict.fromkeys(name for reading in readings for _, name in reading.logs)
    logs = {name: load_log(name) for name in names}
    parts = [
        Part(
            digest(logs[name], "Lawson 2002", reading, paper_name, tuple(SCHEDULERS)),
            f"{paper_name}, {reading.name}",
            partial(_run_log, logs[name], reading, paper_name),
        )
        for reading in readings
        for paper_name, name in reading.logs
    ]
    done = run_parts(parts, store, "Lawson 2002", executor=executor)
    rows = [row for part in done.rows for row in part]
    runs = [{key: value for key, value in row.items() if key not in _LISTS} for row in rows]
    pairs = dict.fromkeys(pair for reading in readings for pair in reading.logs)
    facts = [{"log": name, "version": ours, **log_facts(logs[ours])} for name, ours in pairs]
    batches, delays = (
        pd.concat([_long(row, *names) for row in rows], ignore_index=True)
        for names in (("batches", "batch", "slowdown"), ("delays", "day", "delay"))
    )
    return Rerun(pd.DataFrame(runs), batches, delays, pd.DataFrame(facts), done.seconds)


def load_log(name: str) -> Workload:
    """Load a log; one without any request gets synthetic ones.

    Raises:
        TraceError: The log is not at hand.

    Source: Specification, section 9: requests of the SDSC Paragon are made after Tsafrir.
    """
    exact = load_workload(name)
    stated = exact.source is not None and (exact.source.records["requested_time"] > 0).any()
    return load_workload(name, missing_request="max" if stated else "tsafrir")


def log_facts(log: Workload) -> Row:
    """Measure what table 1 says of a log.

    Returns:
        Jobs, processors of the machine; mean, median and coefficient of variation of run time (s)
        and of processors; shares (%) of the jobs in each class by run time, of those that ran
        beyond their request, and of short jobs among those that ask for an extra-long time.

    Source: Lawson, Smirni, Puiu 2002, table 1 and figure 2.
    """
    columns = {"run_time": log.run_time, "processors": log.processors}
    ran, asked = map(metrics.requested_time_class, (log.run_time, log.requested_time))
    shares = 100 * np.bincount(ran, minlength=CLASSES[-1] + 1) / len(log)
    return {
        "jobs": len(log),
        "machine": log.machine_processors,
        **{
            f"{what}_{name}": float(figure)
            for name, values in columns.items()
            for what, figure in (
                ("mean", values.mean()),
                ("median", np.median(values)),
                ("cv", values.std() / values.mean()),
            )
        },
        **{f"share_{number}": float(shares[number]) for number in CLASSES},
        "over_request": 100 * float((log.run_time > log.requested_time).mean()),
        "short_asking_long": 100 * float((asked[ran == 1] == CLASSES[-1]).mean()),
    }


def slowdown_ratio(single: float, multiple: float) -> float:
    """Compute R = (s_1 - s_m) / min(s_1, s_m); above 0, multiple queues are better.

    Source: Lawson, Smirni, Puiu 2002, section 4.

    Example:
        >>> slowdown_ratio(30.0, 20.0), slowdown_ratio(20.0, 30.0)
        (0.5, -0.5)
    """
    return (single - multiple) / min(single, multiple)


def _run_log(log: Workload, reading: Reading, paper_name: str) -> list[Row]:
    """Simulate one log under every scheduler."""
    if reading.printed_machines:
        machine = max(TABLE_1[paper_name][1], log.machine_processors)
        log = replace(log, machine_processors=machine)
    rows = []
    for scheduler in SCHEDULERS:
        settings = SchedulerSettings(
            backfill=scheduler, estimates=reading.estimates, kill_at_limit=reading.kill_at_limit
        )
        key = {"reading": reading.name, "log": paper_name, "scheduler": scheduler}
        delays = daily_delays(log, settings) if "delay" in scheduler else []
        schedule = simulate(log, **vars(settings))
        rows.append({**key, **measured(schedule, reading), "delays": delays})
    return rows


def daily_delays(log: Workload, settings: SchedulerSettings) -> list[float]:
    """Return the adaptive delay at the beginning of each day, s, until the last job has started.

    Source: Lawson, Smirni, Puiu 2002, section 4.2.

    Example:
        >>> settings = SchedulerSettings(backfill="multi-queue:delay=60")
        >>> daily_delays(load_workload("tiny"), settings)
        [60.0]
    """
    simulator = Simulator(log, settings, decide=DAY_S)
    delays = []
    while simulator.run():
        delays.append(float(simulator.state.delay[0]))
    return delays


def measured(schedule: Schedule, reading: Reading) -> Row:
    """Measure what the paper shows of a run; classes go by what the scheduler plans with.

    Returns:
        Jobs, and those among them without a run time, which have no slowdown; mean slowdown over
        all and by class, with the jobs of each; mean bounded slowdown; and `batches`, the mean
        slowdowns of batches of 1000 submissions, the last one left out if it is not full.

    Source: Lawson, Smirni, Puiu 2002, section 4.
    """
    slowdown = metrics.slowdown(schedule.wait_time, schedule.run_time)
    estimate = schedule.workload.requested_time
    if reading.estimates == "exact":
        estimate = np.maximum(schedule.run_time, 1)
    number = metrics.requested_time_class(estimate)
    has_slowdown = ~np.isnan(slowdown)
    by_class = {one: slowdown[has_slowdown & (number == one)] for one in CLASSES}
    full = len(slowdown) // BATCH_JOBS * BATCH_JOBS
    return {
        "n_jobs": len(slowdown),
        "n_without_run_time": int((~has_slowdown).sum()),
        "slowdown": float(np.nanmean(slowdown)),
        **{f"slowdown_{one}": _mean(values) for one, values in by_class.items()},
        **{f"n_jobs_{one}": len(values) for one, values in by_class.items()},
        "bsld": float(schedule.bsld().mean()),
        "batches": np.nanmean(slowdown[:full].reshape(-1, BATCH_JOBS), axis=1).tolist(),
    }


def _mean(values: NDArray[np.float64]) -> float:
    """Return the mean, NaN of nothing."""
    return float(values.mean()) if len(values) else float("nan")


def _long(row: Row, lists: str, index: str, value: str) -> pd.DataFrame:
    """Turn a list of one row into a frame of one line per entry."""
    frame = pd.DataFrame({value: row[lists]}, dtype=np.float64).rename_axis(index).reset_index()
    key = {name: row[name] for name in ("reading", "log", "scheduler")}
    return frame.assign(**key)[[*key, index, value]]
