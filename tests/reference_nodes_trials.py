"""The reference of trials on a machine of nodes: section 15, "Trials on nodes", in plain Python.

It shares no code with `hpcgym`. Room, placement rules and the pass are those of
`tests/reference_nodes.py`: what a pass finds running leaves plain trials out. A job on trial holds
its nodes since `taken`, runs usefully all the while, and waits, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import reference_nodes
from reference_nodes import DepthPass, Hold, Job, Machine, Pass, Placement, Result, least, room


class Attempt(NamedTuple):
    """A start and an end of a job, with its nodes and the reason of the end."""

    job: int
    taken: int
    end: int
    reason: str
    nodes: Placement


class Trial(NamedTuple):
    """What a job on trial holds, and since when."""

    taken: int
    nodes: Placement


class Lives(reference_nodes.Simulation):
    """A machine whose waiting jobs are tried on idle nodes; a subclass sets the numbers."""

    limit = 300
    kills = 2
    requeue: Collection[int] | None = None  # jobs that may be killed; None = all

    def __init__(self, machine: Machine, jobs: Sequence[Job], *given: Any, **more: Any) -> None:
        """Begin with no job on trial."""
        super().__init__(machine, jobs, *given, **more)
        self.on_trial: dict[int, Trial] = {}  # these are in `waiting`, too
        self.tried = [0] * len(jobs)
        self.ran = [0] * len(jobs)
        self.killed_at = [-1] * len(jobs)
        self.attempts: list[Attempt] = []

    # --- A job's life -----------------------------------------------------------------------------

    def end(self, j: int) -> int:
        """Return when the attempt of job j ends by itself."""
        return self.taken(j) + self.executed[j]

    def taken(self, j: int) -> int:
        """Return since when job j holds its nodes."""
        return self.on_trial[j].taken if j in self.on_trial else self.result.starts[j]

    def kill(self, j: int, t: int, reason: str) -> None:
        """End the trial of job j in vain."""
        trial = self.on_trial.pop(j)
        self.tried[j] += 1
        self.ran[j] = max(self.ran[j], t - trial.taken)
        self.killed_at[j] = t
        self.attempts.append(Attempt(j, trial.taken, t, reason, trial.nodes))

    def promote(self, j: int, *, backfilled: bool) -> None:
        """Have job j, which is on trial, run on where it is."""
        trial = self.on_trial.pop(j)
        self.start(j, trial.nodes, trial.taken, backfilled=backfilled)

    # --- An instant -------------------------------------------------------------------------------

    def run(self) -> Result:
        """Handle instants until every job has ended."""
        while self.to_come or self.running or self.on_trial:
            instants = [self.jobs[j].submit_time for j in islice(self.to_come, 1)]
            instants += [self.end(j) for j in (*self.running, *self.on_trial)]
            instants += [trial.taken + self.limit for trial in self.on_trial.values()]
            self.round(min(instants))
        assert not self.waiting
        return self.result

    def round(self, t: int) -> None:
        """Make the steps of one instant."""
        ended = [j for j in (*self.running, *self.on_trial) if self.end(j) == t]  # 1
        for j in ended:
            if j in self.on_trial:
                self.promote(j, backfilled=False)
            self.finish(j)
            nodes = self.result.placements[j]
            self.attempts.append(Attempt(j, self.result.starts[j], t, "completed", nodes))
        touched = list(ended)
        components = self.between(t)
        while self.to_come and self.jobs[self.to_come[0]].submit_time == t:  # 2
            touched.append(self.to_come.popleft())
            self.waiting.add(touched[-1])
        touched += [j for j, trial in self.on_trial.items() if trial.taken + self.limit == t]
        components |= {self.component_of(j) for j in touched}
        for component in sorted(components):  # 3
            self.schedule(component, t)
        for j in sorted(self.on_trial):  # 4
            if self.on_trial[j].taken + self.limit <= t:
                self.kill(j, t, "trial over")
        self.try_idle(t, components)  # 5

    def between(self, t: int) -> set[int]:
        """Do what comes between ends and submissions; return the components that it is about."""
        return set()

    def new_pass(self, component: int, t: int) -> TrialPass:
        """Return a pass to make."""
        return TrialPass(self, component, t)

    def schedule(self, component: int, t: int) -> None:
        """Decide the pass of a component, then end the trials that are in the way."""
        waiting = [j for j in self.waiting if self.component_of(j) == component]
        one = self.new_pass(component, t)
        queue = self.in_order(self.order, waiting, t)
        one.make(queue)
        started = [j for j in queue if j not in self.waiting]
        self.result.passes.append(Pass(t, component, queue, started, one.reserved))
        for place, j in enumerate(one.begun):
            for v in sorted(self.running[j]):
                self.make_room(j, v, one.begun[place:], t)

    def free_on(self, v: int, without: Collection[int]) -> reference_nodes.Free:
        """Return what runs and trials leave of node v in fact, some running jobs left out."""
        holds = [Hold(j, n, 0, 1) for j, n in self.running.items() if j not in without]
        holds += [Hold(j, trial.nodes, 0, 1) for j, trial in self.on_trial.items()]
        own = [hold for hold in holds if v in hold.nodes]
        return reference_nodes.free_at(self.machine, self.jobs, v, own)

    def idle(self, v: int, t: int) -> reference_nodes.Free:
        """Return what a trial that begins at t can have of node v."""
        return self.free_on(v, ())

    def make_room(self, j: int, v: int, to_come: Collection[int], t: int) -> None:
        """End trials on node v, the latest start first, until the chunks of job j fit there."""
        job, node, chunks = self.jobs[j], self.machine.nodes[v], self.running[j][v]
        while room(job, node, self.free_on(v, to_come), limited=False) < chunks:
            there = [k for k, trial in self.on_trial.items() if v in trial.nodes]
            self.kill(max(there, key=lambda k: (self.on_trial[k].taken, -k)), t, "evicted")

    def try_idle(self, t: int, components: Collection[int]) -> None:
        """Put waiting jobs on trial where the rule places them on what is idle in fact."""
        candidates = [
            j
            for j in self.waiting
            if j not in self.on_trial
            and self.component_of(j) in components
            and self.killed_at[j] != t
            and self.tried[j] < self.kills
            and self.ran[j] < self.limit
            and (self.requeue is None or j in self.requeue)
        ]
        for j in sorted(
            candidates, key=lambda j: (max(self.estimates[j], 10) * self.jobs[j].processors, j)
        ):
            partition = self.machine.partitions[self.jobs[j].partition]
            free = {v: self.idle(v, t) for v in partition.nodes}
            nodes = reference_nodes.place(self.machine, self.jobs[j], free, self.rule)
            if nodes is not None:
                self.on_trial[j] = Trial(t, nodes)


class TrialPass(DepthPass):
    """EASY's pass, in which a job on trial can have no nodes now but its own."""

    sim: Lives

    def __init__(self, *given: Any) -> None:
        """Begin without starts."""
        super().__init__(*given)
        self.begun: list[int] = []

    def own(self, j: int, end: float, holds: Collection[Hold]) -> Placement | None:
        """Return the nodes of job j on trial, where all are free in fact, and until an instant."""
        job, nodes = self.sim.jobs[j], self.sim.on_trial[j].nodes
        free = least(self.free_in_fact(j), self.free(j, self.t, max(self.t, end), holds))
        fits = [
            room(job, self.sim.machine.nodes[v], free[v], limited=False) >= chunks
            for v, chunks in nodes.items()
        ]
        return nodes if all(fits) else None

    def end(self, j: int) -> int:
        """Return when job j on trial ends by its estimate."""
        return self.sim.taken(j) + self.sim.estimates[j]

    def start_in_order(self, j: int) -> bool:
        """Start job j if it fits on what is free now."""
        if j not in self.sim.on_trial:
            return super().start_in_order(j)
        return self.start(j, self.own(j, self.t, []), backfilled=False)

    def start_beside(self, j: int) -> bool:
        """Start job j if it fits now in fact, and for its whole estimate beside reservations."""
        if j not in self.sim.on_trial:
            return super().start_beside(j)
        return self.start(j, self.own(j, self.end(j), [*self.held(self.t), *self.reserved]))

    def start_and_move(self, j: int) -> bool:
        """Start job j if every reservation, placed again in order, keeps its time."""
        if j not in self.sim.on_trial:
            return super().start_and_move(j)
        nodes = self.own(j, self.t, [])
        if nodes is None:
            return False
        holds = [*self.held(self.t), Hold(j, nodes, self.t, self.end(j))]
        moved: list[Hold] = []
        for hold in self.reserved:
            free = self.free_by_estimates(hold.j, hold.begin, holds + moved)
            again = self.place(hold.j, free)
            if again is None:
                return False
            moved.append(self.hold(hold.j, again, hold.begin))
        self.reserved = moved
        return self.start(j, nodes)

    def start(self, j: int, nodes: Placement | None, *, backfilled: bool = True) -> bool:
        """Start job j if it has nodes, or have it run on; tell whether it is so."""
        if nodes is None:
            return False
        if j in self.sim.on_trial:
            self.sim.promote(j, backfilled=backfilled)
            return True
        self.begun.append(j)
        return super().start(j, nodes, backfilled=backfilled)


def simulate(
    machine: Machine,
    jobs: Iterable[Sequence[int]],
    *,
    limit: int = 300,
    kills: int = 2,
    requeue: Collection[int] | None = None,
    kind: type[Lives] = Lives,
    **settings: Any,
) -> tuple[Result, list[Attempt]]:
    """Schedule as `reference_nodes.simulate` does, with trials; return the attempts as well."""
    made: list[Lives] = []
    numbers = {"limit": limit, "kills": kills, "requeue": requeue}

    class Noting(kind):  # type: ignore[misc, valid-type]
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            made.append(self)

    for key, value in numbers.items():
        setattr(Noting, key, value)
    assert settings.get("depth", 1) == 1 and math.isfinite(limit)
    result = reference_nodes.simulate(machine, jobs, kind=Noting, **settings)
    return result, sorted(made[0].attempts)
