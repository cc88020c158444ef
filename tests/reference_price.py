"""EASY that holds jobs back by price, in plain Python from section 17 of the specification."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import reference
from reference import Job, Ranking, Start

HOUR = 3600
MILLION = 1_000_000


class Price(NamedTuple):
    """Prices by hour, in millionths; the span in hours, what must be saved, the cap, and errors.

    Errors are by how much a forecast misses each hour for each hour that it is ahead.
    """

    price: Sequence[int]
    span: int
    kappa: float = math.inf
    power: float = 0
    cap: float = 1
    long: int = 7200
    error: Sequence[int] = ()

    def at(self, hour: int) -> int:
        """Return the price of an hour; behind the last one the mean of the span."""
        if hour < len(self.price):
            return self.price[hour]
        return sum(self.price[: self.span]) // self.span

    def until(self, t: int) -> int:
        """Return the price of each second up to an instant, summed."""
        return HOUR * before(self, t // HOUR) + self.at(t // HOUR) * (t % HOUR)

    def paid(self, begin: int, end: int) -> int:
        """Return the same from one instant to another."""
        return self.until(end) - self.until(begin)

    def foreseen(self, made: int, begin: int, end: int) -> int:
        """Return the same as foreseen in an hour, of instants to come."""
        missed = 0
        for hour in range(begin // HOUR, min(-(-end // HOUR), len(self.error))):
            seconds = min(end, (hour + 1) * HOUR) - max(begin, hour * HOUR)
            missed += (hour - made) * self.error[hour] * seconds
        return self.paid(begin, end) + missed


_SUMS: dict[int, tuple[Any, list[int]]] = {}
"""The prices of all hours before each hour, summed, by the list of prices."""


def before(price: Price, hour: int) -> int:
    """Return the prices of all hours before one, summed."""
    sums = _SUMS.setdefault(id(price.price), (price.price, [0]))[1]
    while len(sums) <= hour:
        sums.append(sums[-1] + price.at(len(sums) - 1))
    return sums[hour]


def pays_to_wait(price: Price, kappa: float, job: Job, estimate: int, hour: int) -> bool:
    """Tell whether a job that waits in an hour saves by a later full hour what its delay costs."""
    e, since = max(estimate, 60), max(job.submit_time, hour * HOUR)
    at_once = price.foreseen(hour, since, since + e)
    for later in range((hour + 1) * HOUR, job.submit_time + 48 * HOUR + HOUR, HOUR):
        # The patience counts whole hours from the beginning of this one on.
        if (later - hour * HOUR) // HOUR > 48 - math.ceil((since - job.submit_time) / HOUR):
            break
        saved = job.processors * (at_once - price.foreseen(hour, later, later + e))
        if saved / (MILLION * HOUR) > kappa * (later - since) / e:
            return True
    return False


def energy_of(
    price: Price, jobs: Sequence[Job], starts: Sequence[int], machine: int, idle: float
) -> tuple[float, float]:
    """Return processor-hours, an idle processor counting as `idle`, and their cost."""
    hours = sum(job.processors * job.run_time for job in jobs) / HOUR
    paid = sum(
        job.processors * price.paid(start, start + job.run_time)
        for job, start in zip(jobs, starts, strict=True)
    )
    always = sum(price.price[: price.span])
    return (
        idle * machine * price.span + (1 - idle) * hours,
        idle * machine * (always / MILLION) + (1 - idle) * (paid / (MILLION * HOUR)),
    )


class PricedMachine(reference.Machine):
    """A machine whose passes leave out held jobs, and keep room from those with long requests."""

    tariff: Price
    controls: Any = None  # of an hour, a factor of kappa and a cap; None = those of the price

    def __init__(self, *settings: Any) -> None:
        """Begin before the first hour."""
        super().__init__(*settings)
        self.hour = 0
        self.hours = self.tariff.span + 48
        self.held: set[int] = set()
        self.kappa, self.cap = math.inf, 1.0
        self.passed_over = False

    # --- An instant -------------------------------------------------------------------------------

    def run_batch(self) -> None:
        """Handle completions, the beginning of an hour, submissions, and one pass."""
        while self.started < len(self.jobs):
            hour = self.hour * HOUR if self.hour <= self.hours else math.inf
            t = int(min(self.next_submission(), self.next_end(), hour))
            while self.next_end() == t:
                self.complete()
            begins = t == hour
            if begins:
                self.begin_hour()
            first = self.arrived
            while self.next_submission() == t:
                self.submit()
            asked = self.primary.score if begins else range(first, self.arrived)
            self.held = {j for j in self.held if not begins} | set(filter(self.is_held, asked))
            self.schedule(t)

    def begin_hour(self) -> None:
        """Set kappa and the cap of an hour."""
        self.hour += 1
        self.kappa, self.cap = math.inf, 1.0
        if self.hour <= self.hours:
            area = sum(self.estimate[j] * self.jobs[j].processors for j in self.primary.score)
            work = area / (HOUR * self.processors)
            self.kappa = self.tariff.kappa * (1 + work) ** self.tariff.power
            self.cap = self.tariff.cap

    def is_held(self, j: int) -> bool:
        """Tell whether a job is held in this hour."""
        if self.kappa == math.inf:
            return False
        return pays_to_wait(self.tariff, self.kappa, self.jobs[j], self.estimate[j], self.hour - 1)

    # --- A pass -----------------------------------------------------------------------------------

    def most(self, j: int) -> int:
        """Return how many processors may be busy once a job has started."""
        is_long = self.jobs[j].requested_time > self.tariff.long
        return round(self.cap * self.processors) if is_long else self.processors

    def fits(self, j: int) -> bool:
        """Tell whether a job may start if it is tried first."""
        busy = self.processors - self.free
        return busy + self.jobs[j].processors <= self.most(j)

    def in_order(self, ranking: Ranking, t: int) -> Iterator[int]:
        """Yield the jobs that are neither held nor wider than what they may fill."""
        for j in list(super().in_order(ranking, t)):
            if j in self.held or self.jobs[j].processors > self.most(j):
                self.passed_over = True
            elif self.starts[j] is None:
                yield j

    def schedule(self, t: int) -> None:
        """Make one pass."""
        self.passed_over, head = False, None
        for j in self.in_order(self.primary, t):
            if not self.fits(j):
                head = j
                break
            self.start(j, t, backfilled=self.passed_over)
            self.leave([j])
        if head is None or self.backfill != "easy":
            return
        shadow, extra = self.room_for(head, t)
        for j in self.in_order(self.secondary, t):
            q, outlasts = self.jobs[j].processors, t + self.estimate[j] > shadow
            if j == head or not self.fits(j) or (outlasts and q > extra):
                continue
            extra -= q * outlasts
            self.start(j, t, backfilled=True)
            self.leave([j])

    def room_for(self, head: int, t: int) -> tuple[int, int]:
        """Return when the head may start by estimates, and what is left over then."""
        q = self.jobs[head].processors
        instants = sorted({t, *(max(end, t) for end, _ in self.releases)})
        for u in instants:
            free = self.free + sum(self.jobs[j].processors for e, j in self.releases if e <= u)
            if self.processors - free + q <= self.most(head):
                return u, free - q
        raise AssertionError("an empty machine has room for each job that is not too wide")


def simulate(
    jobs: Sequence[Sequence[int]], processors: int, policy: Any, price: Price, **settings: Any
) -> list[Start]:
    """Schedule every job; settings are those of `reference.simulate`."""
    kind = type("Priced", (PricedMachine,), {"tariff": price})
    return reference.simulate(jobs, processors, policy, kind=kind, **settings)
