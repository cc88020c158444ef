"""The reference of multiple-queue backfilling: plain Python, from the specification's text.

It uses the machine, orders and instants of `tests/reference.py`, shares no code with `hpcgym`, and
is slow and simple. It starts one job at a time, and computes everything anew after each start, as
the paper's figure 4 says. Jobs that are not eligible yet are in the queue, and are left out
wherever the queue is read.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any, NamedTuple

import reference
from reference import added

BOUNDS_S = (100, 1_000, 10_000)


class Settings(NamedTuple):
    """The parameters of the mode."""

    bounds: tuple[int, ...] = BOUNDS_S
    delay: float = 0
    batch: int = 100
    tolerance: float = 0.25
    delta1: str = "none"


def settings_of(text: str) -> Settings:
    """Read `multi-queue:key=value,key=value`."""
    parts = dict(part.split("=") for part in text.partition(":")[2].split(",") if part)
    if "bounds" in parts:
        parts["bounds"] = tuple(map(int, parts["bounds"].split("/")))
    kinds = {"delay": float, "batch": int, "tolerance": float}
    return Settings(**{key: kinds.get(key, lambda x: x)(value) for key, value in parts.items()})


class Delay:
    """The delay D, updated with each batch of completed jobs."""

    def __init__(self, settings: Settings) -> None:
        """Begin with D_1."""
        self.settings = settings
        self.now = [float(settings.delay)]  # D_1, D_2, ...
        self.slowdowns: list[float] = []  # of class 1, in the batch that is open
        self.completed = 0  # of all classes, in the batch that is open
        self.before: float | None = None  # s_{k-1}, None until some batch has short jobs

    def complete(self, is_short: bool, wait: int, run_time: int) -> None:
        """Add a completed job to the batch, and close the batch when it is full."""
        self.completed += 1
        if is_short and run_time > 0:
            self.slowdowns.append(1 + wait / run_time)
        if self.completed == self.settings.batch:
            self.close(added(self.slowdowns) / len(self.slowdowns) if self.slowdowns else None)
            self.slowdowns, self.completed = [], 0

    def close(self, s: float | None) -> None:
        """Close batch k whose short jobs had the mean slowdown s_k; None where there were none."""
        s = self.before if s is None else s
        delta = 0.0
        if s is not None and self.before is not None:
            delta = (s - self.before) / max(s, self.before)
        elif s is not None and self.settings.delta1 == "printed":
            delta = s
        after = self.now[-1]
        if abs(delta) > self.settings.tolerance:
            after = max(after + delta * self.settings.delay, 0)
        self.now.append(after)
        self.before = s


class Profile:
    """Free processors from t on, by estimates: [instant, free] pairs, ascending."""

    def __init__(self, t: int, free: int, releases: list[tuple[int, int]]) -> None:
        """Begin with what is free now; a job past its estimate ends now."""
        self.steps = [[t, free]]
        for end, q in sorted((max(end, t), q) for end, q in releases):
            if self.steps[-1][0] != end:
                self.steps.append([end, self.steps[-1][1]])
            self.steps[-1][1] += q

    def fits(self, start: int, e: int, q: int) -> bool:
        """Say whether q processors are free from start for e seconds."""
        for k, (instant, free) in enumerate(self.steps):
            until = self.steps[k + 1][0] if k + 1 < len(self.steps) else math.inf
            if instant < start + e and until > start and free < q:
                return False
        return True

    def earliest(self, e: int, q: int) -> int:
        """Return the earliest instant from which q processors are free for e seconds."""
        return next(instant for instant, _ in self.steps if self.fits(instant, e, q))

    def take(self, start: int, e: int, q: int) -> None:
        """Take q processors for e seconds."""
        for instant in (start, start + e):
            at = bisect_right(self.steps, [instant, math.inf]) - 1
            if self.steps[at][0] != instant:
                self.steps.insert(at + 1, [instant, self.steps[at][1]])
        for step in self.steps:
            if start <= step[0] < start + e:
                step[1] -= q


class MultiQueue(reference.Machine):
    """A machine with a queue and a partition for each class of jobs."""

    MODES = ("multi-queue",)

    def __init__(self, *settings: Any) -> None:
        """Read the mode, and divide the machine into partitions."""
        super().__init__(*settings)
        self.settings = settings_of(self.backfill)
        self.classes = len(self.settings.bounds) + 1
        share, over = divmod(self.processors, self.classes)
        self.size = [share + (c < over) for c in range(self.classes)]
        self.idle = list(self.size)
        self.delay = Delay(self.settings)
        self.class_of: dict[int, int] = {}  # of submitted jobs, 0 for the shortest
        self.eligible_at: dict[int, float] = {}  # of jobs that are held, until they are admitted

    # --- Partitions and the delay -----------------------------------------------------------------

    def submit(self) -> None:
        """Add the next job to the queue, held if it is of the last class and there is a delay."""
        j = self.arrived
        super().submit()
        self.class_of[j] = sum(self.estimate[j] > bound for bound in self.settings.bounds)
        if self.class_of[j] == self.classes - 1 and self.delay.now[-1] > 0:
            # whole seconds first: a submission added to a fraction may round the fraction away
            self.eligible_at[j] = self.jobs[j].submit_time + math.ceil(self.delay.now[-1])

    def next_eligible(self) -> float:
        """Return when the next held job becomes eligible."""
        return min(self.eligible_at.values(), default=math.inf)

    def admit(self) -> None:
        """Make the next held job eligible; ties by j."""
        del self.eligible_at[min(self.eligible_at, key=lambda j: (self.eligible_at[j], j))]

    def start(self, j: int, t: int, *, backfilled: bool) -> None:
        """Give job j its processors at t, out of its class's partition."""
        super().start(j, t, backfilled=backfilled)
        c, q = self.class_of[j], self.jobs[j].processors
        while self.idle[c] < q:
            others = [other for other in range(self.classes) if other != c]
            giver = max(others, key=lambda other: (self.idle[other], -other))
            given = min(self.idle[giver], q - self.idle[c])
            assert given > 0
            for partition in (self.size, self.idle):
                partition[giver] -= given
                partition[c] += given
        self.idle[c] -= q

    def complete(self) -> None:
        """End the first job to end; its processors go to its class."""
        j = self.ends[0][2]
        before = self.free
        super().complete()
        self.idle[self.class_of[j]] += self.free - before
        wait = self.starts[j].start_time - self.jobs[j].submit_time
        self.delay.complete(self.class_of[j] == 0, wait, self.executed[j])

    # --- One pass ---------------------------------------------------------------------------------

    def plan(self, queue: list[int], t: int) -> tuple[Profile, list[int], list[int]]:
        """Return the profile that holds the reservations of all pivots, the pivots, their times."""
        pivots: list[int] = []
        for j in queue:
            if self.class_of[j] not in map(self.class_of.get, pivots):
                pivots.append(j)
        running = [(end, self.jobs[j].processors) for end, j in self.releases]
        profile = Profile(t, self.free, running)
        times = []
        for j in pivots:
            shape = self.estimate[j], self.jobs[j].processors
            times.append(profile.earliest(*shape))
            profile.take(times[-1], *shape)
        return profile, pivots, times

    def next_start(self, queue: list[int], t: int) -> int | None:
        """Return the job to start now, or None."""
        if all(self.jobs[j].processors > self.free for j in queue):
            return None
        profile, pivots, times = self.plan(queue, t)
        for j, time in zip(pivots, times, strict=True):
            if time == t and self.jobs[j].processors <= self.free:
                return j
        for j in queue:
            e, q = self.estimate[j], self.jobs[j].processors
            if j not in pivots and q <= self.free and profile.fits(t, e, q):
                return j
        return None

    def schedule(self, t: int) -> None:
        """Make one pass: start one job, and begin anew until no job starts."""
        order = [j for j in self.in_order(self.primary, t) if j not in self.eligible_at]
        queue = list(order)
        while (j := self.next_start(queue, t)) is not None:
            self.start(j, t, backfilled=False)
            queue.remove(j)
        self.leave(j for j in order if j not in queue)
        first_left = order.index(queue[0]) if queue else len(order)
        for j in order[first_left:]:
            if j not in queue:
                self.starts[j] = self.starts[j]._replace(backfilled=True)
        self.check(queue, t)

    def check(self, queue: list[int], t: int) -> None:
        """Refuse an invalid state: partitions that do not add up, or a delay below 0."""
        assert sum(self.size) == self.processors and sum(self.idle) == self.free
        assert all(0 <= idle <= size for idle, size in zip(self.idle, self.size, strict=True))
        assert min(self.delay.now) >= 0 and self.next_eligible() >= t

    # --- What one instant is ----------------------------------------------------------------------

    def run_batch(self) -> None:
        """Handle completions, submissions and ends of delays, then make one pass."""
        while (t := min(self.next_submission(), self.next_end(), self.next_eligible())) < math.inf:
            self.come_to(t)
            while self.next_end() == t:
                self.complete()
            while self.next_submission() == t:
                self.submit()
            while self.next_eligible() == t:
                self.admit()
            self.schedule(t)

    def run_one_by_one(self) -> None:
        """Handle events one by one: submissions, ends of delays, terminations."""
        while (t := min(self.next_submission(), self.next_end(), self.next_eligible())) < math.inf:
            self.come_to(t)
            if self.next_submission() == t:
                self.submit()
            elif self.next_eligible() == t:
                self.admit()
            else:
                self.complete()
            self.free_by_estimate(t)
            self.schedule(t)

    def free_by_estimate(self, t: int) -> None:
        """Count jobs as free whose estimated end has come, in the partitions of their classes."""
        while self.frees_by_estimate and self.releases and self.releases[0][0] <= t:
            _, j = self.releases.pop(0)
            self.free += self.jobs[j].processors
            self.idle[self.class_of[j]] += self.jobs[j].processors
