"""The reference of outages of nodes: section 15, "Outages of nodes", in plain Python.

It shares no code with `hpcgym`. Room, placement rules and reservations are those of
`tests/reference_nodes.py`. What an outage takes is left out of what is free, second by second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any

import reference_limits
import reference_nodes
from reference_nodes import (
    ConservativePass,
    DepthPass,
    Free,
    Hold,
    Job,
    Machine,
    Pass,
    Result,
    least,
)
from reference_nodes_lives import Attempt, Outage


class WithOutages(reference_nodes.Simulation):
    """A machine some of whose nodes go down; a subclass lists the outages."""

    outages: Sequence[Outage] = ()
    requeue: Collection[int] | None = None  # jobs that wait again; None = all

    def __init__(self, machine: Machine, jobs: Sequence[Job], *given: Any, **more: Any) -> None:
        """Begin with no attempt."""
        super().__init__(machine, jobs, *given, **more)
        self.attempts: list[Attempt] = []
        self.lost: set[int] = set()
        instants = {at for o in self.outages for at in (o.begin, o.end, o.announced)}
        self.instants = sorted(instants)

    def run(self) -> Result:
        """Handle instants until every job has ended."""
        while self.to_come or self.running or self.waiting:
            submissions = [self.jobs[j].submit_time for j in islice(self.to_come, 1)]
            self.round(min([*submissions, *map(self.end, self.running), *self.instants[:1]]))
        return self.result

    def round(self, t: int) -> None:
        """Make the steps of one instant."""
        gone = [j for j in self.running if self.end(j) == t]  # 1
        for j in gone:
            self.note(j, t, "completed")
            self.finish(j)
        components = set()
        if self.instants[:1] == [t]:  # 2
            del self.instants[0]
            gone += self.take_off(t)
            for outage in self.outages:
                if t in (outage.begin, outage.end, outage.announced):
                    components |= self.components_of(outage.nodes)
        came = []
        while self.to_come and self.jobs[self.to_come[0]].submit_time == t:  # 3
            came.append(self.to_come.popleft())
        self.waiting.update(came)
        components |= {self.component_of(j) for j in came} | self.freed_by(gone)
        for component in sorted(components):  # 4
            self.schedule(component, t)

    def components_of(self, nodes: frozenset[int]) -> set[int]:
        """Return the components of some nodes."""
        parts = enumerate(self.machine.partitions)
        return {self.component[at] for at, part in parts if part.nodes & nodes}

    def freed_by(self, gone: Collection[int]) -> set[int]:
        """Return the components in which jobs may start for those that are gone."""
        return {self.component_of(j) for j in gone}

    def note(self, j: int, t: int, reason: str) -> None:
        """Note that the attempt of job j ends at t."""
        began = self.result.starts[j]
        self.attempts.append(Attempt(j, began, began, t, reason, self.running[j]))

    def down(self, t: int) -> set[int]:
        """Return the nodes that are down at t."""
        return {v for o in self.outages if o.begin <= t < o.end for v in o.nodes}

    def take_off(self, t: int) -> list[int]:
        """Take off the jobs on nodes that are down, and return them."""
        down = self.down(t)
        hit = [j for j, nodes in self.running.items() if down & nodes.keys()]
        for j in sorted(hit, key=lambda j: (self.result.starts[j], j), reverse=True):
            self.note(j, t, "node down")
            self.finish(j)
            self.result.starts[j] = None
            self.result.placements[j] = {}
            self.result.backfilled[j] = self.result.thresholded[j] = False
            if self.requeue is None or j in self.requeue:
                self.waiting.add(j)
            else:
                self.lost.add(j)
        return hit

    def new_pass(self, component: int, t: int) -> Any:
        """Return a pass to make."""
        kind = ConservativeAhead if self.depth == float("inf") else DepthAhead
        return kind(self, component, t)

    def schedule(self, component: int, t: int) -> None:
        """Make the pass of a component."""
        waiting = [j for j in self.waiting if self.component_of(j) == component]
        one = self.new_pass(component, t)
        queue = self.in_order(self.order, waiting, t)
        one.make(queue)
        started = [j for j in queue if j not in self.waiting]
        self.result.passes.append(Pass(t, component, queue, started, one.reserved))


class Ahead:
    """What passes do otherwise where outages are known: a node that goes down has no room."""

    sim: WithOutages
    t: int

    def known(self) -> list[Outage]:
        """Return the outages that are known and not over."""
        return [o for o in self.sim.outages if o.announced <= self.t < o.end]

    def free(self, j: int, begin: float, end: float, holds: Iterable[Hold]) -> dict[int, Free]:
        """Return what holds and known outages leave of job j's partition during [begin, end)."""
        found = super().free(j, begin, end, holds)  # type: ignore[misc]
        for o in self.known():
            if o.begin < end and begin < o.end:
                found |= {v: Free(0, 0, 0, False) for v in o.nodes & found.keys()}
        return found

    def free_in_fact(self, j: int) -> dict[int, Free]:
        """Return what is free now on nodes that stay up until job j would end by its estimate."""
        up = self.free(j, self.t, self.until(j), [])
        return least(super().free_in_fact(j), up)  # type: ignore[misc]

    def until(self, j: int) -> int:
        """Return when job j would end by its estimate if the pass started it."""
        return self.t + self.sim.estimates[j]

    def earliest(self, j: int, instants: Iterable[float], holds: Collection[Hold]) -> Hold:
        """Return the first hold of job j; nodes that come back make instants, too."""
        back = [o.end for o in self.known()]
        found: Hold = super().earliest(j, [*instants, *back], holds)  # type: ignore[misc]
        return found


class DepthAhead(Ahead, DepthPass):
    """EASY and depth k beside outages."""


class ConservativeAhead(Ahead, ConservativePass):
    """Conservative backfilling beside outages."""


class WithinLimits(WithOutages):
    """The same, within limits; EASY and none only."""

    limits: Sequence[reference_limits.Limit] = ()

    def freed_by(self, gone: Collection[int]) -> set[int]:
        """Return all components where a job is gone that a limit counts."""
        if any(limit.groups[j] is not None for limit in self.limits for j in gone):
            return set(self.component)
        return super().freed_by(gone)

    def is_left_out(self, j: int, t: int) -> bool:
        """Say whether a job would go beyond a limit."""
        known = self.jobs, j, self.result.starts, self.running, self.lost, t
        return reference_limits.is_left_out(self.limits, *known)

    def new_pass(self, component: int, t: int) -> Any:
        """Return a pass to make."""
        return AheadWithin(self, component, t)


class AheadWithin(DepthAhead):
    """EASY's steps without the jobs that are beyond a limit."""

    sim: WithinLimits

    def make(self, queue: list[int]) -> None:
        """Make the three steps."""
        left, some_wait = list(queue), False
        while left:  # step 1
            if self.sim.is_left_out(left[0], self.t):
                some_wait = True
            else:
                nodes = self.place(left[0], self.free_in_fact(left[0]))
                if not self.start(left[0], nodes, backfilled=some_wait):
                    break
            del left[0]
        if self.sim.depth == 0:
            return
        others = []
        for j in left:  # step 2
            if self.sim.is_left_out(j, self.t):
                continue
            if self.reservations(self.sim.jobs[j].partition) == self.sim.depth:
                others.append(j)
            elif not self.start_beside(j):
                self.reserve(j)
        for j in self.sim.in_order(self.sim.backfill_order, others, self.t):  # step 3
            if not self.sim.is_left_out(j, self.t) and not self.start_and_move(j):
                self.start_beside(j)


def simulate(
    machine: Machine,
    jobs: Iterable[Sequence[int]],
    *,
    outages: Sequence[Outage],
    requeue: Collection[int] | None = None,
    limits: Sequence[reference_limits.Limit] = (),
    kind: type[WithOutages] | None = None,
    mode: str | None = None,
    **settings: Any,
) -> tuple[Result, list[Attempt]]:
    """Schedule as `reference_nodes.simulate` does, with outages; return the attempts as well."""
    made: list[WithOutages] = []
    of = kind or (WithinLimits if limits else WithOutages)

    class Noting(of):  # type: ignore[misc, valid-type]
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            made.append(self)

    Noting.outages, Noting.requeue = tuple(outages), requeue
    Noting.limits, Noting.mode = limits, mode
    result = reference_nodes.simulate(machine, jobs, kind=Noting, **settings)
    return result, sorted(made[0].attempts, key=lambda one: one[:5])
