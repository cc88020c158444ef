"""Run the study again: five variants of backfilling on platforms of eight clusters."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from hpcgym.core.workload import Workload
from hpcgym.evaluation.executors import AnyExecutor
from hpcgym.evaluation.store import Row, digest
from hpcgym.trace import load_workload
from papers.common.resume import Finished, Part, run_parts
from papers.locality import engine, sharing
from papers.locality.platform import (
    CLUSTER_HOSTS,
    GRIFFON_LINK,
    HOSTS,
    LAYOUTS,
    PRINTED_LINK,
    Platform,
    heterogeneous,
    homogeneous,
    levelled,
)

LOG = "CEA-Curie-2011-2.1-cln"
N_JOBS = 300
SHORTEST_S, LONGEST_S = 3_600, 14_400
F_COMP = 1e6
"""Flops of a host for each second that the log says."""

F_LIMIT = 1_000
"""The paper's walltime factor."""

HOMOGENEOUS, HIGH, LOW = "homogeneous", "high", "low"
ONE_LAYOUT = "-"


@dataclass(frozen=True)
class Experiment:
    """One set of runs: every seed, layout and communication factor under every variant.

    Attributes:
        name: "homogeneous", or a kind of `MULTIPLIERS`.
        seeds: Draws of jobs.
        f_comm: Communication factors, byte/s: bytes from each host to each other for each second
            that the log says.
        layouts: Orders of the clusters.
    """

    name: str
    seeds: int
    f_comm: tuple[float, ...]
    layouts: tuple[str, ...] = tuple(LAYOUTS)

    def platform(self, layout: str, reading: Reading) -> Platform:
        """Return one of its platforms under a reading."""
        if reading.levelled:
            return levelled(reading.levelled)
        if self.name == HOMOGENEOUS:
            return homogeneous(link=reading.link, half_duplex=reading.half_duplex)
        return heterogeneous(self.name, layout, half_duplex=reading.half_duplex)


_EVERY_OTHER = tuple(2e7 * step for step in range(20))
EXPERIMENTS = (
    Experiment(HOMOGENEOUS, 20, tuple(1e7 * step for step in range(40)), (ONE_LAYOUT,)),
    Experiment(HIGH, 10, _EVERY_OTHER),
    Experiment(LOW, 10, _EVERY_OTHER),
)


@dataclass(frozen=True)
class Reading:
    """One way to read what the paper leaves open.

    Attributes:
        name: What tables call it.
        half_duplex: Whether both directions of a host's link share its bandwidth.
        sharing: "fair-bottleneck" or "max-min".
        link: Of a host on the homogeneous platform, byte/s.
        levelled: A kind of `MULTIPLIERS` whose mean cluster the homogeneous platform then has.
        experiments: What is run.
        seeds: At most so many draws of jobs.
    """

    name: str
    half_duplex: bool = False
    sharing: str = "fair-bottleneck"
    link: float = GRIFFON_LINK
    levelled: str = ""
    experiments: tuple[Experiment, ...] = EXPERIMENTS
    seeds: int = 20


DEFAULT = Reading("default")
LEVELLED = {
    kind: Reading(
        f"equal clusters, means of {kind}",
        levelled=kind,
        experiments=(replace(EXPERIMENTS[0], seeds=10, f_comm=_EVERY_OTHER),),
    )
    for kind in (HIGH, LOW)
}
"""As much hardware as the heterogeneous platforms have, spread evenly."""

OTHERS = (
    Reading("half-duplex links", half_duplex=True, seeds=2),
    Reading("max-min sharing", sharing="max-min", seeds=2),
    Reading("links as printed", link=PRINTED_LINK, experiments=EXPERIMENTS[:1], seeds=2),
    *LEVELLED.values(),
)


@dataclass(frozen=True)
class Rerun:
    """The results.

    Attributes:
        runs: One row per reading, experiment, layout, seed, variant and communication factor:
            makespan (s), jobs killed at their limit, jobs inside one cluster, processor time (s).
        candidates: Jobs of the log that draws are made from, by their number of hosts.
        seconds: Wall time of the default reading, added up over workers, s.
        seconds_of_others: The same of the other readings.
    """

    runs: pd.DataFrame
    candidates: pd.DataFrame
    seconds: float
    seconds_of_others: float


def rerun(
    store: str | Path,
    *,
    executor: AnyExecutor = None,
    experiments: Sequence[Experiment] = EXPERIMENTS,
    others: Sequence[Reading] = OTHERS,
    n_jobs: int = N_JOBS,
) -> Rerun:
    """Run the default reading, then the others.

    Args:
        store: File in which finished parts are kept; a second run goes on from it.
        executor: Whose workers share the parts, as of `hpcgym.evaluate`.
        experiments: What is run under the default reading.
        others: Other readings.
        n_jobs: Jobs of a draw.

    Raises:
        TraceError: The log is not at hand.

    Source: Dutot, Poquet and Trystram, section 5; rules of reruns, "Experiments".
    """
    log = candidates(load_workload(LOG))
    first = [*_parts(log, DEFAULT, experiments, n_jobs)]
    rest = [
        part for reading in others for part in _parts(log, reading, reading.experiments, n_jobs)
    ]
    main = run_parts(first, store, "locality", executor=executor)
    other = run_parts(rest, store, "locality, other readings", executor=executor)
    sizes, counts = np.unique(log.processors, return_counts=True)
    return Rerun(
        _frame(main, other),
        pd.DataFrame({"hosts": sizes, "jobs": counts}),
        main.seconds,
        other.seconds,
    )


def candidates(log: Workload) -> Workload:
    """Return the jobs of a log that draws are made from: 16 hosts at most, 1 to 4 h.

    Source: Dutot, Poquet and Trystram, section 5.3; rules of reruns, "Jobs".
    """
    run = log.run_time
    return log.select((log.processors <= CLUSTER_HOSTS) & (run >= SHORTEST_S) & (run <= LONGEST_S))


def draw(log: Workload, seed: int, n_jobs: int = N_JOBS) -> Workload:
    """Draw jobs at random, all released at 0, in the order of the draw.

    Their requests are the paper's walltimes.

    Source: Dutot, Poquet and Trystram, section 5.1; rules of reruns, "Jobs".
    """
    chosen = np.random.default_rng(seed).choice(len(log), n_jobs, replace=False)
    run = log.run_time[chosen]
    return Workload.from_arrays(
        np.zeros(n_jobs, dtype=np.int64),
        run,
        np.maximum(log.requested_time[chosen], F_LIMIT * run),
        log.processors[chosen],
        machine_processors=HOSTS,
        name=f"{log.name}, draw {seed}",
    )


def _parts(
    log: Workload, reading: Reading, experiments: Sequence[Experiment], n_jobs: int
) -> Iterator[Part]:
    """Yield a part for each draw on each platform."""
    code = tuple(Path(module.__file__ or "").read_text() for module in (engine, sharing))
    for experiment in experiments:
        for layout in experiment.layouts:
            for seed in range(min(experiment.seeds, reading.seeds)):
                jobs = draw(log, seed, n_jobs)
                yield Part(
                    digest(jobs, "locality", code, experiment, layout, reading),
                    f"{experiment.name} {layout}, draw {seed}, {reading.name}",
                    partial(run_draw, jobs, seed, experiment, layout, reading),
                )


def run_draw(
    jobs: Workload, seed: int, experiment: Experiment, layout: str, reading: Reading
) -> list[Row]:
    """Run one draw on one platform with every factor under every variant."""
    platform = experiment.platform(layout, reading)
    rows = []
    for f_comm in experiment.f_comm:
        for variant in engine.VARIANTS:
            begun = time.process_time()
            activities = engine.activities_of(jobs, F_COMP, f_comm)
            ran = engine.simulate(
                jobs.processors, activities, platform, variant, sharing=reading.sharing
            )
            rows.append(
                {
                    "reading": reading.name,
                    "experiment": experiment.name,
                    "layout": layout,
                    "seed": seed,
                    "variant": variant,
                    "f_comm": f_comm,
                    "makespan": ran.makespan,
                    "killed": int(ran.killed.sum()),
                    "inside": int((np.count_nonzero(ran.clusters, axis=1) == 1).sum()),
                    "cpu_s": time.process_time() - begun,
                }
            )
    return rows


def _frame(*done: Finished) -> pd.DataFrame:
    """Return the rows of all parts."""
    return pd.DataFrame([row for one in done for part in one.rows for row in part])
