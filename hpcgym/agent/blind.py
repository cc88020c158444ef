"""Agents that look at nothing: an agent's mean action, and its own actions shuffled in time.

If an agent does no better than both, its training has found which actions are good, and nothing
about when to take them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.base import NamedAgent, Observation, batch_size
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.weights import ConstantAction
from hpcgym.base.progress import steps
from hpcgym.env.scenario.episodes import Episodes

if TYPE_CHECKING:
    from hpcgym.env.scheduling import SchedulingEnv

MOST_WEEKS = 20
"""Weeks that an agent plays to show its actions, spread over those that are evaluated."""

MEAN, SHUFFLED = "mean", "shuffled"  # what names of controls end in


@dataclass(frozen=True, eq=False)
class Shuffled:
    """Takes actions that an agent took, each once, in a turn that is drawn for each episode.

    What is shown first decides the turn, so that runs can be made again.
    """

    actions: NDArray[Any]  # the actions, shape (n, ...)
    seed: int = 0  # seed of the turns

    def predict(
        self,
        observation: Observation,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Choose the next action, the same for all of a batch; as `hpcgym.agent.base.Agent`."""
        if state is None:
            parts = observation.values() if isinstance(observation, dict) else [observation]
            shown = b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
            chance = np.random.default_rng([self.seed, crc32(shown)])
            state = chance.permutation(len(self.actions)), np.zeros(1, dtype=np.int64)
        turn, step = state
        action = self.actions[turn[int(step[0]) % len(turn)]]
        n_envs = batch_size(observation)
        chosen = action if n_envs is None else np.stack([action] * n_envs)
        return np.asarray(chosen), (turn, step + 1)


def controls_of(
    agent: RuleAgent | NamedAgent, episodes: Episodes, *, seed: int = 0
) -> list[NamedAgent]:
    """Return the controls of an agent that takes actions; none of rules, which learn nothing.

    They are its mean action, of numbered actions the one it takes most, held for whole weeks; and
    its actions, shuffled. The agent plays at most `MOST_WEEKS` of the weeks to show its actions.

    Args:
        agent: The agent; its controls are called `NAME/mean` and `NAME/shuffled`.
        episodes: The weeks that it is evaluated on.
        seed: Seed of the shuffling.

    Source: Specification, section 10, "Controls of an agent".
    """
    from hpcgym.agent.price import PriceRule  # loads kernels

    if isinstance(agent, RuleAgent) or isinstance(agent.agent, (ConstantAction, PriceRule)):
        return []
    actions = actions_of(agent, episodes)
    if actions.ndim == 1:
        mean: Any = int(np.bincount(actions.astype(np.int64)).argmax())
    else:
        mean = tuple(actions.mean(axis=0, dtype=np.float64).tolist())
    return [
        NamedAgent(f"{agent.name}/{name}", blind, agent.env_keywords, agent.training)
        for name, blind in ((MEAN, ConstantAction(mean)), (SHUFFLED, Shuffled(actions, seed)))
    ]


def actions_of(agent: NamedAgent, episodes: Episodes) -> NDArray[Any]:
    """Return the actions that an agent takes in at most `MOST_WEEKS` weeks, a row each."""
    from hpcgym.env.scheduling import SchedulingEnv

    env = SchedulingEnv(episodes, **agent.env_keywords)
    chosen = np.linspace(0, len(episodes) - 1, min(MOST_WEEKS, len(episodes))).astype(int)
    taken: list[NDArray[Any]] = []
    with steps(len(chosen), f"actions of {agent.name}", "weeks") as work:
        for position in chosen.tolist():
            taken += _played(agent, env, episodes.numbers[position])
            work.advance()
    return np.array(taken)


def _played(agent: NamedAgent, env: SchedulingEnv, number: int) -> Sequence[NDArray[Any]]:
    observation, _ = env.reset(options={"episode": number})
    state, start, is_over = None, np.ones(1, dtype=np.bool_), False
    taken = []
    while not is_over:
        action, state = agent.predict(observation, state, start, True)
        taken.append(np.array(action))
        observation, _, terminated, truncated, _ = env.step(action)
        start, is_over = np.zeros(1, dtype=np.bool_), terminated or truncated
    return taken
