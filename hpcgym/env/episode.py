"""One episode of an environment: the tables of the kernels, the reward and its baseline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core import metrics
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.dependencies import begin, cancelled_jobs, dependencies_of, lay_out, own_columns
from hpcgym.core.events import as_events, measured
from hpcgym.core.kernels.types import Jobs, RewardPlan
from hpcgym.core.observation_fields import OwnField
from hpcgym.core.parts.dependencies import Dependencies
from hpcgym.core.prepare import PreparedEpisode
from hpcgym.core.price import PRICED, Price
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.state import State, placement_of
from hpcgym.core.workload import Workload
from hpcgym.env.observation import columns_of_fields
from hpcgym.env.reward import Cost, Played, Reward, cost_of_slowdown, mean_cost, reward_plan_of
from hpcgym.schedule.attempts import attempts_in
from hpcgym.schedule.lost import counts, useful_part
from hpcgym.schedule.schedule import Schedule


@dataclass(eq=False)
class SafMean:
    """The mean bounded slowdown of SAF on an episode, simulated when it is first asked for."""

    settings: SchedulerSettings  # the scenario's own scheduler, with SAF
    workload: Workload  # the jobs
    run_time: NDArray[np.int64]  # executed run times, shape (n_jobs,), s

    @cached_property
    def value(self) -> float:
        """Return it."""
        return mean_cost(self.played)

    @cached_property
    def played(self) -> Played:
        """Return what SAF played."""
        rule = dependencies_of(self.workload, self.settings)
        cost = cost_of_slowdown(self.workload, self.run_time)
        return played_under(self.settings, self.workload, rule, cost)


@dataclass(eq=False)
class EnvEpisode:
    """One episode of an environment, as kernels read it."""

    prepared: PreparedEpisode  # jobs, what a second of waiting costs each, and scheduler
    reward: Reward
    cost: Cost  # what waiting costs each job
    baseline: SchedulerSettings | None  # scheduler of the paired baseline, None without one
    saf: SafMean  # what a mean bounded slowdown is compared with in infos
    own_fields: tuple[OwnField, ...] = ()  # fields of the user's own that observations show
    price: Price | None = None  # the event `price`, None without one
    # Jobs that waited or ran at once, as far as a vector environment needed room for more than
    # usual; the next one to play the episode begins with as much.
    n_present: int = 0

    @property
    def workload(self) -> Workload:
        """Return the jobs."""
        return self.prepared.workload

    @property
    def table(self) -> Jobs:
        """Return the jobs as arrays of the kernels."""
        return self.prepared.table

    @property
    def n_jobs(self) -> int:
        """Return the number of jobs."""
        return len(self.workload)

    @cached_property
    def _shared(self) -> Jobs:
        """Return the jobs with the fields of the user's own."""
        columns: Any = columns_of_fields(self.own_fields)
        return self.table._replace(**columns)

    @cached_property
    def _jobs(self) -> Struct[Jobs]:
        """Return the jobs as kernels take them, for all simulations that move none."""
        return Struct(self._shared)

    def jobs_in(self, state: State, env: int, *, begins: bool) -> Struct[Jobs]:
        """Return the jobs as kernels take them in row `env` of a state.

        Where jobs wait for others, the row has jobs of its own, as an episode begins with them or,
        without `begins`, as the row numbers them. Writes the row.
        """
        if self.prepared.dependencies is None:
            return self._jobs
        columns = own_columns(self._shared)
        if begins:
            begin(columns, state, env, self._shared)
        else:
            lay_out(columns, state, env, self._shared, estimates=True)
        return Struct(columns)

    def rows(self, state: State, env: int, jobs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return positions in the job table of jobs as row `env` of a state numbers them."""
        if self.prepared.dependencies is None:
            return jobs
        rows: NDArray[np.int64] = state.row_of[env, jobs]
        return rows

    @cached_property
    def reward_plan(self) -> Struct[RewardPlan]:
        """Return how rewards are paid; simulates the baseline on this episode once, if any."""
        rule = self.prepared.dependencies
        played = played_under(self.baseline, self.workload, rule, self.cost)
        weight = self._user_weight if self.reward.is_by_user else np.empty(0)
        return reward_plan_of(self.reward.form, played, self.baseline is not None, weight)

    @property
    def _user_weight(self) -> NDArray[np.float64]:
        """Return 1 over the jobs of each user, cancelled ones aside; 0 where it has none."""
        users = self.workload.user_index[~cancelled_jobs(self.workload, self.prepared.dependencies)]
        n = np.bincount(users, minlength=len(self.workload.history.completed))
        return np.where(n > 0, 1.0 / np.maximum(n, 1), 0.0)

    def schedule(self, state: State, env: int) -> Schedule:
        """Return the schedule that row `env` of a state has made so far, start -1 = not started."""
        n, rule = self.n_jobs, self.prepared.dependencies
        job = slice(n) if rule is None else state.job_of[env, :n].copy()
        flag = state.flag[env, job]
        without_run = (flag & s.FLAG_NO_RUN) != 0
        start_time = np.where(without_run, -1, np.maximum(state.start_time[env, job], -1))
        cancels = rule is not None and rule.cancels(self.workload)
        return Schedule(
            workload=self.workload,
            start_time=start_time,
            run_time=self.table.run_time.copy(),
            backfilled=(flag & s.FLAG_BACKFILLED) != 0,
            thresholded=(flag & s.FLAG_THRESHOLDED) != 0,
            placement=placement_of(self.table, state, env, start_time, job),
            outage=self.table.outage,
            events=as_events(self.saf.settings.events),
            eligible_time=None if rule is None else state.comes_at[env, :n].copy(),
            cancelled=without_run if cancels else None,
            attempts=attempts_in(state, env, start_time, rule is not None),
        )

    def metrics(self, state: State, env: int) -> dict[str, float]:
        """Return the metrics of that schedule; waiting jobs count as if they started now."""
        made = self.schedule(state, env)
        useful = useful_part(made)
        return (
            measured(made)
            | counts(made)
            | metrics.summary(
                useful.jobs,
                useful.start_time,
                useful.run_time,
                useful.backfilled,
                useful.thresholded,
                now=int(state.now[env]),
                outage=made.outage,
            )
        )

    def priced(self, state: State, env: int, bsld: float) -> dict[str, float]:
        """Return J of the schedule in row `env` of a state, given its mean bsld; or nothing.

        Source: Specification, section 17, "Hourly decisions".
        """
        if self.price is None:
            return {}
        starts = self.schedule(state, env).start_time, self.saf.played.start_time
        cost, of_saf = (
            self.price.energy(self.workload, start, self.table.run_time)[1] for start in starts
        )
        return {PRICED: bsld / self.saf.value + self.price.weight * cost / of_saf}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the structs of kernels, which hold addresses of this process."""
        kept = self.__dict__.items()
        return {key: value for key, value in kept if not isinstance(value, Struct)}


def played_under(
    settings: SchedulerSettings | None, workload: Workload, rule: Dependencies | None, cost: Cost
) -> Played:
    """Simulate a workload under a baseline's scheduler, and return what it played.

    Without one, each job starts at its submission. `rule` is what makes jobs wait, and `cost` what
    waiting costs each, counted from its submission on.
    """
    submit_time = start_time = workload.submit_time
    if settings is not None:
        simulator = Simulator(workload, settings)
        simulator.run()
        submit_time, start_time = simulator.eligible_time, simulator.start_time
    if rule is None:
        return Played(cost, submit_time, start_time)
    ran = ~cancelled_jobs(workload, rule)
    onset = cost.onset - workload.submit_time + submit_time
    counted = Cost(cost.at_submission, cost.rate[ran], onset[ran])  # no event charges here
    return Played(counted, submit_time[ran], start_time[ran])
