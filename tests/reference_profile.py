"""The reference of backfilling with several reservations: plain Python, from the text.

It uses the machine, orders and instants of `tests/reference.py`, shares no code with `hpcgym`, and
is slow and simple. Every pass looks at the whole queue. Reservations that are kept are tried at
every pass, whether or not anything has changed. The profile is a list of changes: who takes
processors when, and who gives them back.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from itertools import accumulate
from typing import Any

import reference


class Profile:
    """The processors that are free from t on, by estimates, as (instant, processors taken)."""

    def __init__(self, machine: reference.Machine, t: int) -> None:
        """Begin with what is free now; a running job past its estimate ends now."""
        ends = [(max(end, t), -machine.jobs[j].processors) for end, j in machine.releases]
        self.changes = sorted([(t, -machine.free), *ends])
        self.t = t

    def earliest(self, q: int, e: int) -> int:
        """Return the earliest instant from which q processors are free for e seconds."""
        free, start = 0, None
        for instant, taken in self.changes:  # at one instant, releases come first
            if start is not None and instant - start >= e:
                return start
            free -= taken
            if free < q:
                start = None
            elif start is None:
                start = instant
        return start

    def take(self, start: int, e: int, q: int) -> None:
        """Take q processors for e seconds."""
        insort(self.changes, (start, q))
        insort(self.changes, (start + e, -q))

    def is_overdrawn(self) -> bool:
        """Say whether more processors are taken than there are, at any instant."""
        return any(free < 0 for free in accumulate(-taken for _, taken in self.changes))

    def give_back(self, start: int, e: int, q: int) -> None:
        """Give back what was taken."""
        for change in ((start, q), (start + e, -q)):
            del self.changes[bisect_left(self.changes, change)]


class Planner(reference.Machine):
    """A machine whose waiting jobs have reservations: the first k misfits, or all."""

    MODES = (*reference.Machine.MODES, "depth", "conservative")

    def __init__(self, *settings: Any) -> None:
        """Read the mode."""
        super().__init__(*settings)
        name, _, parameter = self.backfill.partition(":")
        self.keeps = (name, parameter) == ("conservative", "compress=shift")
        self.depth = math.inf  # conservative
        if name == "depth":
            self.depth = float(parameter.removeprefix("k="))
        self.plans = name in ("depth", "conservative")
        self.reserved: dict[int, int] = {}  # the reservation of each job, where it is kept
        self.promised: dict[int, int] = {}  # and its first one
        self.has_changed = False  # whether a job has ended off its estimate since the last plan

    def shape(self, j: int) -> tuple[int, int]:
        """Return estimate and processors of job j."""
        return self.estimate[j], self.jobs[j].processors

    def schedule(self, t: int) -> None:
        """Make one pass."""
        if not self.plans:
            super().schedule(t)
        elif self.keeps:
            self.plan(t)
            self.start_planned(t)
        elif any(self.jobs[j].processors <= self.free for j in self.primary.score):
            self.reserve_first(t)

    # --- Reservations made anew at each pass ------------------------------------------------------

    def reserve_first(self, t: int) -> None:
        """Walk the queue until k jobs have reservations, then try the others.

        Source: Specification, section 13, "EASY and depth k" and "Depth k on counts".
        """
        profile = Profile(self, t)
        started: list[int] = []
        reserved: dict[int, int] = {}  # in the order in which they are made

        def start(j: int) -> None:
            self.start(j, t, backfilled=bool(reserved))
            profile.take(t, *self.shape(j))
            started.append(j)

        for j in self.in_order(self.primary, t):
            e, q = self.shape(j)
            if not reserved and q <= self.free:  # step 1
                start(j)
            elif len(reserved) == self.depth:
                break
            elif q <= self.free and profile.earliest(q, e) == t:  # step 2
                start(j)
            else:
                reserved[j] = profile.earliest(q, e)
                profile.take(reserved[j], e, q)
        for j in self.in_order(self.secondary, t):  # step 3
            if j in reserved or j in started or self.jobs[j].processors > self.free:
                continue
            if self.all_keep_their_time(reserved, beside=j, t=t):
                start(j)
        self.leave(started)

    def all_keep_their_time(self, reserved: dict[int, int], *, beside: int, t: int) -> bool:
        """Say whether each reserved job, placed again in order, still fits if another starts."""
        profile = Profile(self, t)
        profile.take(t, *self.shape(beside))
        for j, start in reserved.items():
            profile.take(start, *self.shape(j))
            if profile.is_overdrawn():
                return False
        return True

    # --- Reservations that are kept ---------------------------------------------------------------

    def complete(self) -> None:
        """End the first job to end; note whether its estimate was wrong."""
        end, _, j = self.ends[0]
        release = (self.starts[j].start_time + self.estimate[j], j)
        self.has_changed |= release[0] != end and release in self.releases
        super().complete()

    def must_plan(self, t: int) -> bool:
        """Say whether kept reservations must be made, or may have to move."""
        return self.keeps and (
            self.has_changed
            or any(j not in self.promised for j in self.primary.score)
            or any(end <= t for end, _ in self.releases)
        )

    def plan(self, t: int) -> None:
        """Shift existing reservations until none moves, then make those of the newcomers."""
        self.has_changed = False
        queue = list(self.in_order(self.primary, t))
        profile = Profile(self, t)
        for j in queue:
            if self.reserved.get(j, -1) >= t:
                profile.take(self.reserved[j], *self.shape(j))
            else:
                self.reserved.pop(j, None)  # it has passed without a start
        old = [j for j in queue if j in self.promised]
        has_moved = True
        while has_moved:
            has_moved = False
            for j in old:
                e, q = self.shape(j)
                before = self.reserved.get(j)
                if before is not None:
                    profile.give_back(before, e, q)
                self.reserved[j] = profile.earliest(q, e)
                profile.take(self.reserved[j], e, q)
                has_moved |= self.reserved[j] != before
        for j in queue:
            if j not in self.promised:
                e, q = self.shape(j)
                self.promised[j] = self.reserved[j] = profile.earliest(q, e)
                profile.take(self.reserved[j], e, q)

    def start_planned(self, t: int) -> None:
        """Start the jobs whose reservation is now, as far as processors are really free."""
        started: list[int] = []
        some_wait = False
        for j in self.in_order(self.primary, t):
            if self.reserved[j] == t and self.jobs[j].processors <= self.free:
                self.start(j, t, backfilled=some_wait)
                started.append(j)
            else:
                some_wait = True
        self.leave(started)
