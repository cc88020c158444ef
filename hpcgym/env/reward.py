"""Rewards: the cost of waiting, paid as it accrues, at starts or at the end, alone or paired.

With N jobs in the episode, the cost of job j by the instant t is
b_j(t) = b_0 + rate_j max(0, min(s_j, t) - onset_j): its bounded slowdown if it started at t. A
paired reward subtracts the baseline's reward over the same intervals.

Source: Specification, section 10, "Reward identity" and "Paired reward".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.core import constants as s
from hpcgym.core.columns import LARGEST_TIME
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.kernels.types import RewardPlan
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.workload import Workload
from hpcgym.errors import ScenarioError, unknown_name

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


class RewardedJob(NamedTuple):
    """A job as the rate of your own reward sees it; `run_time` is the executed one. Times are s."""

    job_id: int
    user: int
    submit_time: int
    run_time: int
    requested_time: int
    processors: int


OwnReward: TypeAlias = Callable[[RewardedJob], "float | tuple[float, int]"] | Sequence[ArrayLike]
"""A rate of your own, 1/s, and the instant from which waiting costs, s; see `as_reward`."""


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


def as_reward(reward: object) -> Reward | OwnReward:
    """Return a reward that is known by name, or the rate of your own.

    A function is called with each `RewardedJob` of an episode. It returns what a second of waiting
    costs, 1/s, alone or with the instant from which it costs, s; by default that is the submission.
    Instead of a function two arrays can be given, rates and instants, each of shape (n_jobs,); they
    fit episodes of so many jobs only. The rewards then sum to minus the mean cost of the jobs.

    Raises:
        ScenarioError: An unknown name, or something else.

    Source: Specification, section 10, "Reward identity".

    Example:
        >>> as_reward(lambda job: job.processors / 3600)  # doctest: +ELLIPSIS
        <function <lambda> at ...>
        >>> as_reward("bsl")
        Traceback (most recent call last):
        hpcgym.errors.ScenarioError: unknown reward 'bsl'; did you mean 'bsld'? ...
    """
    if isinstance(reward, str):
        if reward not in get_args(Reward):
            raise ScenarioError(unknown_name("reward", reward, get_args(Reward)))
    elif not callable(reward) and not (isinstance(reward, (tuple, list)) and len(reward) == 2):
        raise ScenarioError(
            "reward must be a name, a function of a job that returns a rate, or two arrays, rates "
            f"and instants; got {reward!r}"
        )
    return reward


def own_cost_of(reward: OwnReward, workload: Workload, run_time: IntArray) -> Cost:
    """Return what waiting costs each job by a reward of your own, given executed run times.

    Raises:
        ScenarioError: Rates below 0, or instants before the submission; or arrays of another shape.
    """
    if callable(reward):
        rows = [_rate_and_onset(reward, job) for job in _rewarded_jobs(workload, run_time)]
        rate, onset = np.array(rows, dtype=np.float64).reshape(-1, 2).T
    else:
        rate, onset = (np.asarray(column, dtype=np.float64) for column in reward)
    for name, column, least in (("rate", rate, 0), ("onset", onset, workload.submit_time)):
        if column.shape != (len(workload),):
            raise ScenarioError(
                f"reward: {name} must have shape ({len(workload)},) for {workload.name}, got "
                f"{column.shape}; a function of a job fits every episode"
            )
        limit = LARGEST_TIME if name == "onset" else np.finfo(np.float64).max
        bad = np.flatnonzero(~((column >= least) & (column <= limit)))
        if len(bad):
            allowed = ">= 0 per s" if name == "rate" else "an instant not before its submission"
            raise ScenarioError(
                f"reward: {name} of job {workload.job_id[bad[0]]} of {workload.name} is "
                f"{column[bad[0]]:g}; it must be {allowed}"
            )
    return Cost(0.0, np.ascontiguousarray(rate), np.ceil(onset).astype(np.int64))


def _rewarded_jobs(workload: Workload, run_time: IntArray) -> list[RewardedJob]:
    """Return the jobs as a rate sees them."""
    columns = (
        *(workload.job_id, workload.user, workload.submit_time, run_time),
        *(workload.requested_time, workload.processors),
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [RewardedJob(*row) for row in rows]


def _rate_and_onset(
    reward: Callable[[RewardedJob], object], job: RewardedJob
) -> tuple[float, float]:
    """Return a job's rate, 1/s, and the instant from which it counts, s."""
    given = reward(job)
    pair = given if isinstance(given, tuple) else (given, job.submit_time)
    try:
        rate, onset = map(float, pair)
    except (TypeError, ValueError):
        raise ScenarioError(
            f"reward must return a rate, or a rate and an instant; for job {job.job_id} it "
            f"returned {given!r}"
        ) from None
    return rate, onset


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
    reward: Reward | OwnReward,
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
        form=FORMS.get(reward, s.PAY_AS_ACCRUED) if isinstance(reward, str) else s.PAY_AS_ACCRUED,
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
