"""The reference of Slurm's backfilling on machines of nodes: plain Python, from the specification.

It has the machine, the placement rules and the list of `tests/reference_nodes.py`, shares no code
with `hpcgym`, and is slow and simple: each cycle is made when it is due, and tests every job that
it has to, whether or not anything can start.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import reference_limits
import reference_nodes
from reference_node_outages import WithOutages
from reference_nodes import Free, Hold, Placement, Simulation, place
from reference_nodes_lives import Outage


class SlurmNodes(Simulation):
    """A machine of nodes with a main scheduler and cycles of backfilling."""

    mode = "slurm"
    instants: Sequence[int] = ()  # of outages
    last_cycle = -math.inf
    has_changed = False  # since the last cycle began
    n_by_cycles = 0  # jobs that cycles have started

    def parameter(self, key: str, default: float) -> float:
        """Return a parameter of the mode."""
        given = dict(pair.split("=") for pair in self.mode.partition(":")[2].split(",") if pair)
        return float(given.get(key, default))

    def next_cycle(self) -> float:
        """Return when the next cycle is due; what has changed may be long ago."""
        return self.last_cycle + self.parameter("interval", 30) if self.has_changed else math.inf

    def run(self) -> reference_nodes.Result:
        """Handle instants until every job has ended; cycles have instants, too."""
        while self.to_come or self.running or self.waiting:
            to_come = self.jobs[self.to_come[0]].submit_time if self.to_come else math.inf
            event = min([to_come, *map(self.end, self.running), *self.instants[:1]])
            self.round(int(min(event, max(self.next_cycle(), 0))))
        return self.result

    def round(self, t: int) -> None:
        """Handle completions of t, then outages and submissions, then make one pass."""
        for j in sorted(j for j in self.running if self.end(j) == t):
            self.complete(j, t)
            self.has_changed = True
        self.meet_outages(t)
        while self.to_come and self.jobs[self.to_come[0]].submit_time == t:
            self.waiting.add(self.to_come.popleft())
            self.has_changed = True
        self.start_by_partition(t)
        if self.has_changed and t >= self.last_cycle + self.parameter("interval", 30):
            self.last_cycle, self.has_changed = t, False
            self.make_cycle(t)

    def complete(self, j: int, t: int) -> None:
        """End a job."""
        self.finish(j)

    def meet_outages(self, t: int) -> None:
        """Begin and end outages."""

    # --- What both steps ask ----------------------------------------------------------------------

    def is_left_out(self, j: int) -> bool:
        """Say whether a job may not start now, whatever is free."""
        return False

    def known(self, t: int) -> Sequence[Outage]:
        """Return the outages that are known and not over."""
        return ()

    def down_during(self, t: int, begin: float, end: float) -> set[int]:
        """Return the nodes that outages known at t take at a second of a time."""
        return {v for o in self.known(t) if o.begin < end and begin < o.end for v in o.nodes}

    def listed(self, t: int) -> list[int]:
        """Return the jobs that wait, in the order of the list."""
        return self.in_order(self.order, self.waiting, t)

    def held(self, t: int) -> list[Hold]:
        """Return what running jobs hold by estimates; one past its own ends a second from now."""
        starts = self.result.starts
        return [
            Hold(j, nodes, starts[j], max(starts[j] + self.estimates[j], t + 1))
            for j, nodes in self.running.items()
        ]

    def place_at(self, j: int, u: float, holds: Iterable[Hold], closed: Collection[int]) -> Any:
        """Place a job on what these holds leave at u, on nodes that are not closed."""
        own = self.machine.partitions[self.jobs[j].partition].nodes
        left = {v: [*self.machine.nodes[v][:3]] for v in own if v not in closed}
        empty = dict.fromkeys(left, True)
        for hold in holds:
            job = self.jobs[hold.j]
            for v, chunks in hold.nodes.items() if u < hold.end else ():
                if v in left:
                    node = self.machine.nodes[v]
                    share = node[:3] if job.exclusive else [chunks * asked for asked in job[4:7]]
                    counted = node.memory_mb > 0
                    left[v][0] -= share[0]
                    left[v][1] -= share[1]
                    left[v][2] -= share[2] if counted else 0
                    empty[v] = False
        free = {v: Free(cpus, gpus, mb, empty[v]) for v, (cpus, gpus, mb) in left.items()}
        return place(self.machine, self.jobs[j], free, self.rule)

    def begin(self, j: int, nodes: Placement, t: int) -> None:
        """Start a job; it is backfilled if a job of its component before it in the list waits."""
        listed = self.listed(t)
        before = listed[: listed.index(j)]
        backfilled = any(self.component_of(k) == self.component_of(j) for k in before)
        self.start(j, nodes, t, backfilled=backfilled)
        self.has_changed = True

    # --- Step 1 -----------------------------------------------------------------------------------

    def start_by_partition(self, t: int) -> None:
        """Start jobs until their partition is blocked."""
        blocked: set[int] = set()
        for j in self.listed(t):
            partition = self.jobs[j].partition
            if partition in blocked or self.is_left_out(j):
                continue
            down = self.down_during(t, t, t + self.estimates[j]) | self.down_during(t, t, t + 1)
            closed = {v for p in blocked for v in self.machine.partitions[p].nodes}
            nodes = self.place_at(j, t, self.held(t), closed | down)
            if nodes is not None:
                self.begin(j, nodes, t)
            elif self.place_at(j, t, [], down) is not None:
                blocked.add(partition)

    # --- Step 2 -----------------------------------------------------------------------------------

    def make_cycle(self, t: int) -> None:
        """Test jobs in the order of the list."""
        most, of_user, of_partition = (
            self.parameter(key, default)
            for key, default in (
                ("max_job_test", 500),
                ("max_job_user", math.inf),
                ("max_job_part", math.inf),
            )
        )
        users, partitions = Counter[int](), Counter[int]()
        reserved: list[Hold] = []
        for j in self.listed(t):
            job = self.jobs[j]
            if users.total() == most:
                break
            if (
                self.is_left_out(j)
                or users[job.user] == of_user
                or partitions[job.partition] == of_partition
            ):
                continue
            users[job.user] += 1
            partitions[job.partition] += 1
            u, nodes = self.earliest(j, t, reserved)
            if u == t:
                self.begin(j, nodes, t)
                self.n_by_cycles += 1
            elif u - t <= 60 * self.parameter("window", 1440):
                reserved += self.reservation(j, nodes, u, t)

    def earliest(self, j: int, t: int, reserved: Sequence[Hold]) -> tuple[int, Placement]:
        """Return the earliest instant at which a job has a placement, and that."""
        holds, e = self.held(t), self.estimates[j]
        for u in sorted({t, *(each.end for each in [*holds, *reserved, *self.known(t)])}):
            closed = {v for r in reserved if r.begin < u + e and u < r.end for v in r.nodes}
            closed |= self.down_during(t, u, u + e) | self.down_during(t, u, u + 1)
            nodes = self.place_at(j, u, holds, closed)
            if nodes is not None:
                return int(u), nodes
        raise AssertionError("refused jobs are not submitted")

    def reservation(self, j: int, nodes: Placement, u: int, t: int) -> list[Hold]:
        """Return what a job reserves on the grid of the resolution: its nodes, or nothing."""
        resolution = int(self.parameter("resolution", 60))
        b, c = max(u - u % resolution, t), (u + self.estimates[j])
        c -= c % resolution
        return [Hold(j, nodes, b, c)] if b < c else []


class SlurmNodesWithin(SlurmNodes):
    """The same, within limits."""

    limits: Sequence[reference_limits.Limit] = ()
    lost: Collection[int] = ()

    now = 0

    def round(self, t: int) -> None:
        """Note the time."""
        self.now = t
        super().round(t)

    def left(self) -> dict[int, int]:
        """Return the seconds that the request of each running job has left."""
        starts = {k: self.result.starts[k] for k in self.running}
        return reference_limits.left_of(self.jobs, starts, self.now)

    def next_cycle(self) -> float:
        """Return the next instant without an event."""
        after = (
            reference_limits.let_in_after(limit, self.jobs, self.waiting, self.left())
            for limit in self.limits
        )
        return min(super().next_cycle(), self.now + min(after, default=math.inf))

    def is_left_out(self, j: int) -> bool:
        """Say whether a job would go beyond a limit."""
        known = self.jobs, j, self.result.starts, self.running, self.lost, self.now
        return reference_limits.is_left_out(self.limits, *known)


class SlurmNodesAhead(SlurmNodesWithin, WithOutages):
    """The same, beside outages of nodes."""

    def known(self, t: int) -> Sequence[Outage]:
        """Return the outages that are known and not over."""
        return [o for o in self.outages if o.announced <= t < o.end]

    def complete(self, j: int, t: int) -> None:
        """Note an attempt that ends as it should."""
        self.note(j, t, "completed")
        super().complete(j, t)

    def meet_outages(self, t: int) -> None:
        """Begin and end outages."""
        if self.instants[:1] == [t]:
            del self.instants[0]
            self.has_changed |= any(t in (o.begin, o.end) for o in self.outages)
            self.take_off(t)


def simulate(
    machine: reference_nodes.Machine,
    jobs: Iterable[Sequence[int]],
    mode: str,
    *,
    limits: Sequence[reference_limits.Limit] = (),
    **settings: Any,
) -> reference_nodes.Result:
    """Schedule every job of a table on a machine of nodes, as `reference_nodes.simulate` does."""
    kind = type("Drawn", (SlurmNodesWithin,), {"mode": mode, "limits": limits})
    return reference_nodes.simulate(machine, jobs, kind=kind, **settings)
