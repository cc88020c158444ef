"""Weights of the six features that are best on given weeks: w*train of RR-9212."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.base import NamedAgent, Observation, batch_size
from hpcgym.agent.evolution import XNES
from hpcgym.agent.rule import RuleAgent
from hpcgym.batch import simulate_many
from hpcgym.core.policy import FEATURES, mixed_policy
from hpcgym.env.action import unit_divisors
from hpcgym.errors import HpcgymError, refuse_seed
from hpcgym.scenario.episodes import Episodes, settings_but_policy

FloatArray = NDArray[np.float64]

EVALUATIONS = 1200
"""Weight vectors that a search tries."""

CANDIDATES = 24
"""Of them in each generation: enough to keep several cores busy on a few weeks."""

STEP_SIZE = 0.3
KAPPA = 0.01
"""Weight of the penalty that holds the norm near 1, as a share of SAF's figure."""


@dataclass(frozen=True)
class WeightsTrainer:
    """Searches weights of the six features, scaled to units, that are best on the training weeks.

    Attributes:
        name: What tables call the agent.
        evaluations: Weight vectors that are tried, at least.

    Raises:
        HpcgymError: No evaluation, or a seed out of range at the training.

    Source:
        RR-9212, section 7.1: w*train.
    """

    name: str = "w*train"
    evaluations: int = EVALUATIONS

    def __post_init__(self) -> None:
        """Refuse to search without trying anything."""
        if self.evaluations < 1:
            raise HpcgymError(f"evaluations must be at least 1, got {self.evaluations}")

    def train(self, episodes: Sequence[Episodes], seed: int) -> RuleAgent | NamedAgent:
        """Make the agent; arguments and result as of `hpcgym.agent.trainers.Trainer`."""
        refuse_seed(seed)
        generator = np.random.default_rng(seed)
        weights = search_weights(episodes, generator, evaluations=self.evaluations)
        return weighing(weights, episodes, name=self.name)


def search_weights(
    episodes: Sequence[Episodes], generator: np.random.Generator, *, evaluations: int = EVALUATIONS
) -> FloatArray:
    """Search the weights under which weeks go best, by XNES from the best pure policy on.

    A generation is simulated in one call per log. What is best is the sum of the weeks' mean
    bounded slowdowns; over several logs, the mean of its ratios to SAF's.

    Args:
        episodes: The weeks of one log or of several.
        generator: Source of the random numbers.
        evaluations: Weight vectors that are tried, at least.

    Returns:
        Weights of (q, e, wait, rho, exp, area) in unit scale, shape (6,), of L1 norm 1: the best of
        all those tried, the twelve pure policies among them.

    Source:
        RR-9212, equation 6 and section 7.1; specification, section 6, "XNES".

    Example:
        >>> tiny = [Episodes("tiny")]
        >>> found = search_weights(tiny, np.random.default_rng(0), evaluations=60)
        >>> bool(cost(tiny, found[np.newaxis])[0] <= cost(tiny, np.eye(6)).min())
        True
    """
    saf = np.eye(len(FEATURES))[-1:]
    scale = [_sums(one, saf)[0] for one in episodes]
    pure = np.vstack([np.eye(len(FEATURES)), -np.eye(len(FEATURES))])
    found = cost(episodes, pure, scale)
    best, least = pure[found.argmin()], float(found.min())
    search = XNES(best, STEP_SIZE, generator, candidates=CANDIDATES)
    n_done = len(pure)
    while n_done < evaluations:
        candidates = search.ask()
        found = cost(episodes, candidates, scale)
        norm = np.abs(candidates).sum(axis=1)
        search.tell(found + KAPPA * (norm + 1 / norm))
        if found.min() < least:
            best, least = candidates[found.argmin()], float(found.min())
        n_done += len(candidates)
    return np.asarray(best / np.abs(best).sum())


def cost(
    episodes: Sequence[Episodes], weights: FloatArray, scale: Sequence[float] | None = None
) -> FloatArray:
    """Return what weeks come to under weights, relative to what is given for each log.

    Args:
        episodes: The weeks of one log or of several.
        weights: In unit scale, shape (n_candidates, 6).
        scale: What each log's sum is divided by, such as SAF's; default 1.

    Returns:
        Mean over the logs of the sum of the weeks' mean bounded slowdowns, shape (n_candidates,).

    Source:
        RR-9212, section 7.1.
    """
    by = np.ones(len(episodes)) if scale is None else np.asarray(scale)
    sums = [_sums(one, weights) / own for one, own in zip(episodes, by, strict=True)]
    return np.asarray(np.mean(sums, axis=0))


def weighing(
    weights: FloatArray, episodes: Sequence[Episodes], *, name: str
) -> RuleAgent | NamedAgent:
    """Return the agent that orders by weights in unit scale.

    Args:
        weights: Shape (6,).
        episodes: The weeks of one log or of several it is for.
        name: What tables call it.

    Returns:
        A rule where the logs share one scale; else an agent that plays the same weights through an
        environment, which knows the scale of its scenario.

    Source:
        Specification, section 10, "Action semantics", `weights`.
    """
    divisors = np.array([divisors_of(one) for one in episodes])
    if (divisors == divisors[0]).all():
        return RuleAgent(mixed_policy(weights, divisors=divisors[0]), name=name)
    return NamedAgent(name, ConstantAction(tuple(weights.tolist())), {"action": "weights"})


def divisors_of(episodes: Episodes) -> FloatArray:
    """Return what features are divided by in unit scale.

    Args:
        episodes: Weeks of a log.

    Returns:
        Numbers that make the features of its jobs about one in size, shape (6,).

    Source:
        Specification, section 10, "Action semantics", `weights`.

    Example:
        >>> divisors_of(Episodes("tiny"))[[0, 1, 5]].astype(int).tolist()
        [4, 120, 480]
    """
    processors = episodes.scenario.machine.processors
    return unit_divisors(processors, episodes.largest_request, episodes.settings.threshold)


@dataclass(frozen=True)
class ConstantAction:
    """Takes the same action whatever it sees.

    Attributes:
        action: The action, a vector.
    """

    action: tuple[float, ...]

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
        return (action if n_envs is None else np.tile(action, (n_envs, 1))), state


def _sums(episodes: Episodes, weights: FloatArray) -> FloatArray:
    """Return the sum over weeks of the mean bounded slowdown, shape (n_candidates,)."""
    result = simulate_many(
        [episodes.workload(week) for week in range(len(episodes))],
        weights=weights,
        divisors=divisors_of(episodes),
        metrics=["mean_bsld"],
        **settings_but_policy(episodes.settings),
    )
    return np.asarray(result["mean_bsld"].sum(axis=0))
