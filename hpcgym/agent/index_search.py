"""Trainers by evolution: weights of the six features, weights of an index, or a network's score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.evolution import CMAES, STRATEGIES, XNES
from hpcgym.agent.objective import Fitness
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.run_time_network import fit_network, samples_of
from hpcgym.agent.weight_search import weighing
from hpcgym.core.constants import (
    N_LAST,
    N_NETWORK,
)
from hpcgym.core.index_policy import index_policy
from hpcgym.core.policy import FEATURES, Policy
from hpcgym.errors import HpcgymError, refuse_seed, unknown_name
from hpcgym.scenario.episodes import Episodes

FloatArray = NDArray[np.float64]

Strategy: TypeAlias = Literal["cma", "xnes"]
"""A search by evolution."""

Searched: TypeAlias = Literal["weights", "score"]
"""What evolution searches: the index's weights, or what a network's last layer adds to the index.
"""

SMITH = (1.0, 2.0, 1.0, -1.0)
"""Weights of log processors, log request, log share and log speed that make Smith's rule: work over
the rate at which waiting costs."""

STEP_SIZE = 0.3
NEAR_SAF = 0.1
"""Step size of weights in unit scale: six of 0.3 would add up to nearly SAF's own weight of 1."""

FIRST_OF_SHARE = N_NETWORK - 2 * (N_LAST + 1)
"""Where in a network's parameters those begin that make the share of its last layer."""


@dataclass(frozen=True)
class IndexTrainer:
    """Searches an index on the training weeks, from Smith's rule on.

    Of the weights the first stays 1, since an index times a number is the same order. A score is a
    small network's: what was fitted to expect run times reads a job's signs, and N_LAST numbers say
    what each unit of its last layer adds to Smith's rule, at first nothing.

    Attributes:
        name: What tables call the agent.
        network: Whether a network is fitted first, whose terms then take the place of the records'.
        searched: "weights" or "score"; a score needs a network.
        strategy: The search, "cma" or "xnes".
        evaluations: Vectors that are tried, at least; 0 leaves Smith's rule as it is.
        copies: Shaken copies of each week in the fitness, besides the original.

    Raises:
        HpcgymError: An unknown strategy or thing to search, a score without a network, a number
            below 0, or a seed out of range at the training.

    Source:
        RR-9212, section 7.1, for the search; Smith 1956 for the index; specification, section 10.
    """

    name: str
    network: bool
    searched: Searched = "weights"
    strategy: Strategy = "cma"
    evaluations: int = 120
    copies: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be searched."""
        _refuse_search(self.strategy, self.evaluations, self.copies)
        if self.searched not in get_args(Searched):
            raise HpcgymError(unknown_name("thing to search", self.searched, get_args(Searched)))
        if self.searched == "score" and not self.network:
            raise HpcgymError("a score is a network's: searched='score' needs network=True")

    def train(self, episodes: Sequence[Episodes], seed: int) -> RuleAgent:
        """Make the agent; arguments and result as of `hpcgym.agent.trainers.Trainer`."""
        refuse_seed(seed)
        network = None
        if self.network:
            network = fit_network([samples_of(one) for one in episodes], seed)
        start, policy_of = np.array(SMITH[1:]), partial(_weighing, network)
        if self.searched == "score" and network is not None:
            start, policy_of = np.zeros(N_LAST), partial(_scoring, network)
        found = start
        if self.evaluations:
            generator = np.random.default_rng(seed)
            fitness = Fitness(episodes, self.copies, generator)

            def worth(asked: FloatArray) -> FloatArray:
                return fitness([policy_of(one) for one in asked])

            search = STRATEGIES[self.strategy](start, STEP_SIZE, generator)
            found = _mean_after(self.evaluations, search, worth)
        return RuleAgent(policy_of(found), name=self.name)


@dataclass(frozen=True)
class LinearTrainer:
    """Searches weights of the six features on the training weeks, from SAF on.

    Weights are in unit scale, so that they hold over logs of different sizes. They are w*train's,
    sought by another fitness: every week and every log counts alike, shaken copies included.

    Attributes:
        name: What tables call the agent.
        strategy: The search, "cma" or "xnes".
        evaluations: Weight vectors that are tried, at least; 0 leaves SAF as it is.
        copies: Shaken copies of each week in the fitness, besides the original.

    Raises:
        HpcgymError: An unknown strategy, a number below 0, or a seed out of range at the training.

    Source:
        RR-9212, section 7.1, for the score; specification, section 10, for the fitness.
    """

    name: str
    strategy: Strategy = "cma"
    evaluations: int = 240
    copies: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be searched."""
        _refuse_search(self.strategy, self.evaluations, self.copies)

    def train(self, episodes: Sequence[Episodes], seed: int) -> RuleAgent | NamedAgent:
        """Make the agent; arguments and result as of `hpcgym.agent.trainers.Trainer`."""
        refuse_seed(seed)
        found = np.array([float(feature == "area") for feature in FEATURES])
        if self.evaluations:
            generator = np.random.default_rng(seed)
            fitness = Fitness(episodes, self.copies, generator)
            search = STRATEGIES[self.strategy](found, NEAR_SAF, generator)
            found = _mean_after(self.evaluations, search, fitness.of_weights)
        return weighing(found / np.abs(found).sum(), episodes, name=self.name)


def _refuse_search(strategy: str, evaluations: int, copies: int) -> None:
    """Refuse a strategy there is not, and numbers of nothing."""
    if strategy not in STRATEGIES:
        raise HpcgymError(unknown_name("strategy", strategy, STRATEGIES))
    for what, number in (("evaluations", evaluations), ("copies", copies)):
        if number < 0:
            raise HpcgymError(f"{what} must be at least 0, got {number}")


def _mean_after(
    evaluations: int, search: XNES | CMAES, worth: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Return the mean where a search ends, which averages over noise as its best does not."""
    n_done = 0
    while n_done < evaluations:
        asked = search.ask()
        search.tell(worth(asked))
        n_done += len(asked)
    return search.mean


def _weighing(network: FloatArray | None, weights: FloatArray) -> Policy:
    """Return the index with these weights of request, share and speed."""
    of_job, of_expected = [1.0, weights[0]], list(weights[1:])
    if network is None:
        return index_policy([*of_job, *of_expected])
    return index_policy([*of_job, 0.0, 0.0, *of_expected], network)


def _scoring(network: FloatArray, added: FloatArray) -> Policy:
    """Return Smith's rule, to which each unit of the network's last layer adds so much."""
    scoring = network.copy()
    scoring[FIRST_OF_SHARE : FIRST_OF_SHARE + N_LAST] += added
    return _weighing(scoring, np.array(SMITH[1:]))
