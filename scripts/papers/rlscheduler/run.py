"""Run RLScheduler's ten windows of each log by its rules, and by others, one change at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core.policy import KEYS, Policy, as_policy
from hpcgym.core.setting_list import EventSemantics
from hpcgym.core.workload import Workload
from hpcgym.evaluation.executors import AnyExecutor
from hpcgym.evaluation.store import Row, digest
from hpcgym.schedule.simulate import simulate
from hpcgym.trace import SwfLog, as_found, clean, find_trace, read_swf
from papers.common.resume import Part, run_parts
from papers.rlscheduler import simulator as theirs

LOGS = {
    "Lublin-1": "lublin_256",
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln",
    "HPC2N": "HPC2N-2002-2.2-cln",
}
"""The paper's name of each log, and ours."""

COLUMNS = (*theirs.SCORES, "RL")
PUBLISHED = {
    (False, "Lublin-1"): (7273.77, 19753.53, 22274.74, 277.35, 258.37, 254.67),
    (False, "SDSC-SP2"): (1727.54, 3000.88, 1848.45, 2680.55, 1232.06, 466.44),
    (False, "HPC2N"): (297.18, 426.99, 609.77, 157.71, 118.01, 117.01),
    (True, "Lublin-1"): (235.82, 133.87, 307.23, 73.31, 75.07, 58.64),
    (True, "SDSC-SP2"): (1595.12, 1083.12, 548.01, 2167.84, 1098.22, 397.82),
    (True, "HPC2N"): (127.38, 97.39, 175.12, 122.04, 71.95, 86.14),
}
"""Mean bounded slowdown by (with backfilling, log), in the order of `COLUMNS`."""

MINUTES = 1.5
TRAINED = {
    (False, "Lublin-1"): (252.57, 276.06),
    (False, "SDSC-SP2"): (1289.72, 2188.66),
    (False, "HPC2N"): (89.46, 94.62),
    (True, "Lublin-1"): (60.51, 75.59),
    (True, "SDSC-SP2"): (1022.59, 1214.59),
    (True, "HPC2N"): (51.61, 75.53),
}
"""Means of networks that `scripts/train_rlscheduler.py` trained for `MINUTES`, as `PUBLISHED`.

The first was trained on the ten windows, the second on windows apart.
"""

AS_THEY_ARE = {"FCFS": "FCFS", "WFP3": "WFP3", "UNICEP": "UNICEF", "SJF": "SPF", "F1": "F1"}
AS_THERE = AS_THEY_ARE | {
    "WFP3": "submit-as-wait:rule=WFP3",
    "UNICEP": "submit-as-wait:rule=UNICEF",
}
"""The table's name of each order, and ours: of the order of that name, and of the one computed."""


@dataclass(frozen=True)
class Rules:
    """Rules by which the windows are scheduled.

    Attributes:
        name: What tables call them.
        backfill: The mode.
        event_semantics: What happens at one instant.
        orders: The policy of each column.
        cleaned: "no": all jobs are there, and run on beyond their requests. "same": those that
            cleaning drops are left out of the windows, and jobs are killed at their requests.
            "anew": the same, but the windows are cut from the cleaned log.
        log_clock: Whether submit times are the log's; else a window begins at 0.
    """

    name: str
    backfill: str
    event_semantics: EventSemantics = "one-by-one"
    orders: tuple[tuple[str, str | None], ...] = tuple(AS_THERE.items())
    cleaned: str = "no"
    log_clock: bool = True


BARE, FILLED = "committed", "committed:fill=before"
MORE = ("SAF", "SAF-REG", "SMITH-REG")
"""Policies that are no columns of the table; the last two read users' completed jobs."""
RIGHT = (*AS_THEY_ARE.items(), *((name, name) for name in MORE))
GIVEN = tuple((name, None) for name in AS_THERE)
"""Orders given as keys: RLScheduler's scores of its own jobs."""

THERE = {
    False: Rules("RLScheduler's", BARE),
    True: Rules("RLScheduler's, with backfilling", FILLED),
}
SCORED = {
    False: Rules("its scores, no backfilling", BARE, orders=GIVEN),
    True: Rules("its scores, backfilling", FILLED, orders=GIVEN),
}
ONE_PASS = {
    False: Rules("one pass an instant, no backfilling", BARE, "batch"),
    True: Rules("one pass an instant, backfilling", FILLED, "batch"),
}
WAITS = Rules("RLScheduler's, right waits", BARE, orders=RIGHT)
WAITS_FILLED = Rules("RLScheduler's, with backfilling, right waits", FILLED, orders=RIGHT)
ANEW = Rules("chosen anew at each event, right waits", "none", "batch", RIGHT, log_clock=False)
EASY = Rules("EASY", "easy", "batch", RIGHT, log_clock=False)
CLEANED = Rules("EASY, cleaned", "easy", "batch", RIGHT, "same", False)
CUT_ANEW = Rules("EASY, cut from the cleaned log", "easy", "batch", RIGHT, "anew", False)
ALL = (
    *(rules[backfill] for rules in (THERE, SCORED, ONE_PASS) for backfill in (False, True)),
    *(WAITS, WAITS_FILLED, ANEW, EASY, CLEANED, CUT_ANEW),
)


@dataclass(frozen=True)
class Rerun:
    """The results.

    Attributes:
        runs: One row for each log, rules, policy and window: mean bounded slowdown, and how many
            jobs start at another second than by RLScheduler's queue, -1 = not compared.
        facts: One row for each log: its jobs, and those of all windows that never ran.
        seconds: Wall time of all simulations, s.
    """

    runs: pd.DataFrame
    facts: pd.DataFrame
    seconds: float

    def mean(self, log: str, rules: Rules | str, policy: str) -> float:
        """Average the mean bounded slowdowns of the windows."""
        name = rules if isinstance(rules, str) else rules.name
        runs = self.runs
        chosen = (runs["log"] == log) & (runs["rules"] == name) & (runs["policy"] == policy)
        return float(runs.loc[chosen, "bsld"].mean())

    def differing(self, log: str, rules: Rules) -> int:
        """Count the jobs that start at another second than by RLScheduler's queue."""
        runs = self.runs
        return int(runs.loc[(runs["log"] == log) & (runs["rules"] == rules.name), "differ"].sum())


QUEUE = {False: "plain queue, no backfilling", True: "plain queue, backfilling"}
"""What `Rerun.runs` calls the plain-Python queue."""


def rerun(
    store: str | Path,
    *,
    executor: AnyExecutor = None,
    logs: Mapping[str, str] = LOGS,
    starts: Sequence[int] | None = None,
    length: int = theirs.LENGTH,
) -> Rerun:
    """Schedule the windows of every log by all rules.

    Args:
        store: File in which finished parts are kept; a second run goes on from it.
        executor: Whose workers share the parts, as of `hpcgym.evaluate`.
        logs: The paper's name of each log, and ours.
        starts: Position of the first job of each window; None = the paper's.
        length: Jobs of a window.

    Raises:
        TraceError: A log is not at hand.

    Source: Zhang et al. 2020 (RLScheduler); rules of reruns, "RLScheduler".
    """
    places = tuple(theirs.starts_of_windows() if starts is None else starts)
    read = {title: read_swf(find_trace(name)) for title, name in logs.items()}
    parts = [
        Part(
            digest(clean(as_found(log))[0], "rlscheduler", title, places, length),
            title,
            partial(_run_log, title, log, places, length),
        )
        for title, log in read.items()
    ]
    done = run_parts(parts, store, "RLScheduler", executor=executor)
    facts = pd.DataFrame([rows[0] for rows in done.rows])
    runs = pd.DataFrame([row for rows in done.rows for row in rows[1:]])
    return Rerun(runs, facts, done.seconds)


def _run_log(title: str, log: SwfLog, places: Sequence[int], length: int) -> list[Row]:
    """Schedule the windows of a log by all rules; the first row has facts."""
    jobs = theirs.jobs_of(log)
    windows = [jobs[at : at + length] for at in places]
    never_ran = set(log.records["job_id"][log.records["run_time"] < 0])
    raw, _ = clean(as_found(log))
    kept, _ = clean(log)
    processors = raw.machine_processors
    rows: list[Row] = [
        {
            "log": title,
            "jobs": len(jobs),
            "cleaned": len(kept),
            "never_ran": sum(job.job_id in never_ran for jobs in windows for job in jobs),
            "no_request": sum(job.e < 0 for jobs in windows for job in jobs),
        }
    ]
    expected = {}
    for backfill, label in QUEUE.items():
        for policy in theirs.SCORES:
            for at, window in enumerate(windows):
                starts = theirs.simulate(window, processors, policy, backfill=backfill)
                expected[backfill, policy, at] = starts
                bsld = theirs.mean_bsld(window, starts)
                rows.append(_row(title, label, policy, at, bsld, 0))
    same_jobs = {rules.name: backfill for one in (THERE, SCORED) for backfill, rules in one.items()}
    for rules in ALL:
        for at, window in enumerate(windows):
            workload = _window(kept if rules.cleaned != "no" else raw, window, rules)
            if rules.cleaned == "anew":
                cut = np.arange(places[at], min(places[at] + length, len(kept)))
                workload = kept.select(cut, start=int(kept.submit_time[cut[0]]))
            for policy, order in rules.orders:
                made = simulate(
                    workload,
                    _by_scores(policy, window) if order is None else as_policy(order),
                    backfill=rules.backfill,
                    event_semantics=rules.event_semantics,
                    kill_at_limit=rules.cleaned != "no",
                )
                differ = -1
                if rules.name in same_jobs:
                    begun = expected[same_jobs[rules.name], policy, at]
                    differ = int((made.start_time != np.array(begun)).sum())
                rows.append(_row(title, rules.name, policy, at, float(made.bsld().mean()), differ))
    return rows


def _row(log: str, rules: str, policy: str, window: int, bsld: float, differ: int) -> Row:
    """Return a row of `Rerun.runs`."""
    return {
        "log": log,
        "rules": rules,
        "policy": policy,
        "window": window,
        "bsld": bsld,
        "differ": differ,
    }


def _window(workload: Workload, window: Sequence[theirs.Job], rules: Rules) -> Workload:
    """Return those jobs of a window that a workload has."""
    mine = np.isin(workload.job_id, [job.job_id for job in window])
    begin = window[0].r if not rules.log_clock else 0
    return workload.select(np.flatnonzero(mine), start=begin - workload.time_offset)


def _by_scores(policy: str, window: Sequence[theirs.Job]) -> Policy:
    """Return the order of RLScheduler's scores, as keys."""
    by_id = {job.job_id: theirs.SCORES[policy](job) for job in window}
    place = {score: at for at, score in enumerate(sorted(set(by_id.values())))}

    def keys(workload: Workload) -> NDArray[np.int64]:
        return np.array([place[by_id[job]] for job in workload.job_id.tolist()])

    return Policy(f"{policy} of RLScheduler", KEYS, np.zeros(s.N_WEIGHTS), keys=keys)
