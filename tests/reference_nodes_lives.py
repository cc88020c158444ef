"""The reference of trials, young jobs that give way, a cap and costs on a machine of nodes.

It is written from section 15 of the specification, "Trials on nodes", "Young jobs on nodes",
"Overhead on nodes" and "Outages of nodes", in plain Python, and shares no code with `hpcgym`. Room
and placement rules are those of `tests/reference_nodes.py`, EASY's steps under a cap those of
`reference_nodes_capped`.

A job on trial waits, too. What it holds, it holds since `taken`; it runs usefully from `useful` on.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import reference_nodes
from reference_nodes import Free, Hold, Job, Machine, Pass, Placement, Result, least, room
from reference_nodes_capped import Capped, CappedPass


class Attempt(NamedTuple):
    """A start and an end of a job, with the reason of the end and its nodes."""

    job: int
    taken: int
    useful: int
    end: int
    reason: str
    nodes: Placement


class Holding(NamedTuple):
    """What a job on the machine holds: since when, and for a trial until when."""

    nodes: Placement
    taken: int
    useful: int
    over: int = -1  # the instant at which a trial is over
    guarantee: int = -1  # the instant at which its guarantee ends; -1 = it has none


class Busy(NamedTuple):
    """Nodes that are cleared after a kill at the limit of a trial."""

    until: int
    job: int
    nodes: Placement


def left_over(machine: Machine, jobs: Sequence[Job], holds: Iterable[Hold]) -> list[Free]:
    """Return what holds, all at one instant, leave of each node."""
    there: list[list[Hold]] = [[] for _ in machine.nodes]
    for hold in holds:
        for v in hold.nodes:
            there[v].append(hold)
    return [reference_nodes.free_at(machine, jobs, v, own) for v, own in enumerate(there)]


class LivesOnNodes(Capped):
    """A machine of nodes whose jobs may be tried, killed and tried again."""

    requeue: Collection[int] | None = None  # jobs that may be killed; None = all
    behind: list[int] | None = None  # guaranteed jobs that a pass has found behind its first misfit

    def __init__(self, machine: Machine, jobs: Sequence[Job], *given: Any, **more: Any) -> None:
        """Read the rules behind the mode, and begin with no job on trial."""
        text, trial, rule = self.mode.partition("+trial")
        self.mode = text
        super().__init__(machine, jobs, *given, **more)
        said = dict(part.split("=") for part in rule.removeprefix(":").split(",") if part)
        self.tries = trial != ""
        self.limit, self.most_kills = int(said.get("limit", 300)), int(said.get("kills", 2))
        self.young, self.most_times = int(said.get("young", 0)), int(said.get("times", 2))
        self.long_request, self.guarantee = (
            int(said.get("request", 7200)),
            int(said.get("guarantee", 300)),
        )
        self.share, self.victim = float(said.get("share", 0.25)), float(said.get("victim", "inf"))
        self.overhead = int(said.get("overhead", 0))
        self.held: dict[int, Holding] = {}  # of running jobs
        self.on_trial: dict[int, Holding] = {}  # these are in `waiting`, too
        self.busy: list[Busy] = []
        n = len(jobs)
        self.tried, self.gave_way, self.ran = [0] * n, [0] * n, [0] * n
        self.killed_at = [-1] * n
        self.attempts: list[Attempt] = []

    # --- A job's life -----------------------------------------------------------------------------

    def end(self, j: int) -> int:
        """Return when the attempt of job j ends by itself."""
        return (self.on_trial.get(j) or self.held[j]).useful + self.executed[j]

    def is_guaranteed(self, j: int, t: int) -> bool:
        """Tell whether job j is on a trial that is guaranteed at t."""
        return j in self.on_trial and t < self.on_trial[j].guarantee

    def may_be_killed(self, j: int) -> bool:
        """Tell whether job j takes part."""
        return self.requeue is None or j in self.requeue

    def delay(self, j: int) -> int:
        """Return how long a start of job j takes before it runs usefully."""
        return self.overhead if self.killed_at[j] >= 0 else 0

    def begin(self, j: int, held: Holding, t: int, *, backfilled: bool) -> None:
        """Have job j start for good at t, perhaps where it is on trial."""
        if self.is_long(j, t):
            self.counted.add(j)
        self.waiting.remove(j)
        self.running[j] = held.nodes
        self.held[j] = held
        self.result.starts[j] = held.useful
        self.result.placements[j] = dict(sorted(held.nodes.items()))
        self.result.backfilled[j] = backfilled
        self.result.thresholded[j] = self.is_thresholded(j, held.taken)

    def finish(self, j: int) -> None:
        """Take its nodes from job j, which has completed."""
        super().finish(j)
        del self.held[j]

    def kill(self, j: int, t: int, reason: str) -> None:
        """Take its nodes from job j, whose work is lost."""
        held = self.on_trial.pop(j) if j in self.on_trial else self.held[j]
        self.ran[j] = max(self.ran[j], t - held.useful)
        self.killed_at[j] = t
        self.attempts.append(Attempt(j, held.taken, held.useful, t, reason, held.nodes))
        if j in self.waiting:
            self.tried[j] += reason != "node down"
            if reason == "trial over" and self.overhead:
                self.busy.append(Busy(t + self.overhead, j, held.nodes))
            return
        del self.running[j], self.held[j]
        self.gave_way[j] += reason != "node down"
        self.counted.discard(j)
        self.waiting.add(j)
        self.result.starts[j], self.result.placements[j] = None, {}
        self.result.backfilled[j] = self.result.thresholded[j] = False

    # --- An instant -------------------------------------------------------------------------------

    def run(self) -> Result:
        """Handle instants until every job has ended."""
        while self.to_come or self.running or self.waiting:
            self.round(min(self.next_instants()))
        return self.result

    def next_instants(self) -> Iterator[int]:
        """Yield the instants at which something happens next."""
        yield from (self.jobs[j].submit_time for j in islice(self.to_come, 1))
        yield from map(self.end, (*self.running, *self.on_trial))
        yield from (held.over for held in self.on_trial.values())
        yield from (busy.until for busy in self.busy)

    def round(self, t: int) -> None:
        """Make the steps of one instant."""
        self.W = None
        touched = [j for j in sorted((*self.running, *self.on_trial)) if self.end(j) == t]  # 1
        for j in touched:
            held = self.on_trial.pop(j, None) or self.held[j]
            if j in self.waiting:
                self.begin(j, held, t, backfilled=False)
            self.finish(j)
            self.attempts.append(Attempt(j, *held[1:3], t, "completed", held.nodes))
        components = self.between(t)
        touched += [busy.job for busy in self.busy if busy.until == t]
        self.busy = [busy for busy in self.busy if busy.until > t]
        while self.to_come and self.jobs[self.to_come[0]].submit_time == t:  # 2
            touched.append(self.to_come.popleft())
            self.waiting.add(touched[-1])
        touched += [j for j, held in self.on_trial.items() if held.over == t]
        components |= {self.component_of(j) for j in touched}
        for component in sorted(components):  # 3
            self.schedule(component, t)
        for j in sorted(self.on_trial):  # 4
            if self.on_trial[j].over <= t:
                self.kill(j, t, "trial over")
        if self.tries:
            self.try_idle(t, components)  # 5
        if self.young:
            for component in sorted(components):  # 6
                self.make_way(t, component)

    def between(self, t: int) -> set[int]:
        """Do what comes between ends and submissions; return the components that it is about."""
        return set()

    def new_pass(self, component: int, t: int) -> LivesPass:
        """Return a pass to make."""
        return LivesPass(self, component, t)

    def schedule(self, component: int, t: int) -> None:
        """Decide the pass of a component, then end the trials that are in the way."""
        if self.W is None:
            self.W = self.waiting_cpus(self.waiting)
        waiting = [j for j in self.waiting if self.component_of(j) == component]
        passing = self.new_pass(component, t)
        queue = self.in_order(self.order, waiting, t)
        passing.make(queue)
        started = [j for j in queue if j not in self.waiting]
        self.result.passes.append(Pass(t, component, queue, started, passing.reserved))
        for k, j in enumerate(passing.begun):
            n = len(self.attempts)
            for v in sorted(self.running[j]):
                self.make_room(j, v, passing.begun[k:], t)
            if len(self.attempts) > n:
                later = self.held[j].useful + self.overhead
                self.held[j] = self.held[j]._replace(useful=later)
                self.result.starts[j] = later

    def make_room(self, j: int, v: int, to_come: Collection[int], t: int) -> None:
        """End trials on node v, the latest start first, until the chunks of job j fit there."""
        while self.lacks(j, v, self.running[j][v], to_come):
            there = [
                k
                for k, held in self.on_trial.items()
                if v in held.nodes and not self.is_guaranteed(k, t)
            ]
            self.kill(max(there, key=lambda k: (self.on_trial[k].taken, -k)), t, "evicted")

    def lacks(self, j: int, v: int, chunks: int, without: Collection[int] = ()) -> bool:
        """Tell whether so many chunks of job j do not fit on what is idle of node v."""
        free = self.idle(without)[v]
        return room(self.jobs[j], self.machine.nodes[v], free, limited=False) < chunks

    def idle(self, without: Collection[int] = ()) -> list[Free]:
        """Return what nobody holds of each node, some running jobs left out."""
        holds = [Hold(j, n, 0, 1) for j, n in self.running.items() if j not in without]
        holds += [Hold(j, held.nodes, 0, 1) for j, held in self.on_trial.items()]
        holds += [Hold(busy.job, busy.nodes, 0, 1) for busy in self.busy]
        return left_over(self.machine, self.jobs, holds)

    def place_idle(self, j: int, t: int, until: int, without: Collection[int] = ()) -> Any:
        """Return the placement of a trial of job j that begins at t and is over at an instant."""
        nodes = self.machine.partitions[self.jobs[j].partition].nodes
        down, left = self.goes_down(t, until), self.idle(without)
        free = {v: Free(0, 0, 0, is_empty=False) if v in down else left[v] for v in nodes}
        return reference_nodes.place(self.machine, self.jobs[j], free, self.rule)

    def goes_down(self, t: int, until: int) -> Collection[int]:
        """Return the nodes that are known to go down before an instant."""
        return ()

    # --- Trials -----------------------------------------------------------------------------------

    def candidates(self, t: int, components: Collection[int]) -> list[int]:
        """Return the waiting jobs that may be tried, in the order in which they are."""
        waiting = [
            j
            for j in self.waiting
            if j not in self.on_trial
            and self.component_of(j) in components
            and self.killed_at[j] != t
            and self.may_be_killed(j)
        ]
        return sorted(
            waiting, key=lambda j: (max(self.estimates[j], 10) * self.jobs[j].processors, j)
        )

    def try_idle(self, t: int, components: Collection[int]) -> None:
        """Put waiting jobs on trial where the rule places them on what is idle in fact."""
        useful = t + self.overhead
        for j in self.candidates(t, components):
            if self.tried[j] < self.most_kills and self.ran[j] < self.limit:
                nodes = self.place_idle(j, t, useful + self.limit)
                if nodes is not None:
                    self.on_trial[j] = Holding(nodes, t, useful, useful + self.limit)

    def make_way(self, t: int, component: int) -> None:
        """Have young jobs of a component give way to jobs that have never been tried."""
        M = self.cpus_of(component)
        waiting = [j for j in self.waiting if self.component_of(j) == component]
        if any(self.is_thresholded(j, t) for j in waiting if j not in self.on_trial):
            return
        for j in self.candidates(t, [component]):
            lent = [k for k in waiting if self.is_guaranteed(k, t)]
            within = self.jobs[j].processors + self.waiting_cpus(lent) <= self.share * M
            if within and self.tried[j] == 0 and self.ran[j] == 0:
                self.guarantee_trial(j, t, self.victims(t, component, M))

    def victims(self, t: int, component: int, M: int) -> list[int]:
        """Return the jobs of a component that may give way, in the order in which they do."""
        young = [
            j
            for j, held in self.held.items()
            if self.component_of(j) == component
            and 0 <= t - held.useful < self.young
            and self.jobs[j].requested_time > self.long_request
            and self.gave_way[j] < self.most_times
            and self.jobs[j].processors <= self.victim * M
            and not self.is_thresholded(j, t)
            and self.may_be_killed(j)
        ]
        return sorted(young, key=lambda j: (self.jobs[j].processors * (t - self.held[j].useful), j))

    def guarantee_trial(self, j: int, t: int, young: list[int]) -> None:
        """Put job j on a guaranteed trial, if the rule places it once young jobs have given way."""
        until, nodes = t + self.overhead + self.guarantee, None
        for n in range(len(young) + 1):
            nodes = self.place_idle(j, t, until + self.overhead * (n > 0), young[:n])
            if nodes is not None:
                break
        if nodes is None:
            return
        gone = 0
        for v in sorted(nodes):
            while self.lacks(j, v, nodes[v]):
                self.kill(next(k for k in young if v in self.running.get(k, ())), t, "gave way")
                gone += 1
        useful = t + self.overhead * (1 + (gone > 0))
        over = useful + self.guarantee
        self.on_trial[j] = Holding(nodes, t, useful, over, over)


Moved = tuple[Hold, Placement | None, list[Hold]]
"""A reservation, its nodes once it is placed again, and what others hold then."""


class LivesPass(CappedPass):
    """EASY's steps under a cap, in which a job on trial can have no nodes now but its own."""

    sim: LivesOnNodes

    def __init__(self, *given: Any) -> None:
        """Begin without starts."""
        super().__init__(*given)
        self.begun: list[int] = []
        self.paying: set[int] = set()
        self.kept: dict[int, dict[int, Free]] = {}  # what is free of a partition until a start

    def held_beside(self, j: int, least_end: int) -> list[Hold]:
        """Return what others than job j hold by estimates, running jobs until `least_end` at least.

        Trials that are not guaranteed hold nothing. A job that starts for its gain ends now.
        """
        sim, t = self.sim, self.t
        holds = [
            Hold(k, held.nodes, t, least_end if k in self.paying else self.ends(k, held, least_end))
            for k, held in sim.held.items()
        ]
        holds += [
            Hold(k, held.nodes, t, held.guarantee)
            for k, held in sim.on_trial.items()
            if k != j and sim.is_guaranteed(k, t)
        ]
        holds += [Hold(busy.job, busy.nodes, t, busy.until) for busy in sim.busy]
        return [hold for hold in holds if sim.component_of(hold.j) == self.component]

    def ends(self, k: int, held: Holding, least_end: int) -> int:
        """Return when running job k ends by its estimate, at `least_end` or later."""
        return max(held.useful + self.sim.estimates[k], least_end)

    def free_in_fact(self, j: int) -> dict[int, Free]:
        """Return what job j can have now of its partition, whatever is reserved."""
        partition = self.sim.jobs[j].partition
        if self.sim.is_guaranteed(j, self.t) or partition not in self.kept:
            paying, self.paying = self.paying, set()
            left = left_over(self.sim.machine, self.sim.jobs, self.held_beside(j, self.t + 1))
            free = {v: left[v] for v in self.sim.machine.partitions[partition].nodes}
            self.paying = paying
            if self.sim.is_guaranteed(j, self.t):
                return free
            self.kept[partition] = free
        return self.kept[partition]

    def until(self, j: int) -> int:
        """Return when job j would end by its estimate if the pass started it."""
        e, held = self.sim.estimates[j], self.sim.on_trial.get(j)
        return self.t + self.sim.delay(j) + e if held is None else held.useful + e

    def placed(self, j: int, free: dict[int, Free]) -> Placement | None:
        """Return the nodes of job j, which are its own if it is on trial."""
        held = self.sim.on_trial.get(j)
        if held is None:
            return self.place(j, free)
        job, nodes = self.sim.jobs[j], self.sim.machine.nodes
        fits = (
            room(job, nodes[v], free[v], limited=False) >= chunks
            for v, chunks in held.nodes.items()
        )
        return held.nodes if all(fits) else None

    def place(self, j: int, free: Mapping[int, Free]) -> Placement | None:
        """Return the placement that the rule finds for job j, none on fewer cpus than it needs."""
        if sum(left.cpus for left in free.values()) < self.sim.jobs[j].processors:
            return None
        return super().place(j, free)

    def now(self, j: int) -> Placement | None:
        """Return the placement of job j on what is free now."""
        return self.placed(j, self.free_in_fact(j))

    def start_beside(self, j: int) -> bool:
        """Start job j if it fits now in fact, and for its whole estimate beside reservations."""
        if self.sim.behind is not None and self.sim.is_guaranteed(j, self.t):
            self.sim.behind.append(j)
        if self.now(j) is None:
            return False
        holds = [*self.held_beside(j, self.t), *self.reserved]
        by_estimates = self.free(j, self.t, max(self.t, self.until(j)), holds)
        return self.start(j, self.placed(j, least(self.free_in_fact(j), by_estimates)))

    def reserve(self, j: int) -> None:
        """Reserve for job j, wherever it is on trial, at the earliest instant at which it fits."""
        holds = [*self.held_beside(-1, self.t), *self.reserved]
        self.reserved.append(self.earliest(j, [hold.end for hold in holds], holds))

    def again(self, j: int, nodes: Placement) -> Iterator[Moved]:
        """Yield each reservation, its nodes if job j has its own, and what others hold then."""
        holds = [*self.held_beside(j, self.t), Hold(j, nodes, self.t, self.until(j))]
        for hold in self.reserved:
            free = self.free_by_estimates(hold.j, hold.begin, holds)
            moved = self.place(hold.j, free)
            yield hold, moved, holds
            if moved is not None:
                holds.append(self.hold(hold.j, moved, hold.begin))

    def start_and_move(self, j: int) -> bool:
        """Start job j if every reservation, placed again in order, keeps its time."""
        if self.sim.behind is not None and self.sim.is_guaranteed(j, self.t):
            self.sim.behind.append(j)
        nodes = self.now(j)
        if nodes is None:
            return False
        moved = []
        for hold, placed, _ in self.again(j, nodes):
            if placed is None:
                return False
            moved.append(self.hold(hold.j, placed, hold.begin))
        self.reserved = moved
        return self.start(j, nodes)

    def delayed(self, j: int, nodes: Placement) -> tuple[Hold, int]:
        """Return the first reservation that job j delays, and how many of its chunks have room."""
        for hold, placed, holds in self.again(j, nodes):
            if placed is None:
                free = self.free(hold.j, hold.begin, hold.begin + 1, holds)
                job, all_nodes = self.sim.jobs[hold.j], self.sim.machine.nodes
                return hold, sum(max(room(job, all_nodes[v], free[v]), 0) for v in free)
        raise AssertionError("a job that delays nobody starts")

    def start_if_it_pays(self, j: int) -> None:
        """Start job j if what it gains exceeds what the first job that it delays costs."""
        if not self.sim.is_guaranteed(j, self.t):
            super().start_if_it_pays(j)

    def start_paying(self, j: int, nodes: Placement) -> None:
        """Start job j, which no reservation counts with."""
        self.start(j, nodes)

    def start(self, j: int, nodes: Placement | None, *, backfilled: bool = True) -> bool:
        """Start job j if it has nodes, or have it run on; tell whether it is so."""
        if nodes is None:
            return False
        self.kept = {}
        held = self.sim.on_trial.pop(j, None)
        if held is None:
            held = Holding(nodes, self.t, self.t + self.sim.delay(j))
            self.begun.append(j)
        self.sim.begin(j, held, self.t, backfilled=backfilled)
        return True


class Outage(NamedTuple):
    """Nodes that are down from an instant until another, and since when that is known."""

    begin: int
    end: int
    nodes: frozenset[int]
    announced: int = 0


class LivesWithOutages(LivesOnNodes):
    """Jobs that are tried on idle nodes, some of which go down; a subclass lists the outages."""

    outages: Sequence[Outage] = ()
    again: Collection[int] | None = None  # jobs that outages do not lose; None = all

    def __init__(self, *given: Any, **more: Any) -> None:
        """Begin with all outages to come."""
        super().__init__(*given, **more)
        self.instants = sorted({at for o in self.outages for at in (o.begin, o.end, o.announced)})

    def next_instants(self) -> Iterator[int]:
        """Yield the instants at which something happens next."""
        yield from super().next_instants()
        yield from self.instants[:1]

    def between(self, t: int) -> set[int]:
        """Let outages end and begin."""
        if self.instants[:1] != [t]:
            return set()
        del self.instants[0]
        down = {v for o in self.outages if o.begin <= t < o.end for v in o.nodes}
        touched = set()
        for holding in (self.on_trial, self.held):
            for j in [j for j, held in holding.items() if down & held.nodes.keys()]:
                was_running = j in self.held
                self.kill(j, t, "node down")
                if was_running and self.again is not None and j not in self.again:
                    self.waiting.remove(j)
                touched.add(self.component_of(j))
        for outage in self.outages:
            if t in (outage.begin, outage.end, outage.announced):
                parts = enumerate(self.machine.partitions)
                touched |= {self.component[at] for at, part in parts if part.nodes & outage.nodes}
        return touched

    def foreseen(self, t: int) -> list[Outage]:
        """Return the outages that are known and not over."""
        return [o for o in self.outages if o.announced <= t < o.end]

    def goes_down(self, t: int, until: int) -> Collection[int]:
        """Return the nodes that are known to go down before an instant."""
        return {v for o in self.foreseen(t) if o.begin < until for v in o.nodes}

    def new_pass(self, component: int, t: int) -> LivesPass:
        """Return a pass to make."""
        return LivesAhead(self, component, t)


class LivesAhead(LivesPass):
    """The steps beside outages: a node that goes down has no room, and costs are not weighed."""

    sim: LivesWithOutages

    def make(self, queue: list[int]) -> None:
        """Make the three steps."""
        kappa = self.sim.kappa
        if self.sim.foreseen(self.t):
            self.sim.kappa = 0.0
        super().make(queue)
        self.sim.kappa = kappa

    def free(self, j: int, begin: float, end: float, holds: Iterable[Hold]) -> dict[int, Free]:
        """Return what holds and known outages leave of job j's partition during [begin, end)."""
        left = super().free(j, begin, end, holds)
        for o in self.sim.foreseen(self.t):
            if o.begin < end and begin < o.end:
                left |= {v: Free(0, 0, 0, is_empty=False) for v in o.nodes & left.keys()}
        return left

    def free_in_fact(self, j: int) -> dict[int, Free]:
        """Return what job j can have now, on nodes that stay up until it would end."""
        free = super().free_in_fact(j)
        if not self.sim.foreseen(self.t):
            return free
        return least(free, self.free(j, self.t, self.until(j), []))

    def earliest(self, j: int, instants: Iterable[float], holds: Collection[Hold]) -> Hold:
        """Return the first hold of job j; nodes that come back make instants, too."""
        return super().earliest(j, [*instants, *(o.end for o in self.sim.foreseen(self.t))], holds)


def simulate(
    machine: Machine,
    jobs: Iterable[Sequence[int]],
    *,
    mode: str,
    day_start: int = 0,
    requeue: Collection[int] | None = None,
    outages: Sequence[Outage] = (),
    again: Collection[int] | None = None,
    behind: list[int] | None = None,
    **settings: Any,
) -> tuple[Result, list[Attempt]]:
    """Schedule as `reference_nodes.simulate` does, under a mode; return the attempts as well."""
    made: list[LivesOnNodes] = []

    class Noting(LivesWithOutages):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            made.append(self)

    Noting.mode, Noting.day_start, Noting.requeue = mode, day_start, requeue
    Noting.outages, Noting.again, Noting.behind = tuple(outages), again, behind
    assert settings.get("depth", 1) == 1
    result = reference_nodes.simulate(machine, jobs, kind=Noting, **settings)
    assert not math.isnan(made[0].share)
    return result, sorted(made[0].attempts, key=lambda attempt: attempt[:5])
