"""The ends of a problem's scale: the best static scheduler, and one that knows run times.

Both searches of what is static play training weeks. The clairvoyant one orders by run times, and at
decisions half an hour apart takes an option where branches say that it gains: it is chosen on
copies whose jobs come up to half an hour earlier or later, and judged on the week as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from hpcgym.agent.contest import contest_by, contest_of, mode_in_env
from hpcgym.agent.first_fit import FIRST_FITS, FirstFit
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.shelf import load_cards
from hpcgym.base.progress import steps
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.env.scale import Scale, settings_of, week_digest
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.spec import Scenario
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.evaluation.baselines import clairvoyant
from hpcgym.evaluation.cross_validation import evaluate
from hpcgym.evaluation.gap import gap_between, gap_closed
from hpcgym.evaluation.statistics import Estimate
from hpcgym.schedule.counterfactual import Future
from research.diagnosis import planned, weeks_of

Floats = NDArray[np.float64]

COPIES, JITTER_S = 3, 1_800
"""Futures on which a clairvoyant decision is chosen, and how far their jobs are moved, s."""

KNOWING = ("KNOWS-SPF", "KNOWS-SAF", "KNOWS-SMITH")
MODES = ("easy", "cost-benefit:kappa=0.25")
"""Orders by run times, and modes, of which the clairvoyant one's base is the best on training
weeks; the mode that the problem states counts in their place. Branches of these modes merge with
their base, so that a week takes seconds; those of conservative backfilling take minutes."""

BASED_ON = 50
"""Training weeks that choose the base."""

KAPPAS = (-1.0, -0.7, -0.5, -0.3, 0.0)
INDEXES = {
    "SAF": (0.5, 0, -1, 0),
    "halfway to SMITH-REG": (0.5, 0.5, -0.5, 0.5),
    "SMITH-REG": (0.5, 1, 0, 1),
    "halfway to SAF-REG": (0.5, 0, -0.5, 0),
    "SAF-REG": (0.5, 0, 0, 0),
    "SAF-REG by half the processors": (0, 0, 0, 0),
    "SPF-REG": (-0.5, 0, 0, 0),
    "by half the processors": (0, 0, -1, 0),
    "SAF-REG and speed": (0.5, 0, 0, 0.5),
}
"""Orders that actions `index` make, each tried with all of `KAPPAS`."""


def constants_of(space: gymnasium.Space[Any], action: str) -> list[Any]:
    """Return the actions that are tried for whole weeks."""
    if action == "index":
        return [(*order, root) for order, root in product(INDEXES.values(), KAPPAS)]
    if isinstance(space, gymnasium.spaces.Discrete):
        return [*range(min(int(space.n), 8))]
    assert isinstance(space, gymnasium.spaces.Box) and space.shape is not None
    (n,) = space.shape
    if action == "order":
        ramp = np.linspace(-1, 1, n)
        return [(0.0,) * n, tuple(ramp), tuple(-ramp)]
    moved = [(0.0,) * n]
    for column, by in product(range(n), (-0.5, 0.5)):
        moved.append(tuple(by if place == column else 0.0 for place in range(n)))
    return moved


class Player:
    """Plays all weeks of some episodes side by side, and returns the value of each."""

    def __init__(self, episodes: Episodes, action: str, backfill: str, metric: str) -> None:
        mode: dict[str, Any] = {"backfill": backfill} if backfill else {}
        if (action, backfill) == ("job", "none"):
            mode |= FirstFit.NEEDS
        self.envs = SchedulingVectorEnv(
            episodes,
            num_envs=len(episodes),
            threads=1,
            **{"action": action, "observation": "flat"} | mode,
        )
        self._jobs = [episodes.workload(position) for position in range(len(episodes))]
        self._metric = metric

    def __call__(self, act: Callable[[Any], Any]) -> Floats:
        """Return the value of each week under the actions that `act` gives for observations."""
        n = len(self._jobs)
        shown, _ = self.envs.reset(seed=0, options={"workload": self._jobs})
        value, over = np.zeros(n), np.zeros(n, dtype=np.bool_)
        while not over.all():
            shown, _, terminated, _, info = self.envs.step(act(shown))
            ends = terminated & ~over  # an episode that is over begins anew
            if ends.any():
                value[ends] = info[self._metric][ends]
                over |= ends
        return value

    def constant(self, action: Any) -> Floats:
        """Return the value of each week under one action."""
        space = self.envs.single_action_space
        return self(lambda shown: np.array([action] * len(shown), dtype=space.dtype))

    def at_random(self, seed: int = 0) -> Floats:
        """Return the value of each week under random actions, the mean of ten runs."""
        self.envs.action_space.seed(seed)
        runs = [self(lambda _: self.envs.action_space.sample()) for _ in range(10)]
        return np.asarray(np.mean(runs, axis=0))


def picked(fit: FirstFit, shown: Any) -> Any:
    """Return what an agent picks."""
    return fit.predict(shown)[0]


def rules_of(episodes: Episodes, contest: str, backfill: str) -> list[RuleAgent]:
    """Return the rules of the shelf that never learn or change, in the problem's contest.

    Where the problem states a mode, they are the orders of the shelf under it.
    """
    agents = [card.agent for card in load_cards().values()]
    rules = [
        agent
        for agent in agents
        if isinstance(agent, RuleAgent)
        and len(agent.choices) == 1
        and agent.training is None
        and agent.policy.chooser is None
    ]
    if backfill:
        orders = {rule.policy.name: rule.policy for rule in rules if not rule.stated}
        rules = [
            RuleAgent(policy, backfill=backfill, name=f"{name} {backfill}")
            for name, policy in orders.items()
        ]
    allowed = {contest, "guarded"}
    return [rule for rule in rules if contest_of(rule, episodes.settings) in allowed]


def values_of(
    agents: Sequence[RuleAgent], episodes: Episodes, folder: Path
) -> tuple[pd.DataFrame, Floats]:
    """Return the ratio to SAF of each week, a column for each rule, and SAF's mean bsld.

    Runs are kept in the folder.
    """
    runs = evaluate(agents, episodes, resume=folder / "rules.sqlite").frame
    bsld = runs.pivot(index="week", columns="agent", values="mean_bsld")
    return bsld.div(bsld["SAF"], axis=0), bsld["SAF"].to_numpy()


def ratio_of(values: Floats, saf: Floats) -> float:
    """Return the ratio of sums to SAF, from the ratio of each week and SAF's mean bsld."""
    return float(values @ saf / saf.sum())


def knowing_of(
    episodes: Episodes, contest: str, backfill: str, folder: Path, usual: Sequence[str] = MODES
) -> RuleAgent:
    """Return the order by run times, with its mode, that is best on some weeks.

    `usual` are the modes where the problem states none.
    """
    modes = {backfill} if backfill else {*usual}
    if contest == "requeue" and not backfill:
        modes |= {str(rule.backfill) for rule in rules_of(episodes, contest, "") if rule.backfill}
    tried = [
        RuleAgent(clairvoyant(name, episodes.settings).policy, backfill=mode, name=f"{name} {mode}")
        for name, mode in product(KNOWING, sorted(modes))
    ]
    values, saf = values_of(tried, episodes, folder)
    return min(tried, key=lambda agent: ratio_of(values[agent.name].to_numpy(), saf))


class Kept:
    """Values that were found before, in a file: a line each, so that nothing is found twice."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._known = {json.dumps(key): value for key, value in map(json.loads, lines)}

    def value(self, key: Sequence[Any], find: Callable[[], float]) -> float:
        """Return the value of a key, and find it where nobody has."""
        text = json.dumps(key)
        if text not in self._known:
            self._known[text] = find()
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps([key, self._known[text]])}\n")
        return float(self._known[text])


def clairvoyant_values(
    base: RuleAgent, episodes: Episodes, seed: int, kept: Kept
) -> Iterator[float]:
    """Yield the ratio to SAF of each week under the clairvoyant one."""
    for position, number in enumerate(episodes.numbers):
        jobs, first = episodes.workload(position), 1_000_003 * seed + COPIES * number
        plan = partial(clairvoyant_value, base, jobs, episodes.settings, first)
        yield kept.value([base.name, seed, week_digest(jobs)], plan)


def clairvoyant_value(
    base: RuleAgent, jobs: Workload, settings: SchedulerSettings, first: int
) -> float:
    """Return a week's ratio to SAF under the clairvoyant one, whose copies' first seed is `first`.

    Branches of modes that kill take no other future than the one that comes.
    """
    seeds = range(first, first + COPIES)
    futures = [Future("exact", JITTER_S, seed) for seed in seeds]
    if base.settings(settings).requeues:
        futures = [Future()]
    (week,), (other,) = (weeks_of([jobs], agent, settings) for agent in (base, RuleAgent("SAF")))
    return planned(week, futures) / other.base


def find(
    scenario: str | Scenario,
    action: str,
    backfill: str,
    folder: Path,
    *,
    weeks: tuple[int, int] = (0, 0),
    seed: int = 0,
    command: str = "",
    modes: Sequence[str] = MODES,
) -> dict[str, Any]:
    """Return what the file of a problem's scale holds.

    `weeks` are how many are played of training and of test weeks at most, 0 = all; `modes` those of
    the clairvoyant one's base.
    """
    every, kept = Episodes(scenario), Kept(folder / "kept.jsonl")
    training, test = (
        first_of(every.select(part), n) for part, n in zip(("train", "test"), weeks, strict=True)
    )
    contest = contest_by(
        mode_in_env({"action": action, "backfill": backfill}, str(every.settings.backfill))
    )
    rules = {rule.name: rule for rule in rules_of(every, contest, backfill)}
    by_rule, saf = values_of([*rules.values()], training, folder)
    player = Player(training, action, backfill, "ratio")
    fits = FIRST_FITS if (action, backfill) == ("job", "none") else {}
    for name, fit in fits.items():
        by_rule[name] = player(partial(picked, fit))
    rule = min([*rules, *fits], key=lambda name: ratio_of(by_rule[name].to_numpy(), saf))
    of_rule = ratio_of(by_rule[rule].to_numpy(), saf)
    tried = constants_of(player.envs.single_action_space, action)

    def reach(constant: Any) -> float:
        return ratio_of(player.constant(constant), saf)

    named = f"{every.scenario.name} {action}"
    with steps(len(tried), named, "constants") as work:
        reached = []
        played = [week_digest(training.workload(place)) for place in range(len(training))]
        for one in tried:
            weeks_played = sha256("".join(played).encode()).hexdigest()
            key = [action, backfill, one, "by ratio of sums", weeks_played]
            reached.append(kept.value(key, partial(reach, one)))
            work.advance()
    constant = tried[int(np.argmin(reached))]
    static = "rule" if of_rule < min(reached) else "constant"
    judge = Player(test, action, backfill, "ratio")
    zeros = np.zeros(np.shape(constant))
    judged, saf_bsld = values_of([rules.get(rule) or next(iter(rules.values()))], test, folder)
    if rule in fits:
        judged[rule] = judge(partial(picked, fits[rule]))
    values = {
        "random": judge.at_random(),
        "zeros": judge.constant(zeros),
        "SAF": np.ones(len(test)),
        "constant": judge.constant(constant),
        "rule": judged[rule].to_numpy(),
    }
    base = knowing_of(first_of(training, BASED_ON), contest, backfill, folder, modes)
    knowing = []
    with steps(len(test), named, "clairvoyant weeks") as work:
        for value in clairvoyant_values(base, test, seed, kept):
            knowing.append(value)
            work.advance()
    values["clairvoyant"] = np.array(knowing)
    gap = gap_between(values[static], values["clairvoyant"], saf_bsld)
    return {
        "scenario": every.scenario.name,
        "action": action,
        "backfill": backfill,
        "settings": settings_of(every.settings),
        "contest": contest,
        "metric": "ratio",
        "rule": rule,
        "constant": [float(one) for one in np.atleast_1d(constant)],
        "static": static,
        "clairvoyant": base.name,
        "training": min(of_rule, *reached),
        "gap": [gap.value, *(gap.ends() or (0.0, 0.0))],
        "command": command,
        "means": {name: ratio_of(column, saf_bsld) for name, column in values.items()},
        "weeks": [
            [
                number,
                week_digest(test.workload(position)),
                float(saf_bsld[position]),
                *(float(values[name][position]) for name in (static, "clairvoyant")),
            ]
            for position, number in enumerate(test.numbers)
        ],
    }


def closed_by(
    values: ArrayLike, scale: Scale | None, numbers: Sequence[int], jobs: Sequence[Workload]
) -> Estimate | None:
    """Return the gap closed on weeks, as many as values, whose ends the scale has; None of none."""
    ends = [
        (known.static, value, known.clairvoyant, known.weight)
        for value, number, week in zip(np.asarray(values), numbers, jobs, strict=True)
        if scale is not None and (known := scale.ends(number, week)) is not None
    ]
    return gap_closed(*np.transpose(ends)) if ends else None


def first_of(episodes: Episodes, n: int) -> Episodes:
    """Return the first episodes, all if n is 0."""
    return episodes.select(",".join(map(str, episodes.numbers[: n or None])))


def row_of(scale: Scale) -> dict[str, str]:
    """Return what the table of docs/environment.md says of a problem."""
    means = {name: f"{value:.3f}" for name, value in scale.means.items()}
    numbers = ", ".join(f"{number:g}" for number in scale.constant)
    if len(scale.constant) > 8:
        numbers = f"{numbers[: numbers.index(',')]} to {scale.constant[-1]:g}"
    best = {
        "constant": f"{means['constant']}: ({numbers})",
        "rule": f"{means['rule']}: {scale.rule}",
    }
    best[scale.static] = f"**{best[scale.static]}**"
    mean, low, high = scale.gap
    return {
        "problem": f"`{scale.name}`",
        "test weeks": f"{len(scale.weeks)}",
        **{name: means[name] for name in ("random", "zeros", "SAF")},
        "best constant": best["constant"],
        "best rule": best["rule"],
        "clairvoyant": means["clairvoyant"],
        "gap": f"{mean:.3f} [{low:.3f}, {high:.3f}]" + ("" if scale.has_gap else ": none to close"),
    }
