"""A metric of some weeks, and how far that of all weeks may be from it: t intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95  # how often an interval covers the metric over all weeks that might have come

_STEPS = 10_000
_PRECISION = 1e-12


@dataclass(frozen=True)
class Estimate:
    """A metric of some weeks, and how far that of all weeks may be from it.

    Attributes:
        value: The metric; NaN where it does not exist, as a ratio to zero.
        error: Standard error of the metric, of its logarithm if it is a ratio; None where there is
            no interval, as from a single week.
        degrees: Degrees of freedom of the error.
        is_ratio: Whether the interval is taken of the logarithm.
    """

    value: float
    error: float | None
    degrees: float
    is_ratio: bool = True

    def ends(self, among: int = 1) -> tuple[float, float] | None:
        """Return the 95 % interval, None where there is none.

        Args:
            among: Intervals of so many estimates, all of which are to cover at once with 95 %: what
                the best of so many needs.

        Source: Specification, section 10, "Intervals".

        Example:
            >>> print([round(end, 3) for end in Estimate(0.5, 0.1, 9).ends(among=5)])
            [0.361, 0.692]
        """
        if self.error is None:
            return None
        reach = t_beyond((1 - CONFIDENCE) / among, self.degrees) * self.error
        if not self.is_ratio:
            return self.value - reach, self.value + reach
        with np.errstate(over="ignore"):
            return self.value / float(np.exp(reach)), self.value * float(np.exp(reach))

    @property
    def low(self) -> float | None:
        """The lower end of the interval."""
        ends = self.ends()
        return ends and ends[0]

    @property
    def high(self) -> float | None:
        """The upper end of the interval."""
        ends = self.ends()
        return ends and ends[1]

    def __str__(self) -> str:
        """Show the metric and its interval, or say that there is none.

        Example:
            >>> print(Estimate(0.5, 0.1, 9), Estimate(0.5, None, 0))
            0.500 [0.399, 0.627] 0.500 (no interval)
        """
        if math.isnan(self.value):
            return "-"
        ends = self.ends()
        if ends is None:
            return f"{self.value:.3f} (no interval)"
        return f"{self.value:.3f} [{ends_text(self, '.3f', ', ')}]"

    def columns(self, name: str) -> dict[str, float]:
        """Return the metric and the ends of its interval by columns; NaN where there is no end.

        Example:
            >>> Estimate(0.5, 0.0, 9).columns("ratio")
            {'ratio': 0.5, 'ratio_low': 0.5, 'ratio_high': 0.5}
        """
        low, high = self.ends() or (math.nan, math.nan)
        return {name: self.value, f"{name}_low": low, f"{name}_high": high}


def ends_text(estimate: Estimate, digits: str, between: str = "-") -> str:
    """Format the ends of an interval, large ones to three digits; "" where there are none.

    Example:
        >>> ends_text(Estimate(0.5, 1.0, 1), ".3f")
        '0.000-1.65e+05'
    """
    ends = estimate.ends() or ()
    return between.join(f"{end:{digits if abs(end) < 10 else digits[:-1] + 'g'}}" for end in ends)


def mean_of(values: ArrayLike) -> Estimate:
    """Return the mean of independent values, with its t interval."""
    given = np.asarray(values, dtype=np.float64)
    n = len(given)
    error = float(given.std(ddof=1)) / math.sqrt(n) if n > 1 else None
    return Estimate(float(given.mean()) if n else math.nan, error, n - 1, is_ratio=False)


def pooled_mean(sums: ArrayLike, counts: ArrayLike) -> Estimate:
    """Return the mean of all jobs of some weeks, whose sums and counts are given by week.

    Example:
        >>> print(pooled_mean([2.0, 9.0], [1, 2]))
        3.667 [-12.2, 19.5]
    """
    by_week = np.array([sums, counts], dtype=np.float64)
    above, below = by_week.sum(axis=1, keepdims=True) - by_week
    with np.errstate(invalid="ignore"):
        error = jackknife(above / below)
    value = float(by_week[0].sum() / by_week[1].sum())
    return Estimate(value, error, by_week.shape[1] - 1, is_ratio=False)


def jackknife(without_one: NDArray[np.float64]) -> float | None:
    """Return the standard error of a metric by its values without one week each, None if unknown.

    Source: Specification, section 10, "Intervals"; Tukey 1958.
    """
    n = len(without_one)
    if n == 1 or not np.isfinite(without_one).all():
        return None
    return (n - 1) / math.sqrt(n) * float(without_one.std(ddof=1))


@cache
def t_beyond(tail: float, degrees: float) -> float:
    """Return the t whose absolute value is exceeded with a probability of `tail`.

    `degrees` of freedom need not be whole.

    Source: Abramowitz and Stegun 1964, 26.5.27: the probability is the incomplete beta function.
    """
    low, high = 0.0, 1.0
    while _tail(high, degrees) > tail:
        low, high = high, 2 * high
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _tail(middle, degrees) > tail else (low, middle)
    return high


def _tail(t: float, degrees: float) -> float:
    """Return the probability that the absolute value of t is exceeded."""
    return _incomplete_beta(degrees / (degrees + t * t), t * t / (degrees + t * t), degrees / 2)


def _incomplete_beta(x: float, rest: float, a: float, b: float = 0.5) -> float:
    """Return the regularised incomplete beta function; `rest` is 1 - x, without cancellation."""
    if x == 0 or rest == 0:
        return x
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logarithm + a * math.log(x) + b * math.log(rest))
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side only
        return 1 - front / b / _fraction(rest, b, a)
    return front / a / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function, by Lentz's algorithm.

    Source: Abramowitz and Stegun 1964, 26.5.8; Thompson and Barnett 1986 for the algorithm.
    """
    value, above, below = 1.0, 1.0, 0.0
    for step in range(1, _STEPS):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        below = 1 / (1 + term * below)
        above = 1 + term / above
        value *= above * below
        if abs(above * below - 1) < _PRECISION:
            break
    return value
