"""RR-9212: search the best weights of each week, by covering the space of weights and by XNES."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.agent.evolution import XNES
from hpcgym.core import metrics
from hpcgym.core.constants import BACKFILL_ORDER, BASE_ORDER
from hpcgym.core.features import FEATURES
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.evaluation.executors import AnyExecutor
from hpcgym.evaluation.store import Row, digest
from hpcgym.schedule.batch import simulate_many
from hpcgym.trace.split import MONTH_S
from papers.common.readings import PURE, newest_first_of
from papers.common.resume import Part, run_parts
from papers.rr9212.run import (
    DEFAULT_THRESHOLD_S,
    LOGS,
    PLAIN,
    SIMULATOR,
    Reading,
    mean_bsld,
    weeks_of,
)

FloatArray = NDArray[np.float64]

SUBDIVISIONS = 50
"""Of each edge of the octahedron |q| + |e| + |wait| = 1: 10,002 directions for SDSC-SP2, whose
sums the report prints; half as many subdivisions, 2,502 directions, for the other logs."""

GRID_POINTS = 100
GRID_WEEKS = (64, 73, 79, 82, 85)
"""Light weeks of SDSC-SP2, in the simulator's reading, whose full grid of that many points a
dimension is searched."""

XNES_EVALUATIONS = 600
XNES_STEP_SIZE = 0.5
KAPPA = 0.01
"""Weight of the penalty that holds the norm near 1, as a share of SAF's mean bsld."""

SCALED = "simulator, scaled features"
"""The simulator's reading with weights of features divided by their spread, as its code can."""

SEED = 9212
CHUNK = 20_000


def cover(subdivisions: int = SUBDIVISIONS) -> FloatArray:
    """Return directions that cover the octahedron |q| + |e| + |wait| = 1 evenly.

    Returns:
        Directions, shape (4 subdivisions^2 + 2, 3), the six pure policies among them.

    Source: Rules of reruns, "Search": a coarser cover of the eight faces.

    Example:
        >>> len(cover()), len(cover(1))
        (10002, 6)
    """
    span = np.arange(-subdivisions, subdivisions + 1)
    points = np.stack(np.meshgrid(span, span, span, indexing="ij"), axis=-1).reshape(-1, 3)
    return np.asarray(points[np.abs(points).sum(axis=1) == subdivisions] / subdivisions)


def full_grid(points: int = GRID_POINTS) -> FloatArray:
    """Return the directions of a grid of evenly spaced points on [-1, 1] per dimension.

    The number of points is even, so that none is 0. Directions have L1 norm 1, each once, shape
    (n_directions, 3).

    Source: RR-9212, section 8.1.2; rules of reruns, "Search".

    Example:
        >>> len(full_grid(4))  # (1, 1, 1) and (3, 3, 3) are one direction
        56
    """
    span = np.arange(1 - points, points, 2)
    grid = np.stack(np.meshgrid(span, span, span, indexing="ij"), axis=-1).reshape(-1, 3)
    grid = grid[np.gcd.reduce(grid, axis=1) == 1]
    return np.asarray(grid / np.abs(grid).sum(axis=1, keepdims=True))


def covered(
    week: Workload, reading: Reading, directions: FloatArray, threads: int | None
) -> FloatArray:
    """Simulate a week under weights of (q, e, wait), shape (n_directions, 3).

    Returns:
        Mean bounded slowdown under each, shape (n_directions,).

    Source: RR-9212, equation 3, section 7.1.
    """
    weights = np.zeros((len(directions), len(FEATURES)))
    weights[:, :3] = directions
    if reading.newest_first or reading.bound_s != metrics.BSLD_BOUND_S:
        return _one_by_one(week, reading, directions)
    chunks = np.split(weights, range(CHUNK, len(weights), CHUNK))
    return np.concatenate([_many(week, reading, chunk, threads) for chunk in chunks])


def _one_by_one(week: Workload, reading: Reading, directions: FloatArray) -> FloatArray:
    """Simulate a week under weights with ties to the newest, in one simulator whose keys change.

    The keys are those of `newest_first_of`: the place by (score, latest first), and for the
    backfill the place by (request, that place).
    """
    primary, backfill = newest_first_of(np.array([1.0, 0, 0, 0, 0, 0]))
    simulator = Simulator(
        week,
        SchedulerSettings(policy=primary, backfill_order=backfill, threshold=DEFAULT_THRESHOLD_S),
    )
    keys = simulator.episode.table.keys
    feature = np.stack([week.processors, week.requested_time, -week.submit_time])[:, ::-1]
    request = np.unique(week.requested_time, return_inverse=True)[1] * len(week)
    run = simulator.episode.table.run_time
    bound = np.maximum(run, reading.bound_s)
    place = np.empty(len(week))
    means = np.empty(len(directions))
    for row, direction in enumerate(directions):
        order = np.argsort(direction @ feature, kind="stable")
        place[len(week) - 1 - order] = np.arange(len(week))
        keys[:, BASE_ORDER], keys[:, BACKFILL_ORDER] = place, request + place
        simulator.reset()
        simulator.run()
        turnaround = simulator.start_time - week.submit_time + run
        means[row] = np.maximum(turnaround / bound, 1.0).mean()
    return means


def _many(week: Workload, reading: Reading, weights: FloatArray, threads: int | None) -> FloatArray:
    """Simulate a week under weights of all six features."""
    result = simulate_many(
        [week],
        weights=weights,
        backfill_order="SPF",
        threshold=DEFAULT_THRESHOLD_S,
        kill_at_limit=reading.over_limit != "keep",
        metrics=["mean_bsld"],
        threads=threads,
    )
    return np.asarray(result["mean_bsld"][0])


def xnes_best(week: Workload, n_features: int, generator: np.random.Generator) -> Row:
    """Search the best weights of a week by XNES, in the plain reading.

    Args:
        week: The jobs.
        n_features: The first 3 features, or all 6, unscaled as in the report.
        generator: Source of the random numbers.

    Returns:
        The least `bsld` found, and its `weights`.

    Source: RR-9212, equation 6; specification, section 6, "XNES".
    """
    saf = float(mean_bsld([week], PLAIN, "SAF")[0])
    search = XNES(np.zeros(n_features), XNES_STEP_SIZE, generator)
    best: Row = {"bsld": np.inf, "weights": []}
    n_done = 0
    while n_done < XNES_EVALUATIONS:
        candidates = search.ask()
        weights = np.zeros((len(candidates), len(FEATURES)))
        weights[:, :n_features] = candidates
        found = _many(week, PLAIN, weights, threads=1)
        norm = np.abs(candidates).sum(axis=1)
        search.tell(found + KAPPA * saf * (norm + 1 / norm))
        least = int(found.argmin())
        if found[least] < best["bsld"]:
            scaled = candidates[least] / norm[least]
            best = {"bsld": float(found[least]), "weights": scaled.tolist()}
        n_done += len(candidates)
    return best


@dataclass(frozen=True)
class Search:
    """The results of weights.

    Attributes:
        covers: (reading, log) -> mean bsld of each week and direction of `cover()`; months of
            SDSC-SP2 stand under ("plain", "SDSC-SP2 months"), weights of scaled features under
            (`SCALED`, "SDSC-SP2").
        xnes: One row per log and week: the least found with 3 and with 6 features.
        grid: One row per week of `GRID_WEEKS`, in the simulator's reading: the least of the full
            grid and of the cover.
        months: One row per month of SDSC-SP2, one column per pure policy, in the plain reading.
        seconds: Wall time, s.
    """

    covers: dict[tuple[str, str], FloatArray]
    xnes: pd.DataFrame
    grid: pd.DataFrame
    months: pd.DataFrame
    seconds: float


MONTHS = "SDSC-SP2 months"


def search(
    store: str | Path,
    *,
    executor: AnyExecutor = None,
    logs: Sequence[str] = tuple(LOGS),
    subdivisions: int = SUBDIVISIONS,
    grid_points: int = GRID_POINTS,
    threads: int | None = None,
) -> Search:
    """Cover the space of weights on every week, and search it by XNES.

    The plain reading is covered on all logs, the simulator's on SDSC-SP2, whose sums the report
    prints.

    Args:
        store: File in which finished parts are kept; a second run goes on from it.
        executor: Whose workers share the parts, as of `hpcgym.evaluate`.
        logs: The report's names, SDSC-SP2 among them.
        subdivisions: As in `cover`, for SDSC-SP2; half as many for the other logs.
        grid_points: As in `full_grid`.
        threads: Threads that search; None for one per core.

    Raises:
        TraceError: A log is not at hand.

    Source: RR-9212, sections 7, 8, 9 and 11.
    """
    by_month = weeks_of("SDSC-SP2", PLAIN, length_s=MONTH_S)
    parts: list[Part] = []
    for log in logs:
        found = weeks_of(log, PLAIN)
        sets = [(log, PLAIN, found)]
        if log == "SDSC-SP2":
            sets.append((log, SIMULATOR, weeks_of(log, SIMULATOR)))
            sets.append((MONTHS, PLAIN, by_month))
        parted = subdivisions if log == "SDSC-SP2" else subdivisions // 2
        for name, reading, periods in sets:
            parts += [
                Part(
                    digest(period, "cover", reading, (reading.name, name), number, parted),
                    f"{name}, {reading.name}, {number}",
                    partial(_cover_part, name, number, period, reading, cover(parted), threads),
                )
                for number, period in enumerate(periods, 1)
            ]
        parts += [
            Part(
                digest(week, "XNES", log, number, XNES_EVALUATIONS),
                f"{log}, XNES, {number}",
                partial(_xnes_part, log, number, week),
            )
            for number, week in enumerate(found, 1)
        ]
    simulated = weeks_of("SDSC-SP2", SIMULATOR)
    scaled = _unscaled(cover(subdivisions), simulated)
    parts += [
        Part(
            digest(week, "scaled cover", SIMULATOR, number, subdivisions),
            f"SDSC-SP2, {SCALED}, {number}",
            partial(_cover_part, "SDSC-SP2", number, week, SIMULATOR, scaled, threads, SCALED),
        )
        for number, week in enumerate(simulated, 1)
    ]
    parts += [
        Part(
            digest(week, "grid", SIMULATOR, number, grid_points),
            f"SDSC-SP2, full grid, {number}",
            partial(_grid_part, number, week, cover(subdivisions), grid_points, threads),
        )
        for number, week in enumerate(simulated, 1)
        if number in GRID_WEEKS
    ]
    done = run_parts(parts, store, "RR-9212, w*", executor=executor)
    rows = pd.DataFrame([row for part in done.rows for row in part])
    by_set = rows[rows["kind"] == "cover"].groupby(["reading", "log"], sort=False)
    return Search(
        {(str(r), str(log)): np.array(found["values"].tolist()) for (r, log), found in by_set},
        rows[rows["kind"] == "XNES"].dropna(axis=1, how="all").reset_index(drop=True),
        rows[rows["kind"] == "grid"].dropna(axis=1, how="all").reset_index(drop=True),
        pd.DataFrame({policy: mean_bsld(by_month, PLAIN, policy) for policy in PURE}),
        done.seconds,
    )


def _unscaled(directions: FloatArray, periods: Sequence[Workload]) -> FloatArray:
    """Return weights of raw features that equal these weights of features divided by their spread.

    The spread is the standard deviation over all jobs; waits, which depend on the schedule, are
    divided by that of the requests.
    """
    q = np.concatenate([period.processors for period in periods]).std()
    e = np.concatenate([period.requested_time for period in periods]).std()
    weights = directions / np.array([q, e, e])
    return np.asarray(weights / np.abs(weights).sum(axis=1, keepdims=True))


def best_of(found: Search) -> pd.DataFrame:
    """Return the best weights of every week.

    Returns:
        One row per reading, log and week (or month): weights of q, e and wait (of scaled features
        in the reading `SCALED`), and the mean bounded slowdown under them.

    Source: RR-9212, section 7.1: w*.
    """
    frames = []
    for (reading, log), values in found.covers.items():
        directions = cover(round(float(np.sqrt((values.shape[1] - 2) / 4))))
        best = values.argmin(axis=1)
        columns = {name: directions[best, i] for i, name in enumerate(FEATURES[:3])}
        frame = pd.DataFrame({"week": np.arange(1, len(values) + 1), **columns})
        frames.append(frame.assign(bsld=values.min(axis=1), reading=reading, log=log))
    return pd.concat(frames, ignore_index=True)


def _cover_part(
    name: str,
    number: int,
    week: Workload,
    reading: Reading,
    directions: FloatArray,
    threads: int | None,
    label: str | None = None,
) -> list[Row]:
    """Cover one week; `label` names the reading of its rows, where that is not `reading`."""
    values = np.round(covered(week, reading, directions, threads), 6).tolist()
    row = {"kind": "cover", "reading": label or reading.name, "log": name, "week": number}
    return [{**row, "jobs": len(week), "values": values}]


def _xnes_part(log: str, number: int, week: Workload) -> list[Row]:
    """Search one week with three and with six features."""
    row: Row = {"kind": "XNES", "log": log, "week": number}
    for n_features in (3, 6):
        found = xnes_best(week, n_features, np.random.default_rng([SEED, number, n_features]))
        row[f"xnes{n_features}"] = found["bsld"]
        row[f"xnes{n_features}_weights"] = found["weights"]
    return [row]


def _grid_part(
    number: int, week: Workload, directions: FloatArray, points: int, threads: int | None
) -> list[Row]:
    """Search the full grid of one week."""
    grid = full_grid(points)
    found = covered(week, SIMULATOR, grid, threads)
    least = int(found.argmin())
    row: Row = {"kind": "grid", "week": number, "grid": float(found[least])}
    row["grid_directions"] = len(grid)
    row["grid_weights"] = grid[least].tolist()
    return [{**row, "cover": float(covered(week, SIMULATOR, directions, threads).min())}]
