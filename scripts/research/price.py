"""Agents of action `price` over many weeks at once: rules, networks, and how they are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.contest import UNKNOWN
from hpcgym.agent.price import PriceNet, PriceRule
from hpcgym.agent.shelf import load_agent
from hpcgym.base.progress import steps
from hpcgym.core.price import PRICED, Price
from hpcgym.core.workload import Workload
from hpcgym.env.registration import PROBLEMS
from hpcgym.env.scale import scale_of, settings_of, week_digest
from hpcgym.env.scenario.augment import chosen_episodes
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.load import load_scenario
from hpcgym.env.scenario.slicing import generated_weeks
from hpcgym.env.scenario.spec import Scenario
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.evaluation.gap import gap_text
from hpcgym.evaluation.statistics import ends_text, mean_of
from hpcgym.machine.prices import WEEK_H
from hpcgym.trace.split import months
from research.scales import Kept, closed_by

Array = NDArray[np.float64]
Choose = Callable[[NDArray[np.float32]], NDArray[Any]]
"""Returns an action for each row of observations."""

SCENARIO = "price-weeks"

WEIGHT = 20
"""What the cost counts for beside the slowdown."""

BEST = "PRICE-RANK"
"""The best rule known."""

SAF = PriceRule(1e9, 0, 1.0)
"""No delay pays, and long jobs may fill the machine: nothing is held back."""

TRIES, PLANS, MOST_HOURS, LONGEST_CHANGE = 480, 12, 260, 48
"""Plans that are tried for a week, and in a round; hours that they have, and that one changes."""

SPREAD = 0.3
"""Deviation of the logarithm of run times in copies on which a plan is played."""

CONSTANT_KAPPAS, CONSTANT_CAPS = (-0.25, 0.0, 0.25, 0.5), (-0.15, -0.075, 0.0, 0.085)
"""Constant actions that are tried: kappa from 42 (1 + work)^.25 to 562, caps from .86 to 1."""

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


def priced(name: str, noise: float = 0) -> Scenario:
    """Return a scenario with a made-up price, and as `price-weeks` without a threshold."""
    scenario = load_scenario(name)
    events = Price(seed=1, weight=WEIGHT, noise=noise)
    changed = replace(scenario.scheduler, events=str(events), threshold_s=None)
    return replace(scenario, scheduler=changed)


def months_of(part: str) -> list[Workload]:
    """Return the months of 30 days of the generated logs that a part's weeks are of."""
    scenario = load_scenario(SCENARIO)
    logs, numbers = generated_weeks(scenario).populations, Episodes(scenario).select(part).numbers
    chosen = sorted({(number - 1) // logs.weeks for number in numbers})
    return [month for log in chosen for month in months(logs.log(log))]


class Weeks:
    """Weeks that agents play, each from its beginning to its end, or so many copies of it.

    Or jobs, such as those of months, in their place.
    """

    def __init__(
        self,
        part: str | None,
        scenario: Any = SCENARIO,
        copies: int = 1,
        workloads: Sequence[Workload] = (),
    ) -> None:
        episodes = Episodes(scenario)
        chosen = episodes if part is None else chosen_episodes(episodes, part)
        self.numbers = tuple(range(len(workloads))) or chosen.numbers * copies
        weeks = [chosen.workload(place) for place in range(len(chosen))]
        self.workloads = list(workloads) or weeks * copies
        self.longest, self.ratio = np.zeros((2, len(self.numbers)))
        """The longest wait of each week, s, and its ratio to SAF, when it was last played."""
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
        shown, _ = self.envs.reset(options={"workload": self.workloads})
        total, over = np.zeros(len(self.numbers)), np.zeros(len(self.numbers), dtype=bool)
        actions = []
        while not over.all():
            chosen = choose(shown)
            actions.append(chosen[~over])
            shown, reward, terminated, _, infos = self.envs.step(chosen)
            total -= np.where(over, 0.0, reward)
            if "final_info" in infos:
                ends, last = terminated & ~over, infos["final_info"]
                self.longest = np.where(ends, last["max_wait_time"], self.longest)
                self.ratio = np.where(ends, last["ratio"], self.ratio)
            over |= terminated
        return total, np.concatenate(actions)

    def seen(self, reached: Array) -> dict[str, str]:
        """Return what is seen of the weeks that were last played, where J less SAF's was reached.

        It is the gap closed, where the scale is of these weeks and prices, what J is made of, and
        the mean and the most of the longest waits.
        """
        hours, prices = self.longest / 3600, self.envs.configs[0].settings.events
        known = prices == load_scenario(SCENARIO).scheduler.settings.events
        scale = scale_of(SCENARIO, "price") if known else None
        closed = gap_text(closed_by(1 + WEIGHT + reached, scale, self.numbers, self.workloads))
        cost = (1 + WEIGHT + reached - self.ratio) / WEIGHT
        parts = {"slowdown to SAF": f"{self.ratio.mean():.3f}", "cost": f"{cost.mean():.3f}"}
        waits = {"longest wait, mean, h": f"{hours.mean():.1f}", "most, h": f"{hours.max():.1f}"}
        return ({"gap closed": closed} if closed else {}) | parts | waits


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


def plan_of(
    weeks: Weeks, begins: Sequence[Choose], tries: int, seed: int = 0
) -> tuple[float, NDArray[np.float32]]:
    """Return J less SAF's of the best plan that is found for a week, and its actions.

    The search begins at the best of some agents. A round changes the actions of some hours in a
    row, as many ways as there are copies of the week, and goes on from the best where that is no
    worse. What a plan reaches is known only once the week has been simulated with it: it knows run
    times and submissions to come.
    """
    generator, copies = np.random.default_rng(seed), len(weeks.numbers)
    best, plan = np.inf, np.zeros((MOST_HOURS, 2), dtype=np.float32)
    for agent in begins:
        noted = Plan(np.zeros((copies, MOST_HOURS, 2), dtype=np.float32), agent)
        reached = weeks.play(noted.choose)[0][0]
        if reached < best:
            best, plan = float(reached), noted.actions[0].copy()
    for _ in range(max(tries - len(begins), 0) // copies):
        plans = np.tile(plan, (copies, 1, 1))
        for each in plans:
            hours = int(np.exp(generator.uniform(0, np.log(LONGEST_CHANGE + 1))))
            first = int(generator.integers(1 - hours, WEEK_H + 4))
            moved = generator.normal(0, generator.choice((0.1, 0.3, 0.8)), 2).astype(np.float32)
            moved *= ((1, 0), (0, 1), (1, 1))[generator.integers(3)]
            each[max(first, 0) : first + hours] += moved
        plans = np.clip(plans, -1, 1)
        reached = weeks.play(Plan(plans).choose)[0]
        if reached.min() <= best:
            best, plan = float(reached.min()), plans[reached.argmin()].copy()
    return best, plan


def begins_of(rules: Mapping[str, PriceRule]) -> list[Choose]:
    """Return what a search of plans begins at: the best rules, others, and PRICE-NET."""
    others = [*FAMILIES["kappa"], *FAMILIES["kappa, cap by rank"][::4]]
    return [each.choose for each in (SAF, *rules.values(), *others, PriceNet.read())]


def rules_of_the_shelf() -> dict[str, PriceRule]:
    """Return the best rule of each family, by the name of its card."""
    agents = {name: load_agent(name) for name in ("PRICE-KAPPA", "PRICE-CAP", BEST)}
    found = {name: getattr(agent, "agent", None) for name, agent in agents.items()}
    return {name: rule for name, rule in found.items() if isinstance(rule, PriceRule)}


def chooser(file: Path | None) -> Choose:
    """Return what a network chooses: of a card, of a file of `train_price.py`, or of PRICE-NET."""
    if file is not None and file.suffix == ".npz":
        return PriceNet.read(file).choose
    agent = load_agent("PRICE-NET" if file is None else str(file))
    assert isinstance(agent, NamedAgent)
    return lambda shown: agent.predict({"cluster": shown})[0]


def scale_of_price(folder: Path, weeks: tuple[int, int], seed: int, command: str) -> dict[str, Any]:
    """Return what the file of the scale of action `price` holds; as `research.scales.find`.

    The metric is J. Static are the rules of the shelf and constant actions; clairvoyant are plans
    of single weeks, the best of `TRIES` each.
    """
    parts = [f"{part}:{n}" if n else part for part, n in zip(("train", "test"), weeks, strict=True)]
    training, test = map(Weeks, parts)
    rules = rules_of_the_shelf()
    constants = [(x, y) for x, y in product(CONSTANT_KAPPAS, CONSTANT_CAPS)]
    by_rule = {name: float(training.play(rule.choose)[0].mean()) for name, rule in rules.items()}
    by_constant = [float(training.play(held(each))[0].mean()) for each in constants]
    rule, constant = min(by_rule, key=by_rule.__getitem__), constants[int(np.argmin(by_constant))]
    static = "rule" if by_rule[rule] < min(by_constant) else "constant"
    generator = np.random.default_rng(seed)
    less = {
        "random": test.play(lambda shown: generator.uniform(-1, 1, (len(shown), 2)))[0],
        "zeros": test.play(held((0.0, 0.0)))[0],
        "SAF": np.zeros(len(test.numbers)),
        "constant": test.play(held(constant))[0],
        "rule": test.play(rules[rule].choose)[0],
    }
    kept, begins, found = Kept(folder / "kept.jsonl"), begins_of(rules), []
    with steps(len(test.numbers), f"{SCENARIO} price", "plans of weeks") as work:
        for number, jobs in zip(test.numbers, test.workloads, strict=True):

            def plan(number: int = number) -> float:
                return plan_of(Weeks(str(number), copies=PLANS), begins, TRIES, seed)[0]

            found.append(kept.value(["price", TRIES, seed, week_digest(jobs)], plan))
            work.advance()
    values = {name: 1 + WEIGHT + value for name, value in less.items()}
    values["clairvoyant"] = 1 + WEIGHT + np.array(found)
    gap = mean_of(values[static] - values["clairvoyant"])
    ends = zip(test.numbers, test.workloads, values[static], values["clairvoyant"], strict=True)
    return {
        "scenario": SCENARIO,
        "action": "price",
        "backfill": "",
        "settings": settings_of(Episodes(SCENARIO).settings),
        "contest": UNKNOWN,
        "metric": PRICED,
        "rule": rule,
        "constant": [*constant],
        "static": static,
        "clairvoyant": f"plans of single weeks, the best of {TRIES}",
        "training": 1 + WEIGHT + min(by_rule[rule], *by_constant),
        "gap": [gap.value, *(gap.ends() or (0.0, 0.0))],
        "command": command,
        "means": {name: float(column.mean()) for name, column in values.items()},
        "weeks": [
            [number, week_digest(jobs), 1.0, float(low), float(high)]
            for number, jobs, low, high in ends
        ],
    }


def other_run_times(
    week: int, agents: Mapping[str, Choose], begins: Sequence[Choose], seed: int = 0
) -> list[float]:
    """Return J less SAF's of agents and of a plan in a week, then the same at other run times.

    These are `PLANS` copies of the week in which each job runs `exp(SPREAD x)` times as long, x
    drawn from a standard normal, and within its request. Submissions and prices are those of the
    week, so what is lost there is what a plan owes to the run times that it knows.
    """
    weeks, generator = Weeks(str(week), copies=PLANS), np.random.default_rng(seed)
    plan = plan_of(weeks, begins, TRIES, seed)[1]
    jobs, copies = weeks.workloads[0], []
    for _ in range(PLANS):
        times = jobs.run_time * np.exp(SPREAD * generator.standard_normal(len(jobs)))
        run_time = np.clip(np.rint(times).astype(np.int64), 1, jobs.requested_time)
        copies.append(replace(jobs, run_time=run_time, history=jobs.history))
    plans = np.tile(plan, (PLANS, 1, 1))
    found = []
    for played in (weeks, Weeks(str(week), workloads=copies)):
        choices = (*agents.values(), Plan(plans).choose)
        found += [float(played.play(choice)[0].mean()) for choice in choices]
    return found


def held(action: Sequence[float]) -> Choose:
    """Return an agent that takes one action throughout."""
    return lambda shown: np.tile(np.array(action, dtype=np.float32), (len(shown), 1))


def controls_of(actions: Array, seed: int = 0) -> dict[str, Choose]:
    """Return agents that cannot tell when: the mean of actions, and the same ones shuffled."""
    generator = np.random.default_rng(seed)

    def mean(shown: NDArray[np.float32]) -> NDArray[Any]:
        return np.tile(actions.mean(axis=0), (len(shown), 1))

    def shuffled(shown: NDArray[np.float32]) -> NDArray[Any]:
        return actions[generator.integers(len(actions), size=len(shown))]

    return {"its mean action": mean, "its shuffled actions": shuffled}


def row(name: str, differences: Array, others: Mapping[str, Array]) -> dict[str, str]:
    """Return a row: J less SAF's, then J less that of others, with intervals."""
    cells = {"SAF": differences, **{other: differences - one for other, one in others.items()}}
    return {
        "agent": name,
        **{f"J less that of {other}": text_of(one) for other, one in cells.items()},
    }


def text_of(differences: Array) -> str:
    """Return the mean over weeks with its interval, signed."""
    mean = mean_of(differences)
    return f"{mean.value:+.3f} [{ends_text(mean, '+.3f', ', ')}]"
