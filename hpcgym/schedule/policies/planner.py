"""The planner: a policy that tries orders on copies of the simulation, and takes the best."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError
from hpcgym.core.constants import EXPECT_BY_RECORDS
from hpcgym.core.policy import Chooser, ChooserRun, Policy, chooser_policy
from hpcgym.core.simulator import Simulator
from hpcgym.schedule.policies.planner_rollouts import Plans, checked_orders

CANDIDATES = ("SMITH-HISTORY", "SAF-HISTORY", "SPF-HISTORY", "SAF", "SPF", "FCFS")
"""Orders that are always tried, the first of equals taken."""

HORIZON_S = 21_600  # for how long jobs come in a sample, s


@dataclass(frozen=True)
class Planner(Chooser):
    """Try orders of the waiting jobs on copies of the simulation, and take the least costly.

    At every contested pass the simulation is rolled out under each candidate's order of this
    instant. Run times are as users' records predict; EASY still plans with the requests. Then
    single jobs of the best order are tried at its front until the budget is spent. By default
    nothing is left for that, since it gained nothing on real logs. A second of waiting costs 1/D, D
    the expected run time, at least 10 s. A rollout costs as much as a simulation of the waiting
    jobs.

    Attributes:
        candidates: Names of policies; of equals the earlier is taken.
        rollouts: Rollouts at a decision, one for each order, or one for each of its samples. Each
            candidate has its own, whatever the budget; the rest goes to single jobs.
        milliseconds: Time after which no further job is tried, ms; None = no limit. With one, a
            schedule depends on the machine it is made on.
        samples: Samples that each order is tried with, of run times by users' records and of jobs
            to come by the last day; 0 = run times are as expected, and no job comes.
        horizon: For how long jobs come, s.
        seed: Seed of the samples.

    Raises:
        PolicyError: No candidate, one that cannot be planned with, or a number that is too small.

    Source: Specification, sections 8, "dynP", and 10; Streit 2002; Smith 1956.

    Example:
        >>> Planner(("SAF", "FCFS"), rollouts=8).name
        'planner(SAF,FCFS; 8 rollouts)'
    """

    candidates: tuple[str, ...] = CANDIDATES
    rollouts: int = 6
    milliseconds: float | None = None
    samples: int = 0
    horizon: int = HORIZON_S
    seed: int = 0

    decide = "contested"
    plans = True
    expects: ClassVar[int] = EXPECT_BY_RECORDS

    def __post_init__(self) -> None:
        if not self.candidates:
            raise PolicyError("a planner needs at least one candidate, got none")
        checked_orders(self.candidates)
        for key, least in (("rollouts", 1), ("samples", 0), ("horizon", 1), ("seed", 0)):
            if getattr(self, key) < least:
                raise PolicyError(f"{key} must be at least {least}, got {getattr(self, key)!r}")
        if self.milliseconds is not None and not self.milliseconds > 0:
            raise PolicyError(f"milliseconds must be above 0, got {self.milliseconds!r}")

    @property
    def name(self) -> str:
        """Return the name that tables show."""
        stated = f"{self.rollouts} rollouts"
        if self.milliseconds is not None:
            stated += f", {self.milliseconds:g} ms"
        if self.samples:
            stated += f", {self.samples} samples"
        return f"planner({','.join(self.candidates)}; {stated})"

    @cached_property
    def policies(self) -> tuple[Policy, ...]:
        """Return the candidates as policies."""
        return checked_orders(self.candidates)

    def begin(self) -> _PlannerRun:
        """Return a run that has decided nothing."""
        return _PlannerRun(self)


class _PlannerRun(ChooserRun):
    """A planner in one simulation, with its plans and the number of its decisions."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.n_decisions = 0
        self._plans: Plans | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the plans, which hold addresses of one process and one simulation."""
        return self.__dict__ | {"_plans": None}

    def choose(self, simulator: Simulator) -> NDArray[np.float64]:
        """Choose the order of this pass."""
        planner, began = self.planner, time.perf_counter()
        plans = self._plans
        if plans is None or plans.simulator is not simulator:
            plans = Plans(simulator, planner.policies, planner.samples, planner.horizon)
            self._plans = plans
        chances = np.empty((0, 0))
        if planner.samples:
            generator = np.random.default_rng([planner.seed, self.n_decisions])
            chances = generator.random((planner.samples, plans.n_chances))
        self.n_decisions += 1
        plans.open(chances)
        costs = [plans.cost(order) for order in range(plans.trial)]
        best = int(np.argmin(costs))
        plans.try_on(best)
        n_orders = planner.rollouts // max(planner.samples, 1) - plans.trial
        limit = np.inf if planner.milliseconds is None else began + planner.milliseconds / 1000.0
        improve(plans, costs[best], n_orders, limit)
        return plans.keys(plans.waiting)


def improve(plans: Plans, cost: float, n_orders: int, limit: float) -> None:
    """Move jobs of the trial order to its front, one by one, and keep each move that saves cost.

    Local search by first improvement; after each improvement the jobs are listed anew. `cost` is
    that of the trial order, `n_orders` the largest number of moves to try, `limit` the instant of
    `time.perf_counter` from which none is tried, s.
    """
    tried, improved = 0, n_orders > 0
    while improved:
        improved = False
        lowest = float(plans.keys(plans.waiting).min()) - 1.0
        listed = plans.list_movable()
        for job, key in zip(listed, plans.keys(listed), strict=True):
            if tried >= n_orders or time.perf_counter() >= limit:
                return
            tried += 1
            plans.set_key(job, lowest)
            moved = plans.cost(plans.trial)
            if moved < cost:
                cost, improved = moved, True
                break
            plans.set_key(job, key)


PLANNER = chooser_policy(
    Planner(), "PLANNER", "Streit 2002 (JSSPP); Smith 1956; hpcgym specification, sections 8 and 10"
)
