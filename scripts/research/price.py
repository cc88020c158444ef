"""Agents of action `price` over many weeks at once: rules, networks, and how they are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from hpcgym.agent.price import PriceRule
from hpcgym.env.registration import PROBLEMS
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.evaluation.statistics import ends_text, mean_of
from hpcgym.scenario.augment import chosen_episodes
from hpcgym.scenario.episodes import Episodes
from hpcgym.scenario.load import load_scenario
from hpcgym.scenario.spec import Scenario

Array = NDArray[np.float64]
Choose = Callable[[NDArray[np.float32]], NDArray[Any]]
"""Returns an action for each row of observations."""

SCENARIO = "price-weeks"

PLANS, MOST_HOURS = 48, 260
"""Plans that a round tries, and hours that they are for."""

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
    "around the best of these": [
        PriceRule(kappa, 0, 1.0, cheap, dear)
        for kappa, cheap, dear in product((240, 480, 960), (0.25, 0.4, 0.5), (0.75, 0.8, 0.85, 0.9))
    ],
}
"""Rules of the price that are searched, by family."""


def priced(name: str) -> Scenario:
    """Return a scenario with a made-up price, and as `price-weeks` without a threshold."""
    scenario = load_scenario(name)
    if scenario.scheduler.events:
        return scenario
    changed = replace(scenario.scheduler, events="price:seed=1", threshold_s=None)
    return replace(scenario, scheduler=changed)


class Weeks:
    """Weeks that agents play, each from its beginning to its end, or so many copies of it."""

    def __init__(self, part: str | None, scenario: Any = SCENARIO, copies: int = 1) -> None:
        episodes = Episodes(scenario)
        chosen = episodes if part is None else chosen_episodes(episodes, part)
        self.numbers = chosen.numbers * copies
        self.longest = np.zeros(len(self.numbers))
        """The longest wait of each week, s, when it was last played."""
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
            shown, reward, terminated, _, infos = self.envs.step(chosen)
            total -= np.where(over, 0.0, reward)
            if "final_info" in infos:
                waits = infos["final_info"]["max_wait_time"]
                self.longest = np.where(terminated & ~over, waits, self.longest)
            over |= terminated
        return total, np.concatenate(actions)

    def waits(self) -> str:
        """Return the longest waits of the weeks that were last played, as text."""
        mean, most = self.longest.mean() / 3600, self.longest.max() / 3600
        return f"longest wait of a week: mean {mean:.1f} h, most {most:.1f} h"


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


class Plan:
    """Actions of each hour of one week, for so many environments; it notes those of an agent."""

    def __init__(self, actions: NDArray[np.float32], agent: Choose | None = None) -> None:
        self.actions, self.agent, self.hour = actions, agent, 0

    def choose(self, shown: NDArray[np.float32]) -> NDArray[Any]:
        """Return the actions of the next hour, those of the agent if there is one."""
        hour = min(self.hour, MOST_HOURS - 1)
        self.hour += 1
        if self.agent is not None:
            self.actions[:, hour] = self.agent(shown)
        chosen: NDArray[Any] = self.actions[:, hour]
        return chosen


def plan_of(week: int, agent: Choose, rounds: int = 40, seed: int = 0) -> tuple[float, float]:
    """Return J less SAF's of an agent in a week, and of the best plan that is found near it.

    A round changes the actions of some hours in a row at random, in `PLANS` ways, and keeps the
    best. What a plan reaches is known only once the week has been simulated with it: it knows run
    times and submissions to come.
    """
    generator, weeks = np.random.default_rng(seed), Weeks(str(week), copies=PLANS)
    noted = Plan(np.zeros((PLANS, MOST_HOURS, 2), dtype=np.float32), agent)
    begun = best = float(weeks.play(noted.choose)[0][0])
    plan = noted.actions[0].copy()
    for _ in range(rounds):
        plans = np.tile(plan, (PLANS, 1, 1))
        for each in plans[1:]:
            length, first = generator.integers(2, 25), generator.integers(0, 168)
            width = generator.choice((0.1, 0.3, 0.8))
            each[first : first + length] += generator.normal(0, width, 2).astype(np.float32)
        plans = np.clip(plans, -1, 1)
        reached, _ = weeks.play(Plan(plans).choose)
        if reached.min() < best:
            best, plan = float(reached.min()), plans[reached.argmin()].copy()
    return begun, best


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
    means = ((other, mean_of(differences)) for other, differences in cells)
    told = (f"{n}: {mean.value:+.3f} [{ends_text(mean, '+.3f', ', ')}]" for n, mean in means)
    return name + "," + ";".join(told)
