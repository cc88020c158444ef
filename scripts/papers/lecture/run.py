"""Run the lecture on batch scheduling again: estimates under EASY and conservative backfilling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import pandas as pd

from hpcgym.core.setting_list import EventSemantics
from hpcgym.core.workload import Workload
from hpcgym.evaluation.executors import AnyExecutor
from hpcgym.evaluation.store import Row, digest
from hpcgym.schedule.gang import Gang, Matrix
from hpcgym.schedule.moldable import choose_shape
from hpcgym.schedule.simulate import simulate
from hpcgym.trace import load_workload
from papers.common.resume import Part, run_parts

LOGS = {
    "KTH": "KTH-SP2-1996-2.1-cln",
    "CTC": "CTC-SP2-1996-3.1-cln",
    "SDSC": "SDSC-SP2-1998-4.2-cln",
}
"""The lecture's name of each log, and ours."""

EASY, KEPT, ANEW = "easy", "conservative:compress=shift", "conservative"
MODES = {EASY: "EASY", KEPT: "CBF, reservations kept", ANEW: "CBF, reservations made anew"}
"""Backfilling modes, and what tables call them; the lecture's CBF keeps reservations."""

FACTORS = (0, 1, 3, 10, 30, 100)
SEEDS = tuple(range(1, 11))
USER, DOUBLED = "requested", "doubled"

F_TABLE = {
    0: (15_001, 67.6),
    1: (14_717, 67.0),
    3: (14_645, 62.7),
    10: (14_880, 63.7),
    30: (15_028, 64.7),
    100: (15_110, 64.9),
    USER: (15_568, 84.0),
}
"""KTH under EASY: response (s) and slowdown, by factor."""

DOUBLING = {
    ("slowdown", "KTH"): (-4.8, -23.0),
    ("slowdown", "CTC"): (-7.9, -18.0),
    ("slowdown", "SDSC"): (4.6, -14.2),
    ("response", "KTH"): (-3.3, -7.0),
    ("response", "CTC"): (-0.9, -1.6),
    ("response", "SDSC"): (-1.6, -10.9),
}
"""Change by doubling users' estimates (%), EASY and CBF; below 0 is better."""

OPTIONS = ((1, 60), (2, 40), (8, 25), (16, 20))
"""The moldable job: processors and minutes."""


@dataclass(frozen=True)
class Reading:
    """One way to read what the lecture leaves open.

    Attributes:
        name: What tables call it.
        logs: The lecture's name of each log -> ours.
        event_semantics: "batch" or "pyss".
        modes: Backfilling modes to run.
    """

    name: str
    logs: tuple[tuple[str, str], ...] = tuple(LOGS.items())
    event_semantics: EventSemantics = "batch"
    modes: tuple[str, ...] = tuple(MODES)


PLAIN = Reading("cleaned logs")
READINGS = (
    PLAIN,
    Reading("KTH uncleaned", (("KTH", "KTH-SP2-1996-2"),)),
    Reading("cleaned logs, event by event", event_semantics="pyss", modes=(EASY,)),
)
"""The reading whose claims are checked, and what might explain differences."""


@dataclass(frozen=True)
class Rerun:
    """The results.

    Attributes:
        runs: One row per reading, log, mode, estimates and seed: mean response (s), mean bounded
            slowdown, jobs.
        seconds: Wall time of all simulations, s.
    """

    runs: pd.DataFrame
    seconds: float

    def means(self, reading: Reading = PLAIN) -> pd.DataFrame:
        """Average `response` (s) and `slowdown` over seeds, by log, mode and estimates.

        Estimates of f times the run time have f as a number.
        """
        runs = self.runs[self.runs["reading"] == reading.name]
        columns = ["response", "slowdown"]
        return cast(pd.DataFrame, runs.groupby(["log", "mode", "estimates"])[columns].mean())

    def change(self, mode: str, log: str, column: str, reading: Reading = PLAIN) -> float:
        """Compute the change of "response" or "slowdown" when users' estimates are doubled, %.

        Source: Lecture on batch scheduling, "Another Result".
        """
        means = self.means(reading)[column]
        return float(100.0 * (means[log, mode, DOUBLED] / means[log, mode, USER] - 1.0))


def rerun(
    store: str | Path, *, executor: AnyExecutor = None, readings: Sequence[Reading] = READINGS
) -> Rerun:
    """Simulate every log under every mode with every kind of estimates.

    Args:
        store: File in which finished parts are kept; a second run goes on from it.
        executor: Whose workers share the parts, as of `hpcgym.evaluate`.
        readings: Readings of the lecture.

    Raises:
        TraceError: A log is not at hand.

    Source: Lecture on batch scheduling; specification, section 4, "f-model";
        rules of reruns, "Doubling".
    """
    names = dict.fromkeys(name for reading in readings for _, name in reading.logs)
    logs = {name: load_workload(name) for name in names}
    parts = [
        Part(
            digest(logs[name], "lecture", reading, title, mode, FACTORS, SEEDS),
            f"{title}, {MODES[mode]}, {reading.name}",
            partial(_run_mode, logs[name], title, reading, mode),
        )
        for reading in readings
        for title, name in reading.logs
        for mode in reading.modes
    ]
    done = run_parts(parts, store, "lecture", executor=executor)
    runs = pd.DataFrame([row for part in done.rows for row in part])
    runs["estimates"] = [int(one) if one.isdigit() else one for one in runs["estimates"]]
    return Rerun(runs, done.seconds)


def _run_mode(log: Workload, title: str, reading: Reading, mode: str) -> list[Row]:
    """Simulate one log under one mode with every kind of estimates."""
    kinds = [(USER, 0, USER), (DOUBLED, 0, DOUBLED), ("0", 0, "exact")]
    kinds += [(f"{f}", seed, f"f-model:f={f},seed={seed}") for f in FACTORS[1:] for seed in SEEDS]
    rows = []
    for name, seed, estimates in kinds:
        made = simulate(
            log, backfill=mode, estimates=estimates, event_semantics=reading.event_semantics
        )
        per_job = made.per_job()
        rows.append(
            {
                "reading": reading.name,
                "log": title,
                "mode": mode,
                "estimates": name,
                "seed": seed,
                "response": float(per_job["turnaround_time"].mean()),
                "slowdown": float(per_job["bsld"].mean()),
                "n_jobs": len(log),
            }
        )
    return rows


def gang_uses() -> dict[str, float]:
    """Compute the use of 128 nodes in the lecture's example of gang scheduling.

    Returns:
        Share of the machine (%): job B of 32 nodes alone; beside A of 64; A and B in one row, C of
        128 in another.

    Source: Lecture on batch scheduling, "Example(4): Gang Scheduling"; specification, section 4.

    Example:
        >>> list(gang_uses().values())
        [25.0, 75.0, 87.5]
    """
    uses = {}
    for name, nodes in (("B", (32,)), ("A, B", (64, 32)), ("A, B | C", (64, 32, 128))):
        matrix = Matrix(128, Gang())
        for job, processors in enumerate(nodes):
            matrix.place(job, processors, 3_600)
        matrix.advance(600)
        uses[name] = 100.0 * matrix.utilisation
    return uses


def moldable_choices() -> dict[str, int]:
    """Choose among the lecture's four options where nothing has to wait: processors by criterion.

    Source: Lecture on batch scheduling, "Rigid/Moldable jobs"; specification, section 4.

    Example:
        >>> moldable_choices()
        {'turnaround alone': 16, 'cost times turnaround': 2}
    """
    processors, minutes = zip(*OPTIONS, strict=True)
    duration = [60 * each for each in minutes]
    names = {"turnaround alone": 0.0, "cost times turnaround": 1.0}
    return {
        name: processors[choose_shape(processors, duration, [0] * len(OPTIONS), alpha)]
        for name, alpha in names.items()
    }
