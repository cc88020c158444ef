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
from hpcgym.core.kernels.types import Jobs, RewardPlan
from hpcgym.core.observation_fields import OwnField
from hpcgym.core.prepare import PreparedEpisode
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.state import State, placement_of
from hpcgym.core.workload import Workload
from hpcgym.env.observation import columns_of_fields
from hpcgym.env.reward import Cost, Reward, reward_plan_of
from hpcgym.schedule import Schedule


@dataclass(eq=False)
class EnvEpisode:
    """One episode of an environment, as kernels read it.

    Attributes:
        prepared: Jobs, what a second of waiting costs each, and scheduler.
        reward: The reward.
        cost: What waiting costs each job.
        baseline: Scheduler of the paired baseline, None without one.
        own_fields: Fields of the user's own that observations show.
        n_present: Jobs that waited or ran at once, as far as a vector environment needed room for
            more than usual; the next one to play the episode begins with as much.
    """

    prepared: PreparedEpisode
    reward: Reward
    cost: Cost
    baseline: SchedulerSettings | None
    own_fields: tuple[OwnField, ...] = ()
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
    def jobs(self) -> Struct[Jobs]:
        """Return the jobs as kernels take them."""
        columns: Any = columns_of_fields(self.own_fields)
        return Struct(self.table._replace(**columns))

    @cached_property
    def reward_plan(self) -> Struct[RewardPlan]:
        """Return how rewards are paid; simulates the baseline on this episode once, if any."""
        start_time = None if self.baseline is None else starts_under(self.baseline, self.workload)
        return reward_plan_of(self.reward.form, self.cost, self.workload.submit_time, start_time)

    def schedule(self, state: State, env: int) -> Schedule:
        """Return the schedule that row `env` of a state has made so far, start -1 = not started."""
        flag = state.flag[env, : self.n_jobs]
        start_time = np.maximum(state.start_time[env, : self.n_jobs], -1)
        return Schedule(
            workload=self.workload,
            start_time=start_time,
            run_time=self.table.run_time.copy(),
            backfilled=(flag & s.FLAG_BACKFILLED) != 0,
            thresholded=(flag & s.FLAG_THRESHOLDED) != 0,
            placement=placement_of(self.table, state, env, start_time),
            outage=self.table.outage,
        )

    def metrics(self, state: State, env: int) -> dict[str, float]:
        """Return the metrics of that schedule; waiting jobs count as if they started now."""
        made = self.schedule(state, env)
        return metrics.summary(
            made.workload,
            made.start_time,
            made.run_time,
            made.backfilled,
            made.thresholded,
            now=int(state.now[env]),
            outage=made.outage,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the structs of kernels, which hold addresses of this process."""
        kept = self.__dict__.items()
        return {key: value for key, value in kept if not isinstance(value, Struct)}


def starts_under(settings: SchedulerSettings, workload: Workload) -> NDArray[np.int64]:
    """Simulate a workload under a baseline's scheduler; return the start times, s."""
    simulator = Simulator(workload, settings)
    simulator.run()
    return simulator.start_time
