"""The reference of look-ahead, relaxed, slack-based backfilling and of the committed pick.

It is plain Python, from the text. It uses the machine, orders and instants of `tests/reference.py`,
shares no code with `hpcgym`, and is slow and simple. It follows the recursion of look-ahead as the
specification prints it. It computes the head's shadow time anew for every candidate, and a whole
plan for every job that is tried.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable
from functools import cache
from typing import Any

import reference


class HeadFirst(reference.Machine):
    """A machine that starts jobs in order; a mode says what starts behind the head."""

    def __init__(self, *settings: Any) -> None:
        """Read the mode's one parameter."""
        super().__init__(*settings)
        text = self.backfill.partition("=")[2]
        self.parameter = float(text) if text else self.DEFAULT

    def fits(self, j: int) -> bool:
        """Say whether job j fits now."""
        return self.jobs[j].processors <= self.free

    def schedule(self, t: int) -> None:
        """Make one pass."""
        started, head = [], None
        for j in self.in_order(self.primary, t):
            if not self.fits(j):
                head = j
                break
            self.start(j, t, backfilled=False)
            started.append(j)
        self.leave(started)
        if head is not None and any(map(self.fits, self.primary.score)):
            self.leave(list(self.start_behind(head, t)))

    def start_behind(self, head: int, t: int) -> Iterable[int]:
        """Start jobs behind the head, and yield them."""
        raise AssertionError("a mode says how")


class LookAhead(HeadFirst):
    """LOS: the recursion over jobs i, free processors f and extra processors x."""

    MODES = ("look-ahead",)
    DEFAULT = 50.0

    def start_behind(self, head: int, t: int) -> Iterable[int]:
        """Start the jobs of the window that fill the machine, ties to the earlier ones."""
        shadow, extra = self.reservation(head, t)
        behind = [j for j in self.in_order(self.primary, t) if j != head]
        window = behind[: int(min(self.parameter, len(behind)))]
        q = [self.jobs[j].processors for j in window]
        late = [t + self.estimate[j] > shadow for j in window]

        @cache
        def V(i: int, f: int, x: int) -> int:
            """Return the most processors that the first i jobs can use."""
            if i == 0:
                return 0
            without = V(i - 1, f, x)
            if not late[i - 1] and q[i - 1] <= f:
                return max(without, q[i - 1] + V(i - 1, f - q[i - 1], x))
            if late[i - 1] and q[i - 1] <= min(f, x):
                return max(without, q[i - 1] + V(i - 1, f - q[i - 1], x - q[i - 1]))
            return without

        f, x, chosen = self.free, extra, []
        for i in range(len(window), 0, -1):  # the later a job, the sooner it is left out
            if V(i, f, x) > V(i - 1, f, x):
                chosen.append(window[i - 1])
                f -= q[i - 1]
                x -= q[i - 1] if late[i - 1] else 0
        for j in reversed(chosen):
            self.start(j, t, backfilled=True)
            yield j


class Relaxed(HeadFirst):
    """The head's shadow time may move up to a limit."""

    MODES = ("relaxed",)
    DEFAULT = 1.0

    def __init__(self, *settings: Any) -> None:
        """Begin without a head."""
        super().__init__(*settings)
        self.head: int | None = None
        self.reference_time = math.inf

    def start_behind(self, head: int, t: int) -> Iterable[int]:
        """Start what leaves the head's new shadow time within the limit, in backfill order."""
        shadow, _ = self.reservation(head, t)
        self.reference_time = shadow if head != self.head else min(self.reference_time, shadow)
        self.head = head
        limit = max(self.reference_time + self.parameter * self.estimate[head], shadow)
        for j in list(self.in_order(self.secondary, t)):
            if j == head or not self.fits(j):
                continue
            release = (t + self.estimate[j], j)
            self.free -= self.jobs[j].processors
            insort(self.releases, release)
            new_shadow, _ = self.reservation(head, t)
            self.releases.remove(release)
            self.free += self.jobs[j].processors
            if new_shadow <= limit:
                self.start(j, t, backfilled=True)
                yield j


class Committed(reference.Machine):
    """The first job is chosen once, and waited for."""

    MODES = ("committed",)

    def __init__(self, *settings: Any) -> None:
        """Begin without a chosen job."""
        super().__init__(*settings)
        self.chosen: int | None = None
        self.shadow: float = 0

    def schedule(self, t: int) -> None:
        """Make one pass."""
        while (j := self.chosen if self.chosen is not None else self.first(t)) is not None:
            if self.jobs[j].processors > self.free:
                break
            self.chosen = None
            self.start(j, t, backfilled=False)
            self.leave([j])
        if self.chosen is None and j is not None:
            self.chosen = j
            self.shadow, _ = self.reservation(j, t)
        if self.chosen is not None and self.backfill.endswith("fill=before"):
            for j in sorted(self.primary.score):
                in_time = t + self.estimate[j] < self.shadow
                if j != self.chosen and in_time and self.jobs[j].processors <= self.free:
                    self.start(j, t, backfilled=True)
                    self.leave([j])

    def first(self, t: int) -> int | None:
        """Return the first job in order, if one waits."""
        return next(iter(self.in_order(self.primary, t)), None)


class Plan:
    """Who has processors, from when and until when, by estimates."""

    def __init__(self, machine: reference.Machine, t: int) -> None:
        """Begin with the running jobs; one past its estimate ends now."""
        self.t = t
        self.changes = [(t, machine.free)]  # (instant, processors that become free), in order
        for end, j in machine.releases:
            insort(self.changes, (max(end, t), machine.jobs[j].processors))

    def take(self, start: int, e: int, q: int) -> None:
        """Give q processors away for e seconds."""
        insort(self.changes, (start, -q))
        insort(self.changes, (start + e, q))

    def give_back(self, start: int, e: int, q: int) -> None:
        """Undo that."""
        self.changes.remove((start, -q))
        self.changes.remove((start + e, q))

    def earliest(self, e: int, q: int) -> int:
        """Return the earliest instant from which q processors are free for e seconds."""
        free, start, last = 0, self.t, len(self.changes) - 1
        for k, (instant, change) in enumerate(self.changes):
            free += change
            if k < last and self.changes[k + 1][0] == instant:
                continue  # what is free at an instant is known after its last change
            if free < q:
                start = None
            elif start is None:
                start = instant
            if start is not None and (k == last or self.changes[k + 1][0] >= start + e):
                return start
        raise AssertionError("the machine is too small")


class Slack(reference.Machine):
    """Every job has a promise, and the plan may change as long as all are kept."""

    MODES = ("slack",)

    def __init__(self, *settings: Any) -> None:
        """Begin without plans and promises."""
        super().__init__(*settings)
        self.c = float(self.backfill.partition("=")[2])
        self.planned: dict[int, int] = {}
        self.promised: dict[int, int] = {}

    def shape(self, j: int) -> tuple[int, int]:
        """Return estimate and processors of job j."""
        return self.estimate[j], self.jobs[j].processors

    def schedule(self, t: int) -> None:
        """Make one pass: plan, rearrange, start."""
        queue = list(self.in_order(self.primary, t))
        self.plan(queue, t)
        for j in queue:
            now = [k for k in queue if self.planned[k] == t]
            room = self.free - sum(self.jobs[k].processors for k in now)
            if j not in now and self.jobs[j].processors <= room:
                self.planned = self.rearranged([*now, j], t) or self.planned
        started, some_wait = [], False
        for j in queue:
            if self.planned[j] == t and self.jobs[j].processors <= self.free:
                self.start(j, t, backfilled=some_wait)
                started.append(j)
            else:
                some_wait = True
        self.leave(started)
        for j in started:
            del self.planned[j]

    def plan(self, queue: list[int], t: int) -> None:
        """Shift existing reservations until none moves, then make those of the newcomers."""
        plan = Plan(self, t)
        for j in queue:
            if self.planned.get(j, -1) >= t:
                plan.take(self.planned[j], *self.shape(j))
            else:
                self.planned.pop(j, None)  # it has passed without a start
        has_moved = True
        while has_moved:
            has_moved = False
            for j in queue:
                if j not in self.promised:
                    continue
                before = self.planned.get(j)
                if before is not None:
                    plan.give_back(before, *self.shape(j))
                self.planned[j] = plan.earliest(*self.shape(j))
                plan.take(self.planned[j], *self.shape(j))
                has_moved |= self.planned[j] != before
        for j in queue:
            if j not in self.promised:
                self.planned[j] = plan.earliest(*self.shape(j))
                plan.take(self.planned[j], *self.shape(j))
                self.promised[j] = self.planned[j] + math.floor(self.c * self.estimate[j])

    def rearranged(self, now: list[int], t: int) -> dict[int, int]:
        """Return the plan in which these jobs start now, or nothing if it breaks a promise."""
        plan = Plan(self, t)
        made = dict.fromkeys(now, t)
        for j in now:
            plan.take(t, *self.shape(j))
        for j in sorted(self.planned, key=lambda j: (self.promised[j], j)):
            if j not in made:
                made[j] = plan.earliest(*self.shape(j))
                if made[j] > max(self.promised[j], self.planned[j]):
                    return {}
                plan.take(made[j], *self.shape(j))
        return made


KINDS = {mode: kind for kind in (LookAhead, Relaxed, Slack, Committed) for mode in kind.MODES}
"""The machine of each mode."""
