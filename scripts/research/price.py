"""Agents of action `price` over many weeks at once: rules, networks, and how they are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from hpcgym.agent.price import PriceRule
from hpcgym.env.registration import PROBLEMS
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.scenario.augment import chosen_episodes
from hpcgym.scenario.episodes import Episodes

Array = NDArray[np.float64]
Choose = Callable[[NDArray[np.float32]], NDArray[Any]]
"""Returns an action for each row of observations."""

SCENARIO = "price-weeks"

FAMILIES: dict[str, list[PriceRule]] = {
    "kappa": [
        PriceRule(kappa, power, 1.0) for kappa, power in product((60, 120, 240, 480), (0, 0.25))
    ],
    "kappa and cap": [
        PriceRule(kappa, power, cap)
        for kappa, power, cap in product((60, 120, 240), (0, 0.25), (0.9, 0.95))
    ],
    "kappa, cap by rank": [
        PriceRule(kappa, power, cap, cheap, dear)
        for kappa, power, cheap, cap, dear in product(
            (120, 240), (0, 0.25), (0.4, 0.6, 0.75), (0.95, 1.0), (0.3, 0.5, 0.7, 0.85)
        )
    ],
}
"""Rules of the price that are searched, by family."""


class Weeks:
    """Weeks that agents play, each from its beginning to its end."""

    def __init__(self, part: str, scenario: Any = SCENARIO) -> None:
        self.numbers = chosen_episodes(Episodes(scenario), part).numbers
        self.envs = SchedulingVectorEnv(
            scenario,
            num_envs=len(self.numbers),
            threads=1,
            weeks=part,
            observation="flat",
            autoreset_mode=AutoresetMode.SAME_STEP,
            **PROBLEMS["Price"].keywords,
        )

    def play(self, choose: Choose) -> tuple[Array, Array]:
        """Return J less SAF's of each week, and all actions of all weeks."""
        shown, _ = self.envs.reset(options={"episode": list(self.numbers)})
        total, over = np.zeros(len(self.numbers)), np.zeros(len(self.numbers), dtype=bool)
        actions = []
        while not over.all():
            chosen = choose(shown)
            actions.append(chosen[~over])
            shown, reward, terminated, _, _ = self.envs.step(chosen)
            total -= np.where(over, 0.0, reward)
            over |= terminated
        return total, np.concatenate(actions)


def best_of(
    few: Weeks, weeks: Weeks, rules: Sequence[PriceRule], most: int = 8
) -> list[tuple[float, PriceRule]]:
    """Return the rules with the lowest mean J on few weeks, by their mean J on all weeks.

    J is less SAF's.
    """

    def on(these: Weeks, some: Iterable[PriceRule]) -> list[tuple[float, PriceRule]]:
        found = [(float(these.play(rule.choose)[0].mean()), rule) for rule in some]
        return sorted(found, key=lambda pair: pair[0])

    return on(weeks, [rule for _, rule in on(few, rules)[:most]])


def interval(differences: Array) -> tuple[float, float, float]:
    """Return the mean of paired differences and its 95 % interval by t."""
    from hpcgym.evaluation.statistics import CONFIDENCE
    from hpcgym.evaluation.student_t import t_beyond

    n = len(differences)
    mean, error = differences.mean(), differences.std(ddof=1) / np.sqrt(n)
    reach = t_beyond(1 - CONFIDENCE, n - 1) * error
    return float(mean), float(mean - reach), float(mean + reach)


def controls_of(actions: Array, seed: int = 0) -> dict[str, Choose]:
    """Return agents that cannot tell when: the mean of actions, and the same ones shuffled."""
    generator = np.random.default_rng(seed)

    def mean(shown: NDArray[np.float32]) -> NDArray[Any]:
        return np.tile(actions.mean(axis=0), (len(shown), 1))

    def shuffled(shown: NDArray[np.float32]) -> NDArray[Any]:
        return actions[generator.integers(len(actions), size=len(shown))]

    return {"its mean action": mean, "its actions, shuffled": shuffled}


def row(name: str, differences: Array, others: Sequence[tuple[str, Array]] = ()) -> str:
    """Return a line: J less SAF's, then J less that of others, with intervals."""
    cells = [(" to SAF", differences), *((f" to {n}", differences - d) for n, d in others)]
    told = ("{}: {:+.3f} [{:+.3f}, {:+.3f}]".format(n, *interval(d)) for n, d in cells)
    return name + "," + ";".join(told)
