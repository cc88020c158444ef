"""What became of a site's jobs, as recorded or simulated: starts, and the waits they make."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import HpcgymError, OutputError
from hpcgym.base.progress import Steps
from hpcgym.core import metrics
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.threads import checked_threads
from hpcgym.core.workload import Workload
from hpcgym.evaluation.store import Store, digest
from hpcgym.schedule.schedule import Schedule
from hpcgym.schedule.simulate import simulate, simulate_under

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

HOUR_S = 3600
LONG_WAIT_H = 24.0
FEW_JOBS = 50  # so many are simulated where it is about kernels
MINUTE_H = 1 / 60  # shorter waits are a scheduler's own delay

_KEPT = ("start_time", "run_time", "backfilled")  # arrays of an outcome that a store keeps


@dataclass(frozen=True, eq=False)
class Outcome:
    """Starts of a site's jobs; arrays have shape (n_jobs,), in the workload's order."""

    workload: Workload  # the jobs, with the machine of this outcome
    start_time: IntArray  # when each started, s on the workload's clock
    run_time: IntArray  # how long each ran, s
    backfilled: BoolArray  # whether each started ahead of one before it
    wasted: float = 0.0  # share of the machine's time that attempts in vain took
    took_s: float = 0.0  # how long it was simulated; 0 = a store kept it

    @classmethod
    def recorded(cls, workload: Workload) -> Outcome:
        """Return what the log says; every job needs a recorded wait."""
        return cls.simulated(simulate(workload, "recorded", kill_at_limit=False))

    @classmethod
    def simulated(cls, schedule: Schedule) -> Outcome:
        """Return what a finished schedule says."""
        wasted = 0.0 if schedule.attempts is None else schedule.metrics().get("waste", 0.0)
        times = schedule.start_time, schedule.run_time
        return cls(schedule.workload, *times, schedule.backfilled, wasted)

    @classmethod
    def under(
        cls,
        workload: Workload,
        settings: SchedulerSettings,
        store: Store | None = None,
        seconds: float = inf,
    ) -> Outcome:
        """Return what settings make of jobs, in time; what a store keeps is not simulated again."""
        if store is None:
            begin = time.monotonic()
            made = cls.simulated(simulate_under(workload, settings, seconds))
            return replace(made, took_s=time.monotonic() - begin)
        key = digest(workload, settings)
        if rows := store.find(key):
            (row,) = rows
            start, run = (np.array(row[name], dtype=np.int64) for name in _KEPT[:2])
            return cls(workload, start, run, np.array(row[_KEPT[2]], dtype=bool), row["wasted"])
        made = cls.under(workload, settings, None, seconds)
        columns = {name: getattr(made, name).tolist() for name in _KEPT}
        store.keep(key, [columns | {"wasted": float(made.wasted)}])
        return made

    @cached_property
    def wait_h(self) -> FloatArray:
        """Wait of each job, h."""
        return (self.start_time - self.workload.submit_time) / HOUR_S

    @property
    def end_time(self) -> IntArray:
        """End of each job, s."""
        return self.start_time + self.run_time

    def summary(self, jobs: BoolArray) -> dict[str, Any]:
        """Return waits (h) and slowdown of some jobs, and what the machine did meanwhile."""
        waits = self.wait_h[jobs]
        seconds = (self.start_time - self.workload.submit_time)[jobs]
        busy, idle = self._use(jobs)
        return {
            "wait": wait_summary(waits),
            "bsld": float(metrics.bsld(seconds, self.run_time[jobs]).mean()),
            "long_share": float((waits > LONG_WAIT_H).mean()),
            "utilisation": busy,
            "idle_while_waiting": idle,
            "wasted": self.wasted,
        }

    def _use(self, jobs: BoolArray) -> tuple[float, float]:
        """Return what of the capacity was busy, and idle while a job waited, while `jobs` came."""
        submitted = self.workload.submit_time[jobs]
        begin, end = int(submitted[0]), int(submitted[-1])
        if end == begin:
            return 0.0, 0.0
        held = self.workload.processors
        times = np.concatenate([self.workload.submit_time, self.start_time, self.end_time])
        nothing = np.zeros_like(held)
        busy_change = np.concatenate([nothing, held, -held])
        queue_change = np.concatenate([nothing + 1, nothing - 1, nothing])
        order = np.argsort(times, kind="stable")
        span = np.diff(times[order].clip(begin, end), append=end)
        busy = np.cumsum(busy_change[order])
        waits = np.cumsum(queue_change[order]) > 0
        capacity = self.workload.machine_processors
        area = float(capacity) * (end - begin)
        idle = np.maximum(capacity - busy, 0)
        return float((busy * span).sum() / area), float((idle * span)[waits].sum() / area)


class Try(NamedTuple):
    """Settings to simulate on jobs."""

    doing: str  # what progress says meanwhile
    workload: Workload
    settings: SchedulerSettings
    is_needed: bool = False  # whether it goes on when the time is over


def compile_ahead(settings: Iterable[SchedulerSettings], jobs: Workload) -> None:
    """Simulate the first jobs under each, so that no kernel is compiled later."""
    few = jobs.select(np.arange(min(FEW_JOBS, len(jobs))))
    for each in settings:
        with suppress(HpcgymError):  # it is told later
            Simulator(few, each).run()


def outcomes(
    tries: Sequence[Try],
    store: Store | None,
    progress: Steps,
    until: float = inf,
    longest: float = inf,
) -> list[Outcome | HpcgymError | None]:
    """Return what settings make of jobs, or why they make nothing, on a thread per core.

    It is None where a try does not end by an instant, or takes longer than so many seconds.
    """

    def run(each: Try) -> Outcome | HpcgymError | None:
        seconds = inf if each.is_needed else min(until - time.monotonic(), longest)
        try:
            if seconds <= 0:
                return None
            progress.name = each.doing
            return Outcome.under(each.workload, each.settings, store, seconds)
        except TimeoutError:
            return None
        except OutputError:
            raise
        except HpcgymError as error:
            return error
        finally:
            progress.advance()

    with ThreadPoolExecutor(checked_threads(None), thread_name_prefix="outcomes") as pool:
        return list(pool.map(run, tries))


def wait_summary(waits_h: FloatArray) -> dict[str, float]:
    """Return mean, median, 90th percentile and maximum."""
    if not len(waits_h):
        return dict.fromkeys(("mean", "median", "p90", "max"), 0.0)
    median, p90 = np.quantile(waits_h, [0.5, 0.9])
    return {
        "mean": float(waits_h.mean()),
        "median": float(median),
        "p90": float(p90),
        "max": float(waits_h.max()),
    }


def log_ratios(waits: FloatArray, others: FloatArray) -> FloatArray:
    """Return logs of ratios of mean, median and 90th percentile, a minute added to each."""
    keys, summaries = ("mean", "median", "p90"), [wait_summary(waits), wait_summary(others)]
    logs = np.log([[summary[key] + MINUTE_H for key in keys] for summary in summaries])
    ratios: FloatArray = logs[0] - logs[1]
    return ratios


def share_apart(ratios: FloatArray) -> float:
    """Return by what share waits of such `log_ratios` differ: their geometric mean, less 1."""
    return float(np.exp(np.abs(ratios).mean()) - 1)


def distance_h(waits: FloatArray, others: FloatArray, jobs: Mapping[str, BoolArray]) -> float:
    """Return how far waits of the same jobs are apart as distributions, h.

    That is the mean difference between the k-th shortest waits of each, within each group of jobs:
    the Wasserstein-1 distance, which is at least the difference of the means.
    """
    apart = n = 0.0
    for members in jobs.values():
        apart += float(np.abs(np.sort(waits[members]) - np.sort(others[members])).sum())
        n += int(np.count_nonzero(members))
    return apart / n if n else 0.0


def queue_lengths(outcome: Outcome, instants: IntArray) -> IntArray:
    """Return how many jobs wait at each of some instants, s."""
    return _until(outcome.workload.submit_time, instants) - _until(outcome.start_time, instants)


def busy_processors(outcome: Outcome, instants: IntArray) -> IntArray:
    """Return how many processors are held at each of some instants, s."""
    held = outcome.workload.processors
    begun, ended = (
        _until(times, instants, held) for times in (outcome.start_time, outcome.end_time)
    )
    return begun - ended


def _until(times: IntArray, instants: IntArray, weights: IntArray | None = None) -> IntArray:
    """Return how many times, or what weight of them, are at each instant or before."""
    order = np.argsort(times, kind="stable")
    count = np.searchsorted(times[order], instants, side="right")
    if weights is None:
        return np.asarray(count, dtype=np.int64)
    return np.asarray(np.concatenate([[0], np.cumsum(weights[order])])[count], dtype=np.int64)
