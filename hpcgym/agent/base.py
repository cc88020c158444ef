"""The interface of agents: anything that predicts as the models of Stable-Baselines3 do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.training_weeks import Training
from hpcgym.base.errors import CardError

Observation = NDArray[Any] | dict[str, NDArray[Any]]
"""One observation, or a batch of them with one more axis in front, (n_envs, ...)."""


class Agent(Protocol):
    """Anything that chooses actions: a rule, a planner, a network, a model of SB3."""

    def predict(
        self,
        observation: Observation,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Choose an action for one observation, or one for each of a batch.

        Args:
            observation: What the environment shows, or a batch of it, shape (n_envs, ...).
            state: What the agent returned last time; None at first and for agents without memory.
            episode_start: Which environments begin an episode, shape (n_envs,).
            deterministic: Whether to take the best action rather than sample one.

        Returns:
            The action, or an array of n_envs actions, and the state for the next call.

        Source: Stable-Baselines3, `BaseAlgorithm.predict`.
        """
        ...


@dataclass(frozen=True)
class NamedAgent:
    """An agent, such as a trained model of SB3, with what an evaluation must know of it.

    Attributes:
        env_keywords: Keywords of `HPCBatch-v0` that it needs, such as its kind of action. The
            others are the scenario's or the environment's defaults. Where none is given, those
            that the spaces of a model state.
        training: What it was trained on, if its card says so; it is never evaluated there.
        steps: Decisions of its training, where its trainer counts them.
        ended_at_start: Whether nothing that its training tried was better than what it began with.

    Example:
        >>> from hpcgym.agent.rule import RuleAgent
        >>> NamedAgent("mine", RuleAgent("SAF"), {"action": "policy", "policies": ("SAF",)}).name
        'mine'
    """

    name: str
    agent: Agent
    env_keywords: Mapping[str, Any] = field(default_factory=dict)
    training: Training | None = None
    steps: int | None = None
    ended_at_start: bool = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Take the keywords that both spaces of a model state.

        Raises:
            CardError: The model learned through `VecNormalize`, and would not see through it.
        """
        normal = getattr(self.agent, "get_vec_normalize_env", lambda: None)()
        if normal is not None and normal.norm_obs:
            raise CardError(
                f"agent {self.name} learned through VecNormalize; save the model, and its "
                "statistics beside it as vecnormalize.pkl, and name the file"
            )
        if not self.env_keywords:
            object.__setattr__(self, "env_keywords", stated_keywords(self.agent) or {})

    def predict(
        self,
        observation: Observation,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Choose as the wrapped agent does; arguments and results as `Agent.predict`.

        Raises:
            CardError: The agent returns anything but a pair.
        """
        chosen = self.agent.predict(observation, state, episode_start, deterministic)
        if not (isinstance(chosen, tuple) and len(chosen) == 2):
            raise CardError(
                f"agent {self.name}: predict must return an action and a state, got {chosen!r:.80}"
            )
        return chosen


def stated_keywords(model: object) -> dict[str, Any] | None:
    """Return the keywords of `HPCBatch-v0` that both spaces of a model state; None if one does not.

    Source: `hpcgym.env.observation.state_keywords`.
    """
    spaces = (getattr(model, name, None) for name in ("observation_space", "action_space"))
    shown, chosen = (getattr(space, "env_keywords", None) for space in spaces)
    return dict(shown) if shown is not None and shown == chosen else None


def batch_size(observation: Observation) -> int | None:
    """Count the observations of a batch; None for one observation.

    All arrays of one observation but `jobs` have one axis.

    Example:
        >>> batch_size({"cluster": np.zeros((3, 10))})
        3
    """
    arrays = observation.values() if isinstance(observation, Mapping) else (observation,)
    flattest = min(map(np.asarray, arrays), key=np.ndim)
    return flattest.shape[0] if flattest.ndim > 1 else None
