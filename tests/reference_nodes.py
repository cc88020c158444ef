"""The reference of machines of nodes: plain Python, from the specification's text, section 13.

It shares no code with `hpcgym`. The scores are those of `tests/reference.py`; nothing else is
shared with it either. It is slow and simple: what is free is counted anew for every question, from
the list of who holds which nodes, and from when until when.

`j` is a row of the job table, which is sorted by submit time, and `v` is the id of a node. So "ties
by (submit, position)" is "ties by j". `t` is now.

Readings, where the text leaves more than one:

1. A component has a pass in a round of an instant if one of its jobs ended or was submitted in that
   round. A zero-second job of another component gives it no second pass.
2. `max_nodes` under `contiguous`: the lowest first id from which at most `max_nodes` ids hold n.
   Otherwise more free nodes could take a placement away.
3. `max_nodes` under `local`: the lowest group that holds n, by id. If these are too many nodes,
   each group that holds n, in order, by most room. The first with few enough nodes is taken.
4. `max_nodes` under `fewest-groups`: the rule's groups, inside each by id. If these are too many
   nodes, each group that suffices, by least room, inside it by most room. Where none suffices, the
   groups by most room, inside each by most room. Last, all nodes by most room: otherwise more free
   nodes could take a placement away.
5. Under a `best-effort` rule, the strict rule is tried with its second try, then `lowest` with its.
6. Room that the rules compare is room under the limit of `spread`, but in `tightest`.
7. Room counts nodes of the job's partition only, also the room of a group.
8. What is free during a time is the least that is free of each resource at any second of it.
9. A reservation may begin now: EASY counts a job past its estimate as ending now, not in fact.
10. Depth: only jobs of the queue that were left in step 2 are tried in step 3, each once.
11. `backfilled`: a job before it in the primary order, of its component, waits when the pass ends.
12. With an infinite depth the pass is conservative, and a job past its estimate ends a second on.
13. M of a score is the sum of the machine's cpus, also where a component is scheduled apart.

Source: Specification, section 13, "Room and placement", "EASY and depth k", "Conservative".
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from reference import MOVING_RULES, STILL_RULES, Policy, mixed_rule


class Node(NamedTuple):
    """What a node has; memory 0 is not counted."""

    cpus: int
    gpus: int = 0
    memory_mb: int = 0
    group: str = ""


class Partition(NamedTuple):
    """Nodes that jobs may ask for; a limit of 0 is none."""

    name: str
    nodes: frozenset[int]
    max_time_s: int = 0
    max_nodes: int = 0
    tier: int = 0


class Machine(NamedTuple):
    """Nodes by id, and partitions of them."""

    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]

    @property
    def cpus(self) -> int:
        """Return M."""
        return sum(node.cpus for node in self.nodes)


def one_partition(nodes: Iterable[Node]) -> Machine:
    """Return a machine whose one partition has all nodes."""
    nodes = tuple(nodes)
    return Machine(nodes, (Partition("all", frozenset(range(len(nodes)))),))


class Job(NamedTuple):
    """One row of the job table: times in seconds; cpus, gpus and memory per chunk."""

    submit_time: int
    run_time: int
    requested_time: int
    chunks: int = 1
    cpus: int = 1
    gpus: int = 0
    memory_mb: int = 0
    spread: bool = False
    exclusive: bool = False
    partition: int = 0
    user: int = -1

    @property
    def processors(self) -> int:
        """Return q."""
        return self.chunks * self.cpus


Placement = dict[int, int]  # the chunks that each node takes


class Hold(NamedTuple):
    """Nodes that a job has in [begin, end), in fact or by estimates."""

    j: int
    nodes: Placement
    begin: float
    end: float


class Pass(NamedTuple):
    """What one pass of a component found and did: for tests of what must hold."""

    time: int
    component: int
    queue: list[int]  # in order, before the pass
    started: list[int]
    reserved: list[Hold]  # in the order they were made


class Result(NamedTuple):
    """Every start, by row of the job table; a refused job has None and no nodes."""

    starts: list[int | None]
    placements: list[Placement]
    backfilled: list[bool]
    thresholded: list[bool]
    refused: list[int]
    passes: list[Pass]


# --- Room: how many chunks a node can still take --------------------------------------------------


class Free(NamedTuple):
    """What is left of a node, and whether no job has a chunk there."""

    cpus: int
    gpus: int
    memory_mb: int
    is_empty: bool


def room(job: Job, node: Node, free: Free, *, limited: bool = True) -> int:
    """Return how many chunks of a job a node can still take, under the limit of `spread` or not."""
    if job.exclusive and not free.is_empty:
        return 0
    bounds = [free.cpus // job.cpus]
    if job.gpus:
        bounds.append(free.gpus // job.gpus)
    if job.memory_mb and node.memory_mb:
        bounds.append(free.memory_mb // job.memory_mb)
    if job.spread and limited:
        bounds.append(1)
    return min(bounds)


def free_at(machine: Machine, jobs: Sequence[Job], v: int, holds: Iterable[Hold]) -> Free:
    """Return what these holds, all at one instant, leave of node v."""
    node = machine.nodes[v]
    cpus, gpus, memory_mb, is_empty = node.cpus, node.gpus, node.memory_mb, True
    for hold in holds:
        job, chunks = jobs[hold.j], hold.nodes[v]
        cpus -= node.cpus if job.exclusive else chunks * job.cpus
        gpus -= node.gpus if job.exclusive else chunks * job.gpus
        if node.memory_mb:
            memory_mb -= node.memory_mb if job.exclusive else chunks * job.memory_mb
        is_empty = False
    return Free(cpus, gpus, memory_mb, is_empty)


def free_during(
    machine: Machine,
    jobs: Sequence[Job],
    nodes: Iterable[int],
    begin: float,
    end: float,
    holds: Iterable[Hold],
) -> dict[int, Free]:
    """Return the least that is free of each resource of some nodes, at any second of a time."""
    holds = [hold for hold in holds if hold.begin < end and begin < hold.end]
    free = {}
    for v in nodes:
        own = [hold for hold in holds if v in hold.nodes]
        instants = {begin, *(max(begin, hold.begin) for hold in own)}
        each = [
            free_at(machine, jobs, v, [hold for hold in own if hold.begin <= i < hold.end])
            for i in instants
        ]
        free[v] = Free(*(min(column) for column in zip(*each, strict=True)))
    return free


def least(one: Mapping[int, Free], other: Mapping[int, Free]) -> dict[int, Free]:
    """Return the least that is free of each resource in both."""
    return {v: Free(*map(min, one[v], other[v])) for v in one}


# --- Placement rules: which nodes a job gets ------------------------------------------------------


class Place:
    """The rules, for one job on what is free of its partition."""

    def __init__(self, machine: Machine, job: Job, free: Mapping[int, Free]) -> None:
        """Count the room of each node, and keep the nodes with room, ascending."""
        self.n = job.chunks
        self.partition = machine.partitions[job.partition]
        self.room = {v: room(job, machine.nodes[v], free[v]) for v in sorted(free)}
        self.room = {v: chunks for v, chunks in self.room.items() if chunks > 0}
        self.unlimited = {v: room(job, machine.nodes[v], free[v], limited=False) for v in self.room}
        names = list(dict.fromkeys(node.group for node in machine.nodes))
        self.groups: dict[int, list[int]] = {}
        for v in self.room:
            self.groups.setdefault(names.index(machine.nodes[v].group), []).append(v)

    def total(self, nodes: Iterable[int]) -> int:
        """Return the chunks that some nodes can take."""
        return sum(self.room[v] for v in nodes)

    def most_room(self, nodes: Iterable[int]) -> list[int]:
        """Return some nodes by most room, ties by id."""
        return sorted(nodes, key=lambda v: (-self.room[v], v))

    def take(self, nodes: Iterable[int]) -> Placement | None:
        """Take nodes in order, from each all its room, until n are placed; None if too many."""
        placed, left = {}, self.n
        for v in nodes:
            placed[v] = min(self.room[v], left)
            left -= placed[v]
            if left == 0:
                break
        most = self.partition.max_nodes or math.inf
        return placed if left == 0 and len(placed) <= most else None

    def first(self, tries: Iterable[Iterable[int]]) -> Placement | None:
        """Return the first placement that one of several orders of nodes gives."""
        return next((placed for nodes in tries if (placed := self.take(nodes))), None)

    def lowest(self) -> Placement | None:
        """Take nodes by id."""
        return self.first([self.room, self.most_room(self.room)])

    def tightest(self) -> Placement | None:
        """Take nodes by least room, compared without the limit of `spread`."""
        by_least = sorted(self.room, key=lambda v: (self.unlimited[v], v))
        return self.first([by_least, self.most_room(self.room)])

    def fewest_groups(self) -> Placement | None:
        """Take the smallest group that suffices; else groups by most room."""
        totals = {g: self.total(nodes) for g, nodes in self.groups.items()}
        by_most = sorted(totals, key=lambda g: (-totals[g], g))
        suffice = sorted((totals[g], g) for g in totals if totals[g] >= self.n)
        sequences = [[g] for _, g in suffice] or [by_most]
        by_id = [v for g in sequences[0] for v in self.groups[g]]
        again = [[v for g in one for v in self.most_room(self.groups[g])] for one in sequences]
        return self.first([by_id, *again, self.most_room(self.room)])

    def contiguous(self) -> Placement | None:
        """Take consecutive ids, all of the partition and with room, from the lowest first id."""
        return self.first(self.consecutive(v) for v in self.room)

    def consecutive(self, v: int) -> Iterator[int]:
        """Yield ids from v on, as long as they have room."""
        while v in self.room:
            yield v
            v += 1

    def local(self) -> Placement | None:
        """Take nodes of the lowest group that holds n."""
        holding = [self.groups[g] for g in sorted(self.groups)]
        holding = [nodes for nodes in holding if self.total(nodes) >= self.n]
        return self.first([*holding[:1], *(self.most_room(nodes) for nodes in holding)])

    def best_effort_contiguous(self) -> Placement | None:
        """Take consecutive ids, or else the lowest."""
        return self.contiguous() or self.lowest()

    def best_effort_local(self) -> Placement | None:
        """Take nodes of one group, or else the lowest."""
        return self.local() or self.lowest()


RULES = {
    "lowest": Place.lowest,
    "tightest": Place.tightest,
    "fewest-groups": Place.fewest_groups,
    "contiguous": Place.contiguous,
    "local": Place.local,
    "best-effort-contiguous": Place.best_effort_contiguous,
    "best-effort-local": Place.best_effort_local,
}


def place(
    machine: Machine, job: Job, free: Mapping[int, Free], rule: str = "lowest"
) -> Placement | None:
    """Return the placement that a rule finds for a job on what is free of its partition."""
    return RULES[rule](Place(machine, job, free))


def is_refused(machine: Machine, job: Job, rule: str) -> bool:
    """Tell whether a job asks for too much time, or has no placement on its empty partition."""
    partition = machine.partitions[job.partition]
    if partition.max_time_s and job.requested_time > partition.max_time_s:
        return True
    empty = free_during(machine, [], partition.nodes, 0, 1, [])
    return place(machine, job, empty, rule) is None


def components(machine: Machine) -> list[int]:
    """Return the component of each partition: the first partition that it shares nodes with.

    Sharing counts directly or through others.
    """
    found = list(range(len(machine.partitions)))
    for _ in found:  # as often as a chain can be long
        for a, one in enumerate(machine.partitions):
            for b, other in enumerate(machine.partitions):
                if one.nodes & other.nodes:
                    found[a] = found[b] = min(found[a], found[b])
    return found


# --- The clock and the order ----------------------------------------------------------------------


class Simulation:
    """Waiting and running jobs, and the clock."""

    def __init__(
        self,
        machine: Machine,
        jobs: Sequence[Job],
        estimates: Sequence[int],
        *,
        depth: float,
        placement: str,
        order: Policy,
        backfill_order: Policy | None,
        threshold: float | None,
        kill: bool,
        planned: float,
    ) -> None:
        """Begin with no job submitted."""
        self.machine, self.jobs, self.estimates = machine, jobs, estimates
        self.depth, self.rule, self.planned = depth, placement, planned
        self.order = order
        self.backfill_order = order if backfill_order is None else backfill_order
        self.threshold = math.inf if threshold is None else threshold
        self.executed = [min(j.run_time, j.requested_time) if kill else j.run_time for j in jobs]
        self.component = components(machine)
        self.waiting: set[int] = set()
        self.running: dict[int, Placement] = {}
        refused = [j for j in range(len(jobs)) if self.is_refused(j)]
        self.to_come = deque(j for j in range(len(jobs)) if j not in refused)
        n = len(jobs)
        self.result = Result([None] * n, [{} for _ in jobs], [False] * n, [False] * n, refused, [])

    def run(self) -> Result:
        """Handle instants until every job has ended."""
        while self.to_come or self.running:
            submissions = [self.jobs[j].submit_time for j in islice(self.to_come, 1)]
            self.round(min([*submissions, *map(self.end, self.running)]))
        assert not self.waiting
        return self.result

    def is_refused(self, j: int) -> bool:
        """Tell whether job j can never run."""
        return is_refused(self.machine, self.jobs[j], self.rule)

    def round(self, t: int) -> None:
        """Handle completions of t, then submissions, then one pass of each component they touch.

        A zero-second job that starts ends at t too, so another round follows.
        """
        ended = sorted(j for j in self.running if self.end(j) == t)
        for j in ended:
            self.finish(j)
        submitted = []
        while self.to_come and self.jobs[self.to_come[0]].submit_time == t:
            submitted.append(self.to_come.popleft())
        self.waiting.update(submitted)
        for component in sorted({self.component_of(j) for j in ended + submitted}):
            self.schedule(component, t)

    def schedule(self, component: int, t: int) -> None:
        """Make the pass of a component, and keep what it found."""
        waiting = [j for j in self.waiting if self.component_of(j) == component]
        one = self.new_pass(component, t)
        queue = self.in_order(self.order, waiting, t)
        one.make(queue)
        started = [j for j in queue if j not in self.waiting]
        self.result.passes.append(Pass(t, component, queue, started, one.reserved))

    def new_pass(self, component: int, t: int) -> DepthPass | ConservativePass:
        """Return a pass to make."""
        return (ConservativePass if self.depth == math.inf else DepthPass)(self, component, t)

    def component_of(self, j: int) -> int:
        """Return the component of job j."""
        return self.component[self.jobs[j].partition]

    def end(self, j: int) -> int:
        """Return when running job j ends."""
        return self.result.starts[j] + self.executed[j]

    def is_thresholded(self, j: int, t: int) -> bool:
        """Tell whether job j has waited strictly longer than the threshold."""
        return t - self.jobs[j].submit_time > self.threshold

    def score(self, order: Policy, j: int, t: int) -> float:
        """Return the score of job j at t."""
        r, e, q = self.jobs[j].submit_time, self.estimates[j], self.jobs[j].processors
        if isinstance(order, str) and order in STILL_RULES:
            return STILL_RULES[order](r, e, q)
        moving = MOVING_RULES[order] if isinstance(order, str) else mixed_rule(order)
        return moving(t - r, e, q, self.machine.cpus)

    def in_order(self, order: Policy, jobs: Iterable[int], t: int) -> list[int]:
        """Return jobs by tier, then those beyond the threshold by arrival, then by score."""

        def key(j: int) -> tuple[int, bool, float, int]:
            tier = self.machine.partitions[self.jobs[j].partition].tier
            is_late = self.is_thresholded(j, t)
            return -tier, not is_late, 0 if is_late else self.score(order, j, t), j

        return sorted(jobs, key=key)

    def start(self, j: int, nodes: Placement, t: int, *, backfilled: bool) -> None:
        """Give job j its nodes at t."""
        self.waiting.remove(j)
        self.running[j] = nodes
        self.result.starts[j] = t
        self.result.placements[j] = dict(sorted(nodes.items()))
        self.result.backfilled[j] = backfilled
        self.result.thresholded[j] = self.is_thresholded(j, t)

    def finish(self, j: int) -> None:
        """Take its nodes from job j."""
        del self.running[j]


# --- Passes ---------------------------------------------------------------------------------------


class ComponentPass:
    """What the passes of a component have in common."""

    def __init__(self, simulation: Simulation, component: int, t: int) -> None:
        """Begin without reservations."""
        self.sim, self.component, self.t = simulation, component, t
        self.reserved: list[Hold] = []

    def hold(self, j: int, nodes: Placement, begin: float) -> Hold:
        """Return the hold of job j for its estimate."""
        return Hold(j, nodes, begin, begin + self.sim.estimates[j])

    def held(self, least_end: int) -> list[Hold]:
        """Return what running jobs hold by estimates, until `least_end` at least."""
        running = {
            j: n for j, n in self.sim.running.items() if self.sim.component_of(j) == self.component
        }
        holds = [self.hold(j, nodes, self.sim.result.starts[j]) for j, nodes in running.items()]
        return [hold._replace(end=max(hold.end, least_end)) for hold in holds]

    def free(self, j: int, begin: float, end: float, holds: Iterable[Hold]) -> dict[int, Free]:
        """Return what these holds leave of job j's partition during [begin, end)."""
        nodes = self.sim.machine.partitions[self.sim.jobs[j].partition].nodes
        return free_during(self.sim.machine, self.sim.jobs, nodes, begin, end, holds)

    def free_in_fact(self, j: int) -> dict[int, Free]:
        """Return what running jobs leave of job j's partition now, whatever is reserved."""
        return self.free(j, self.t, self.t + 1, self.held(self.t + 1))

    def free_by_estimates(self, j: int, begin: float, holds: Iterable[Hold]) -> dict[int, Free]:
        """Return what these holds leave of job j's partition during the whole of its estimate."""
        return self.free(j, begin, begin + self.sim.estimates[j], holds)

    def place(self, j: int, free: Mapping[int, Free]) -> Placement | None:
        """Return the placement that the rule finds for job j."""
        return place(self.sim.machine, self.sim.jobs[j], free, self.sim.rule)

    def earliest(self, j: int, instants: Iterable[float], holds: Collection[Hold]) -> Hold:
        """Return the hold of job j at the first of some instants that has a placement."""
        for instant in sorted(set(instants)):
            nodes = self.place(j, self.free_by_estimates(j, instant, holds))
            if nodes is not None:
                return self.hold(j, nodes, instant)
        raise AssertionError("refused jobs are not submitted")


class DepthPass(ComponentPass):
    """EASY and depth k: the first k jobs of each partition that cannot start are reserved.

    By estimates, a job past its own holds its nodes until now; in fact it holds them longer.
    """

    def make(self, queue: list[int]) -> None:
        """Make the three steps."""
        left = list(queue)
        while left and self.start_in_order(left[0]):  # step 1
            del left[0]
        if self.sim.depth == 0:
            return
        others = []
        for j in left:  # step 2
            if self.reservations(self.sim.jobs[j].partition) == self.sim.depth:
                others.append(j)
            elif not self.start_beside(j):
                self.reserve(j)
        for j in self.sim.in_order(self.sim.backfill_order, others, self.t):  # step 3
            if not self.start_and_move(j):
                self.start_beside(j)

    def start(self, j: int, nodes: Placement | None, *, backfilled: bool = True) -> bool:
        """Start job j if it has nodes, and tell whether it has."""
        if nodes is None:
            return False
        self.sim.start(j, nodes, self.t, backfilled=backfilled)
        return True

    def start_in_order(self, j: int) -> bool:
        """Start job j if it fits on what is free now."""
        return self.start(j, self.place(j, self.free_in_fact(j)), backfilled=False)

    def reservations(self, partition: int) -> int:
        """Count the reservations of a partition."""
        return sum(self.sim.jobs[hold.j].partition == partition for hold in self.reserved)

    def start_beside(self, j: int) -> bool:
        """Start job j if it fits now in fact, and for its whole estimate beside reservations."""
        holds = [*self.held(self.t), *self.reserved]
        free = least(self.free_in_fact(j), self.free_by_estimates(j, self.t, holds))
        return self.start(j, self.place(j, free))

    def reserve(self, j: int) -> None:
        """Reserve for job j at the earliest release or end of a reservation at which it fits."""
        holds = [*self.held(self.t), *self.reserved]
        self.reserved.append(self.earliest(j, [hold.end for hold in holds], holds))

    def start_and_move(self, j: int) -> bool:
        """Start job j if every reservation, placed again in order, keeps its time."""
        nodes = self.place(j, self.free_in_fact(j))
        if nodes is None:
            return False
        holds = [*self.held(self.t), self.hold(j, nodes, self.t)]
        moved: list[Hold] = []
        for hold in self.reserved:
            free = self.free_by_estimates(hold.j, hold.begin, holds + moved)
            again = self.place(hold.j, free)
            if again is None:
                return False
            moved.append(self.hold(hold.j, again, hold.begin))
        self.reserved = moved
        return self.start(j, nodes)


class ConservativePass(ComponentPass):
    """Conservative backfilling, rebuilt: every job that is looked at starts or is reserved.

    A job past its estimate holds its nodes until the next second.
    """

    def make(self, queue: list[int]) -> None:
        """Give each job in order its earliest hold, and start it if that is now."""
        looked_at = queue if self.sim.planned == math.inf else queue[: int(self.sim.planned)]
        for j in looked_at:
            holds = [*self.held(self.t + 1), *self.reserved]
            hold = self.earliest(j, [self.t, *(hold.end for hold in holds)], holds)
            if hold.begin == self.t:
                self.sim.start(j, hold.nodes, self.t, backfilled=bool(self.reserved))
            else:
                self.reserved.append(hold)


def simulate(
    machine: Machine,
    jobs: Iterable[Sequence[int]],
    *,
    depth: float = 1,
    placement: str = "lowest",
    order: Policy = "FCFS",
    backfill_order: Policy | None = None,
    threshold: float | None = None,
    kill: bool = True,
    conservative: bool = False,
    planned: float | None = None,
    estimates: Sequence[int] | None = None,
    kind: type[Simulation] = Simulation,
) -> Result:
    """Schedule every job of a table on a machine of nodes.

    Args:
        machine: The nodes and partitions.
        jobs: Rows of `Job`, in order of submit time.
        depth: Reservations of each partition: 0 = none, 1 = EASY, `math.inf` = conservative.
        placement: Which nodes a job gets: a name of `RULES`.
        order: Order of the queue: a name of `reference.POLICIES` but SMITH, or six weights.
        backfill_order: Order of the jobs of step 3; None = that of the queue.
        threshold: Wait, s, beyond which a job goes first inside its tier; None = never.
        kill: Whether a job is ended at its request.
        conservative: The same as an infinite depth.
        planned: Conservative: how many waiting jobs of a component a pass looks at; None = all.
        estimates: What the scheduler plans with, s; None = what the jobs request.
        kind: What keeps the jobs and makes the passes.

    Returns:
        Starts, nodes and kinds of starts, and every pass.
    """
    table = [Job(*row) for row in jobs]
    assert all(a.submit_time <= b.submit_time for a, b in pairwise(table))
    estimates = [job.requested_time for job in table] if estimates is None else estimates
    assert len(estimates) == len(table) and min(estimates, default=1) >= 1
    depth = math.inf if conservative else depth
    assert planned is None or depth == math.inf
    simulation = kind(
        machine,
        table,
        estimates,
        depth=depth,
        placement=placement,
        order=order,
        backfill_order=backfill_order,
        threshold=threshold,
        kill=kill,
        planned=math.inf if planned is None else planned,
    )
    return simulation.run()
