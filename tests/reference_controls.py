"""The reference of actions that set numbers at decisions, and of what is seen then.

It follows section 10 of the specification, "Index", "Controls" and "Observation", and shares
no code with `hpcgym`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import reference_capped
import reference_index
import reference_trials
from reference import added

HOURS = (3_600, 10_800, 43_200)


def log_time(seconds: float) -> float:
    return min(math.log(1 + seconds / 60) / math.log(1 + 43_200), 1.0)


class Controlled(reference_capped.CostBenefit):
    """A machine whose numbers change as decided; it notes what is to be seen at each decision.

    `decided` has the instant and the controls of each decision. They hold from then on.
    """

    epochs: str | int
    decided: list[tuple[int, list[float]]]
    noted: list[tuple[int, list[float]]]

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.middle = self.kappa, self.cap, self.long
        self.expected_end: dict[int, float] = {}

    def start(self, j: int, t: int, *, backfilled: bool) -> None:
        self.expected_end[j] = t + self.run_time(j)
        super().start(j, t, backfilled=backfilled)

    def schedule(self, t: int) -> None:
        is_due = self.is_contested(t) if self.epochs == "contested" else bool(self.primary.score)
        if not isinstance(self.epochs, int):
            if is_due:
                self.noted.append((t, self.fields(t)))
                self.obey(self.decided.pop(0)[1])
        else:
            while self.decided and self.decided[0][0] <= t:
                self.obey(self.decided.pop(0)[1])
        super().schedule(t)

    def obey(self, controls: list[float]) -> None:
        kappa, cap, long, urgency = map(float, np.float32(controls))
        self.kappa = self.middle[0] * (1 + kappa) ** 2
        self.cap = self.middle[1] * 2**cap
        self.long = self.middle[2] * 8**long
        numbers = 4 * (1 + urgency), *reference_capped.Urgent.numbers[1:]
        self.primary.policy = reference_capped.SMITH_URGENT.with_numbers(*numbers)

    def held(self) -> int:
        return sum(self.jobs[j].processors for j in self.counted)

    def is_contested(self, t: int) -> bool:
        sizes = [self.jobs[j].processors for j in self.primary.score]
        young = [j for j in self.primary.score if not self.is_thresholded(j, t)]
        W, limit = sum(sizes), self.cap * self.processors
        fit_together = self.free >= W and self.held() + W <= limit
        return len(young) >= 2 and not fit_together and min(sizes) <= self.free

    def fields(self, t: int) -> list[float]:
        M, free = self.processors, self.free
        q = {j: self.jobs[j].processors for j in self.primary.score}
        old = [j for j in q if self.is_thresholded(j, t)]
        young = [j for j in q if j not in old]
        by_area = old + sorted(young, key=lambda j: (q[j] * self.estimate[j], j))
        head = next((j for j in by_area if q[j] > free), None)
        shadow, extra = (t, free) if head is None else self.reservation(head, t)
        wide = [j for j in q if q[j] > free]
        later = [
            free + sum(self.jobs[j].processors for _, _, j in self.ends if self.ends_by(j, t + h))
            for h in HOURS
        ]
        long = sum(q[j] for j in q if self.is_long(j, t))
        return [
            self.held() / M,
            *(x / M for x in later),
            long / (long + M),
            sum(q[j] for j in wide) / (sum(q[j] for j in wide) + M),
            (rate := added(self.rate(j) for j in wide)) / (rate + 0.01),
            log_time(max((t - self.jobs[j].submit_time for j in wide), default=0)),
            log_time(shadow - t),
            extra / M,
        ]

    def ends_by(self, j: int, instant: float) -> bool:
        return self.expected_end[j] <= instant


AREA = reference_index.Index((1, 1, 0, 0, 0, 0))
"""The order by area, whose ties are those of whole numbers."""


class AreaReader(reference_index.Reader):
    """A machine that learns, and knows the order by area."""

    def score(self, rule: reference_index.Index, j: int) -> float:
        if rule is AREA:
            return self.first_estimate(j) * self.jobs[j].processors
        return super().score(rule, j)


class Indexed(Controlled):
    """A machine whose order and kappa change as action `index` says."""

    def obey(self, numbers: list[float]) -> None:
        processors, request, ratio, speed, root = map(float, np.float32(numbers))
        self.kappa = (1 + root) ** 2
        index = reference_index.Index((0.5 + processors, 1 + request, 0, 0, 0, 0))
        is_area = (processors, request, ratio, speed) == (0.5, 0, -1, 0)
        self.primary.policy = AREA if is_area else index.with_more(1 + ratio, -speed, 0)

    def fields(self, t: int) -> list[float]:
        return []


class TrialsDecided(Controlled, reference_trials.Lives):
    """Such a machine with trials, whose numbers change as well."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.usual = self.limit, self.young, min(self.victim, 1)

    def schedule(self, t: int) -> None:
        self.take_stock(t)
        super().schedule(t)

    def obey(self, controls: list[float]) -> None:
        super().obey(controls[:4])
        limit, kept, young, victim = map(float, np.float32(controls[4:]))
        self.limit = math.floor(self.usual[0] * (1 + limit) ** 2)
        self.kept = math.floor(max(kept, 0) * self.processors)
        self.young = self.usual[1] * (1 + young) ** 2
        self.victim = self.usual[2] * (1 + victim) ** 2

    def is_contested(self, t: int) -> bool:
        sizes = [self.jobs[j].processors for j in self.primary.score]
        young = [j for j in self.primary.score if not self.is_thresholded(j, t)]
        W, limit = sum(sizes), self.cap * self.processors
        same_in_any_order = not (self.overhead and self.on_trial)
        fit_together = self.free >= W and self.held() + W <= limit and same_in_any_order
        one_may_start = (bool(sizes) and min(sizes) <= self.free) or bool(self.guaranteed(t))
        return len(young) >= 2 and not fit_together and one_may_start

    def ends_by(self, j: int, instant: float) -> bool:
        return j in self.running and super().ends_by(j, instant)

    def begun(self, j: int, held: reference_trials.Holding, backfilled: bool) -> None:
        self.expected_end[j] = held.useful + self.run_time(j)
        super().begun(j, held, backfilled)
