"""Episodes made ready for the environment: kernels' tables, costs, a baseline where one pays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import state as s
from hpcgym.core.episode import Episode, SchedulerSettings, estimates_of, executed_run_time, prepare
from hpcgym.core.kernels.types import Jobs, RewardPlan
from hpcgym.core.policy import Policy, as_policy, policy_names
from hpcgym.core.rows import jobs_of
from hpcgym.core.simulator import Simulator
from hpcgym.core.struct import Struct
from hpcgym.core.workload import Workload
from hpcgym.env.observation import static_fields
from hpcgym.env.reward import COMPARING_REWARDS, Cost, Reward, cost_of, in_units_of, reward_plan_of
from hpcgym.errors import ScenarioError, unknown_name
from hpcgym.scenario.episodes import Episodes

Expectations = Literal["records", "regression"]
EXPECTATIONS: dict[Expectations, int] = {
    "records": s.EXPECT_BY_RECORDS,
    "regression": s.EXPECT_BY_REGRESSION,
}
"""By what observations may show what is expected of jobs."""

KEPT_JOBS = 400_000
"""Jobs of prepared episodes that are kept for the next time one is drawn: a whole log's weeks."""


@dataclass(eq=False)
class Prepared:
    """One episode, ready to be simulated, observed and paid.

    Attributes:
        episode: What the kernels read.
        reward: How rewards are paid, one of `hpcgym.env.reward.Reward`.
        cost: What waiting costs each job.
        baseline_settings: The scheduler of the baseline, None where there is none.
    """

    episode: Episode
    reward: Reward
    cost: Cost
    baseline_settings: SchedulerSettings | None

    @cached_property
    def n_jobs(self) -> int:
        """Return the number of jobs."""
        return len(self.episode.workload)

    @cached_property
    def n_users(self) -> int:
        """Return the number of users."""
        return len(self.episode.workload.history.completed)

    @cached_property
    def jobs(self) -> Struct[Jobs]:
        """Return the episode's jobs as kernels see them."""
        return jobs_of(self.episode.table, 0, len(self.episode.workload))

    @cached_property
    def reward_plan(self) -> Struct[RewardPlan]:
        """Return how rewards are paid; simulates the baseline on this episode, once, if any."""
        workload, start_time = self.episode.workload, None
        if self.baseline_settings is not None:
            start_time = _starts_under(self.baseline_settings, workload)
        return reward_plan_of(self.reward, self.cost, workload.submit_time, start_time)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what only this process can hold."""
        kept = self.__dict__.items()
        return {key: value for key, value in kept if not isinstance(value, Struct)}


class Preparer:
    """Makes episodes of a scenario ready, and keeps those that come again.

    The base queue is in SAF order, which is what the slots of an observation show.

    Args:
        episodes: The scenario's episodes.
        settings: The scheduler that the agent and the baseline share.
        decide: "contested", "event", or an interval in s.
        policies: What a "policy" action chooses among.
        reward: One of `hpcgym.env.reward.Reward`.
        baseline: Policy of the paired baseline, or None.
        expectations: By what observations show what is expected, None = they do not.

    Raises:
        ScenarioError: An unknown reward, or one that needs a baseline and has none.

    Source:
        Specification, section 10.
    """

    def __init__(
        self,
        episodes: Episodes,
        settings: SchedulerSettings,
        *,
        decide: str | int,
        policies: Sequence[Policy],
        reward: Reward,
        baseline: str | None,
        expectations: Expectations | None,
    ) -> None:
        if reward not in get_args(Reward):
            raise ScenarioError(unknown_name("reward", reward, get_args(Reward)))
        if reward in COMPARING_REWARDS and baseline is None:
            raise ScenarioError(f"reward {reward!r} compares with a baseline; name one, say 'SAF'")
        self._machine = episodes.scenario.machine.processors
        self._largest = episodes.largest_request
        self._reward = reward
        self._decide = decide
        self._policies = policies
        self._expectations = expectations
        self._settings = replace(settings, policy="SAF")
        self._baseline = None if baseline is None else replace(settings, policy=as_policy(baseline))
        self._kept: OrderedDict[int, Prepared] = OrderedDict()
        self._n_kept = 0

    def of(self, workload: Workload) -> Prepared:
        """Make a workload ready.

        Args:
            workload: Jobs for the scenario's machine.

        Returns:
            The episode; the same one again for the same workload.

        Raises:
            ScenarioError: The workload was made for a machine of another size.

        Source:
            House rule: cut and prepared beforehand, so that a reset costs no Python per job.
        """
        kept = self._kept.get(id(workload))
        if kept is not None:
            self._kept.move_to_end(id(workload))
            return kept
        if workload.machine_processors != self._machine:
            raise ScenarioError(
                f"{workload.name} was made for {workload.machine_processors} processors; the "
                f"scenario's machine has {self._machine}"
            )
        run_time = executed_run_time(workload, self._settings.kill_at_limit)
        cost = cost_of(self._reward, workload.submit_time, run_time, workload.processors)
        if self._reward == "ratio" and self._baseline is not None:
            cost = in_units_of(cost, _starts_under(self._baseline, workload))
        estimate = estimates_of(workload, self._settings)
        episode = prepare(
            workload,
            self._settings,
            decide=self._decide,
            extra_policies=self._policies,
            keep_history=True,
            largest_request=self._largest,
            reward_rate=cost.rate,
            reward_onset=np.ascontiguousarray(cost.onset),
            field=static_fields(
                estimate, estimate, workload.processors, self._machine, self._largest
            ),
        )
        if self._expectations:
            episode.setting[s.SHOW_EXPECTED] = EXPECTATIONS[self._expectations]
            episode.setting[s.EXPECT] |= EXPECTATIONS[self._expectations]
        prepared = Prepared(episode, self._reward, cost, self._baseline)
        self._kept[id(workload)] = prepared
        self._n_kept += len(workload)
        while self._n_kept > KEPT_JOBS and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._n_kept -= len(dropped.episode.workload)
        return prepared

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the kept episodes, which are known by where they lie in memory."""
        return self.__dict__ | {"_kept": OrderedDict(), "_n_kept": 0}


def _starts_under(settings: SchedulerSettings, workload: Workload) -> NDArray[np.int64]:
    """Simulate a baseline; return its starts."""
    simulator = Simulator(workload, settings)
    simulator.run()
    return simulator.start_time


def steppable_policies(names: Sequence[str] | None) -> list[Policy]:
    """Return the policies a "policy" action may choose among.

    Args:
        names: Their names; None = every policy that a step can run, which leaves out those that
            order in Python.

    Returns:
        The policies, in the order given.

    Raises:
        PolicyError: An unknown name.
        ScenarioError: A policy orders in Python, which a step cannot run.

    Source:
        Specification, "Action semantics", `policy`.
    """
    if names is None:
        every = [as_policy(name) for name in policy_names()]
        return [policy for policy in every if not policy.is_python]
    chosen = [as_policy(name) for name in names]
    for policy in chosen:
        if policy.is_python:
            raise ScenarioError(
                f"policy {policy.name!r} orders in Python, which a step cannot run; "
                "register it by keys instead"
            )
    return chosen
