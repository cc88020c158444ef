"""Paired comparison of agents over weeks: ratio of sums, mean log ratio, t intervals.

Weeks are the unit, because jobs of one week share its congestion. Every agent and every replica of
a week comes along, so that easy and hard weeks cancel out of a ratio. Over several logs, all logs
count alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import EvaluationError
from hpcgym.base.estimate import Estimate, ends_text, jackknife, mean_of, pooled_mean
from hpcgym.trace.split import WEEK_S

__all__ = [
    "Estimate",
    "ends_text",
    "mean_log_ratio",
    "mean_of",
    "mean_over_logs",
    "pooled_mean",
    "ratio_of_sums",
    "weekly_interval",
]

FloatArray = NDArray[np.float64]

FEWEST_WEEKS = 4
WORTH_ONE = 3  # so many weeks in a row tell as much as one that is drawn alone


def ratio_of_sums(agent: FloatArray, baseline: FloatArray) -> Estimate:
    """Return the agent's sum over weeks of the mean over replicas, divided by the baseline's.

    Heavy weeks dominate this ratio, as they dominate a user's experience; `mean_log_ratio` weighs
    all weeks alike. There is no interval where the weeks but one have a sum of 0.

    Args:
        agent: The agent's metric, shape (n_weeks, n_replicas), >= 0.
        baseline: The baseline's metric on the same weeks and replicas, same shape, >= 0.

    Raises:
        EvaluationError: Shapes differ, or a value is not finite or negative.

    Source: Specification, section 10, "Intervals".

    Example:
        >>> two = np.array([[2.0], [6.0]])
        >>> ratio_of_sums(two, np.array([[4.0], [4.0]])).value
        1.0
    """
    _check(agent, baseline, least=0)
    by_week = np.stack([agent.mean(axis=1), baseline.mean(axis=1)])
    sums = by_week.sum(axis=1, keepdims=True)
    value = float(sums[0, 0] / sums[1, 0]) if sums[1, 0] else math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        agent_without, baseline_without = np.log(sums - by_week)
        error = jackknife(agent_without - baseline_without)
    return Estimate(value, error, by_week.shape[1] - 1)


def mean_log_ratio(agent: FloatArray, baseline: FloatArray) -> Estimate:
    """Return the mean natural log of agent over baseline, over replicas and then weeks.

    Arguments and errors are those of `ratio_of_sums`, but values > 0; below 0 the agent is better.

    Source: Specification, section 10, "Intervals".

    Example:
        >>> ones = np.ones((2, 1))
        >>> mean_log_ratio(np.array([[0.5], [2.0]]), ones).value
        0.0
    """
    _check(agent, baseline, least=np.nextafter(0, 1))
    return mean_of(np.log(agent / baseline).mean(axis=1))


def mean_over_logs(logs: Sequence[Estimate]) -> Estimate:
    """Return the mean of a metric over logs, of ratios the geometric mean.

    It exists where it does on every log, and so does its interval.

    Source: Fleming and Wallace 1986: ratios are averaged geometrically; Welch 1947 for the degrees
        of freedom; specification, section 10, "Intervals".
    """
    values = np.array([log.value for log in logs])
    is_ratio = logs[0].is_ratio
    with np.errstate(divide="ignore"):
        value = float(np.exp(np.log(values).mean()) if is_ratio else values.mean())
    errors = [log.error for log in logs if log.error is not None]
    if len(errors) < len(logs):
        return Estimate(value, None, 0, is_ratio)
    parts = np.square(errors)
    total = float(parts.sum())
    shares = parts / total if total else np.ones(len(logs))
    degrees = 1 / sum(shares**2 / [log.degrees for log in logs])
    return Estimate(value, math.sqrt(total) / len(logs), float(degrees), is_ratio)


def weekly_interval(gains_h: FloatArray, submit_time: NDArray[np.int64]) -> list[float] | None:
    """Return a 60 % interval of the mean gain, from weeks in a row; None: too few.

    Source: Specification, section 10, "Intervals".
    """
    weeks = np.unique((submit_time - submit_time[0]) // WEEK_S, return_inverse=True)[1]
    gain = pooled_mean(np.bincount(weeks, gains_h), np.bincount(weeks))
    if gain.error is None or weeks.max() + 1 < FEWEST_WEEKS:
        return None
    ends = replace(gain, error=gain.error * math.sqrt(WORTH_ONE)).ends()
    return ends and list(ends)


def _check(agent: FloatArray, baseline: FloatArray, least: float) -> None:
    """Refuse metrics that are not paired, and values without a ratio."""
    if agent.ndim != 2 or agent.shape != baseline.shape or not agent.size:
        raise EvaluationError(
            f"agent {agent.shape} and baseline {baseline.shape} must both be of shape "
            "(n_weeks, n_replicas)"
        )
    for what, values in (("agent", agent), ("baseline", baseline)):
        if not np.all(np.isfinite(values) & (values >= least)):
            raise EvaluationError(
                f"the {what}'s metric must be finite and {'positive' if least else 'at least 0'} "
                "for a ratio"
            )
