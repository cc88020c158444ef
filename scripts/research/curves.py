"""Learning curves: what learners reach on weeks that they never saw, and how fast.

Every learner starts from scratch, and plays the training weeks of a scenario. The judge
plays its networks, without noise, on the test weeks and on jittered copies of these. Time is that
of one core, but for `hpcgym train`, whose minutes pass on the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from runpy import run_path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.actions.index import SAF
from hpcgym.core.price import PRICED
from hpcgym.env.registration import PROBLEMS
from hpcgym.env.scale import scale_of
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.evaluation.statistics import Estimate, ratio_of_sums
from hpcgym.trace.resample import jitter
from research.price import SAF as HOLDS_NOTHING
from research.price import SCENARIO as PRICES
from research.price import held, rules_of_the_shelf

Floats = NDArray[Any]
Predict = Callable[[Any], Floats]
"""Returns the actions of a network for observations, small ones a row each unless keywords say
otherwise."""

COPIES, MANY = 10, 100
"""Jittered copies of each week, besides the week itself; none where there are so many weeks."""

ZOO = Path(__file__).resolve().parents[1] / "rl_zoo3_ppo.py"
"""Hyper-parameters of PPO as RL Baselines3 Zoo reads them."""

ZOO_ONLY = {"n_timesteps", "env_kwargs"}
"""Its parameters that ids and minutes take the place of."""

MOST_STEPS = 2**40
"""More than any training takes: they end by time."""

BY_RULE: dict[str, Any] = {
    "action": "policy",
    "policies": ["SMITH-URGENT"],
    "backfill": "cost-benefit:cap=0.97",
    "decide": "event",
}
"""Keywords under which action 0 is URGENT-BENEFIT."""

CONSTANTS = {"SAF": SAF, "FCFS": (-0.5, -1, -1, 0, -1)}
"""Actions that hold for a whole week."""


class Judged(NamedTuple):
    """What is seen of weeks and their copies, each of shape (n_weeks, 1 + COPIES)."""

    bsld: Floats  # the mean bounded slowdown; J, where energy has a price
    saf: Floats  # SAF's mean bounded slowdown; 1, where energy has a price
    wait: Floats  # the longest, s

    @property
    def ratio(self) -> Estimate:
        """Return the ratio of sums, with an interval over weeks."""
        return ratio_of_sums(self.bsld, self.saf)


class Judge:
    """Plays networks on the weeks of a part of a scenario, and on copies of these.

    Args:
        keywords: Those of the environment in which the networks have learned.
    """

    def __init__(self, scenario: str, part: str, copies: int = COPIES, **keywords: Any) -> None:
        episodes = Episodes(scenario).select(part)
        copies = 0 if len(episodes) >= MANY else copies
        self.jobs = []
        for place in range(len(episodes)):
            week = episodes.workload(place)
            shaken = np.random.default_rng([place, 0])
            self.jobs += [week, *(jitter(week, shaken) for _ in range(copies))]
        self._shape = len(episodes), 1 + copies
        self._prices = scenario == PRICES
        usual = PROBLEMS["Price"].keywords if self._prices else {"observation": "small"}
        own: dict[str, Any] = {"observation": "flat", **usual, **keywords}
        own |= {"num_envs": len(self.jobs), "threads": 1, "weeks": part}
        self._envs = SchedulingVectorEnv(scenario, **own)
        self.n = int(np.prod(self._envs.single_action_space.shape or ()))  # numbers of an action

    def __call__(self, predict: Predict) -> Judged:
        """Return what a network reaches."""
        shown, _ = self._envs.reset(seed=0, options={"workload": self.jobs})
        found, over = np.ones((3, len(self.jobs))), np.zeros(len(self.jobs), dtype=np.bool_)
        while not over.all():
            shown, _, terminated, _, info = self._envs.step(predict(shown))
            ends = terminated & ~over  # an episode that is over begins anew
            if ends.any():
                found[0, ends] = info[PRICED if self._prices else "mean_bsld"][ends]
                if not self._prices:
                    found[1, ends] = info["mean_bsld"][ends] / info["ratio"][ends]
                found[2, ends] = info["max_wait_time"][ends]
                over |= ends
        return Judged(*found.reshape(3, *self._shape))


class Point(NamedTuple):
    """What a learner has reached after some time, s, and some steps."""

    seconds: float
    steps: int
    judged: Judged


def constants(scenario: str) -> Iterator[tuple[str, Judged]]:
    """Yield what chance, rules and the best constant reach on the test weeks."""
    chance = np.random.default_rng(0)
    judge = Judge(scenario, "test")
    if scenario == PRICES:
        yield "zeros", judge(held((0.0, 0.0)))
        for name, rule in {"SAF": HOLDS_NOTHING, **rules_of_the_shelf()}.items():
            yield name, judge(rule.choose)
        return
    scale = scale_of(scenario, "index")
    yield "random", judge(lambda shown: chance.uniform(-1, 1, (len(shown), 5)).astype(np.float32))
    for name in ("FCFS", "SAF"):
        yield name, judge(held(CONSTANTS[name]))
    assert scale is not None
    yield "best constant", judge(held(scale.constant))
    by_rule = Judge(scenario, "test", **BY_RULE)
    yield "URGENT-BENEFIT", by_rule(lambda shown: np.zeros(len(shown), np.int64))


def by_sb3(
    scenario: str, seed: int, seconds: float, n_points: int = 10, **parameters: Any
) -> list[Point]:
    """Train PPO of Stable-Baselines3; without parameters with its defaults, by id alone."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    from research.clock import Clock

    settings: dict[str, Any] = dict(parameters)
    n_envs, normalises = settings.pop("n_envs", 1), settings.pop("normalize", False)
    _, falls, rate = str(settings.pop("learning_rate", 3e-4)).rpartition("lin_")
    name, own = problem_of(scenario)
    envs: Any = make_vec_env(name, n_envs=n_envs, seed=seed, env_kwargs=own)
    if normalises:
        envs = VecNormalize(envs, gamma=settings.get("gamma", 0.99))
    judge, points = Judge(scenario, "test"), list[Point]()
    settings["learning_rate"] = float(rate)
    model = PPO(settings.pop("policy", "MlpPolicy"), envs, seed=seed, device="cpu", **settings)

    def predict(shown: Floats) -> Floats:
        seen = envs.normalize_obs(shown) if normalises else shown
        return model.predict(seen, deterministic=True)[0]

    class Watch(Clock):
        """Judges at equal distances, and does not count what that takes."""

        def _on_rollout_end(self) -> None:
            if falls:
                super()._on_rollout_end()
            if len(points) < n_points and 1 - self.left >= len(points) / n_points:
                self.judge()

        def judge(self) -> None:
            spent = self.seconds * (1 - self.left)
            with self.stopped():
                points.append(Point(spent, model.num_timesteps, judge(predict)))

    watch = Watch(seconds / 60, float(rate))
    watch.judge()
    model.learn(MOST_STEPS, callback=watch)
    watch.judge()
    return points


def by_zoo(scenario: str, seed: int, seconds: float) -> list[Point]:
    """Train PPO of Stable-Baselines3 with the hyper-parameters for RL Baselines3 Zoo."""
    known = run_path(str(ZOO))["hyperparams"][problem_of(scenario)[0]]
    return by_sb3(scenario, seed, seconds, **{key: known[key] for key in known.keys() - ZOO_ONLY})


def by_hpcgym(scenario: str, seed: int, seconds: float) -> list[Point]:
    """Train as `hpcgym train` does, which may stop early; return its start and what it gives."""
    from hpcgym.agent.learn.ppo import preset, train

    config = preset(action_of(scenario), minutes=seconds / 60, steps=MOST_STEPS)
    weeks = Episodes(scenario)
    begun = time.process_time()
    trained = train(
        config, [weeks.select("train")], validation=[weeks.select("validation")], seed=seed
    )
    spent = time.process_time() - begun
    keywords: dict[str, Any] = {**config.env_keywords, "observation": "dict"}
    judge = Judge(scenario, "test", **keywords)
    return [
        # What an untrained network takes.
        Point(0.0, 0, judge(lambda shown: np.zeros((len(shown["cluster"]), judge.n), np.float32))),
        Point(spent, trained.steps, judge(lambda shown: trained.agent.predict(shown)[0])),
    ]


LEARNERS: dict[str, Callable[..., list[Point]]] = {
    "sb3": by_sb3,
    "zoo": by_zoo,
    "hpcgym": by_hpcgym,
}
"""Functions of scenario, seed and seconds, which return a curve; judging is not counted."""


def action_of(scenario: str) -> str:
    """Return the kind of action that learners choose by."""
    return "price" if scenario == PRICES else "index"


def problem_of(scenario: str) -> tuple[str, dict[str, Any]]:
    """Return the id by which learners make their environment, and its keywords."""
    if scenario == PRICES:
        return "hpcgym/Price-train-v0", {}
    return "HPCBatch-v0", {"scenario": scenario, "weeks": "train", "observation": "small"}
