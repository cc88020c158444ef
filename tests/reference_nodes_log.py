"""The reference of machines of nodes, fast enough for whole logs.

Clock, order, placement rules and steps of a pass are those of `reference_nodes`. What differs is
how it is known what is free. `reference_nodes` counts it anew for every question. Here it is kept
from instant to instant, and a pass has a table of what will be free, by estimates. A job for whose
chunks the nodes have no room in all is passed over before any rule is asked.

`tests/test_reference_nodes.py` holds it to the results of `reference_nodes` on drawn cases.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import reference_nodes
from reference_nodes import (
    ConservativePass,
    DepthPass,
    Free,
    Hold,
    Job,
    Machine,
    Placement,
    Simulation,
    is_refused,
    place,
)

IntArray = NDArray[np.int64]
CPUS, GPUS, MEMORY, EMPTY = range(4)
"""Columns of what is free of each node; the last is 0 if no job has a chunk there, else below."""


class Use(NamedTuple):
    """What a placement takes of some nodes, shape (nodes, 4)."""

    nodes: IntArray
    amount: IntArray


class FreeByTime:
    """What is free of each node from each of some instants to the next."""

    def __init__(
        self, t: float, free: IntArray, releases: Collection[tuple[float, Use]], ends: set[float]
    ) -> None:
        """Begin at t with what is free then, and what is released after t."""
        self.ends = ends | {end for end, _ in releases}
        self.times = sorted({t} | {end for end, _ in releases})
        row = {time: k for k, time in enumerate(self.times)}
        self.free = np.zeros((len(self.times), *free.shape), dtype=np.int64)
        self.free[0] = free
        for end, use in releases:
            self.free[row[end], use.nodes] += use.amount
        np.cumsum(self.free, axis=0, out=self.free)

    def copy(self) -> FreeByTime:
        """Return a copy."""
        other = object.__new__(FreeByTime)
        other.ends, other.times, other.free = set(self.ends), list(self.times), self.free.copy()
        return other

    def row(self, instant: float) -> int:
        """Return the row that begins at an instant; make one if there is none."""
        k = bisect_left(self.times, instant)
        if k == len(self.times) or self.times[k] != instant:
            self.times.insert(k, instant)
            self.free = np.concatenate([self.free[:k], self.free[k - 1 : k], self.free[k:]])
        return k

    def take(self, use: Use, begin: float, end: float) -> None:
        """Take nodes during [begin, end)."""
        self.ends.add(end)
        first, last = self.row(begin), self.row(end)
        self.free[first:last, use.nodes] -= use.amount

    def least(self, begin: float, end: float) -> IntArray:
        """Return the least that is free of each resource at any second of a time."""
        first, last = self.row(begin), bisect_left(self.times, end)
        least: IntArray = self.free[first:last].min(axis=0)
        return least


class LogSimulation(Simulation):
    """Keeps what is free of each node, shape (nodes, 4)."""

    def __init__(self, machine: Machine, jobs: Any, estimates: Any, **settings: Any) -> None:
        """Begin with no job submitted."""
        self.free = np.array([[n.cpus, n.gpus, n.memory_mb, 0] for n in machine.nodes])
        self.capacity = self.free.copy()
        self.member = np.zeros((len(machine.partitions), len(machine.nodes)), dtype=bool)
        for p, partition in enumerate(machine.partitions):
            self.member[p, sorted(partition.nodes)] = True
        self.used: dict[int, Use] = {}
        self.refusals: dict[Job, bool] = {}
        self.requests = [job[4:10] for job in jobs]  # what a chunk asks for, from cpus to partition
        super().__init__(machine, jobs, estimates, **settings)

    def is_refused(self, j: int) -> bool:
        """Tell whether job j can never run; equal requests share the answer."""
        job = self.jobs[j]._replace(submit_time=0, run_time=0, user=-1)
        if job not in self.refusals:
            self.refusals[job] = is_refused(self.machine, job, self.rule)
        return self.refusals[job]

    def schedule(self, component: int, t: int) -> None:
        """Make the pass of a component."""
        waiting = [j for j in self.waiting if self.component_of(j) == component]
        self.new_pass(component, t).make(self.in_order(self.order, waiting, t))

    def new_pass(self, component: int, t: int) -> DepthPass | ConservativePass:
        """Return a pass to make."""
        kind = LogConservativePass if self.depth == math.inf else LogDepthPass
        return kind(self, component, t)

    def start(self, j: int, nodes: Placement, t: int, *, backfilled: bool) -> None:
        """Give job j its nodes at t."""
        super().start(j, nodes, t, backfilled=backfilled)
        self.used[j] = use = self.use(j, nodes)
        self.free[use.nodes] -= use.amount

    def finish(self, j: int) -> None:
        """Take its nodes from job j."""
        super().finish(j)
        use = self.used.pop(j)
        self.free[use.nodes] += use.amount

    def use(self, j: int, nodes: Placement) -> Use:
        """Return what job j takes of its nodes."""
        job, ids = self.jobs[j], np.array(list(nodes))
        amount = np.outer(list(nodes.values()), (job.cpus, job.gpus, job.memory_mb, 0))
        if job.exclusive:
            amount = self.capacity[ids].copy()
        amount[self.capacity[ids, MEMORY] == 0, MEMORY] = 0
        amount[:, EMPTY] = 1
        return Use(ids, amount)

    def rooms(self, j: int, free: IntArray) -> IntArray:
        """Return how many chunks of job j nodes take; `free` ends in the axes (nodes, 4)."""
        job = self.jobs[j]
        rooms = free[..., CPUS] // job.cpus
        if job.gpus:
            rooms = np.minimum(rooms, free[..., GPUS] // job.gpus)
        if job.memory_mb:
            fitting = np.minimum(rooms, free[..., MEMORY] // job.memory_mb)
            rooms = np.where(self.capacity[:, MEMORY] > 0, fitting, rooms)
        if job.spread:
            rooms = np.minimum(rooms, 1)
        if job.exclusive:
            rooms = np.where(free[..., EMPTY] == 0, rooms, 0)
        return np.where(self.member[job.partition], np.maximum(rooms, 0), 0)

    def place(self, j: int, free: IntArray) -> Placement | None:
        """Return the placement of job j on what is free."""
        rooms = self.rooms(j, free)
        if rooms.sum() < self.jobs[j].chunks:
            return None
        nodes = np.flatnonzero(rooms).tolist()
        rows = free[nodes].tolist()
        left = {v: Free(*row[:3], row[EMPTY] == 0) for v, row in zip(nodes, rows, strict=True)}
        return place(self.machine, self.jobs[j], left, self.rule)

    def free_by_time(self, component: int, t: int, least_end: int) -> FreeByTime:
        """Return what is free from t on as running jobs end by estimates, at `least_end` or later.

        A job of the component that is taken to have ended by now is no more counted.
        """
        free, releases, ends = self.free.copy(), [], set()
        for j, use in self.used.items():
            if self.component_of(j) == component:
                end = max(self.result.starts[j] + self.estimates[j], least_end)
                ends.add(end)
                if end > t:
                    releases.append((end, use))
                else:
                    free[use.nodes] += use.amount
        return FreeByTime(t, free, releases, ends)

    def earliest(self, j: int, table: FreeByTime, instants: Collection[float]) -> Hold:
        """Return the hold of job j at the first of some instants that has a placement."""
        enough = self.rooms(j, table.free).sum(axis=1) >= self.jobs[j].chunks
        for k in np.flatnonzero(enough).tolist():
            begin, end = table.times[k], table.times[k] + self.estimates[j]
            if begin in instants:
                nodes = self.place(j, table.least(begin, end))
                if nodes is not None:
                    return Hold(j, nodes, begin, end)
        raise AssertionError("refused jobs are not submitted")


class LogDepthPass(DepthPass):
    """The three steps, on two tables: of running jobs, and of these with the reservations."""

    sim: LogSimulation

    def make(self, queue: list[int]) -> None:
        """Make step 1, and the others if a job may still start."""
        left = list(queue)
        self.room_now: dict[tuple[int, ...], int] = {}
        while left and self.start_in_order(left[0]):
            del left[0]
        if self.sim.depth > 0 and any(self.has_room(j) for j in left):
            self.running = self.sim.free_by_time(self.component, self.t, self.t)
            self.table = self.running.copy()
            super().make(left)

    def has_room(self, j: int) -> bool:
        """Tell whether the nodes take the chunks of job j now, whatever the rule."""
        request = self.sim.requests[j]
        if request not in self.room_now:
            self.room_now[request] = int(self.sim.rooms(j, self.sim.free).sum())
        return self.room_now[request] >= self.sim.jobs[j].chunks

    def start(self, j: int, nodes: Placement | None, *, backfilled: bool = True) -> bool:
        """Start job j if it has nodes, and tell whether it has."""
        self.room_now = {}
        return super().start(j, nodes, backfilled=backfilled)

    def start_in_order(self, j: int) -> bool:
        """Start job j if it fits on what is free now."""
        nodes = self.sim.place(j, self.sim.free) if self.has_room(j) else None
        return nodes is not None and self.start(j, nodes, backfilled=False)

    def start_beside(self, j: int) -> bool:
        """Start job j if it fits now in fact, and for its whole estimate beside reservations."""
        if not self.has_room(j):
            return False
        end = self.t + self.sim.estimates[j]
        nodes = self.sim.place(j, np.minimum(self.table.least(self.t, end), self.sim.free))
        if nodes is None:
            return False
        for table in (self.running, self.table):
            table.take(self.sim.use(j, nodes), self.t, end)
        return self.start(j, nodes)

    def reserve(self, j: int) -> None:
        """Reserve for job j at the earliest release or end of a reservation at which it fits."""
        hold = self.sim.earliest(j, self.table, self.table.ends)
        self.reserved.append(hold)
        self.table.take(self.sim.use(j, hold.nodes), hold.begin, hold.end)

    def start_and_move(self, j: int) -> bool:
        """Start job j if every reservation, placed again in order, keeps its time."""
        nodes = self.sim.place(j, self.sim.free) if self.has_room(j) else None
        if nodes is None:
            return False
        table = self.running.copy()
        table.take(self.sim.use(j, nodes), self.t, self.t + self.sim.estimates[j])
        moved: list[Hold] = []
        for hold in self.reserved:
            again = self.sim.place(hold.j, table.least(hold.begin, hold.end))
            if again is None:
                return False
            table.take(self.sim.use(hold.j, again), hold.begin, hold.end)
            moved.append(hold._replace(nodes=again))
        self.reserved, self.table = moved, table
        self.running.take(self.sim.use(j, nodes), self.t, self.t + self.sim.estimates[j])
        return self.start(j, nodes)


class LogConservativePass(ConservativePass):
    """Every job that is looked at starts or is reserved, on one table."""

    sim: LogSimulation

    def make(self, queue: list[int]) -> None:
        """Give each job in order its earliest hold, and start it if that is now."""
        table = self.sim.free_by_time(self.component, self.t, self.t + 1)
        looked_at = queue if self.sim.planned == math.inf else queue[: int(self.sim.planned)]
        for j in looked_at:
            hold = self.sim.earliest(j, table, table.ends | {self.t})
            table.take(self.sim.use(j, hold.nodes), hold.begin, hold.end)
            if hold.begin == self.t:
                self.sim.start(j, hold.nodes, self.t, backfilled=bool(self.reserved))
            else:
                self.reserved.append(hold)


def simulate(*args: Any, **settings: Any) -> Any:
    """Schedule as `reference_nodes.simulate` does; passes are not kept."""
    return reference_nodes.simulate(*args, kind=LogSimulation, **settings)
