"""Models that Stable-Baselines3 has saved, as agents: the policy of a `.zip`, whatever learned it.

A `.zip` holds pickled Python, which runs when it is loaded. It states the spaces of the environment
but none of its keywords, so these are worked out from the spaces.

Source: Stable-Baselines3, `BaseAlgorithm.save` and `load`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.agent.base import NamedAgent, Observation, batch_size
from hpcgym.base.errors import CardError, no_such_file
from hpcgym.base.packages import needing
from hpcgym.core import loaders
from hpcgym.core.action import kind_of
from hpcgym.core.observation_fields import SmallField
from hpcgym.env.observation import fields_of, flat_space, observation_space

EXPLAIN = (
    "name the model's own keywords in a .py file: "
    'NamedAgent("MINE", PPO.load("model.zip"), {"action": ..., ...})'
)


@dataclass(frozen=True)
class SavedPolicy:
    """The policy of a saved model, and the file it is from."""

    policy: Any
    file: str

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
        data, parameters, _ = load_from_zip_file(file, device="cpu")
        policy = _policy_of(data or {}, parameters["policy"])
    except Exception as error:  # unpickling may raise anything
        reason = " ".join(str(error).split())
        raise CardError(
            f"{path}: no model that Stable-Baselines3 has saved, or one of another version: "
            f"{type(error).__name__}: {reason:.200}"
        ) from None
    return NamedAgent(file.stem, SavedPolicy(policy, str(path)), keywords_of(policy, str(path)))


def keywords_of(model: Any, where: str) -> dict[str, Any]:
    """Return the keywords of `HPCBatch-v0` under which it has the spaces of a model.

    Args:
        model: Has `observation_space` and `action_space`.
        where: The model's file, for messages.

    Raises:
        CardError: The spaces are not those of `HPCBatch-v0`, or fit several kinds of action.
    """
    shown, fields = _shown(model.observation_space, where)
    kinds = _kinds(model.action_space, shown.get("n_slots", 0), fields)
    if len(kinds) == 1:
        return {"action": kinds[0], **shown}
    what = f"several kinds of action, {' and '.join(kinds)}" if kinds else "no kind of action"
    raise CardError(f"{where}: its actions, {model.action_space}, fit {what}; {EXPLAIN}")


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


def _each(observed: Any, shape_of: Callable[[Any], tuple[int, ...]]) -> Any:
    """Return the shape of each part of observations or of their space, or of the one array."""
    parts = observed.spaces if isinstance(observed, spaces.Dict) else observed
    if isinstance(parts, dict):
        return {key: shape_of(part) for key, part in parts.items()}
    return shape_of(parts)


def _shown(space: Any, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keywords that say how many jobs an observation shows, and in which form.

    The second value tells whether it shows what actions of controls, and about trials, need.
    """
    plain: dict[str, Any] = {"controls": False, "trials": False}
    if space == flat_space(0, only=SmallField):
        return {"observation": "small"}, plain
    for which in product((False, True), repeat=2):
        fields: dict[str, Any] = dict(zip(("controls", "trials"), which, strict=True))
        n_job, n_cluster = map(len, fields_of(**fields))
        if isinstance(space, spaces.Box):
            n_slots = (spaces.flatdim(space) - n_cluster) // (n_job + 1)
            if n_slots > 0 and space == flat_space(n_slots, **fields):
                return {"n_slots": n_slots, "observation": "flat"}, fields
        parts = dict(space.spaces) if isinstance(space, spaces.Dict) else {}
        if "action_mask" in parts:
            n_slots = spaces.flatdim(parts["action_mask"])
            usual = observation_space(n_slots, **fields)
            assert isinstance(usual, spaces.Dict)
            if "machine" in parts or all(parts[key].shape == usual[key].shape for key in usual):
                return {"n_slots": n_slots}, fields
    raise CardError(
        f"{where}: was trained on other observations than those of HPCBatch-v0, {space!r:.200}; "
        f"for `fields` of your own, {EXPLAIN}; else wrap it there in a class with `predict`"
    )


def _kinds(space: Any, n_slots: int, fields: dict[str, Any]) -> list[str]:
    """Return the kinds of action that have this space, and go with an observation."""
    is_vector = not isinstance(space, spaces.Discrete)
    size = space.shape if is_vector else int(space.n)
    kinds = [kind for kind in map(kind_of, loaders.ACTIONS) if is_vector == kind.IS_VECTOR]
    shown = fields["controls"], fields["trials"]
    kinds = [kind for kind in kinds if shown == (kind.SHOWS_CONTROLS, kind.SHOWS_TRIALS)]
    sizes = {kind.NAME: kind(n_slots).size for kind in kinds}
    return [name for name in sizes if size in (sizes[name], (sizes[name],))]
