"""Quantiles of Student's t, from the incomplete beta function."""

from __future__ import annotations

import math
from functools import cache

_STEPS = 10_000
_PRECISION = 1e-12


@cache
def t_beyond(tail: float, degrees: float) -> float:
    """Return the t whose absolute value is exceeded with a probability of `tail`.

    `degrees` of freedom need not be whole.

    Source: Abramowitz and Stegun 1964, 26.5.27: the probability is the incomplete beta function.

    Example:
        >>> round(t_beyond(0.05, 2), 4)
        4.3027
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
