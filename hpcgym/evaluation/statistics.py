"""Paired comparison of agents over weeks: ratio of sums, mean log ratio, bootstrap intervals.

Weeks are the unit that is resampled, because jobs of one week share its congestion. Every agent
and every replica of a drawn week comes along, so that easy and hard weeks cancel out of a ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import EvaluationError

RESAMPLES = 10_000
"""Bootstrap resamples of the evaluation protocol."""

CONFIDENCE = 0.95
"""Share of the resamples inside an interval."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A figure with its bootstrap interval, or without one where a single week gives none.

    Attributes:
        value: The figure itself.
        low: Lower end of the interval, or None.
        high: Upper end of the interval, or None.
        n_weeks: Weeks the figure rests on.
    """

    value: float
    low: float | None
    high: float | None
    n_weeks: int

    def __str__(self) -> str:
        """Show the figure and its interval, or say why there is none."""
        if self.low is None or self.high is None:
            return f"{self.value:.3f} (one week: no interval)"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def draw_weeks(n_weeks: int, *, resamples: int = RESAMPLES, seed: int = 0) -> FloatArray:
    """Draw bootstrap samples of weeks, as how often each week is in each sample.

    Args:
        n_weeks: Weeks to draw from and weeks per sample, >= 1.
        resamples: Number of samples.
        seed: Seed of the draws; the same seed gives the same samples, which pairs whatever is
            computed from them.

    Returns:
        Counts, shape (resamples, n_weeks); each row sums to n_weeks.

    Raises:
        EvaluationError: There is no week, or no resample is asked for.

    Source:
        Specification, section 10, "Evaluation protocol", step 4.

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


def ratio_of_sums(agent: FloatArray, reference: FloatArray, draws: FloatArray) -> Estimate:
    """Compare the sums over weeks of an agent's and the reference's mean over replicas.

    Heavy weeks rule this figure, as they rule a user's experience; `mean_log_ratio` weighs all
    weeks alike.

    Args:
        agent: The agent's metric, shape (n_weeks, n_replicas), > 0.
        reference: The reference's metric on the same weeks and replicas, same shape, > 0.
        draws: Samples of weeks from `draw_weeks`, shape (resamples, n_weeks).

    Returns:
        sum(agent) / sum(reference), with its percentile interval.

    Raises:
        EvaluationError: Shapes differ, or a value is not finite and positive.

    Source:
        Specification, section 10, "Evaluation protocol", steps 3 and 4.

    Example:
        >>> two = np.array([[2.0], [6.0]])
        >>> ratio_of_sums(two, np.array([[4.0], [4.0]]), draw_weeks(2)).value
        1.0
    """
    _check(agent, reference, draws)
    of_agent, of_reference = agent.mean(axis=1), reference.mean(axis=1)
    resampled = (draws @ of_agent) / (draws @ of_reference)
    return _estimate(of_agent.sum() / of_reference.sum(), resampled, len(of_agent))


def mean_log_ratio(agent: FloatArray, reference: FloatArray, draws: FloatArray) -> Estimate:
    """Average the natural log of agent over reference, replica by replica and week by week.

    Args:
        agent: The agent's metric, shape (n_weeks, n_replicas), > 0.
        reference: The reference's metric on the same weeks and replicas, same shape, > 0.
        draws: Samples of weeks from `draw_weeks`, shape (resamples, n_weeks).

    Returns:
        The mean log ratio, with its percentile interval; negative where the agent is better.

    Raises:
        EvaluationError: Shapes differ, or a value is not finite and positive.

    Source:
        Specification, section 10, "Evaluation protocol", steps 3 and 4.

    Example:
        >>> ones = np.ones((2, 1))
        >>> mean_log_ratio(np.array([[0.5], [2.0]]), ones, draw_weeks(2)).value
        0.0
    """
    _check(agent, reference, draws)
    by_week = np.log(agent / reference).mean(axis=1)
    return _estimate(by_week.mean(), draws @ by_week / len(by_week), len(by_week))


def _check(agent: FloatArray, reference: FloatArray, draws: FloatArray) -> None:
    """Refuse tables that are not paired, and values no ratio can be taken of."""
    if agent.ndim != 2 or agent.shape != reference.shape or agent.shape[0] != draws.shape[1]:
        raise EvaluationError(
            f"agent {agent.shape} and reference {reference.shape} must both be of shape "
            f"(n_weeks, n_replicas), with n_weeks = {draws.shape[1]} as drawn"
        )
    for what, values in (("agent", agent), ("reference", reference)):
        if not np.all(np.isfinite(values) & (values > 0)):
            raise EvaluationError(f"the {what}'s metric must be finite and positive for a ratio")


def _estimate(value: float, resampled: FloatArray, n_weeks: int) -> Estimate:
    """Attach the percentile interval, which one week alone cannot give."""
    if n_weeks == 1:
        return Estimate(float(value), None, None, n_weeks)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, (tail, 1 - tail))
    return Estimate(float(value), float(low), float(high), n_weeks)
