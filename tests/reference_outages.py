"""The reference of outages: processors that a machine lacks for a time, announced or not.

It follows section 15 of the specification, "Outages", step by step, and shares no code with
`hpcgym`. An attempt is a start; it ends by itself, or where the machine goes down beneath it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from heapq import heapify
from typing import Any, NamedTuple

from reference import Machine, Start


class Outage(NamedTuple):
    """Processors that are down from an instant until another, and since when that is known."""

    begin: int
    end: int
    processors: int
    announced: int = 0


class Attempt(NamedTuple):
    """A start and an end of a job, with the reason of the end."""

    job: int
    start: int
    end: int
    reason: str


Booked = tuple[int, int, int]  # from when until when so many processors are reserved


class WithOutages(Machine):
    """A machine with outages, which a subclass lists."""

    outages: Sequence[Outage] = ()
    requeue: Collection[int] | None = (
        None  # jobs that wait again where they are taken off; None = all
    )

    def __init__(self, *settings: Any) -> None:
        """Begin with all processors there are."""
        super().__init__(*settings)
        self.down = 0
        self.attempts: list[Attempt] = []
        instants = {at for o in self.outages for at in (o.begin, o.end, o.announced)}
        self.instants = sorted(at for at in instants if at >= 0)

    # --- An instant -------------------------------------------------------------------------------

    def run_batch(self) -> None:
        """Handle one instant after the other."""
        while (t := self.next_instant()) < math.inf:
            while self.next_end() == t:
                self.finish(int(t))
            if self.instants[:1] == [t]:
                del self.instants[0]
                self.change_capacity(int(t))
            while self.next_submission() == t:
                self.submit()
            self.schedule(int(t))

    def next_instant(self) -> float:
        """Return when something happens next."""
        return min(self.next_submission(), self.next_end(), *self.instants[:1])

    def finish(self, t: int) -> None:
        """End the first job to end by itself."""
        j = self.ends[0][2]
        self.attempts.append(Attempt(j, self.starts[j].start_time, t, "completed"))
        self.complete()

    def change_capacity(self, t: int) -> None:
        """Let outages end and begin; jobs that started last make room where too few are free."""
        down = sum(o.processors for o in self.outages if o.begin <= t < o.end)
        needed, self.down = down - self.down, down
        while self.free < needed:
            self.take_off(max((j for _, _, j in self.ends), key=self.began), t)
        self.free -= needed

    def began(self, j: int) -> tuple[int, int]:
        """Return what job j is taken off by: its start, then its position."""
        return self.starts[j].start_time, j

    def take_off(self, j: int, t: int) -> None:
        """Take job j off the machine: it waits again, and its work is lost; or the job is."""
        self.attempts.append(Attempt(j, self.starts[j].start_time, t, "node down"))
        self.ends = [end for end in self.ends if end[2] != j]
        heapify(self.ends)
        self.releases = [release for release in self.releases if release[1] != j]
        self.free += self.jobs[j].processors
        if self.requeue is not None and j not in self.requeue:
            self.starts[j] = Start(-1, False, False)
            return
        self.started -= 1
        for ranking in self.rankings:
            ranking.add(j, self.first_score(ranking, j))
            ranking.score = dict(sorted(ranking.score.items()))

    # --- A pass that looks ahead ------------------------------------------------------------------

    def foreseen(self, t: int) -> list[Outage]:
        """Return the outages that are known at t and not over."""
        return [o for o in self.outages if o.announced <= t < o.end]

    def free_at(self, u: int, t: int, booked: Iterable[Booked]) -> int:
        """Return how many processors will be free at u, as far as is known at t."""
        lacking = sum(o.processors for o in self.foreseen(t) if o.begin <= u < o.end)
        running = sum(self.jobs[j].processors for end, j in self.releases if max(end, t) > u)
        kept = sum(q for begin, end, q in booked if begin <= u < end)
        return self.processors - lacking - running - kept

    def is_hole(self, j: int, u: int, t: int, booked: Sequence[Booked]) -> bool:
        """Say whether job j fits from u on until it would end by its estimate."""
        until = u + self.estimate[j]
        falls = [o.begin for o in self.foreseen(t)] + [begin for begin, _, _ in booked]
        instants = [u] + [fall for fall in falls if u < fall < until]
        return all(self.free_at(v, t, booked) >= self.jobs[j].processors for v in instants)

    def may_start(self, j: int, t: int, booked: Sequence[Booked]) -> bool:
        """Say whether job j fits now: really, and by what is known of the time to come."""
        return self.jobs[j].processors <= self.free and self.is_hole(j, t, t, booked)

    def first_hole(self, j: int, t: int) -> int:
        """Return the earliest instant from which job j fits."""
        rises = {t} | {max(end, t) for end, _ in self.releases} | {o.end for o in self.foreseen(t)}
        return next(u for u in sorted(rises) if self.is_hole(j, u, t, []))

    def schedule(self, t: int) -> None:
        """Make one pass; it looks ahead while an outage is known."""
        if not self.foreseen(t):
            super().schedule(t)
            return
        started, head = [], None
        for j in self.in_order(self.primary, t):
            if not self.may_start(j, t, []):
                head = j
                break
            self.start(j, t, backfilled=False)
            started.append(j)
        self.leave(started)
        if head is None or self.backfill == "none":
            return
        u = self.first_hole(head, t)
        booked = [(u, u + self.estimate[head], self.jobs[head].processors)]
        behind = []
        for j in self.in_order(self.secondary, t):
            if j != head and self.may_start(j, t, booked):
                self.start(j, t, backfilled=True)
                behind.append(j)
        self.leave(behind)
