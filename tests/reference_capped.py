"""The reference of the cap, of cost-benefit backfilling and of urgency, in plain Python.

It uses the machine of `tests/reference.py` and the regression of `tests/reference_index.py`, and
shares no code with `hpcgym`. Every pass looks at the whole queue, and every expectation is computed
anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import reference
import reference_index
from reference import Ranking, added


class Urgent(reference_index.Index):
    """SMITH-URGENT, by the seven numbers of its score."""

    numbers: tuple[float, ...] = (4, 50_000, 150_000, 0.1, 0.6, 0.1, 3)

    def with_numbers(self, *numbers: float) -> Urgent:
        """Return it with other numbers."""
        urgent = Urgent(self)
        urgent.numbers = numbers
        return urgent


SMITH_URGENT = Urgent((0, 0, 0, 0, 0, 0))


class UrgentReader(reference_index.Reader):
    """A machine that learns, and knows urgency."""

    def waiting_processors(self) -> int:
        """Return the processors of all waiting jobs."""
        return sum(self.jobs[j].processors for j in self.primary.score)

    def schedule(self, t: int) -> None:
        """Make one pass; the primary order is made at its beginning."""
        self.W = self.waiting_processors()
        super().schedule(t)

    def urgent_score(self, rule: Urgent, j: int, w: int, W: int) -> float:
        """Return the score of a job that has waited w seconds, while W processors wait."""
        urgency, after, within, narrowest, widest, crowding, most = rule.numbers
        q, M = self.jobs[j].processors, self.processors
        e = self.first_estimate(j)
        share, speed = self.lessons.say(e, self.look(j))
        u = -crowding * min(math.log(1 + W / M), most)
        score = (1 + u) * math.log(q) + 2 * math.log(reference_index.bounded(e))
        score = score + share - speed
        if w > after and narrowest * M <= q <= widest * M:
            score -= urgency * (w - after) / within
        return score

    def in_order(self, ranking: Ranking, t: int) -> Iterator[int]:
        """Yield the waiting jobs: the thresholded ones by arrival, then the others by score."""
        rule = ranking.policy
        if not isinstance(rule, Urgent):
            yield from super().in_order(ranking, t)
            return
        W = self.W if ranking is self.primary else self.waiting_processors()
        scored = [
            (self.urgent_score(rule, j, t - self.jobs[j].submit_time, W), j)
            for j in ranking.score
            if not self.is_thresholded(j, t)
        ]
        yield from [j for j in ranking.score if self.is_thresholded(j, t)]
        yield from [j for _, j in sorted(scored)]


class CostBenefit(reference.Machine):
    """A machine with a cap on long jobs, whose backfilling weighs cost against benefit."""

    MODES = ("easy", "cost-benefit")

    def __init__(self, *settings: Any) -> None:
        """Read the mode's parameters."""
        super().__init__(*settings)
        name, _, rest = self.backfill.partition(":")
        given = dict(part.split("=") for part in rest.split(",") if part)
        self.kappa = float(given.get("kappa", 0.25)) if name == "cost-benefit" else 0.0
        self.cap = float(given.get("cap", math.inf))
        self.long = float(given.get("long", 7200))
        self.guarded = given.get("overdue", "guarded") == "guarded"
        self.counted: set[int] = set()

    def logs(self, j: int) -> tuple[float, float, float]:
        """Return log E and what the regression says of job j."""
        e = self.first_estimate(j)
        share, speed = self.lessons.say(e, self.look(j))
        return math.log(reference_index.bounded(e)), share, speed

    def run_time(self, j: int) -> float:
        """Return E[D] of job j."""
        log_e, share, _ = self.logs(j)
        return math.exp(log_e + share)

    def rate(self, j: int) -> float:
        """Return E[1/D] of job j."""
        log_e, _, speed = self.logs(j)
        return math.exp(speed - log_e)

    def is_long(self, j: int, t: int) -> bool:
        """Say whether job j would count if it started now."""
        if self.cap == math.inf or (self.guarded and self.is_thresholded(j, t)):
            return False
        log_e, share, _ = self.logs(j)
        return self.long == 0 or log_e + share > math.log(self.long)

    def is_blocked(self, j: int, t: int) -> bool:
        """Say whether the cap blocks job j."""
        G = sum(self.jobs[k].processors for k in self.counted)
        q = self.jobs[j].processors
        return self.is_long(j, t) and G > 0 and G + q > self.cap * self.processors

    def start(self, j: int, t: int, *, backfilled: bool) -> None:
        """Give job j its processors, and count it if it is long."""
        if self.is_long(j, t):
            self.counted.add(j)
        super().start(j, t, backfilled=backfilled)

    def complete(self) -> None:
        """End the first job to end."""
        self.counted.discard(self.ends[0][2])
        super().complete()

    def weight(self, head: int, t: int) -> float:
        """Return k behind a head."""
        w, theta = t - self.jobs[head].submit_time, self.threshold
        if not self.guarded or theta == math.inf:
            return self.kappa
        if w >= theta:
            return 0.0
        return self.kappa * min(1.0, 2 * (theta - w) / theta)

    def schedule(self, t: int) -> None:
        """Make one pass."""
        queue, started, head = list(self.in_order(self.primary, t)), [], None
        one_waits = False
        for j in queue:
            if self.is_blocked(j, t):
                one_waits = True
                continue
            if self.jobs[j].processors > self.free:
                head = j
                break
            self.start(j, t, backfilled=one_waits)
            started.append(j)
        self.leave(started)
        if head is not None and self.free > 0:
            same = self.secondary is self.primary
            others = queue if same else list(self.in_order(self.secondary, t))
            self.leave(self.start_behind(head, [j for j in others if j not in started], t))

    def start_behind(self, head: int, others: list[int], t: int) -> list[int]:
        """Start jobs behind the head, and return them."""
        shadow, X = self.reservation(head, t)
        S, k = shadow - t, self.weight(head, t)
        R = added(self.rate(j) for j in self.primary.score if self.jobs[j].processors > self.free)
        started = []
        for j in others:
            q = self.jobs[j].processors
            if j == head or q > self.free or self.is_blocked(j, t):
                continue
            if q <= X:
                if self.estimate[j] > S:
                    X -= q
            elif self.estimate[j] > S:
                run = self.run_time(j)
                cost = (
                    R * (run * math.exp(-S / run)) * min(1.0, (q - X) / self.jobs[head].processors)
                )
                if not (k > 0 and cost <= self.rate(j) * (k * (S + self.run_time(head)))):
                    continue
            self.start(j, t, backfilled=True)
            started.append(j)
        return started
