"""`HPCBatch-v0` for Stable-Baselines3: its learners on the vector environment, without wrappers."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Unpack

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from hpcgym.agent.sb3_model import STATISTICS
from hpcgym.agent.validation import Score, Validation
from hpcgym.base.errors import HpcgymError, ScenarioError
from hpcgym.base.output import make_folder
from hpcgym.base.packages import needing
from hpcgym.base.progress import clock
from hpcgym.env.config import AnyScenario, Keywords
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scheduling import Observation
from hpcgym.env.vector import SchedulingVectorEnv

with needing("HPCBatchVecEnv", "torch", "stable_baselines3"):
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecEnv


class HPCBatchVecEnv(VecEnv):
    """A vector of environments with the interface of Stable-Baselines3's `DummyVecEnv`.

    Episodes reset by themselves. The infos of the step that ends one hold `terminal_observation`,
    `TimeLimit.truncated` and the final metrics; those of the episode that follows are in
    `reset_infos`. Observations are copies, which learners keep while they step.

    Arguments are those of `hpcgym.env.vector.SchedulingVectorEnv`. In place of a scenario may stand
    the id of a problem, such as `hpcgym/Price-train-v0`.

    Raises:
        NameNotFound: An unknown id; the message has the nearest.
        HpcgymError: An unknown or contradictory keyword; on import, no Stable-Baselines3.

    Source: Stable-Baselines3, `DummyVecEnv` and `VecEnv`.

    Example:
        >>> from stable_baselines3 import PPO
        >>> envs = HPCBatchVecEnv("tiny", num_envs=4)
        >>> model = PPO("MultiInputPolicy", envs, n_steps=8, batch_size=32)
        >>> model.learn(64).num_timesteps
        64
    """

    def __init__(
        self,
        scenario: AnyScenario | Sequence[AnyScenario] = "many-weeks",
        *,
        num_envs: int = 8,
        threads: int | None = None,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **keywords: Unpack[Keywords],
    ) -> None:
        ids = r"(hpcgym:)?(hpcgym/.+|HPCBatch)-v\d+"
        by_id = isinstance(scenario, str) and re.fullmatch(ids, scenario)
        made: Any = gymnasium.make_vec if by_id else SchedulingVectorEnv
        # The vector environment.
        self.envs: SchedulingVectorEnv = made(
            scenario,
            num_envs=num_envs,
            autoreset_mode=AutoresetMode.SAME_STEP,
            threads=threads,
            max_episode_steps=max_episode_steps,
            render_mode=render_mode,
            **keywords,
        )
        self._actions: Any = None
        space = self.envs.single_observation_space
        super().__init__(num_envs, space, self.envs.single_action_space)
        self.metadata["render_fps"] = self.envs.metadata["render_fps"]

    def reset(self) -> Observation:
        """Begin episodes, with the seeds and options that were set for this reset.

        Raises:
            ScenarioError: Options that do not fit.
        """
        shown, info = self.envs.reset(seed=self._seeds, options=_together(self._options))
        self.reset_infos = _infos_of(info, np.arange(self.num_envs))
        self._reset_seeds()
        self._reset_options()
        return shown

    def seed_each(self, seeds: Sequence[int]) -> None:
        """Seed every environment at the next reset; equal seeds draw the same episodes."""
        self._seeds = list(seeds)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions, one per environment, for `step_wait`."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[Observation, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Step; return observations, rewards, which episodes ended, and one info per environment.

        Raises:
            ActionError: As by `SchedulingVectorEnv.step`.
        """
        shown, reward, terminated, truncated, info = self.envs.step(self._actions)
        done = terminated | truncated
        infos = _infos_of(info, np.arange(self.num_envs))
        for env_info in infos:
            env_info["TimeLimit.truncated"] = False
        ended = np.flatnonzero(done)
        if len(ended) > 0:
            begun = _infos_of(info, ended)
            final = _infos_of(info["final_info"], ended)
            for env, first, last in zip(ended.tolist(), begun, final, strict=True):
                self.reset_infos[env], infos[env] = first, last
                last["terminal_observation"] = info["final_obs"][env]
                last["TimeLimit.truncated"] = bool(truncated[env] and not terminated[env])
        return shown, reward.astype(np.float32), done, infos

    def close(self) -> None:
        """Close the vector environment."""
        self.envs.close()

    def get_images(self) -> Sequence[NDArray[Any] | None]:
        """Return a picture of each, (height, width, 3), or None unless in mode rgb_array."""
        if self.render_mode != "rgb_array":
            return [None] * self.num_envs
        return list(self.envs.render() or ())

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Read an attribute of `hpcgym.env.sub_env.SubEnv`; of all environments by default."""
        views = self.envs.envs
        return [getattr(views[env], attr_name) for env in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Raise AttributeError: environments of a vector share what could be set."""
        raise AttributeError(
            f"{attr_name!r} cannot be set on environments of HPCBatchVecEnv; make new ones with "
            "the keyword you mean"
        )

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of `hpcgym.env.sub_env.SubEnv` of some environments; of all by default."""
        methods = self.get_attr(method_name, indices)
        return [method(*method_args, **method_kwargs) for method in methods]

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: Any = None
    ) -> list[bool]:
        """Return False for each: no environment is wrapped."""
        return [False for _ in self._get_indices(indices)]


class Progress(BaseCallback):
    """Says between rollouts what a policy reaches on validation weeks, and keeps the best.

    The policy plays the weeks without noise, whenever that has taken less than `share` of the time
    so far. Standard error gets the geometric mean of the weeks' ratios to SAF, with its interval,
    and the gap closed where the problem has a scale; the learner's logger gets both, too.

    Args:
        weeks: Weeks of the scenario that is learned, or episodes.
        best: File for the model that was best by the mean log ratio, such as "best.zip"; statistics
            of `VecNormalize` are in a folder of its name.
        share: Largest share of the time that validation takes.

    Example:
        >>> from stable_baselines3 import PPO
        >>> model = PPO("MultiInputPolicy", HPCBatchVecEnv("tiny"), n_steps=8, batch_size=32)
        >>> model.learn(64, callback=Progress("1")).num_timesteps
        64
    """

    def __init__(
        self,
        weeks: str | Episodes = "validation:30",
        *,
        best: str | Path | None = None,
        share: float = 0.1,
    ) -> None:
        super().__init__()
        # Of each validation the decisions so far and the score.
        self.history: list[tuple[int, Score]] = []
        self._weeks, self._best, self._share = weeks, best, share
        self._spent, self._begun = 0.0, time.perf_counter()

    def _init_callback(self) -> None:
        """Prepare the weeks, for the keywords of the environment that is learned in."""
        envs: Any = self.training_env.unwrapped.envs  # type: ignore[attr-defined]
        is_ours = isinstance(envs, SchedulingVectorEnv)
        config = envs.configs[0] if is_ours else getattr(envs[0].unwrapped, "_config", None)
        if config is None:
            raise HpcgymError("Progress validates in hpcgym's environments, and this is another")
        weeks = self._weeks
        if isinstance(weeks, str):
            weeks = Episodes(config.episodes.scenario).select(weeks)
        names = Keywords.__annotations__.keys() - {"weeks", "reward", "baseline"}
        keywords: Any = {name: getattr(config, name) for name in names}
        more: Any = {"copies": 0, "threads": 1, "metric": config.metric}
        self._validation = Validation([weeks], keywords, **more)

    def _on_rollout_start(self) -> None:
        """Validate, unless that has taken too long so far."""
        if self._spent <= self._share * (time.perf_counter() - self._begun):
            self._validate()

    def _on_training_end(self) -> None:
        """Validate what was learned."""
        self._validate()

    def _on_step(self) -> bool:
        return True

    def predict(
        self, observation: Any, *_: Any, deterministic: bool = True
    ) -> tuple[NDArray[Any], None]:
        """Return the model's actions for raw observations, as `hpcgym.agent.base.Agent`."""
        normal = self.model.get_vec_normalize_env()
        seen = observation if normal is None else normal.normalize_obs(observation)
        return self.model.predict(seen, deterministic=deterministic)[0], None

    def _validate(self) -> None:
        """Play the weeks, and say what came out."""
        since = time.perf_counter()
        score = self._validation.score(self)
        if self._best is not None and all(
            score.mean_log_ratio < before.mean_log_ratio for _, before in self.history
        ):
            self.model.save(self._best)
            if normal := self.model.get_vec_normalize_env():
                normal.save(str(make_folder(Path(self._best).with_suffix("")) / STATISTICS))
        self.history.append((self.num_timesteps, score))
        score.log(self.logger)
        now = time.perf_counter()
        self._spent += now - since
        done = f"{self.num_timesteps:>11,} decisions, {clock(now - self._begun)}"
        print(f"{done}: {score}", file=sys.stderr, flush=True)


def _together(options: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Turn the options of each environment into options of them all."""
    each = list(options)
    if any(asked.keys() != each[0].keys() for asked in each):
        raise ScenarioError(
            f"options must name the same keys for every environment, got {each}; reset some with "
            "SchedulingVectorEnv's 'reset_mask'"
        )
    shared = "common_random_numbers"
    return {
        key: each[0][key] if key == shared else [asked[key] for asked in each] for key in each[0]
    }


def _infos_of(info: dict[str, Any], envs: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Take the infos of some environments out of that of all."""
    infos: list[dict[str, Any]] = [{} for _ in envs]
    for key in info:
        if key.startswith(("_", "final_")):
            continue
        column = info[key][envs]
        values = column.tolist() if column.ndim == 1 else column
        for env_info, value, is_there in zip(infos, values, info[f"_{key}"][envs], strict=True):
            if is_there:
                env_info[key] = value
    return infos
