"""Paired comparison of agents over weeks: ratio of sums, mean log ratio, bootstrap intervals.

Weeks are the unit that is resampled, because jobs of one week share its congestion. Every agent
and every replica of a drawn week comes along, so that easy and hard weeks cancel out of a ratio.
Over several logs, each has its own weeks drawn, and all logs count alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.errors import EvaluationError

RESAMPLES = 10_000
"""Bootstrap resamples of the evaluation protocol."""

CONFIDENCE = 0.95
"""Share of the resamples inside an interval."""

FloatArray = NDArray[np.float64]

Pair: TypeAlias = tuple[FloatArray, FloatArray]
"""The agent's metric and the baseline's."""


@dataclass(frozen=True)
class Estimate:
    """A metric with its bootstrap interval; the ends are None where a log has a single week.

    The value is NaN where the metric does not exist, as a ratio to zero. The ends are NaN where it
    does not exist in every sample.
    """

    value: float
    low: float | None
    high: float | None
    n_weeks: int

    def __str__(self) -> str:
        """Show the metric and its interval, or say why there is none."""
        if math.isnan(self.value):
            return "-"
        if self.low is None or self.high is None:
            short = "one week" if self.n_weeks == 1 else "a log of one week"
            return f"{self.value:.3f} ({short}: no interval)"
        if math.isnan(self.low):
            return f"{self.value:.3f} (not in every sample: no interval)"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def columns(self, name: str) -> dict[str, float]:
        """Return the metric and the ends of its interval by columns; NaN where there is no end.

        Example:
            >>> Estimate(0.5, 0.4, 0.6, 9).columns("ratio")
            {'ratio': 0.5, 'ratio_low': 0.4, 'ratio_high': 0.6}
        """
        low, high = (math.nan if end is None else end for end in (self.low, self.high))
        return {name: self.value, f"{name}_low": low, f"{name}_high": high}


@dataclass(frozen=True)
class Resampled:
    """A metric over all weeks and over those of every sample.

    What is not finite does not exist.

    Attributes:
        resampled: Shape (resamples,).
        n_weeks: Weeks of each log.
    """

    value: float
    resampled: FloatArray
    n_weeks: tuple[int, ...]

    @property
    def estimate(self) -> Estimate:
        """The metric with its percentile interval, which a log of one week cannot give."""
        total = sum(self.n_weeks)
        if not math.isfinite(self.value):
            return Estimate(math.nan, math.nan, math.nan, total)
        if min(self.n_weeks) == 1:
            return Estimate(self.value, None, None, total)
        if not np.isfinite(self.resampled).all():
            return Estimate(self.value, math.nan, math.nan, total)
        tail = (1 - CONFIDENCE) / 2
        low, high = np.quantile(self.resampled, (tail, 1 - tail))
        return Estimate(self.value, float(low), float(high), total)


def resampled_mean(values: ArrayLike, seed: int = 0) -> tuple[float, float, float]:
    """Return a mean and its 95 % interval by resampling; NaN ends with fewer than two values.

    Example:
        >>> resampled_mean([2.0, 2.0])
        (2.0, 2.0, 2.0)
    """
    given = np.asarray(values, dtype=float)
    if len(given) < 2:
        return float(given.mean()) if len(given) else math.nan, math.nan, math.nan
    drawn = np.random.default_rng(seed).integers(0, len(given), (RESAMPLES, len(given)))
    low, high = np.percentile(given[drawn].mean(axis=1), [2.5, 97.5])
    return float(given.mean()), float(low), float(high)


def geometric_mean(logs: Sequence[Resampled]) -> Resampled:
    """Return the geometric mean of a ratio over logs; it exists where it does on every log."""
    with np.errstate(divide="ignore"):
        value = np.exp(np.mean([np.log(ratio.value) for ratio in logs]))
        resampled = np.exp(np.mean([np.log(ratio.resampled) for ratio in logs], axis=0))
    return Resampled(float(value), resampled, tuple(n for ratio in logs for n in ratio.n_weeks))


def draw_weeks(
    n_weeks: int, *, resamples: int = RESAMPLES, seed: int | Sequence[int] = 0
) -> FloatArray:
    """Draw bootstrap samples of weeks, as how often each week is in each sample.

    The same seed gives the same samples, which pairs whatever is computed from them.

    Returns:
        Counts, shape (resamples, n_weeks); each row sums to n_weeks.

    Raises:
        EvaluationError: `n_weeks` or `resamples` is below 1.

    Source: Specification, section 10, "Evaluation protocol", step 4.

    Example:
        >>> draw_weeks(3, resamples=2, seed=1).sum(axis=1)
        array([3., 3.])
    """
    if n_weeks < 1 or resamples < 1:
        raise EvaluationError(
            f"a bootstrap needs at least 1 week and 1 resample, got {n_weeks} and {resamples}"
        )
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(n_weeks, np.full(n_weeks, 1 / n_weeks), size=resamples)
    return counts.astype(np.float64)


def ratio_of_sums(agent: FloatArray, baseline: FloatArray, draws: FloatArray) -> Estimate:
    """Return the agent's sum over weeks of the mean over replicas, divided by the baseline's.

    Heavy weeks dominate this ratio, as they dominate a user's experience; `mean_log_ratio` weighs
    all weeks alike.

    Args:
        agent: The agent's metric, shape (n_weeks, n_replicas), > 0.
        baseline: The baseline's metric on the same weeks and replicas, same shape, > 0.
        draws: Samples of weeks from `draw_weeks`, shape (resamples, n_weeks).

    Raises:
        EvaluationError: Shapes differ, or a value is not finite and positive.

    Source: Specification, section 10, "Evaluation protocol", steps 3 and 4.

    Example:
        >>> two = np.array([[2.0], [6.0]])
        >>> ratio_of_sums(two, np.array([[4.0], [4.0]]), draw_weeks(2)).value
        1.0
    """
    return _ratio(agent, baseline, draws).estimate


def mean_log_ratio(agent: FloatArray, baseline: FloatArray, draws: FloatArray) -> Estimate:
    """Return the mean natural log of agent over baseline, over replicas and then weeks.

    Arguments and errors are those of `ratio_of_sums`; below 0 the agent is better.

    Source: Specification, section 10, "Evaluation protocol", steps 3 and 4.

    Example:
        >>> ones = np.ones((2, 1))
        >>> mean_log_ratio(np.array([[0.5], [2.0]]), ones, draw_weeks(2)).value
        0.0
    """
    return _log_ratio(agent, baseline, draws).estimate


def ratio_over_logs(pairs: Sequence[Pair], draws: Sequence[FloatArray]) -> Estimate:
    """Return the geometric mean of `ratio_of_sums` over logs.

    Args:
        pairs: The agent's metric and the baseline's on each log.
        draws: Samples of each log's weeks, drawn separately and as many for each.

    Source: Fleming and Wallace 1986: ratios are averaged geometrically; specification, section 10,
        "Evaluation protocol", step 4, log by log.

    Example:
        >>> half, twice = (np.full((2, 1), value) for value in (0.5, 2.0))
        >>> ratio_over_logs([(half, twice), (twice, twice)], [draw_weeks(2)] * 2).value
        0.5
    """
    ratios = [_ratio(*pair, drawn) for pair, drawn in zip(pairs, draws, strict=True)]
    return geometric_mean(ratios).estimate


def log_ratio_over_logs(pairs: Sequence[Pair], draws: Sequence[FloatArray]) -> Estimate:
    """Return the mean of `mean_log_ratio` over logs; arguments as of `ratio_over_logs`.

    Source: Specification, section 10, "Evaluation protocol", steps 3 and 4, log by log.
    """
    log_ratios = [_log_ratio(*pair, drawn) for pair, drawn in zip(pairs, draws, strict=True)]
    value = float(np.mean([log_ratio.value for log_ratio in log_ratios]))
    resampled = np.mean([log_ratio.resampled for log_ratio in log_ratios], axis=0)
    return Resampled(value, resampled, tuple(len(agent) for agent, _ in pairs)).estimate


def _ratio(agent: FloatArray, baseline: FloatArray, draws: FloatArray) -> Resampled:
    """Return the ratio of sums over all weeks, and over the weeks of every sample."""
    _check(agent, baseline, draws)
    of_agent, of_baseline = agent.mean(axis=1), baseline.mean(axis=1)
    resampled = (draws @ of_agent) / (draws @ of_baseline)
    return Resampled(float(of_agent.sum() / of_baseline.sum()), resampled, (len(agent),))


def _log_ratio(agent: FloatArray, baseline: FloatArray, draws: FloatArray) -> Resampled:
    """Return the mean log ratio over all weeks, and over the weeks of every sample."""
    _check(agent, baseline, draws)
    by_week = np.log(agent / baseline).mean(axis=1)
    return Resampled(float(by_week.mean()), draws @ by_week / len(by_week), (len(agent),))


def _check(agent: FloatArray, baseline: FloatArray, draws: FloatArray) -> None:
    """Refuse metrics that are not paired, and values without a ratio."""
    if agent.ndim != 2 or agent.shape != baseline.shape or agent.shape[0] != draws.shape[1]:
        raise EvaluationError(
            f"agent {agent.shape} and baseline {baseline.shape} must both be of shape "
            f"(n_weeks, n_replicas), with n_weeks = {draws.shape[1]} as drawn"
        )
    for what, values in (("agent", agent), ("baseline", baseline)):
        if not np.all(np.isfinite(values) & (values > 0)):
            raise EvaluationError(f"the {what}'s metric must be finite and positive for a ratio")
