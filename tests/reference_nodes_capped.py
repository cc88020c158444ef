"""The reference of a cap, urgency and costs on machines of nodes, in plain Python.

It is written from section 13, "Cap and costs on nodes". The clock, the placement rules and EASY's
three steps are those of `reference_nodes` and `reference_nodes_log`; the regression is that of
`reference_index`, and what is expected of a job that of `reference_capped`. It shares no code with
`hpcgym`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import reference_index
import reference_nodes
from reference_capped import SMITH_URGENT, CostBenefit, Urgent, UrgentReader
from reference_index import NOBODY, RING_JOBS, Lessons, Reader, Record, User
from reference_nodes import DepthPass, Hold, Placement, Result, Simulation, room
from reference_nodes_log import LogDepthPass, LogSimulation

ORDERS = {"SMITH-URGENT": SMITH_URGENT, **reference_index.RULES}
"""Orders by what users' records tell, by name."""


class Capped(Simulation):
    """A machine of nodes with a cap, whose backfilling may weigh costs; a subclass sets the mode.

    Its jobs' users have no records at time 0, which is at `day_start` seconds of a day.
    """

    mode = "easy"
    day_start = 0

    run_time, rate, logs, weight = (
        *(CostBenefit.run_time, CostBenefit.rate, CostBenefit.logs, CostBenefit.weight),
    )
    user, look, urgent_score = Reader.user, Reader.look, UrgentReader.urgent_score

    def __init__(self, *given: Any, **settings: Any) -> None:
        """Read the mode's parameters, and begin without records."""
        super().__init__(*given, **settings)
        name, _, rest = self.mode.partition(":")
        stated = dict(part.split("=") for part in rest.split(",") if part)
        self.kappa = float(stated.get("kappa", 0.25)) if name == "cost-benefit" else 0.0
        self.cap, self.long = float(stated.get("cap", math.inf)), float(stated.get("long", 7200))
        self.guarded = stated.get("overdue", "guarded") == "guarded"
        self.by_request = stated.get("by") == "request"
        self.widest = float(stated.get("widest", math.inf))
        self.pressed = float(stated.get("pressed", 0))
        self.counted: set[int] = set()
        self.processors = self.machine.cpus
        self.known: dict[int, User] = {}
        self.seen: dict[int, Any] = {}
        self.lessons = Lessons()
        self.W: int | None = None

    def first_estimate(self, j: int) -> int:
        """Return the estimate of job j at its submission."""
        return self.estimates[j]

    def finish(self, j: int) -> None:
        """Take its nodes from job j; the regression and its user's records learn from it."""
        super().finish(j)
        self.counted.discard(j)
        self.lessons.learn(self.executed[j], self.estimates[j], self.look(j))
        job, (completed, last) = self.jobs[j], self.known.get(self.jobs[j].user, NOBODY)
        record = Record(self.executed[j], job.requested_time, job.processors)
        self.known[job.user] = User(completed + 1, (*last, record)[-RING_JOBS:])

    def round(self, t: int) -> None:
        """Handle an instant; the order of the queue is made once for all components."""
        self.W = None
        super().round(t)

    def schedule(self, component: int, t: int) -> None:
        """Make the pass of a component."""
        if self.W is None:
            self.W = self.waiting_cpus(self.waiting)
        super().schedule(component, t)

    def waiting_cpus(self, jobs: Iterable[int]) -> int:
        """Return the cpus that jobs ask for."""
        return sum(self.jobs[j].processors for j in jobs)

    def score(self, order: Any, j: int, t: int) -> float:
        """Return the score of job j at t."""
        rule = ORDERS.get(order) if isinstance(order, str) else None
        if rule is None:
            return super().score(order, j, t)
        if isinstance(rule, Urgent):
            assert self.W is not None
            return self.urgent_score(rule, j, t - self.jobs[j].submit_time, self.W)
        e = self.estimates[j]
        said = self.lessons.say(e, self.look(j))
        return reference_index.index(rule, self.jobs[j], e, self.user(j), said)

    def cpus_of(self, component: int) -> int:
        """Return the cpus of a component's nodes."""
        parts = self.machine.partitions
        of = [part.nodes for p, part in enumerate(parts) if self.component[p] == component]
        return sum(self.machine.nodes[v].cpus for v in frozenset().union(*of))

    def is_long(self, j: int, t: int) -> bool:
        """Tell whether job j would count if it started now."""
        if self.cap == math.inf or (self.guarded and self.is_thresholded(j, t)):
            return False
        if self.by_request:
            return self.jobs[j].requested_time > self.long
        log_e, share, _ = self.logs(j)
        return self.long == 0 or log_e + share > math.log(self.long)

    def start(self, j: int, nodes: Placement, t: int, *, backfilled: bool) -> None:
        """Give job j its nodes, and count it if it is long."""
        if self.is_long(j, t):
            self.counted.add(j)
        super().start(j, nodes, t, backfilled=backfilled)


class CappedPass(DepthPass):
    """EASY's steps without the jobs that the cap blocks, and starts that pay in the third."""

    sim: Capped

    def make(self, queue: list[int]) -> None:
        """Make the three steps."""
        sim, t = self.sim, self.t
        self.paying: set[int] = set()
        self.M = sim.cpus_of(self.component)
        self.binds = sim.waiting_cpus(queue) >= sim.pressed * self.M
        left, some_wait = list(queue), False
        while left:  # step 1
            if self.is_blocked(left[0]):
                some_wait = True
            elif not self.begin(left[0], self.now(left[0]), backfilled=some_wait):
                break
            del left[0]
        self.plan()
        others = []
        for j in left:  # step 2
            if self.reservations(sim.jobs[j].partition) == 1:
                others.append(j)
            elif not self.is_blocked(j) and not self.start_beside(j):
                self.reserve(j)
        if not others:
            return
        self.R = 0.0
        for j in queue:
            if sim.kappa > 0 and j in sim.waiting and self.now(j) is None:
                self.R += sim.rate(j)
        if sim.backfill_order is not sim.order:
            sim.W = sim.waiting_cpus(sim.waiting)
        for j in sim.in_order(sim.backfill_order, others, t):  # step 3
            if not (self.is_blocked(j) or self.start_and_move(j) or self.start_beside(j)):
                self.start_if_it_pays(j)

    def plan(self) -> None:
        """Get ready for steps 2 and 3."""

    def now(self, j: int) -> Placement | None:
        """Return the placement of job j on what is free now."""
        return self.place(j, self.free_in_fact(j))

    def begin(self, j: int, nodes: Placement | None, *, backfilled: bool) -> bool:
        """Start job j if it has nodes, and tell whether it has."""
        return self.start(j, nodes, backfilled=backfilled)

    def is_blocked(self, j: int) -> bool:
        """Tell whether the cap blocks job j."""
        sim, q = self.sim, self.sim.jobs[j].processors
        counted = [k for k in sim.counted if sim.component_of(k) == self.component]
        G = sim.waiting_cpus(counted)
        is_over = G > 0 and G + q > sim.cap * self.M
        return self.binds and is_over and q <= sim.widest * self.M and sim.is_long(j, self.t)

    def held(self, least_end: int) -> list[Hold]:
        """Return what running jobs hold; those that paid end now by estimates."""
        return [
            hold._replace(end=least_end) if hold.j in self.paying else hold
            for hold in super().held(least_end)
        ]

    def start_if_it_pays(self, j: int) -> None:
        """Start job j if what it gains exceeds what the first job that it delays costs."""
        nodes = self.now(j)
        if nodes is None or self.sim.kappa == 0:
            return
        sim = self.sim
        hold, room_then = self.delayed(j, nodes)
        k, S = sim.weight(hold.j, self.t), hold.begin - self.t
        n = sim.jobs[hold.j].chunks
        lacking = n - room_then if room_then < n else n
        run = sim.run_time(j)
        cost = self.R * (run * math.exp(-S / run)) * (lacking / n)
        if k > 0 and cost <= sim.rate(j) * (k * (S + sim.run_time(hold.j))):
            self.paying.add(j)
            self.start_paying(j, nodes)

    def start_paying(self, j: int, nodes: Placement) -> None:
        """Start job j, which no reservation counts with."""
        self.sim.start(j, nodes, self.t, backfilled=True)

    def delayed(self, j: int, nodes: Placement) -> tuple[Hold, int]:
        """Return the first reservation that job j delays, and how many of its chunks have room."""
        holds = [*self.held(self.t), self.hold(j, nodes, self.t)]
        for hold in self.reserved:
            again = self.place(hold.j, self.free_by_estimates(hold.j, hold.begin, holds))
            if again is None:
                free = self.free(hold.j, hold.begin, hold.begin + 1, holds)
                job, all_nodes = self.sim.jobs[hold.j], self.sim.machine.nodes
                return hold, sum(max(room(job, all_nodes[v], free[v]), 0) for v in free)
            holds.append(self.hold(hold.j, again, hold.begin))
        raise AssertionError("a job that delays nobody starts")


class CappedOnNodes(Capped):
    """The slow machine."""

    def new_pass(self, component: int, t: int) -> CappedPass:
        """Return a pass to make."""
        return CappedPass(self, component, t)


class LogCapped(Capped, LogSimulation):
    """The machine that is fast enough for whole logs."""

    def schedule(self, component: int, t: int) -> None:
        """Make the pass of a component."""
        if self.W is None:
            self.W = self.waiting_cpus(self.waiting)
        LogSimulation.schedule(self, component, t)

    def new_pass(self, component: int, t: int) -> LogCappedPass:
        """Return a pass to make."""
        return LogCappedPass(self, component, t)


class LogCappedPass(CappedPass, LogDepthPass):
    """Its pass, on the tables of what will be free."""

    sim: LogCapped  # type: ignore[assignment]

    def make(self, queue: list[int]) -> None:
        """Make the three steps."""
        self.room_now: dict[tuple[int, ...], int] = {}
        CappedPass.make(self, queue)

    def plan(self) -> None:
        """Make the tables."""
        self.running = self.sim.free_by_time(self.component, self.t, self.t)
        self.table = self.running.copy()

    def now(self, j: int) -> Placement | None:
        """Return the placement of job j on what is free now."""
        return self.sim.place(j, self.sim.free) if self.has_room(j) else None

    def start_paying(self, j: int, nodes: Placement) -> None:
        """Start job j, which no reservation counts with: it stands in no table."""
        self.room_now = {}
        super().start_paying(j, nodes)

    def delayed(self, j: int, nodes: Placement) -> tuple[Hold, int]:
        """Return the first reservation that job j delays, and how many of its chunks have room."""
        table = self.running.copy()
        table.take(self.sim.use(j, nodes), self.t, self.t + self.sim.estimates[j])
        for hold in self.reserved:
            again = self.sim.place(hold.j, table.least(hold.begin, hold.end))
            if again is None:
                free = table.least(hold.begin, hold.begin + 1)
                return hold, int(np.sum(self.sim.rooms(hold.j, free)))
            table.take(self.sim.use(hold.j, again), hold.begin, hold.end)
        raise AssertionError("a job that delays nobody starts")


def simulate(
    *given: Any,
    mode: str = "easy",
    day_start: int = 0,
    kind: type[Capped] = CappedOnNodes,
    **settings: Any,
) -> Result:
    """Schedule as `reference_nodes.simulate` does, under the text of a mode."""
    chosen = type("Chosen", (kind,), {"mode": mode, "day_start": day_start})
    return reference_nodes.simulate(*given, kind=chosen, **settings)


def simulate_log(*given: Sequence[Any], **settings: Any) -> Result:
    """Schedule as `simulate` does, fast enough for whole logs; passes are not kept."""
    return simulate(*given, kind=LogCapped, **settings)
