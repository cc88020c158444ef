"""Weights of the six features in unit scale, as agents.

In unit scale each feature is divided by its size on the machine, so that weights hold over logs of
different sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.base import NamedAgent, Observation, batch_size
from hpcgym.agent.rule import RuleAgent
from hpcgym.core.policy import mixed_policy
from hpcgym.env.action import unit_divisors
from hpcgym.env.scenario.episodes import Episodes

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ConstantAction:
    """Takes the same action, a vector or a number, whatever it observes."""

    action: tuple[float, ...] | int

    def predict(
        self,
        observation: Observation,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Choose the action; arguments and results as `hpcgym.agent.base.Agent.predict`."""
        n_envs = batch_size(observation)
        action = np.array(self.action)
        return (action if n_envs is None else np.stack([action] * n_envs)), state


def weights_agent(
    weights: FloatArray, episodes: Sequence[Episodes], *, name: str
) -> RuleAgent | NamedAgent:
    """Make the agent that orders by weights in unit scale, shape (6,).

    It is a rule where all logs of `episodes` have one scale. Otherwise it plays the weights through
    an environment, which knows the scale of its scenario.

    Source: Specification, section 10, "Action semantics", `weights`.
    """
    divisors = np.array([divisors_of(log) for log in episodes])
    if (divisors == divisors[0]).all():
        return RuleAgent(mixed_policy(weights, divisors=divisors[0]), name=name)
    return NamedAgent(name, ConstantAction(tuple(weights.tolist())), {"action": "weights"})


def divisors_of(episodes: Episodes) -> FloatArray:
    """Return what the six features of a log are divided by in unit scale, shape (6,).

    Source: Specification, section 10, "Action semantics", `weights`.
    """
    processors = episodes.scenario.machine.processors
    return unit_divisors(processors, episodes.largest_request, episodes.settings.threshold)
