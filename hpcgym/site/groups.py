"""Groups of a site's jobs: by partition, account, user, cpus and limit; means of each at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.site.log import IntArray, SiteLog
from hpcgym.site.outcome import HOUR_S, BoolArray, FloatArray

CPU_CLASSES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16_384)
LIMIT_CLASSES_H = (1 / 6, 1.0, 4.0, 12.0, 24.0, 72.0)
LIMIT_NAMES = ("< 10 min", "< 1 h", "< 4 h", "< 12 h", "< 24 h", "< 72 h", "longer")


@dataclass(frozen=True, eq=False)
class Grouping:
    """Jobs by one label; arrays by group have shape (n_groups,)."""

    by: str  # what groups them
    names: list[str]  # the groups, those of most jobs first; of cpus and limits in ascending order
    jobs: BoolArray  # which jobs are grouped, shape (n_jobs,)
    codes: IntArray  # the group of each of these
    n: IntArray  # jobs of each group

    @classmethod
    def of(cls, by: str, names: list[str], codes: IntArray, jobs: BoolArray) -> Grouping:
        """Group some jobs by a code of each job; groups without a job are left out."""
        n = np.bincount(codes[jobs], minlength=len(names))
        kept = np.flatnonzero(n)
        renumbered = np.zeros(len(names), dtype=np.int64)
        renumbered[kept] = np.arange(len(kept))
        return cls(by, [names[at] for at in kept], jobs, renumbered[codes[jobs]], n[kept])

    def means(self, values: FloatArray) -> FloatArray:
        """Return the mean of a value of each job by group."""
        return self.sums(values) / self.n

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sum of a value of each job by group."""
        summed = np.bincount(self.codes, values[self.jobs], minlength=len(self.names))
        return np.asarray(summed, dtype=np.float64)

    def distances(self, values: FloatArray, others: FloatArray) -> FloatArray:
        """Return `hpcgym.site.outcome.distance_h` of two values of each job, by group.

        Example:
            >>> everyone = np.array([True, True, True])
            >>> two = Grouping.of("x", ["a", "b"], np.array([0, 0, 1]), everyone)
            >>> two.distances(np.array([1.0, 5.0, 2.0]), np.array([5.0, 2.0, 2.5]))
            array([0.5, 0.5])
        """
        first, second = (each[self.jobs] for each in (values, others))
        orders = np.lexsort((first, self.codes)), np.lexsort((second, self.codes))
        apart = np.abs(first[orders[0]] - second[orders[1]])
        sums = np.bincount(self.codes[orders[0]], apart, minlength=len(self.names))
        return sums / self.n


def group_text(group: Mapping[str, Any]) -> str:
    """Name a group of jobs, by what groups them and its own name."""
    by, name = str(group["by"]), str(group["name"])
    return {"cpus": f"{name} cpus", "limit": f"a limit of {name}"}.get(by, f"{by} {name}")


def groupings_of(log: SiteLog) -> list[Grouping]:
    """Return the kinds of groups of judged jobs that a log tells apart."""
    groupings = []
    for by, labels in log.names.items():
        names, codes = np.unique(labels.astype(str), return_inverse=True)
        order = np.argsort(-np.bincount(codes), kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        if len(names) > 1:
            named = [str(names[at]) or "not stated" for at in order]
            groupings.append(Grouping.of(by, named, rank[codes], log.is_judged))
    cpus, limits = classes_of(log)
    groupings.append(Grouping.of("cpus", cpu_class_names(), cpus, log.is_judged))
    groupings.append(Grouping.of("limit", list(LIMIT_NAMES), limits, log.is_judged))
    return groupings


def classes_of(log: SiteLog) -> tuple[IntArray, IntArray]:
    """Return each job's class of cpus and of its limit."""
    jobs = log.workload
    cpus = np.searchsorted(CPU_CLASSES, jobs.processors, side="right") - 1
    hours = jobs.requested_time / HOUR_S
    limits: NDArray[np.int64] = np.searchsorted(LIMIT_CLASSES_H, hours, side="right")
    return cpus, limits


def cpu_class_names() -> list[str]:
    """Return the names of the classes of cpus.

    Example:
        >>> cpu_class_names()[:3], cpu_class_names()[-1]
        (['1', '2-3', '4-7'], '16384 or more')
    """
    pairs = pairwise(CPU_CLASSES)
    names = [str(low) if high == low + 1 else f"{low}-{high - 1}" for low, high in pairs]
    return [*names, f"{CPU_CLASSES[-1]} or more"]
