"""Trainers that search the numbers of an order: an objective, and a strategy that minimises it.

What may be searched:

| `searched` | numbers | start |
|---|---|---|
| "features" | weights of the six features in unit scale | SAF |
| "index" | weights of log request, log run-time ratio and log speed of an index | Smith's rule |
| "score" | what each unit of a network's last layer adds to Smith's rule | 0 |
| "controls" | constant controls of the environment, each from -1 to 1 | 0 |

The first weight of an index stays 1, since an index times a number is the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.evolution import STRATEGIES
from hpcgym.agent.objective import Measure, Objective
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.run_time_network import fit_network, samples_of
from hpcgym.agent.weights import ConstantAction, weights_agent
from hpcgym.base.errors import HpcgymError, refuse_seed, unknown_name
from hpcgym.base.packages import needing
from hpcgym.base.progress import steps
from hpcgym.core.actions.controls import CONTROLLED, CONTROLS, controlled
from hpcgym.core.backfill import Easy, as_backfill
from hpcgym.core.constants import N_LAST, N_NETWORK
from hpcgym.core.features import FEATURES
from hpcgym.core.index_policy import index_policy
from hpcgym.core.policy import Policy
from hpcgym.env.scenario.episodes import Episodes

FloatArray = NDArray[np.float64]

Values: TypeAlias = Callable[[FloatArray], FloatArray]
"""Gives the value of each vector, shape (n,), of shape (n, dimension)."""

Searched: TypeAlias = Literal["features", "index", "score", "controls"]
Strategy: TypeAlias = Literal["cma", "xnes"]
Given: TypeAlias = Literal["mean", "best"]

SMITH = (1.0, 2.0, 1.0, -1.0)
"""Weights of log processors, log request, log run-time ratio and log speed that make Smith's rule:
work over the rate at which waiting costs."""

STEP_SIZE = {"features": 0.1, "index": 0.3, "score": 0.3, "controls": 0.3}
"""First step size by what is searched. Six weights of 0.3 would nearly add up to SAF's weight of 1,
so a search of features that is to stay near SAF takes smaller steps."""

KAPPA = 0.01
"""Weight of the penalty norm + 1 / norm, which holds the L1 norm of a vector near 1; SAF's value
is 1."""

OPEN = f"{CONTROLLED},overdue=open"  # as `CONTROLLED`, with the bound of long jobs left open

FIRST_OF_RUN_TIME_RATIO = N_NETWORK - 2 * (N_LAST + 1)
"""Where in a network's parameters those begin that make the run-time ratio of its last layer."""


@dataclass(frozen=True)
class SearchTrainer:
    """Searches the numbers of an order that minimise an objective on the training weeks.

    Raises:
        HpcgymError: An unknown name, a combination that is not allowed, a number below its least,
            or a seed out of range at the training.

    Source: RR-9212, section 7.1; Smith 1956 for the index; specification, section 10.
    """

    name: str  # what tables call the agent
    # "features", "index", "score" or "controls"; a score needs a network.
    searched: Searched = "index"
    # Whether a network that expects run times is fitted first; its terms then replace those of
    # users' records.
    network: bool = False
    # "log-ratio" or "sum-ratio", as of `hpcgym.agent.objective`.
    objective: Measure = "log-ratio"
    copies: int = 1  # jittered copies of each week in the objective, besides the original
    strategy: Strategy = "cma"
    evaluations: int = 120  # vectors that are tried, at least; 0 leaves the start as it is
    # Standard deviation of the first candidates; None = that of `STEP_SIZE`.
    step_size: float | None = None
    candidates: int | None = None  # vectors of a generation; None = the strategy's own number
    # "mean" gives the mean of the last distribution, which averages over noise. "best" begins at
    # the best of the twelve pure policies, holds the norm of the vectors near 1, and gives the best
    # of all those tried; it is for features.
    gives: Given = "mean"
    backfill: str = CONTROLLED  # the backfilling mode that controls change

    def __post_init__(self) -> None:
        names = {"searched": Searched, "objective": Measure, "gives": Given}
        allowed = {key: get_args(kind) for key, kind in names.items()}
        for key, known in (allowed | {"strategy": tuple(STRATEGIES)}).items():
            if getattr(self, key) not in known:
                raise HpcgymError(unknown_name(key, getattr(self, key), known))
        least = {"evaluations": 1 if self.gives == "best" else 0, "copies": 0}
        for key, lowest in least.items():
            if getattr(self, key) < lowest:
                raise HpcgymError(f"{key} must be at least {lowest}, got {getattr(self, key)}")
        if self.searched == "score" and not self.network:
            raise HpcgymError("a score is a network's: searched='score' needs network=True")
        if self.searched == "controls" and not as_backfill(self.backfill).expects:
            raise HpcgymError(f"controls change a cap or a cost, not backfill {self.backfill!r}")
        if self.gives == "best" and self.searched != "features":
            raise HpcgymError(f"gives='best' is for searched='features', not {self.searched!r}")

    def train(
        self,
        episodes: Sequence[Episodes],
        seed: int,
        *,
        kept: Callable[[Values], Values] | None = None,
    ) -> RuleAgent | NamedAgent:
        """Make the agent; arguments and result as of `hpcgym.agent.own.Trainer`.

        Args:
            kept: Given how vectors get their values, returns a way that remembers them; see
                `hpcgym.evaluation.kept_values`.
        """
        refuse_seed(seed)
        needed = [
            *(["torch"] if self.network else []),
            *(["cma"] if self.strategy == "cma" and self.evaluations else []),
        ]
        with needing(f"the trainer {self.name}", *needed):
            pass
        with steps(len(episodes) + 2 if self.network else 1, f"training {self.name}") as work:
            network, samples = None, []
            for log in episodes if self.network else ():
                samples.append(samples_of(log))
                work.advance()
            if self.network:
                network = fit_network(samples, seed)
                work.advance()
            generator = np.random.default_rng(seed)
            if kept is None:  # as classes of one's own may have it
                numbers = self.search(episodes, generator, network)
            else:
                numbers = self.search(episodes, generator, network, kept)
        agent: RuleAgent | NamedAgent
        if self.searched == "features":
            agent = weights_agent(numbers, episodes, name=self.name)
        elif self.searched == "controls":
            controls = ConstantAction(tuple(np.clip(numbers, -1, 1).tolist()))
            keywords = {"action": "controls", "backfill": self.backfill}
            agent = NamedAgent(self.name, controls, keywords)
        else:
            agent = RuleAgent(self._policy(numbers, network), name=self.name)
        is_pure = self.gives == "best" and np.count_nonzero(numbers) == 1
        is_still = not self.network and np.array_equal(numbers, self._start())
        return replace(agent, ended_at_start=bool(is_pure or is_still))

    def search(
        self,
        episodes: Sequence[Episodes],
        generator: np.random.Generator,
        network: FloatArray | None = None,
        kept: Callable[[Values], Values] | None = None,
    ) -> FloatArray:
        """Return the numbers found on the weeks of one log or several; features have L1 norm 1."""
        numbers = self._start()
        if self.evaluations:
            objective = Objective(episodes, self.objective, copies=self.copies, generator=generator)

            def values_of(asked: FloatArray) -> FloatArray:
                if self.searched == "features":
                    return objective.of_weights(asked)
                if self.searched == "controls":
                    return objective.of_rules([self._controlled(vector) for vector in asked])
                return objective([self._policy(vector, network) for vector in asked])

            numbers = self._minimise(kept(values_of) if kept else values_of, generator)
        return numbers / np.abs(numbers).sum() if self.searched == "features" else numbers

    def _minimise(self, values_of: Values, generator: np.random.Generator) -> FloatArray:
        """Ask the strategy for candidates and tell it their values, until enough are tried."""
        best, least, n_done = self._start(), np.inf, 0
        if self.gives == "best":
            pure = np.vstack([np.eye(len(FEATURES)), -np.eye(len(FEATURES))])
            values = values_of(pure)
            best, least, n_done = pure[values.argmin()], float(values.min()), len(pure)
        step_size = STEP_SIZE[self.searched] if self.step_size is None else self.step_size
        search = STRATEGIES[self.strategy](best, step_size, generator, candidates=self.candidates)
        with steps(self.evaluations, count=lambda: n_done):
            while n_done < self.evaluations:
                asked = search.ask()
                values = values_of(asked)
                if values.min() < least:
                    best, least = asked[values.argmin()], float(values.min())
                if self.gives == "best":
                    norm = np.abs(asked).sum(axis=1)
                    values = values + KAPPA * (norm + 1 / norm)
                search.tell(values)
                n_done += len(asked)
        return best if self.gives == "best" else search.mean

    def _start(self) -> FloatArray:
        """Return the numbers that the search begins at."""
        if self.searched == "features":
            return np.array([float(feature == "area") for feature in FEATURES])
        if self.searched == "controls":
            return np.zeros(len(CONTROLS))
        return np.array(SMITH[1:]) if self.searched == "index" else np.zeros(N_LAST)

    def _controlled(self, numbers: FloatArray) -> RuleAgent:
        """Return the rule that the numbers make as controls, cut off at their bounds."""
        mode = as_backfill(self.backfill)
        assert isinstance(mode, Easy)
        policy, backfill = controlled(np.clip(numbers, -1, 1).tolist(), mode)
        return RuleAgent(policy, backfill=backfill)

    def _policy(self, numbers: FloatArray, network: FloatArray | None) -> Policy:
        if self.searched == "index" or network is None:
            return _index(network, numbers)
        scoring = network.copy()
        scoring[FIRST_OF_RUN_TIME_RATIO:][:N_LAST] += numbers
        return _index(scoring, np.array(SMITH[1:]))


W_TRAIN = SearchTrainer(
    "w*train",
    "features",
    objective="sum-ratio",
    copies=0,
    strategy="xnes",
    evaluations=1200,
    step_size=0.3,
    candidates=24,  # enough to keep several cores busy on a few weeks
    gives="best",
)
"""w*train of RR-9212, section 7.1: weights of the six features, by XNES on the original weeks."""


def _index(network: FloatArray | None, weights: FloatArray) -> Policy:
    """Return the index with these weights of request, run-time ratio and speed."""
    of_job, of_expected = [1.0, weights[0]], list(weights[1:])
    if network is None:
        return index_policy([*of_job, *of_expected])
    return index_policy([*of_job, 0.0, 0.0, *of_expected], network)
