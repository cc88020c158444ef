"""Rewards: the cost of waiting, paid as it accrues, at starts or at the end, alone or paired.

With N jobs in the episode, cancelled ones aside, the cost of job j by the instant t is
b_j(t) = b_0 + rate_j max(0, min(s_j, t) - onset_j): its bounded slowdown if it started at t. A
paired reward subtracts the baseline's reward over the same intervals.

Source: Specification, section 10, "Reward identity" and "Paired reward".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.base import plugins
from hpcgym.base.errors import ScenarioError, unknown_name
from hpcgym.core import constants as s
from hpcgym.core.columns import LARGEST_TIME
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.kernels.types import RewardPlan
from hpcgym.core.loaders import ByName
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.price import PRICED
from hpcgym.core.workload import Workload

IntArray = NDArray[np.int64]


class Cost(NamedTuple):
    """What waiting costs each job, and its start."""

    at_submission: float  # b_0, the same for all jobs
    rate: NDArray[np.float64]  # cost of a second of waiting, shape (n_jobs,), 1/s
    onset: IntArray  # instant from which waiting costs, shape (n_jobs,), s
    # What an event charges each job a second for when it starts; None = nothing.
    charge: NDArray[np.float64] | None = None
    # Returns the price above the mean one of each job's seconds, summed, given starts.
    premium: Callable[[IntArray], NDArray[np.float64]] | None = None

    def charged(self, start: IntArray) -> NDArray[np.float64]:
        """Return what starts cost, shape (n_jobs,)."""
        if self.charge is None or self.premium is None:
            return np.zeros(len(start))
        return self.charge * self.premium(start)


def cost_of_slowdown(workload: Workload, run_time: IntArray) -> Cost:
    """Return costs that sum to N times the mean bsld once all jobs have started."""
    bound = np.maximum(run_time, BSLD_BOUND_S)
    return Cost(1.0, 1.0 / bound, workload.submit_time + bound - run_time)


def cost_by_processor(workload: Workload, run_time: IntArray) -> Cost:
    """Return costs that sum to N times the mean pp-bsld."""
    bound = np.maximum(run_time, BSLD_BOUND_S) * workload.processors
    return Cost(1.0, 1.0 / bound, workload.submit_time + bound - run_time)


def cost_of_wait(workload: Workload, run_time: IntArray) -> Cost:
    """Return costs that sum to N times the mean wait, s."""
    return Cost(0.0, np.ones(len(workload)), workload.submit_time)


@dataclass(frozen=True)
class Reward:
    """What waiting costs, and when and how that is paid."""

    name: str  # its name; "" = it has none
    pays: str  # what it pays, in words of the data sheet
    # Returns what waiting costs each job of a workload, given executed run times, s.
    cost_of: Callable[[Workload, IntArray], Cost] = cost_of_slowdown
    form: int = s.PAY_AS_ACCRUED  # when it is paid, `PAY_*`
    # Whether costs are in units of the baseline's mean cost, or of SAF's mean bounded slowdown
    # without one.
    by_baseline: bool = False
    charges: bool = False  # whether starts cost what the event `price` says

    def refuse_cut(self) -> None:
        """Raise a ScenarioError unless an episode may be cut short.

        A learner adds the value of the last state then. What had not been paid by then would count
        twice.
        """
        if self.form not in (s.PAY_AS_ACCRUED, s.PAY_BY_USER):
            raise ScenarioError(
                f"reward {self.name!r} pays at starts or at the end, so no time limit may cut an "
                "episode short; choose one that pays as waiting accrues, 'ratio' or 'bsld', or "
                "leave the limit out"
            )

    @property
    def metric(self) -> str:
        """Return the key of infos that validations compare with SAF's."""
        return PRICED if self.charges else "mean_bsld"

    @property
    def is_terminal(self) -> bool:
        """Return whether it is paid once, at the end, by a comparison with the baseline."""
        return self.form in (s.PAY_LOG_RATIO, s.PAY_RELATIVE)

    @property
    def is_by_user(self) -> bool:
        """Return whether it compares users, so that no baseline can be taken off job by job."""
        return self.form == s.PAY_BY_USER

    @property
    def needs_baseline(self) -> bool:
        """Return whether it cannot be paid without a baseline."""
        return self.is_terminal


_SHIPPED = (
    Reward("bsld", "-1/N times the growth of the sum of b_j since the last decision"),
    Reward("bsld_start", "-b_j / N for each job that has started", form=s.PAY_AT_START),
    Reward("bsld_end", "minus the mean bounded slowdown, at the end", form=s.PAY_AT_END),
    Reward("wait", 'as `"bsld"`, for the wait in s', cost_of_wait),
    Reward("pp_bsld", 'as `"bsld"`, for the bounded slowdown per processor', cost_by_processor),
    Reward(
        "ratio",
        'as `"bsld"`, over the mean bsld of SAF, or of a `baseline`, on the same jobs',
        by_baseline=True,
    ),
    Reward(
        "user_ratio",
        "minus the growth of the root mean square of users' mean bsld, over the mean bsld of SAF",
        form=s.PAY_BY_USER,
        by_baseline=True,
    ),
    Reward(
        "priced",
        'as `"ratio"`; and at starts their energy at the price less its mean, over the cost of SAF,'
        " times `weight` of the event `price`",
        by_baseline=True,
        charges=True,
    ),
    Reward("log_ratio", "at the end, -ln(agent / baseline) of the mean bsld", form=s.PAY_LOG_RATIO),
    Reward(
        "relative", "at the end, (baseline - agent) / max(agent, baseline, 1)", form=s.PAY_RELATIVE
    ),
)

REWARDS: ByName[Reward] = ByName(
    "reward", ScenarioError, {reward.name: reward for reward in _SHIPPED}
)
"""Rewards by name, and those that `register_reward` adds."""


class RewardedJob(NamedTuple):
    """A job as the rate of your own reward sees it; `run_time` is the executed one. Times are s."""

    job_id: int
    user: int
    submit_time: int
    run_time: int
    requested_time: int
    processors: int


Rate: TypeAlias = Callable[[RewardedJob], "float | tuple[float, int]"]
"""What a second of waiting costs, 1/s, alone or with the instant from which it costs, s."""

AnyReward: TypeAlias = str | Reward | Rate | Sequence[ArrayLike]
"""Whatever names a reward; see `as_reward`."""


def as_reward(reward: object) -> Reward:
    """Return the reward of a name, of a file, or of a rate of your own.

    A rate is a function that is called with each `RewardedJob` of an episode. It returns what a
    second of waiting costs, 1/s, alone or with the instant from which it costs, s; by default that
    is the submission. Where jobs wait for others, the instant moves with the job's submission to
    when it is eligible. Instead of a function two arrays can be given, rates and instants, each of
    shape (n_jobs,); they fit episodes of so many jobs only. The rewards then sum to minus the mean
    cost of the jobs. `path/to/file.py:name` and `module:name` name a rate or a `Reward` there.

    Raises:
        ScenarioError: An unknown name, or something else.
        HpcgymError: A file or module that cannot be imported, or has no reward.

    Source: Specification, section 10, "Reward identity".
    """
    if isinstance(reward, str):
        if reward in REWARDS:
            return REWARDS[reward]
        if not plugins.is_reference(reward):
            raise ScenarioError(unknown_name("reward", reward, REWARDS))
        what = "reward, which is a Reward or a function of a job that returns a rate"
        fits = (lambda candidate: isinstance(candidate, Reward), inspect.isfunction)
        reward = plugins.load_reference(reward, what, *fits)[1]
    if isinstance(reward, Reward):
        return reward
    if not callable(reward) and not (isinstance(reward, (tuple, list)) and len(reward) == 2):
        raise ScenarioError(
            "reward must be a name, a function of a job that returns a rate, or two arrays, rates "
            f"and instants; got {reward!r}"
        )
    return Reward("", "", partial(own_cost_of, reward))


def register_reward(
    name: str, rate: Rate, *, pays: str = "", form: int = s.PAY_AS_ACCRUED
) -> Reward:
    """Let `reward=` take a reward of your own by its name; one of yours of that name is replaced.

    Args:
        name: A letter, then letters, digits, `_` or `-`.
        rate: As of `as_reward`.
        pays: What it pays, in words.
        form: `PAY_AS_ACCRUED`, `PAY_AT_START`, `PAY_AT_END`, or `PAY_RELATIVE`, which needs a
            baseline. A ratio would have no value where nobody waits, since a rate costs 0 then.

    Raises:
        ScenarioError: The name is taken or malformed, the rate is no function, or the form is none.

    Example:
        >>> register_reward("node-hours", lambda job: job.processors / 3600).needs_baseline
        False
        >>> del REWARDS["node-hours"]
    """
    if not callable(rate):
        raise ScenarioError(f"reward {name!r}: the rate must be a function of a job, got {rate!r}")
    if form not in (s.PAY_AS_ACCRUED, s.PAY_AT_START, s.PAY_AT_END, s.PAY_RELATIVE):
        raise ScenarioError(
            f"reward {name!r}: form must be PAY_AS_ACCRUED, PAY_AT_START, PAY_AT_END or "
            f"PAY_RELATIVE, got {form!r}"
        )
    return REWARDS.register(name, Reward(name, pays, partial(own_cost_of, rate), form))


def table_of_rewards() -> str:
    """Return the rewards that ship as a table in Markdown."""
    rows = [f'| `"{reward.name}"` | {reward.pays} |' for reward in _SHIPPED]
    return "\n".join(["| `reward` | pays |", "|---|---|", *rows])


def own_cost_of(reward: Rate | Sequence[ArrayLike], workload: Workload, run_time: IntArray) -> Cost:
    """Return what waiting costs each job by a rate of your own, given executed run times.

    Raises:
        ScenarioError: Rates below 0, or instants before the submission; or arrays of another shape.
    """
    if callable(reward):
        columns = (
            *(workload.job_id, workload.user, workload.submit_time, run_time),
            *(workload.requested_time, workload.processors),
        )
        jobs = zip(*(column.tolist() for column in columns), strict=True)
        rows = [_rate_and_onset(reward, RewardedJob(*job)) for job in jobs]
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


def _rate_and_onset(reward: Rate, job: RewardedJob) -> tuple[float, float]:
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


class Played(NamedTuple):
    """The jobs of a schedule that were not cancelled: what waiting costs them, their times, s."""

    cost: Cost  # what waiting costs each, from when it was eligible on
    submit_time: IntArray  # when each was eligible
    start_time: IntArray


def mean_cost(played: Played) -> float:
    """Return the mean cost of the jobs of a schedule.

    Example:
        >>> cost = Cost(1.0, np.array([0.1]), np.array([6]))
        >>> mean_cost(Played(cost, np.array([0]), np.array([36])))
        4.0
    """
    waited = np.maximum(played.start_time - played.cost.onset, 0)
    charged = played.cost.charged(played.start_time)
    return played.cost.at_submission + float((played.cost.rate * waited + charged).mean())


def in_units(cost: Cost, unit: float) -> Cost:
    """Return the cost in units of another; without a unit a few weeks dominate a sum over weeks."""
    return cost._replace(at_submission=cost.at_submission / unit, rate=cost.rate / unit)


def reward_plan_of(
    form: int, played: Played, is_paired: bool, user_weight: NDArray[np.float64]
) -> Struct[RewardPlan]:
    """Return how kernels pay the rewards of an episode; `form` is `PAY_*`.

    `user_weight` is 1 over the jobs of each user, 0 where it has none; empty = not by user.
    With a paired baseline, `played` is its schedule. Its cost is a function of the clock: piecewise
    linear until jobs start, then constant. Without one, each job starts when it is eligible.
    """
    cost, submit_time, start = played
    waits, charged = start > cost.onset, cost.charged(start)
    starts = start if cost.charge is not None else start[:0]
    moment = np.concatenate([cost.onset[waits], start[waits], starts])
    change = np.concatenate([cost.rate[waits], -cost.rate[waits], np.zeros(len(starts))])
    jump = np.concatenate([np.zeros(2 * waits.sum()), charged[: len(starts)]])
    order = np.argsort(moment, kind="stable")
    slope = np.cumsum(change[order])
    passed = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(moment[order]))])
    passed[: len(moment)] += np.cumsum(jump[order])
    costs = cost.at_submission + cost.rate * np.maximum(start - cost.onset, 0) + charged
    by_start = np.argsort(start, kind="stable")
    started_cost = np.concatenate([[0.0], np.cumsum(costs[by_start])])
    fields = RewardPlan(
        form=form,
        is_paired=int(is_paired),
        n_jobs=len(start),
        at_submission=cost.at_submission,
        baseline_total=float(started_cost[-1]),
        submit_time=np.sort(submit_time, kind="stable"),
        moment=moment[order],
        slope=slope,
        passed=passed[: len(moment)],
        started=start[by_start],
        started_cost=started_cost,
        user_weight=user_weight,
    )
    return Struct(fields)
