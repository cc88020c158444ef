"""Plans: orders of the waiting jobs at one decision, and what waiting would cost under each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.events import columns_of_events
from hpcgym.core.index_policy import INDEX
from hpcgym.core.kernels import entry_points
from hpcgym.core.kernels.planning.forecast import FIRST_ORDER, RULE_INDEX
from hpcgym.core.kernels.types import Jobs
from hpcgym.core.nodes import columns_without_nodes
from hpcgym.core.observation_fields import N_STATIC_FIELDS
from hpcgym.core.policy import SUBMIT, WEIGHTS, Policy, as_policy
from hpcgym.core.prepare import state_for
from hpcgym.core.state import sim_of

if TYPE_CHECKING:
    from hpcgym.core.simulator import Simulator

WINDOW_S = 86_400  # length of the past whose jobs are sampled as jobs to come, s
MOST_ARRIVALS = 256  # largest number of jobs to come in a sample


class Plans:
    """Orders of the jobs that wait at a decision, and copies of the simulation to try them on.

    Each order is a column of keys: those of the policies given, and last a trial order. Jobs to
    come, where there are any, are the same for every order.

    Args:
        simulator: The simulation; its policy expects by records.
        policies: Orders to begin with.
        n_samples: Samples of run times and of jobs to come; 0 = run times as expected, none comes.
        horizon: For how long jobs come, s.
    """

    def __init__(
        self, simulator: Simulator, policies: Sequence[Policy], n_samples: int, horizon: int
    ) -> None:
        self.simulator = simulator
        self.horizon = horizon
        self.trial = len(policies)
        room = MOST_ARRIVALS if n_samples else 0
        n_jobs = len(simulator.workload) + room
        n_keys, mode_pass = FIRST_ORDER + self.trial + 1, simulator.episode.table.mode_pass
        self._tables = [_table_for(n_jobs, n_keys, mode_pass) for _ in range(max(n_samples, 1))]
        self._planned = [Struct(table) for table in self._tables]
        self._plan = sim_of(state_for([simulator.episode], more_jobs=room), 0)
        rules = [RULE_INDEX if policy.order == INDEX else policy.rule for policy in policies]
        self._rule = np.array(rules, dtype=np.int64)
        self._weight = np.stack([policy.parameters for policy in policies])
        self._column = np.zeros((self.trial + 1, s.N_WEIGHTS))
        self._column[:, 0] = FIRST_ORDER + np.arange(self.trial + 1)
        self._n_coming = [0] * len(self._tables)
        self.waiting = simulator.waiting

    @property
    def n_chances(self) -> int:
        """Return how many numbers `open` needs for each sample."""
        sim = self.simulator._sim.fields
        return int(sim.n_releases + sim.n_waiting) + MOST_ARRIVALS + 1

    def open(self, chances: NDArray[np.float64]) -> None:
        """Forecast the jobs of a new decision, those that wait and those to come.

        Chances are numbers in [0, 1), shape (n_samples, n_chances), the same for all orders. The
        first says by how much of its length the last day is rotated. Run times are drawn by the
        others.
        """
        simulator = self.simulator
        self.waiting = simulator.waiting
        length = min(WINDOW_S, simulator.now)
        drawn = np.array([length, 0, self.horizon], dtype=np.int64)
        chance = np.empty(0)
        for sample, planned in enumerate(self._planned):
            if len(chances):
                drawn[1], chance = int(chances[sample, 0] * length), chances[sample, 1:]
            self._n_coming[sample] = entry_points.forecast_jobs(
                simulator._jobs.address,
                simulator._sim.address,
                planned.address,
                self._rule,
                self._weight,
                drawn,
                chance,
            )

    def cost(self, order: int) -> float:
        """Return what waiting costs under an order, the mean over the samples.

        Source: Smith 1956; specification, section 8, "Planner".
        """
        row, plan, column = self.simulator._sim.address, self._plan.address, self._column[order]
        total = 0.0
        for planned, n_coming in zip(self._planned, self._n_coming, strict=True):
            total += entry_points.cost_of_plan(planned.address, row, plan, column, n_coming)
        return total / len(self._planned)

    def keys(self, jobs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the keys of waiting jobs in the trial order, shape (n_jobs,)."""
        keys: NDArray[np.float64] = self._tables[0].keys[jobs, FIRST_ORDER + self.trial]
        return keys

    def try_on(self, order: int) -> None:
        """Set the trial order to another order."""
        first = int(self.simulator.state.next_job[0])
        for table, n_coming in zip(self._tables, self._n_coming, strict=True):
            for jobs in (self.waiting, slice(first, first + n_coming)):
                table.keys[jobs, FIRST_ORDER + self.trial] = table.keys[jobs, FIRST_ORDER + order]

    def set_key(self, job: int, key: float) -> None:
        """Give a waiting job another key in the trial order."""
        for table in self._tables:
            table.keys[job, FIRST_ORDER + self.trial] = key

    def list_movable(self) -> NDArray[np.int64]:
        """List the jobs behind the first of the trial order that are within the threshold.

        Those that fit now come first, since only they gain by going first. Shape (n_listed,).
        """
        state = self.simulator.state
        open_to_order = self.waiting[self.waiting >= state.next_overdue[0]]
        behind = open_to_order[np.lexsort((open_to_order, self.keys(open_to_order)))][1:]
        fits = self._tables[0].processors[behind] <= self.simulator.free_processors
        return np.concatenate([behind[fits], behind[~fits]])


def _table_for(n_jobs: int, n_keys: int, mode_pass: int) -> Jobs:
    """Allocate a job table for a mode's passes; its rows are written as they are needed."""
    return Jobs(
        submit_time=np.empty(n_jobs, dtype=np.int64),
        run_time=np.empty(n_jobs, dtype=np.int64),
        estimate=np.empty(n_jobs, dtype=np.int64),
        requested_time=np.empty(n_jobs, dtype=np.int64),
        processors=np.empty(n_jobs, dtype=np.int64),
        size_class=np.empty(n_jobs, dtype=np.int64),
        feature=np.empty((n_jobs, s.N_FEATURES)),
        user=np.empty(n_jobs, dtype=np.int64),
        keys=np.empty((n_jobs, n_keys)),
        reward_rate=np.empty(n_jobs),
        reward_onset=np.empty(0, dtype=np.int64),
        field=np.empty((0, N_STATIC_FIELDS), dtype=np.float32),
        mode_pass=mode_pass,
        **columns_of_events((), None),
        **columns_without_nodes(),
    )


def checked_orders(candidates: Sequence[str | Policy]) -> tuple[Policy, ...]:
    """Return policies whose orders of jobs at hand and to come can be computed at one decision.

    Raises:
        PolicyError: One is unknown, or neither an index by records nor a sum of features without
            the wait.

    Example:
        >>> checked_orders(["F1"])
        Traceback (most recent call last):
        hpcgym.base.errors.PolicyError: F1 cannot be planned with: an order is FCFS, LCFS, a sum ...
    """
    chosen = tuple(as_policy(candidate) for candidate in candidates)
    for policy in chosen:
        is_index = (
            policy.order == INDEX and not policy.parameters[s.TERM_NETWORK_RUN_TIME_RATIO :].any()
        )
        is_sum = policy.order in (SUBMIT, WEIGHTS) and policy.is_static
        if not (is_index or is_sum):
            raise PolicyError(
                f"{policy.name} cannot be planned with: an order is FCFS, LCFS, a sum of features "
                "without the wait, as SAF, or an index by records, as SMITH-HISTORY"
            )
    return chosen
