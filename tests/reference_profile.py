"""The reference of backfilling with several reservations: plain Python, from the text.

It uses the machine, orders and instants of `tests/reference.py`, shares no code with `hpcgym`, and
is slow and simple. Every pass looks at the whole queue. Reservations that are kept are tried at
every pass, whether or not anything has changed. The profile is a list of changes: who takes
processors when, and who gives them back.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
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
        """Walk the queue until k misfits have reservations, then try the others."""
        profile = Profile(self, t)
        started: list[int] = []
        misfits: set[int] = set()

        def start_if_it_fits(j: int) -> int:
            e, q = self.shape(j)
            earliest = profile.earliest(q, e)
            if earliest == t and q <= self.free:
                self.start(j, t, backfilled=bool(misfits))
                profile.take(t, e, q)
                started.append(j)
            return earliest

        for j in self.in_order(self.primary, t):
            if len(misfits) == self.depth:
                break
            earliest = start_if_it_fits(j)
            if j not in started:
                e, q = self.shape(j)
                profile.take(earliest, e, q)
                misfits.add(j)
        for j in self.in_order(self.secondary, t):
            if j not in misfits and j not in started and self.jobs[j].processors <= self.free:
                start_if_it_fits(j)
        self.leave(started)

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
