"""Learning curves: what learners reach on weeks that they never saw, and how fast.

Every learner starts from scratch, and plays the training weeks of a scenario by its id. The judge
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

from hpcgym.env.scale import scale_of
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.evaluation.statistics import Estimate, ratio_of_sums
from hpcgym.scenario.augment import Augmentation
from hpcgym.scenario.episodes import Episodes
from hpcgym.scenario.splits import SPLITS
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

ZOO_ID = "hpcgym/ManyWeeks-index-train-v0"
"""Id of these hyper-parameters."""

BY_RULE: dict[str, Any] = {
    "action": "policy",
    "policies": ["SMITH-URGENT"],
    "backfill": "cost-benefit:cap=0.97",
    "decide": "event",
}
"""Keywords under which action 0 is URGENT-BENEFIT."""

CONSTANTS = {"SAF": (0, 0, 0, 0, 0), "FCFS": (-1, -1, 0, 0, 0)}
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
    given = dict(run_path(str(ZOO))["hyperparams"][ZOO_ID])
    del given["n_timesteps"]
    return by_sb3(scenario, seed, seconds, **given)


def by_hpcgym(scenario: str, seed: int, seconds: float) -> list[Point]:
    """Train as `hpcgym train` does, which may stop early; return its start and what it gives."""
    from hpcgym.agent.ppo import preset, train

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
        # An untrained network acts as SAF.
        Point(0.0, 0, judge(lambda shown: np.zeros((len(shown["cluster"]), 5), np.float32))),
        Point(spent, trained.steps, judge(lambda shown: trained.agent.predict(shown)[0])),
    ]


GAP_STEPS = 1_200_000
"""Decisions after which the gap between weeks is measured: some minutes of one core."""

GAPS: dict[str, tuple[dict[str, Any], Augmentation | None]] = {
    "PPO from SAF": ({"constants": 0}, None),
    "the same, jittered and resampled weeks, width 8": (
        {"constants": 0, "hidden": 8},
        Augmentation(jitter=600, resampled=0.5),
    ),
}
"""Trainings whose last network is judged on the weeks that it has played, too."""


def gap(scenario: str, name: str, steps: int = GAP_STEPS) -> dict[str, Estimate]:
    """Return what the last network of a training reaches on each part of the weeks."""
    from hpcgym.agent.ppo import preset, train

    changes, augmentation = GAPS[name]
    never = {"minutes": 0.0, "patience": 0, "validate_every": MOST_STEPS}
    config = preset("index", steps=steps, gives="last", **never, **changes)
    parts = {part: Episodes(scenario).select(part) for part in SPLITS}
    held = [parts["validation"]]
    trained = train(config, [parts["train"]], validation=held, augmentation=augmentation)
    own: dict[str, Any] = {**config.env_keywords, "observation": "dict"}
    judges = {
        part: Judge(scenario, part, 0 if part == "train" else COPIES, **own) for part in parts
    }
    predict: Predict = lambda shown: trained.agent.predict(shown)[0]  # noqa: E731
    return {part: judge(predict).ratio for part, judge in judges.items()}


N_FOLDS = 4


def known_by_folds(scenario: str) -> Iterator[dict[str, str]]:
    """Yield what known constants reach on weeks that did not choose them, by what chose.

    The weeks of training and validation are cut into folds; test weeks are not touched.
    """
    from hpcgym.agent.ppo import preset
    from hpcgym.agent.ppo.constant_start import COPIES as SEARCHED
    from hpcgym.agent.validation import Score, Validation
    from hpcgym.agent.weights import ConstantAction
    from hpcgym.core.actions.index import Index
    from hpcgym.ranges import number_ranges

    weeks, keywords = Episodes(scenario), preset("index").env_keywords
    open_weeks = sorted(
        number for part in ("train", "validation") for number in weeks.select(part).numbers
    )
    known = [ConstantAction(constant) for constant in Index.KNOWN]
    choices: dict[str, Callable[[Score], float]] = {
        "ratio of sums": lambda score: score.ratio,
        "mean log ratio": lambda score: score.mean_log_ratio,
    }
    reached: dict[str, list[float]] = {name: [] for name in choices}
    for held in np.array_split(open_weeks, N_FOLDS):
        others = [number for number in open_weeks if number not in held]
        seen, judge = (
            Validation([weeks.select(number_ranges(part))], keywords, copies=copies, threads=1)
            for part, copies in ((others, SEARCHED), (held.tolist(), COPIES))
        )
        scores = [seen.score(constant) for constant in known]
        for name, value_of in choices.items():
            chosen = known[int(np.argmin([value_of(score) for score in scores]))]
            reached[name].append(judge.score(chosen).ratio)
    for name, ratios in reached.items():
        by_fold = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        yield {"chosen by": name, "mean": f"{np.mean(ratios):.3f}", "each fold": by_fold}


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
