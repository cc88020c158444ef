"""Learning curves: what learners reach on weeks that they never saw, and how fast.

Every learner starts from scratch, and plays the training weeks of a scenario. The judge
plays its networks, without noise, on the test weeks and on jittered copies of these. Time is that
of one core, but for `hpcgym train`, whose minutes pass on the clock.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from runpy import run_path
from typing import Any, NamedTuple
from unittest.mock import patch

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hpcgym.core.actions.index import SAF
from hpcgym.env.scale import scale_of
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.evaluation.statistics import Estimate, ratio_of_sums
from hpcgym.trace.resample import jitter

Floats = NDArray[Any]
Predict = Callable[[Any], Floats]
"""Returns the actions of a network for observations, small ones a row each unless keywords say
otherwise."""

COPIES, MANY = 10, 100
"""Jittered copies of each week, besides the week itself; none where there are so many weeks."""

ZOO = Path(__file__).resolve().parents[1] / "rl_zoo3_ppo.py"
"""Hyper-parameters of PPO as RL Baselines3 Zoo reads them."""

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
    """Mean bounded slowdowns on weeks and their copies, and SAF's: shape (n_weeks, 1 + COPIES)."""

    bsld: Floats
    saf: Floats

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
        own = {"observation": "small", **keywords}
        self._envs = SchedulingVectorEnv(scenario, num_envs=len(self.jobs), threads=1, **own)

    def __call__(self, predict: Predict) -> Judged:
        """Return what a network reaches."""
        shown, _ = self._envs.reset(seed=0, options={"workload": self.jobs})
        found, over = np.zeros((2, len(self.jobs))), np.zeros(len(self.jobs), dtype=np.bool_)
        while not over.all():
            shown, _, terminated, _, info = self._envs.step(predict(shown))
            ends = terminated & ~over  # an episode that is over begins anew
            if ends.any():
                found[0, ends] = info["mean_bsld"][ends]
                found[1, ends] = info["mean_bsld"][ends] / info["ratio"][ends]
                over |= ends
        return Judged(*found.reshape(2, *self._shape))


class Point(NamedTuple):
    """What a learner has reached after some time, s, and some steps."""

    seconds: float
    steps: int
    judged: Judged


def constants(scenario: str) -> Iterator[tuple[str, Judged]]:
    """Yield what chance, rules and the best constant reach on the test weeks."""
    chance = np.random.default_rng(0)
    judge, scale = Judge(scenario, "test"), scale_of(scenario, "index")
    yield "random", judge(lambda shown: chance.uniform(-1, 1, (len(shown), 5)).astype(np.float32))
    for name in ("FCFS", "SAF"):
        yield name, judge(always(CONSTANTS[name]))
    assert scale is not None
    yield "best constant", judge(always(scale.constant))
    by_rule = Judge(scenario, "test", **BY_RULE)
    yield "URGENT-BENEFIT", by_rule(lambda shown: np.zeros(len(shown), np.int64))


def always(action: Sequence[float]) -> Predict:
    """Return what takes one action whatever is shown."""
    return lambda shown: np.tile(np.array(action, dtype=np.float32), (len(shown), 1))


def learned(learner: str, scenario: str, seed: int, seconds: float, **given: Any) -> list[Point]:
    """Train a learner for some time, without what judging takes, and return its curve."""
    return LEARNERS[learner](scenario, seed, seconds, **given)


def by_sb3(
    scenario: str, seed: int, seconds: float, n_points: int = 10, **parameters: Any
) -> list[Point]:
    """Train PPO of Stable-Baselines3; without parameters with its defaults, by id alone."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    settings: dict[str, Any] = dict(parameters)
    n_envs, normalises = settings.pop("n_envs", 1), settings.pop("normalize", False)
    envs: Any = make_vec_env("HPCBatch-v0", n_envs=n_envs, seed=seed, env_kwargs=own_of(scenario))
    if normalises:
        envs = VecNormalize(envs, norm_obs=False, gamma=settings.get("gamma", 0.99))
    judge, points = Judge(scenario, "test"), list[Point]()
    model = PPO(settings.pop("policy", "MlpPolicy"), envs, seed=seed, device="cpu", **settings)

    class Watch(BaseCallback):
        """Judges at equal distances, and ends the training in time."""

        begun, judging = time.process_time(), 0.0

        def spent(self) -> float:
            return time.process_time() - self.begun - self.judging

        def _on_rollout_end(self) -> None:
            if len(points) < n_points and self.spent() >= seconds * len(points) / n_points:
                self.judge()

        def _on_step(self) -> bool:
            return self.spent() < seconds

        def judge(self) -> None:
            now, spent = time.process_time(), self.spent()
            reached = judge(lambda shown: model.predict(shown, deterministic=True)[0])
            points.append(Point(spent, model.num_timesteps, reached))
            self.judging += time.process_time() - now

    watch = Watch()
    watch.judge()
    model.learn(MOST_STEPS, callback=watch)
    watch.judge()
    return points


def by_zoo(scenario: str, seed: int, seconds: float) -> list[Point]:
    """Train PPO of Stable-Baselines3 with the hyper-parameters for RL Baselines3 Zoo."""
    given = dict(run_path(str(ZOO))["hyperparams"]["HPCBatch-v0"])
    del given["n_timesteps"], given["env_kwargs"]
    return by_sb3(scenario, seed, seconds, **given)


def by_hpcgym(scenario: str, seed: int, seconds: float) -> list[Point]:
    """Train as `hpcgym train` does, which may stop early; return its start and what it gives."""
    from hpcgym.agent.learn.ppo import preset, train

    config = preset("index", minutes=seconds / 60, steps=MOST_STEPS)
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
        Point(0.0, 0, judge(lambda shown: np.zeros((len(shown["cluster"]), 5), np.float32))),
        Point(spent, trained.steps, judge(lambda shown: trained.agent.predict(shown)[0])),
    ]


def by_cleanrl(
    scenario: str, seed: int, seconds: float, folder: Path, steps: int = 200_000
) -> list[Point]:
    """Run CleanRL's `ppo_continuous_action.py` unchanged, from a folder; it goes by steps alone.

    It was written for Gymnasium below 1.0, whose wrapper needed no space.
    """
    import torch

    name, env = "Curves-v0", "hpcgym.env.scheduling:SchedulingEnv"
    gymnasium.register(id=name, entry_point=env, kwargs=own_of(scenario))  # no keywords pass
    sys.path.insert(0, str(folder))
    sys.argv = ["ppo", "--env-id", name, "--seed", str(seed), "--no-cuda"]
    sys.argv += ["--total-timesteps", str(steps)]
    wrapper = gymnasium.wrappers.TransformObservation
    begun = time.process_time()
    with patch.object(
        gymnasium.wrappers,
        "TransformObservation",
        lambda env, change: wrapper(env, change, env.observation_space),
    ):
        made = run_path(str(folder / "ppo_continuous_action.py"), run_name="__main__")
    spent, one = time.process_time() - begun, made["envs"].envs[0]
    while not hasattr(one, "obs_rms"):
        one = one.env
    mean, unit = one.obs_rms.mean, np.sqrt(one.obs_rms.var + one.epsilon)

    def predict(shown: Floats) -> Floats:
        seen = torch.as_tensor(np.clip((shown - mean) / unit, -10, 10), dtype=torch.float32)
        with torch.no_grad():
            return np.asarray(np.clip(made["agent"].actor_mean(seen).numpy(), -1, 1))

    return [Point(spent, steps, Judge(scenario, "test")(predict))]


LEARNERS: dict[str, Callable[..., list[Point]]] = {
    "sb3": by_sb3,
    "zoo": by_zoo,
    "hpcgym": by_hpcgym,
    "cleanrl": by_cleanrl,
}
"""Functions of scenario, seed and seconds, by name."""


def own_of(scenario: str) -> dict[str, Any]:
    """Return the keywords of `HPCBatch-v0` that a learner makes its environment by."""
    return {"scenario": scenario, "weeks": "train", "observation": "small"}
