"""The reference of Slurm's backfilling: plain Python, from the text of the specification.

It uses the machine, orders and instants of `tests/reference.py`, shares no code with `hpcgym`, and
is slow and simple: each cycle is made when it is due, whether or not anything can start.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Any

import reference
import reference_limits


class Free:
    """The processors that are free from t on, by estimates: those at each instant of a change."""

    def __init__(self, machine: reference.Machine, t: int) -> None:
        """Begin with the running jobs; one past its estimate ends now."""
        self.instants, self.free = [t], [machine.free]
        for end, j in machine.releases:  # by estimated end
            if end > self.instants[-1]:
                self.instants.append(end)
                self.free.append(self.free[-1])
            self.free[-1] += machine.jobs[j].processors

    def place(self, instant: int) -> int:
        """Return the place of an instant in the lists, into which it is put."""
        at = bisect_left(self.instants, instant)
        if at == len(self.instants) or self.instants[at] != instant:
            self.instants.insert(at, instant)
            self.free.insert(at, self.free[at - 1])
        return at

    def at(self, instant: int) -> int:
        """Return the processors free at an instant."""
        return self.free[bisect_right(self.instants, instant) - 1]

    def earliest(self, q: int, e: int) -> int:
        """Return the earliest instant from which q processors are free for e seconds."""
        begins = None
        for instant, free in zip(self.instants, self.free, strict=True):
            if begins is not None and instant >= begins + e:
                break
            if free < q:
                begins = None
            elif begins is None:
                begins = instant
        assert begins is not None
        return begins

    def take(self, begin: int, end: int, q: int) -> None:
        """Take q processors over [begin, end)."""
        if begin < end:
            for at in range(self.place(begin), self.place(end)):
                self.free[at] -= q

    def leave_at_most(self, begin: int, end: int, most: int) -> None:
        """Leave at most so many processors over [begin, end)."""
        if begin < end:
            for at in range(self.place(begin), self.place(end)):
                self.free[at] = min(self.free[at], most)


class SlurmMachine(reference.Machine):
    """A machine with a main scheduler and cycles of backfilling."""

    MODES = ("slurm",)

    def __init__(self, *settings: Any) -> None:
        """Read the parameters; no cycle has been."""
        super().__init__(*settings)
        given = dict(pair.split("=") for pair in self.backfill.partition(":")[2].split(",") if pair)
        self.most_tested = float(given.get("max_job_test", 500))
        self.most_of_user = float(given.get("max_job_user", math.inf))
        self.window = 60 * float(given.get("window", 1440))
        self.resolution = int(given.get("resolution", 60))
        self.interval = int(given.get("interval", 30))
        self.last_cycle = -math.inf
        self.has_changed = False  # since the last cycle began
        self.n_cycles = self.n_made_alone = 0

    # --- When a cycle is due ----------------------------------------------------------------------

    def submit(self) -> None:
        """Note that a job has come."""
        super().submit()
        self.has_changed = True

    def complete(self) -> None:
        """Note that a job has ended."""
        super().complete()
        self.has_changed = True

    def start(self, j: int, t: int, *, backfilled: bool) -> None:
        """Note that a job starts."""
        super().start(j, t, backfilled=backfilled)
        self.has_changed = True

    def next_cycle(self) -> float:
        """Return when the next cycle is due; what has changed may be long ago."""
        return self.last_cycle + self.interval if self.has_changed else math.inf

    def run_batch(self) -> None:
        """Handle all events of an instant, then make one pass; cycles have instants, too."""
        while (event := min(self.next_submission(), self.next_end())) < math.inf or self.waiting():
            t = int(min(event, self.next_cycle()))
            self.n_made_alone += t < event
            self.handle(t)

    def waiting(self) -> int:
        """Return how many jobs wait."""
        return len(self.primary.score)

    # --- A pass -----------------------------------------------------------------------------------

    def is_left_out(self, j: int) -> bool:
        """Say whether a job may not start now, whatever is free."""
        return False

    def schedule(self, t: int) -> None:
        """Make one pass."""
        self.start_in_order(t)
        if self.has_changed and t >= self.last_cycle + self.interval:
            self.last_cycle, self.has_changed = t, False
            self.n_cycles += 1
            self.make_cycle(t)

    def start_in_order(self, t: int) -> None:
        """Start jobs in queue order while they fit (step 1)."""
        passed_over = False
        for j in list(self.in_order(self.primary, t)):
            if self.is_left_out(j):
                passed_over = True
                continue
            if self.jobs[j].processors > self.free:
                break
            self.start(j, t, backfilled=passed_over)
            self.leave([j])

    def make_cycle(self, t: int) -> None:
        """Test jobs in queue order (step 2)."""
        free, tested, n_tested = Free(self, t), Counter[int](), 0
        some_wait = False
        for j in list(self.in_order(self.primary, t)):
            if n_tested == self.most_tested:
                break
            q, e, user = self.jobs[j].processors, self.estimate[j], self.jobs[j].user
            if self.is_left_out(j) or tested[user] == self.most_of_user:
                some_wait = True
                continue
            tested[user] += 1
            n_tested += 1
            u = free.earliest(q, e)
            if u == t and q <= self.free:
                self.start(j, t, backfilled=some_wait)
                self.leave([j])
                free.take(t, t + e, q)
                continue
            some_wait = True
            if u - t <= self.window:
                self.reserve(free, j, u, t)

    def reserve(self, free: Free, j: int, u: int, t: int) -> None:
        """Reserve for a job, on the grid of the resolution."""
        q, e = self.jobs[j].processors, self.estimate[j]
        b, c = max(u - u % self.resolution, t), (u + e) - (u + e) % self.resolution
        others = free.at(u) - q
        free.take(u, c, q)
        free.leave_at_most(b, min(u, c), others)


class SlurmWithin(SlurmMachine):
    """The same, within limits."""

    limits: Sequence[reference_limits.Limit] = ()
    now = 0
    come_to = reference_limits.LimitedMachine.come_to
    is_left_out = reference_limits.LimitedMachine.beyond
    next_let_in = reference_limits.LimitedMachine.next_let_in

    def next_cycle(self) -> float:
        """Return the next instant without an event."""
        return min(super().next_cycle(), self.next_let_in())
