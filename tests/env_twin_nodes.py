"""The environment's twin on machines of nodes: plain Python, from sections 10 and 13.

It stands on `env_twin`, for users, rewards and actions, and on `reference_nodes`, for room,
placements and passes. At a pass without a decision it takes an order that is unlikely to be the
package's, so that a pass skipped by mistake shows.

Readings, where the text leaves more than one:

1. The picked job goes first inside its tier; its component has the first pass. If it starts there
   before any job is refused, the rest of this instant waits for another decision.
2. "event" decides before a round's passes if any job waits, of whichever component.
3. The shadow time counts a job past its estimate as the passes do: as ending now, but under
   conservative backfilling one second from now.
4. A share of a resource that a partition has none of is 0.

Source: Specification, section 10; section 13, "Environment".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import env_twin
import reference_nodes
from env_twin import EnvTwin, Rules, cost_of
from reference import Job, Policy, Start
from reference_nodes import ComponentPass, Hold, Machine, Placement, free_at, room

MOST_PARTITIONS_SHOWN = 8
DECIDED = "as decided"  # the order of the agent, in place of a policy


def scheduler_of(rules: Rules) -> dict[str, Any]:
    """Return what `reference_nodes` calls the settings of a scenario, but for the order."""
    name, _, option = rules.backfill.partition(":")
    depth = {"none": 0, "easy": 1, "conservative": math.inf}.get(name)
    if depth is None:
        depth = int(option.removeprefix("k="))
    return {
        "depth": depth,
        "placement": rules.placement,
        "backfill_order": rules.backfill_order,
        "threshold": rules.threshold,
        "kill": rules.kill_at_limit,
        "planned": int(option.removeprefix("planned=")) if option and depth == math.inf else None,
    }


class Nodes(reference_nodes.Simulation):
    """The nodes, and the passes on them in the order that was decided."""

    def __init__(self, sim: Simulation, machine: Machine, table: Sequence[reference_nodes.Job]):
        """Begin with no job submitted."""
        settings = scheduler_of(sim.rules)
        planned = math.inf if settings["planned"] is None else settings["planned"]
        settings |= {"planned": planned, "order": DECIDED}
        super().__init__(machine, table, sim.estimate, **settings)
        assert self.result.refused == []
        self.sim = sim

    def score(self, order: Any, j: int, t: int) -> float:
        """Return the rank that was decided, one of our own where none was, or a policy's score."""
        if order is not DECIDED:
            return self.sim.score(order, j)
        if self.sim.rank is None:
            return (j * 7919 + t * 104_729) % 1009
        return self.sim.rank(j)

    def start(self, j: int, nodes: Placement, t: int, *, backfilled: bool) -> None:
        """Give job j its nodes at t."""
        super().start(j, nodes, t, backfilled=backfilled)
        self.sim.start(j, t, backfilled=backfilled)
        self.sim.leave([j])

    def waiting_of(self, component: int) -> list[int]:
        """Return the waiting jobs of a component in the order of their submission."""
        return sorted(j for j in self.waiting if self.component_of(j) == component)

    def placement_now(self, j: int) -> Placement | None:
        """Return the placement of a waiting job on what is free now."""
        one = ComponentPass(self, self.component_of(j), self.sim.now)
        return one.place(j, one.free_in_fact(j))

    def schedule_until(self, pick: int | None, component: int, t: int) -> bool:
        """Make the pass of a component; say whether the picked job started and so ended it."""
        if pick is not None and self.component_of(pick) == component:
            for j in self.in_order(DECIDED, self.waiting_of(component), t):
                nodes = self.placement_now(j)
                if nodes is None:
                    break
                self.start(j, nodes, t, backfilled=False)
                if j == pick:
                    return True
        self.schedule(component, t)
        return False

    def shadow_of(self, component: int, base: Sequence[int]) -> float:
        """Return when the first job of a component without a placement now will have one."""
        own = [j for j in base if self.component_of(j) == component]
        own.sort(key=lambda j: -self.machine.partitions[self.jobs[j].partition].tier)
        head = next((j for j in own if self.placement_now(j) is None), None)
        if head is None:
            return math.inf
        one = ComponentPass(self, component, self.sim.now)
        holds = one.held(self.sim.now + (self.depth == math.inf))
        return one.earliest(head, [hold.end for hold in holds], holds).begin


class Simulation(env_twin.Simulation):
    """A machine of nodes that asks for decisions."""

    def __init__(
        self,
        jobs: Sequence[Job],
        table: Sequence[reference_nodes.Job],
        machine: Machine,
        rules: Rules,
        week_start: int,
    ) -> None:
        counted = replace(rules, backfill="easy", backfill_order=None)
        super().__init__(jobs, counted, {}, {}, {}, {}, week_start)
        self.rules = rules
        self.nodes = Nodes(self, machine, table)
        self.due: set[int] = set()  # components with a submission or an end, not passed yet

    def submit(self) -> None:
        """Let the next job join the queue."""
        self.due.add(self.nodes.component_of(self.arrived))
        self.nodes.waiting.add(self.arrived)
        super().submit()

    def complete(self) -> None:
        """Let the first job to end leave its nodes."""
        j = self.ends[0][2]
        self.due.add(self.nodes.component_of(j))
        del self.nodes.running[j]
        super().complete()

    def is_contested(self) -> bool:
        """Say whether two jobs of a component that is due are to be ordered, with room for one."""
        for component in self.due:
            waiting = self.nodes.waiting_of(component)
            within = [j for j in waiting if not self.is_thresholded(j, self.now)]
            if len(within) >= 2 and any(self.nodes.placement_now(j) is not None for j in within):
                return True
        return False

    def schedule_until_pick(self, t: int) -> bool:
        """Make the passes that are due; say whether the picked job started and so ended them."""
        first = [] if self.pick is None else [self.nodes.component_of(self.pick)]
        stopped = False
        for component in dict.fromkeys((*first, *sorted(self.due))):
            if component in self.due and not stopped:
                stopped = self.nodes.schedule_until(self.pick, component, t)
                if not stopped:
                    self.due.remove(component)
        if not isinstance(self.rules.decide, int):
            self.rank = None
        self.pick = None
        return stopped


class NodesTwin(EnvTwin):
    """The environment on a machine of nodes."""

    WIDTH = 22

    def __init__(
        self,
        table: Sequence[reference_nodes.Job],
        machine: Machine,
        rules: Rules,
        week_start: int = 0,
    ) -> None:
        self.rules = rules
        self.week_start = week_start
        jobs = [Job(*job[:3], job.processors, job.user) for job in table]
        self.sim = Simulation(jobs, table, machine, rules, week_start)
        self.cost = cost_of(rules.reward, jobs, self.sim.executed)

        def by(policy: Policy) -> list[Start]:
            found = reference_nodes.simulate(
                machine, table, order=policy, estimates=self.sim.estimate, **scheduler_of(rules)
            )
            return [Start(start, False, False) for start in found.starts]

        self.compare(by)

    def observe(self) -> dict[str, list[Any]]:
        """Return what the data sheet shows."""
        return super().observe() | {"machine": self.show_machine()}

    def fits(self, j: int) -> bool:
        """Say whether a waiting job has a placement now."""
        return self.sim.nodes.placement_now(j) is not None

    def shadows(self, base: Sequence[int]) -> Callable[[int], float]:
        """Return what gives each job the shadow time of its component."""
        nodes = self.sim.nodes
        shadow: Mapping[int, float] = {c: nodes.shadow_of(c, base) for c in set(nodes.component)}
        return lambda j: shadow[nodes.component_of(j)]

    def show_job(self, j: int, shadow: float) -> list[float]:
        """Return the 18 fields of every machine, and four of nodes."""
        nodes = self.sim.nodes
        job, machine = nodes.jobs[j], nodes.machine
        members = machine.partitions[job.partition].nodes
        free = {v: free_at(machine, nodes.jobs, v, self.holds_of(v)) for v in members}
        room_now = sum(room(job, machine.nodes[v], free[v]) for v in members)
        return [
            *super().show_job(j, shadow),
            min(job.gpus / max(1, *(node.gpus for node in machine.nodes)), 1.0),
            min(job.memory_mb / max(1, *(node.memory_mb for node in machine.nodes)), 1.0),
            job.partition / len(machine.partitions),
            min(room_now / job.chunks, 1.0),
        ]

    def holds_of(self, v: int) -> list[Hold]:
        """Return what running jobs hold of a node."""
        running = self.sim.nodes.running
        return [Hold(j, nodes, 0, math.inf) for j, nodes in running.items() if v in nodes]

    def show_machine(self) -> list[float]:
        """Return the free share of cpus, GPUs and memory in each partition, by tier."""
        machine, jobs = self.sim.nodes.machine, self.sim.nodes.jobs
        shares = []
        for one in sorted(machine.partitions, key=lambda one: -one.tier)[:MOST_PARTITIONS_SHOWN]:
            free = [free_at(machine, jobs, v, self.holds_of(v)) for v in one.nodes]
            for resource in range(3):
                has = sum(machine.nodes[v][resource] for v in one.nodes)
                left = sum(node[resource] for node in free)
                shares.append(left / has if has else 0.0)
        return shares
