"""How good orders are on given weeks: the mean log ratio to SAF, shaken copies included."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.weight_search import divisors_of
from hpcgym.batch import simulate_many
from hpcgym.core.policy import Policy, mixed_policy
from hpcgym.scenario.episodes import Episodes, settings_but_policy
from hpcgym.trace.resample import jitter

FloatArray = NDArray[np.float64]


class Fitness:
    """Weeks of one log or of several, and what SAF makes of them.

    The mean log ratio weighs all weeks alike and all logs alike, so that no heavy week rules a
    search; copies with shaken submit times keep it from fitting one sequence of events.

    Args:
        episodes: The weeks of each log.
        copies: Shaken copies of each week, besides the original.
        generator: Source of the shaking.
        threads: Threads that simulate; default one per core.

    Source:
        Specification, section 10, "Evaluation protocol", steps 2 and 3; input shaking: Tsafrir,
        Ouaknine, Feitelson 2007.

    Example:
        >>> from hpcgym.core.policy import as_policy
        >>> fitness = Fitness([Episodes("tiny")], 0, np.random.default_rng(0))
        >>> fitness([as_policy("SAF")])
        array([0.])
    """

    def __init__(
        self,
        episodes: Sequence[Episodes],
        copies: int,
        generator: np.random.Generator,
        *,
        threads: int | None = None,
    ) -> None:
        self._threads = threads
        self._divisors = [divisors_of(one) for one in episodes]
        self._weeks = []
        for one in episodes:
            weeks = [one.workload(week) for week in range(len(one))]
            shaken = [jitter(week, generator) for week in weeks * copies]
            self._weeks.append((weeks + shaken, settings_but_policy(one.settings)))
        self._saf = [np.log(bsld) for bsld in self._bslds([["SAF"]] * len(episodes))]

    def __call__(self, policies: Sequence[Policy]) -> FloatArray:
        """Return what each policy is worth.

        Args:
            policies: Any that `simulate_many` takes, simulated in one call for each log.

        Returns:
            Mean over the logs of the mean log ratio to SAF, shape (n_policies,); below 0 where a
            policy is better.
        """
        return self._ratios([policies] * len(self._weeks))

    def of_weights(self, weights: FloatArray) -> FloatArray:
        """Return what weights of the six features are worth, in one call for each log.

        Args:
            weights: In unit scale, that of each log, shape (n_candidates, 6).

        Returns:
            As of a call, shape (n_candidates,).
        """
        return self._ratios(
            [[mixed_policy(one, divisors=own) for one in weights] for own in self._divisors]
        )

    def _ratios(self, policies: Sequence[Sequence[Policy]]) -> FloatArray:
        """Return the mean log ratio to SAF, over logs each with policies of its own."""
        ratios = [
            (np.log(bsld) - saf).mean(axis=0)
            for bsld, saf in zip(self._bslds(policies), self._saf, strict=True)
        ]
        return np.asarray(np.mean(ratios, axis=0))

    def _bslds(self, policies: Sequence[Sequence[str | Policy]]) -> list[FloatArray]:
        """Return the mean bounded slowdown, shape (n_weeks, n_policies) for each log."""
        return [
            simulate_many(weeks, own, metrics=["mean_bsld"], threads=self._threads, **settings)[
                "mean_bsld"
            ]
            for (weeks, settings), own in zip(self._weeks, policies, strict=True)
        ]
