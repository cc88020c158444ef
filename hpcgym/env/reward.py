"""Rewards: the cost of waiting, paid as it accrues, at starts or at the end, alone or paired.

With N jobs in the episode, the cost of job j by the instant t is
b_j(t) = b_0 + rate_j max(0, min(s_j, t) - onset_j): its bounded slowdown if it started at t. A
paired reward subtracts the baseline's reward over the same intervals.

Source: Specification, section 10, "Reward identity" and "Paired reward".
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core.kernels.types import RewardPlan
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.struct import Struct

Reward = Literal[
    "bsld", "bsld_start", "bsld_end", "wait", "pp_bsld", "ratio", "log_ratio", "relative"
]

TERMINAL_REWARDS = ("log_ratio", "relative")
"""Rewards paid once, at the end, that compare with a baseline."""

COMPARING_REWARDS = ("ratio", *TERMINAL_REWARDS)
"""Rewards that need a baseline."""

FORMS = {
    "bsld_start": s.PAY_AT_START,
    "bsld_end": s.PAY_AT_END,
    "log_ratio": s.PAY_LOG_RATIO,
    "relative": s.PAY_RELATIVE,
}
"""When rewards are paid; those that are not listed are paid as they accrue."""

IntArray = NDArray[np.int64]


class Cost(NamedTuple):
    """What waiting costs each job.

    Attributes:
        at_submission: b_0, the same for all jobs.
        rate: Cost of a second of waiting, shape (n_jobs,), 1/s.
        onset: Instant from which waiting costs, shape (n_jobs,), s.
    """

    at_submission: float
    rate: NDArray[np.float64]
    onset: IntArray


def cost_of(reward: str, submit_time: IntArray, run_time: IntArray, processors: IntArray) -> Cost:
    """Return what waiting costs each job, given executed run times.

    Once all jobs have started, the sum of the costs is N times the mean bsld; for "pp_bsld" the
    mean pp-bsld, for "wait" the mean wait in s.

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


def in_units_of(cost: Cost, baseline_start_time: IntArray) -> Cost:
    """Return the cost divided by the baseline's mean cost, so that the baseline's mean is 1.

    Without this a few weeks dominate a sum over weeks.

    Example:
        >>> in_units_of(Cost(1.0, np.array([0.1]), np.array([6])), np.array([36])).rate
        array([0.025])
    """
    waited = np.maximum(baseline_start_time - cost.onset, 0)
    unit = cost.at_submission + float((cost.rate * waited).mean())
    return Cost(cost.at_submission / unit, cost.rate / unit, cost.onset)


def reward_plan_of(
    reward: str,
    cost: Cost,
    submit_time: IntArray,
    baseline_start_time: IntArray | None,
) -> Struct[RewardPlan]:
    """Return how kernels pay the rewards of an episode.

    Without a paired baseline the starts are None. With one, its cost is a function of the clock:
    piecewise linear until jobs start, then constant.
    """
    start = submit_time if baseline_start_time is None else baseline_start_time
    waits = start > cost.onset
    moment = np.concatenate([cost.onset[waits], start[waits]])
    change = np.concatenate([cost.rate[waits], -cost.rate[waits]])
    order = np.argsort(moment, kind="stable")
    slope = np.cumsum(change[order])
    passed = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(moment[order]))])
    own = cost.at_submission + cost.rate * np.maximum(start - cost.onset, 0)
    by_start = np.argsort(start, kind="stable")
    started_cost = np.concatenate([[0.0], np.cumsum(own[by_start])])
    fields = RewardPlan(
        form=FORMS.get(reward, s.PAY_AS_ACCRUED),
        is_paired=int(baseline_start_time is not None),
        n_jobs=len(start),
        at_submission=cost.at_submission,
        baseline_total=float(started_cost[-1]),
        submit_time=submit_time,
        moment=moment[order],
        slope=slope,
        passed=passed[: len(moment)],
        started=start[by_start],
        started_cost=started_cost,
    )
    return Struct(fields)
