"""What a search minimises: the bounded slowdown that orders have on given weeks, against SAF's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.weights import divisors_of
from hpcgym.core.policy import Policy, mixed_policy
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes, settings_but_policy
from hpcgym.schedule.batch import simulate_many
from hpcgym.trace.resample import jitter

FloatArray = NDArray[np.float64]

Measure = Literal["log-ratio", "sum-ratio"]
"""How the weeks of a log become one number.

"log-ratio" is the mean log ratio to SAF. Every week weighs alike, so no heavy week decides a
search. "sum-ratio" is the sum over the weeks as a ratio to SAF's sum (RR-9212, equation 6).
"""


class Objective:
    """A measure of orders on weeks of one log or of several; lower is better.

    The value of an order is its mean over the logs. Copies with jittered submit times keep a search
    from fitting one sequence of events.

    Args:
        episodes: The weeks of each log.
        copies: Jittered copies of each week, besides the original.
        generator: Source of the jitter; needed with copies.
        threads: Threads that simulate; default one per core.

    Source: Specification, section 10, "Evaluation protocol", steps 2 and 3; RR-9212, section 7.1;
    input shaking: Tsafrir, Ouaknine, Feitelson 2007.
    """

    def __init__(
        self,
        episodes: Sequence[Episodes],
        measure: Measure = "log-ratio",
        *,
        copies: int = 0,
        generator: np.random.Generator | None = None,
        threads: int | None = None,
    ) -> None:
        self._measure, self._threads = measure, threads
        self._divisors = [divisors_of(log) for log in episodes]
        self._weeks = []
        for log in episodes:
            weeks = [log.workload(week) for week in range(len(log))]
            if copies and generator is not None:
                weeks += [jitter(week, generator) for week in weeks * copies]
            self._weeks.append((weeks, settings_but_policy(log.settings)))
        self._saf = self._bslds([["SAF"]] * len(episodes))

    def __call__(self, policies: Sequence[Policy]) -> FloatArray:
        """Return the value of each policy, shape (n_policies,); one simulation call per log."""
        return self._measured(self._bslds([policies] * len(self._weeks)))

    def of_rules(self, rules: Sequence[RuleAgent]) -> FloatArray:
        """Return the value of each rule, which may state a backfilling mode, shape (n_rules,)."""
        bslds = []
        for weeks, settings in self._weeks:
            of_log = [
                self._bsld(weeks, [rule.policy], settings | {"backfill": rule.backfill})
                for rule in rules
            ]
            bslds.append(np.concatenate(of_log, axis=1))
        return self._measured(bslds)

    def of_weights(self, weights: FloatArray) -> FloatArray:
        """Return the value of weights in unit scale, shape (n_candidates, 6), that of each log."""
        policies = [
            [mixed_policy(candidate, divisors=divisors) for candidate in weights]
            for divisors in self._divisors
        ]
        return self._measured(self._bslds(policies))

    def _measured(self, bslds: Sequence[FloatArray]) -> FloatArray:
        """Return the mean over the logs, of shapes (n_weeks, n_orders)."""
        pairs = zip(bslds, self._saf, strict=True)
        if self._measure == "log-ratio":
            logs = [(np.log(bsld) - np.log(saf)).mean(axis=0) for bsld, saf in pairs]
        else:
            logs = [bsld.sum(axis=0) / saf.sum(axis=0) for bsld, saf in pairs]
        return np.asarray(np.mean(logs, axis=0))

    def _bslds(self, policies: Sequence[Sequence[str | Policy]]) -> list[FloatArray]:
        """Return the mean bounded slowdown, shape (n_weeks, n_policies) for each log."""
        return [
            self._bsld(weeks, of_log, settings)
            for (weeks, settings), of_log in zip(self._weeks, policies, strict=True)
        ]

    def _bsld(
        self, weeks: list[Workload], policies: Sequence[str | Policy], settings: dict[str, Any]
    ) -> FloatArray:
        """Return the mean bounded slowdown, shape (n_weeks, n_policies)."""
        metrics = ["mean_bsld"]
        measured = simulate_many(
            weeks, policies, metrics=metrics, threads=self._threads, **settings
        )
        return np.asarray(measured["mean_bsld"])
