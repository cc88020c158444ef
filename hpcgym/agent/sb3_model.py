"""Models that Stable-Baselines3 has saved, as agents: the policy of a `.zip`, whatever learned it.

A `.zip` holds pickled Python, which runs when it is loaded. It holds the spaces of the environment,
and these state its keywords. Statistics of `VecNormalize` are a file beside it.

Source: Stable-Baselines3, `BaseAlgorithm.save` and `load`, `VecNormalize.save`.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.agent.base import NamedAgent, Observation, batch_size, stated_keywords
from hpcgym.base.errors import CardError, no_such_file
from hpcgym.base.packages import needing

EXPLAIN = (
    "name the model's own keywords in a .py file: "
    'NamedAgent("MINE", PPO.load("model.zip"), {"action": ..., ...})'
)

# Other parts of a file may be of modules that are not installed here.
_NEEDED = {"policy_class", "policy_kwargs", "use_sde", "observation_space", "action_space"}
_NEEDED |= {"_last_obs", "_last_original_obs"}

STATISTICS = "vecnormalize.pkl"
"""Of `VecNormalize`: in a folder of the model's name, as RL Zoo writes it, or beside the model."""


@dataclass(frozen=True)
class SavedPolicy:
    """The policy of a saved model, the file it is from, and the `VecNormalize` it sees through."""

    policy: Any
    file: str
    normal: Any = None

    def predict(
        self,
        observation: Observation,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Choose as the model does; arguments and results as of `Agent.predict`.

        Raises:
            CardError: It learned from other observations, such as those of a machine of nodes.
        """
        is_batch = batch_size(observation) is not None
        shown = _each(observation, lambda part: np.shape(part)[is_batch:])
        known = _each(self.policy.observation_space, lambda part: part.shape)
        if shown != known:
            raise CardError(
                f"{self.file}: was trained on observations of shapes {known}, and these are "
                f"{shown}; a model fits machines of nodes, or machines of processors, as it was "
                "trained on"
            )
        if self.normal is not None:
            observation = self.normal.normalize_obs(observation)
        chosen: tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]
        chosen = self.policy.predict(observation, state, episode_start, deterministic)
        return chosen


def load_model(path: str | Path) -> NamedAgent:
    """Load the policy of a saved model; its agent is called after the file.

    Raises:
        CardError: The file is no model, or was trained in another environment.
        HpcgymError: Stable-Baselines3 is not installed.
    """
    with needing(str(path), "torch", "stable_baselines3"):
        from stable_baselines3.common.save_util import load_from_zip_file
    file = Path(os.path.expanduser(path))
    if not file.is_file():
        raise CardError(no_such_file(path))
    try:
        with ZipFile(file) as archive:
            needless = dict.fromkeys(json.loads(archive.read("data")).keys() - _NEEDED)
        data, parameters, _ = load_from_zip_file(file, custom_objects=needless, device="cpu")
        policy = _policy_of(data or {}, parameters["policy"])
        normal = _statistics_of(data or {}, file)
    except CardError:
        raise
    except Exception as error:  # unpickling may raise anything
        reason = " ".join(str(error).split())
        raise CardError(
            f"{path}: no model that Stable-Baselines3 has saved, or one of another version: "
            f"{type(error).__name__}: {reason:.200}"
        ) from None
    return NamedAgent(
        file.stem, SavedPolicy(policy, str(path), normal), keywords_of(policy, str(path))
    )


def keywords_of(model: Any, where: str) -> dict[str, Any]:
    """Return the keywords of `HPCBatch-v0` that the spaces of a model state.

    Args:
        model: Has `observation_space` and `action_space`.
        where: The model's file, for messages.

    Raises:
        CardError: A space states none: it is of another environment, of a wrapper, or of one with
            parts of your own.
    """
    stated = stated_keywords(model)
    if stated is None:
        raise CardError(
            f"{where}: its spaces are none of HPCBatch-v0 by keywords that are text or numbers, or "
            f"a wrapper has replaced one; {EXPLAIN}"
        )
    return stated


def _statistics_of(data: dict[str, Any], file: Path) -> Any:
    """Return the `VecNormalize` of a model, None if it learned without.

    A learner on policy tells that it learned through one. Others keep two observations: those of
    one instant, before and after it, or two in a row. So statistics are theirs if they make the
    second of the first, and without any the second must lie in the space.
    """
    seen, before = data.get("_last_obs"), data.get("_last_original_obs")
    if before is None:
        return None
    on_policy, space = "replay_buffer_class" not in data, data["observation_space"]
    beside = (file.with_suffix("") / STATISTICS, file.with_name(STATISTICS))
    for path in filter(Path.is_file, beside):
        normal = pickle.loads(path.read_bytes())
        if normal.observation_space != space:
            raise CardError(f"{path}: statistics of other observations than those of {file}")
        if on_policy or _are_close(normal.normalize_obs(before), seen):
            return normal
    if on_policy or not space.contains(_each(seen, lambda part: part[0])):
        raise CardError(
            f"{file}: was trained through VecNormalize; save its statistics beside it: "
            f'envs.save("{beside[1]}")'
        )
    return None


def _are_close(made: Any, kept: Any) -> bool:
    """Tell whether two observations are equal but for rounding."""
    if isinstance(made, dict):
        return all(np.allclose(made[key], kept[key]) for key in made)
    return np.allclose(made, kept)


def _policy_of(data: dict[str, Any], weights: Any) -> Any:
    """Make the policy that was saved; of its learner nothing is needed to predict."""
    keywords = dict(data["policy_kwargs"] or {})
    if data.get("use_sde"):
        keywords["use_sde"] = True
    policy = data["policy_class"](
        data["observation_space"], data["action_space"], _no_learning, **keywords
    )
    policy.load_state_dict(weights)
    policy.set_training_mode(False)
    return policy


def _no_learning(_: float) -> float:
    """Return the learning rate of a policy that learns no more."""
    return 0.0


def _each(observed: Any, shape_of: Callable[[Any], Any]) -> Any:
    """Return the shape of each part of observations or of their space, or of the one array."""
    parts = observed.spaces if isinstance(observed, spaces.Dict) else observed
    if isinstance(parts, dict):
        return {key: shape_of(part) for key, part in parts.items()}
    return shape_of(parts)
