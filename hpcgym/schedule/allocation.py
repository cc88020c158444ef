"""Which processors each job of a schedule holds; where the simulator counts them, worked out here.

Any schedule that never holds more processors than the machine has can be laid out: processors are
alike, and a job may hold several intervals of them.

Cost: pure Python, some 10 µs a job, on 93,312 processors too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import node_metrics
from hpcgym.core.nodes import Placement
from hpcgym.core.workload import Workload

IntArray = NDArray[np.int64]

Interval = tuple[int, int]  # processors from the first up to the second, which is not included


class Allocation(NamedTuple):
    """Intervals of processors: job j holds `first[j]` to `first[j + 1]` - 1, ascending."""

    first: IntArray  # shape (n_jobs + 1,)
    low: IntArray  # first processor of each interval, counted from 0
    high: IntArray  # the processor after its last

    def of(self, job: int) -> list[Interval]:
        """Return the intervals of one job; none where it holds nothing."""
        part = slice(self.first[job], self.first[job + 1])
        return list(zip(self.low[part].tolist(), self.high[part].tolist(), strict=True))

    def texts(self) -> list[str]:
        """Return the processors of each job as text.

        Example:
            >>> Allocation(np.array([0, 2]), np.array([0, 7]), np.array([4, 8])).texts()
            ['0-3 7']
        """
        pairs = zip(self.low.tolist(), (self.high - 1).tolist(), strict=True)
        runs = [str(low) if low == last else f"{low}-{last}" for low, last in pairs]
        return [" ".join(runs[low:high]) for low, high in pairwise(self.first.tolist())]


class FreeProcessors:
    """The free processors of a machine, as ascending intervals that do not touch."""

    def __init__(self, processors: int) -> None:
        self.intervals: list[Interval] = [(0, processors)] if processors else []

    def take(self, processors: int) -> list[Interval]:
        """Take what `fit` chooses, and return it."""
        taken = fit(self.intervals, processors)
        for low, high in taken:
            at = bisect_left(self.intervals, (low,))
            end = self.intervals[at][1]
            self.intervals[at : at + 1] = [(high, end)] if high < end else []
        return taken

    def give_back(self, intervals: Sequence[Interval]) -> None:
        """Return processors to the free ones, joined with their neighbours."""
        free = self.intervals
        for low, high in intervals:
            first = last = bisect_left(free, (low,))
            if first > 0 and free[first - 1][1] == low:
                first -= 1
                low = free[first][0]
            if last < len(free) and free[last][0] == high:
                high = free[last][1]
                last += 1
            free[first:last] = [(low, high)]


def fit(free: Sequence[Interval], processors: int) -> list[Interval]:
    """Return the smallest hole that holds all processors, else holes from the lowest up.

    Free intervals and results are ascending. Where fewer are free than wanted, all are returned.
    """
    whole = [(high - low, low) for low, high in free if high - low >= processors]
    if whole:
        low = min(whole)[1]
        return [(low, low + processors)]
    chosen = []
    for low, high in free:
        taken = min(processors, high - low)
        if not taken:
            break
        chosen.append((low, low + taken))
        processors -= taken
    return chosen


def allocate_processors(
    start_time: IntArray, end_time: IntArray, processors: IntArray, machine_processors: int
) -> Allocation:
    """Choose processors for each job from its start to its end, see `fit`.

    At one instant ends come before starts. A job that lasts 0 s, or has not started (-1), holds
    nothing. Arrays have shape (n_jobs,).
    """
    lasting = np.flatnonzero((start_time >= 0) & (end_time > start_time))
    time = np.concatenate([end_time[lasting], start_time[lasting]])
    order = np.argsort(time, kind="stable")
    free = FreeProcessors(machine_processors)
    held: dict[int, list[Interval]] = {}
    for at in order.tolist():
        is_end, job = at < len(lasting), int(lasting[at % len(lasting)])
        if is_end:
            free.give_back(held[job])
        else:
            held[job] = free.take(int(processors[job]))
    rows = [(job, *interval) for job, intervals in sorted(held.items()) for interval in intervals]
    return _joined(rows, len(start_time))


def allocate_on_nodes(
    workload: Workload, start_time: IntArray, end_time: IntArray, placement: Placement
) -> Allocation:
    """Choose cpus of its nodes for each job, node after node; cpus count on from node to node.

    A job that has its nodes for itself holds all their cpus. Arrays have shape (n_jobs,).
    """
    assert workload.machine is not None
    job, cpus = node_metrics.job_of(placement), node_metrics.held(workload, placement)[:, 0]
    sizes = workload.machine.node_cpus
    first_cpu = np.cumsum(sizes) - sizes
    rows: list[tuple[int, int, int]] = []
    by_node = np.argsort(placement.node, kind="stable")
    ends = np.flatnonzero(np.diff(placement.node[by_node])) + 1
    for entries in np.split(by_node, ends):
        here, node = job[entries], int(placement.node[entries[0]]) if len(entries) else 0
        allocation = allocate_processors(
            start_time[here], end_time[here], cpus[entries], int(sizes[node])
        )
        offset = int(first_cpu[node])
        for at, job_row in enumerate(here.tolist()):
            rows += [(job_row, offset + low, offset + high) for low, high in allocation.of(at)]
    return _joined(sorted(rows), len(workload))


def _joined(rows: Sequence[tuple[int, int, int]], n_jobs: int) -> Allocation:
    """Return sorted rows of job, low and high as an allocation, touching intervals as one."""
    job, low, high = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    apart = (job[1:] != job[:-1]) | (low[1:] != high[:-1])
    is_first, is_last = np.ones(len(job), dtype=bool), np.ones(len(job), dtype=bool)
    is_first[1:], is_last[:-1] = apart, apart
    first = np.searchsorted(job[is_first], np.arange(n_jobs + 1))
    return Allocation(first, low[is_first].copy(), high[is_last].copy())
