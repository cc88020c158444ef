"""Trainers of index policies: weights by evolution, what is expected by a network or records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.evolution import STRATEGIES
from hpcgym.agent.expecting import fit_network, samples_of
from hpcgym.agent.fitness import Fitness
from hpcgym.agent.rule import RuleAgent
from hpcgym.core.index import index_policy
from hpcgym.core.policy import Policy
from hpcgym.errors import HpcgymError, unknown_name
from hpcgym.scenario.build import Episodes

FloatArray = NDArray[np.float64]

SMITH = (1.0, 2.0, 1.0, -1.0)
"""Weights of log processors, log request, log share and log speed that make Smith's rule: work over
the rate at which waiting costs."""

STEP_SIZE = 0.3


@dataclass(frozen=True)
class IndexTrainer:
    """Searches the weights of an index on the training weeks, from Smith's rule on.

    The first weight stays 1, since an index times a number is the same order.

    Attributes:
        name: What tables call the agent.
        network: Whether a network is fitted first, whose terms then take the place of the records'.
        strategy: The search, "cma" or "xnes".
        evaluations: Weight vectors that are tried, at least; 0 leaves Smith's rule as it is.
        copies: Shaken copies of each week in the fitness, besides the original.

    Raises:
        HpcgymError: An unknown strategy.

    Source:
        RR-9212, section 7.1, for the search; Smith 1956 for the index; specification, section 10.
    """

    name: str
    network: bool
    strategy: Literal["cma", "xnes"] = "cma"
    evaluations: int = 120
    copies: int = 1

    def __post_init__(self) -> None:
        """Refuse a strategy there is not."""
        if self.strategy not in STRATEGIES:
            raise HpcgymError(unknown_name("strategy", self.strategy, STRATEGIES))

    def train(self, episodes: Sequence[Episodes], seed: int) -> RuleAgent:
        """Make the agent; arguments and result as of `hpcgym.agent.training.Trainer`."""
        network = None
        if self.network:
            network = fit_network([samples_of(one) for one in episodes], seed)
        generator = np.random.default_rng(seed)
        weights = np.array(SMITH)
        if self.evaluations:
            fitness = Fitness(episodes, self.copies, generator)
            weights = self._search(fitness, network, generator)
        return RuleAgent(_policy_of(weights, network), name=self.name)

    def _search(
        self, fitness: Fitness, network: FloatArray | None, generator: np.random.Generator
    ) -> FloatArray:
        """Return the mean where the search ends, which averages over noise as its best does not."""
        start = np.array(SMITH)
        search = STRATEGIES[self.strategy](start[1:], STEP_SIZE, generator)
        n_done = 0
        while n_done < self.evaluations:
            asked = search.ask()
            tried = [_policy_of(np.append(1.0, weights), network) for weights in asked]
            search.tell(fitness(tried))
            n_done += len(asked)
        return np.append(1.0, search.mean)


def _policy_of(weights: FloatArray, network: FloatArray | None) -> Policy:
    """Return the index with these weights of processors, request, share and speed."""
    share_and_speed = weights[2:]
    nothing = np.zeros(2)
    if network is None:
        return index_policy(np.concatenate([weights[:2], share_and_speed, nothing]))
    return index_policy(np.concatenate([weights[:2], nothing, share_and_speed]), network)
