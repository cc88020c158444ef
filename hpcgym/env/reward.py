"""Rewards: what waiting costs, paid as it accrues, at starts, or at the end; alone or paired.

With N jobs in the episode, the cost of job j by the instant t is
b_j(t) = b_0 + rate_j max(0, min(s_j, t) - onset_j): its bounded slowdown, were it to start at t.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.metrics import BSLD_BOUND_S

Reward = Literal["bsld", "bsld_start", "bsld_end", "wait", "pp_bsld", "log_ratio", "relative"]

TERMINAL_REWARDS = ("log_ratio", "relative")
"""Rewards paid once, at the end, that compare with a baseline."""

IntArray = NDArray[np.int64]


class Cost(NamedTuple):
    """What waiting costs each job.

    Attributes:
        at_submission: b_0, the same for all.
        rate: What a second of waiting costs, shape (n_jobs,), 1/s.
        onset: Instant from which it does, shape (n_jobs,), s.
    """

    at_submission: float
    rate: NDArray[np.float64]
    onset: IntArray


def cost_of(reward: str, submit_time: IntArray, run_time: IntArray, processors: IntArray) -> Cost:
    """Work out what waiting costs each job.

    Args:
        reward: One of `Reward`.
        submit_time: Shape (n_jobs,), s.
        run_time: As executed, shape (n_jobs,), s.
        processors: Shape (n_jobs,).

    Returns:
        The cost whose sum over jobs, once all have started, is N times the mean bsld (for
        "pp_bsld" the mean pp-bsld, for "wait" the mean wait in s).

    Source:
        Specification, section 10, "Reward identity".

    Example:
        >>> cost_of("bsld", np.array([0]), np.array([4]), np.array([2]))
        Cost(at_submission=1.0, rate=array([0.1]), onset=array([6]))
    """
    if reward == "wait":
        return Cost(0.0, np.ones(len(submit_time)), submit_time)
    bound = np.maximum(run_time, BSLD_BOUND_S)
    if reward == "pp_bsld":
        bound = bound * processors
    return Cost(1.0, 1.0 / bound, submit_time + bound - run_time)


class Ledger(NamedTuple):
    """What a schedule has cost by an instant.

    Attributes:
        accrued: Of all jobs submitted by then, as if those that wait started then.
        started: Of those that have started.
    """

    accrued: float
    started: float


class CostCurve:
    """The cost of a finished schedule as a function of the clock: a baseline's side of a pair.

    Args:
        cost: What waiting costs each job.
        submit_time: Shape (n_jobs,), s.
        start_time: Shape (n_jobs,), s, every job started.

    Source:
        Specification, section 10, "Paired reward".
    """

    def __init__(self, cost: Cost, submit_time: IntArray, start_time: IntArray) -> None:
        waits = start_time > cost.onset
        moment = np.concatenate([cost.onset[waits], start_time[waits]])
        change = np.concatenate([cost.rate[waits], -cost.rate[waits]])
        order = np.argsort(moment, kind="stable")
        self._moment = moment[order]
        self._slope = np.cumsum(change[order])
        passed = np.concatenate([[0.0], np.cumsum(self._slope[:-1] * np.diff(self._moment))])
        self._cost = passed[: len(moment)]
        self._submit = submit_time
        self._at_submission = cost.at_submission
        self._started = np.sort(start_time)
        own = cost.at_submission + cost.rate * np.maximum(start_time - cost.onset, 0)
        self._started_cost = np.concatenate(
            [[0.0], np.cumsum(own[np.argsort(start_time, kind="stable")])]
        )
        self.total = float(self._started_cost[-1])

    def by(self, now: int) -> Ledger:
        """Return what the schedule has cost by an instant.

        Args:
            now: The instant, s.

        Returns:
            Both sums.

        Source:
            Specification, section 10, "Paired reward".
        """
        return Ledger(self._accrued(now), self._of_started(now))

    def _accrued(self, now: int) -> float:
        """Sum b_j(now) over the jobs submitted by then."""
        submitted = int(np.searchsorted(self._submit, now, side="right"))
        waited = 0.0
        place = int(np.searchsorted(self._moment, now, side="right")) - 1
        if place >= 0:
            since = float(self._slope[place]) * (now - int(self._moment[place]))
            waited = float(self._cost[place]) + since
        return self._at_submission * submitted + waited

    def _of_started(self, now: int) -> float:
        """Sum b_j over the jobs that have started before then, as an agent's have at a decision."""
        started = int(np.searchsorted(self._started, now, side="left"))
        return float(self._started_cost[started])


def owed(reward: str, ledger: Ledger, *, over: bool) -> float:
    """Return how much of a cost is to be paid by now, over all steps.

    Args:
        reward: One of `Reward`.
        ledger: What the schedule has cost.
        over: Whether the episode ends here.

    Returns:
        The sum due; at the end the whole cost, in every form of the reward.

    Source:
        Specification, section 10: three forms, one sum.

    Example:
        >>> owed("bsld_start", Ledger(5.0, 3.0), over=False)
        3.0
    """
    if over:
        return ledger.accrued
    if reward == "bsld_start":
        return ledger.started
    return 0.0 if reward == "bsld_end" or reward in TERMINAL_REWARDS else ledger.accrued


def compared(reward: str, agent: float, baseline: float) -> float:
    """Compare the mean cost of an agent with that of a baseline, so that weeks weigh alike.

    Args:
        reward: "log_ratio" or "relative".
        agent: Mean cost of the agent's schedule.
        baseline: Mean cost of the baseline's.

    Returns:
        -ln(agent / baseline), or (baseline - agent) / max(agent, baseline, 1).

    Source:
        Specification, section 10, "Paired reward"; the latter from SchedInspector (HPDC 2022).

    Example:
        >>> compared("relative", 2.0, 4.0)
        0.5
    """
    if agent == baseline:  # also where no job has been submitted yet
        return 0.0
    if reward == "log_ratio":
        return -math.log(agent / baseline)
    return (baseline - agent) / max(agent, baseline, 1.0)
