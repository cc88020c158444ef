"""Ranges of starts, of how far forecasts were off in the weeks that the accounting has.

How many times longer or shorter jobs with like forecasts waited is the range. It holds as often as
it says where errors are exchangeable with the next error; whether they are, `backtest` measures.
Narrow ranges are of short forecasts, which are too short more often than others. So each that would
tell a start is widened until it holds as often among those like it that would, too.

Sources: Vovk, Gammerman and Shafer 2005, Algorithmic Learning in a Random World, 4.5, for classes;
Lei et al. 2018, Distribution-Free Predictive Inference for Regression, for split samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.site.live.replay import UNKNOWN_S, Forecasts

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

HELD = 0.8  # how often a range is to hold the start

CLASSES_S = (1, 600, 3_600, 6 * 3_600, 24 * 3_600)
"""Waits that part forecasts into classes of like ones; below the first one the start is now."""

FEWEST = 9  # forecasts of a class that make a range: as many as `HELD` needs
SOFTENED_S = 60  # added to waits, so that none is nothing


@dataclass(frozen=True)
class Range:
    """When a job is expected to start, as waits from now on, s."""

    low: float
    middle: float  # half of the like jobs waited less, in proportion; infinite where not known
    high: float
    usual: float  # median wait of jobs with like forecasts

    @property
    def tells(self) -> bool:
        """Tell whether the range is no wider than the wait of like jobs."""
        return bool(self.high < math.inf and self.high - self.low <= self.usual)

    def holding(self, least: float, start: float | None = None) -> Range:
        """Return the range of waits from a least one on, widened to a start that is shown, s."""
        low, middle, high = (max(each, least) for each in (self.low, self.middle, self.high))
        shown = middle if start is None else start
        return Range(min(low, shown), middle, max(high, shown), self.usual)


def ranges(
    known: Forecasts, expected: Iterable[int], is_new: bool, now: int | None = None
) -> Iterator[Range | None]:
    """Yield the range of each forecast, by those of its class; None where these are too few.

    Args:
        known: Forecasts up to now. What had not started by then counts as never.
        expected: Waits, s.
        is_new: Whether the jobs are submitted now.
        now: Unix s; None = later than all starts of `known`.
    """
    usable = known.at(known.is_new == is_new)
    came = usable.came.astype(float)
    until = np.full(len(came), UNKNOWN_S) if now is None else now - usable.instant
    came[usable.came > until] = math.inf
    class_of = _class_of(usable.expected)
    classes: dict[int, tuple[_Class, _Class] | None] = {}
    waits = list(expected)
    for wait, kind in zip(waits, _class_of(waits).tolist(), strict=True):
        if kind not in classes:
            like = usable.at(class_of == kind)
            classes[kind] = _of_class(like.instant, like.expected, came[class_of == kind])
        if (known_class := classes[kind]) is None:
            yield None
            continue
        whole, narrow = (each.range_of(wait) for each in known_class)
        yield narrow if whole.tells else whole


class _Class(NamedTuple):
    """How many times longer like forecasts came, `conformal`, and their median wait, s."""

    low: float
    middle: float
    high: float
    usual: float

    def range_of(self, wait: float) -> Range:
        """Return the range of a forecast, s."""
        low, middle, high = (_whole(each * (wait + SOFTENED_S) - SOFTENED_S) for each in self[:3])
        return Range(low, middle, high, self.usual)


def _of_class(
    instant: IntArray, expected: IntArray, came: FloatArray
) -> tuple[_Class, _Class] | None:
    """Return errors of all forecasts, and of those whose range would tell; None: too few."""
    softened = expected + SOFTENED_S
    ratio = (came + SOFTENED_S) / softened
    if (apart := n_apart(instant, came)) < FEWEST:
        return None
    whole = _Class(*conformal(ratio, apart), float(np.median(came)))
    ends = (np.maximum(each * softened - SOFTENED_S, 0) for each in (whole.high, whole.low))
    tells = np.subtract(*ends) <= whole.usual
    low, _, high = conformal(ratio[tells], n_apart(instant[tells], came[tells]))
    return whole, whole._replace(low=min(low, whole.low), high=max(high, whole.high))


def n_apart(begin: IntArray, wait: FloatArray) -> int:
    """Return how many waits there are of which no two overlap, at most.

    Waits that overlap are of one queue, and forecasts of them are off together.

    Args:
        begin: Ascending, s.
    """
    last, count = -math.inf, 0
    for end, since in sorted(zip((begin + wait).tolist(), begin.tolist(), strict=True)):
        if since >= last and end < math.inf:
            last, count = max(end, since + 1), count + 1
    return count


def _class_of(waits: Any) -> IntArray:
    """Return the class of each wait, s."""
    return np.asarray(np.searchsorted(CLASSES_S, waits, "right"))


def _whole(wait: float) -> float:
    """Return whole seconds >= 0, or infinity."""
    return wait if wait == math.inf else float(max(round(wait), 0))


def conformal(
    errors: FloatArray, apart: int | None = None, held: float = HELD
) -> tuple[float, float, float]:
    """Return between which errors the next one is, so often at least, and the median of those seen.

    Of n that are exchangeable with it, the next is at most the k-th lowest as often as k / (n + 1).
    Errors are ratios; with too few of them the ends are 0 and infinite.

    Args:
        apart: How many of the errors tell something new; None = all.

    Example:
        >>> conformal(np.arange(1.0, 10.0)), conformal(np.arange(1.0, 9.0))
        ((1.0, 5.0, 9.0), (0.0, 4.5, inf))
    """
    ranked, n = np.sort(errors), len(errors)
    apart = n if apart is None else apart
    upper = math.ceil(round((apart + 1) * (1 + held) / 2, 9))
    middle = float(np.median(ranked)) if n else math.inf
    if upper > apart:
        return 0.0, middle, math.inf
    rank = math.ceil(round(upper / apart * n, 9))
    return float(ranked[n - rank]), middle, float(ranked[rank - 1])


class Backtest(NamedTuple):
    """Waits that came, with the ranges that forecasts before made; arrays (n_forecasts,), s."""

    came: FloatArray
    low: FloatArray  # NaN where there is no range
    middle: FloatArray
    high: FloatArray
    tells: BoolArray

    @property
    def has_range(self) -> BoolArray:
        """Tell which have a range."""
        return ~np.isnan(self.low)

    @property
    def holds(self) -> BoolArray:
        """Tell which ranges hold what came; one without end holds all that is later."""
        return (self.low <= self.came) & (self.came <= self.high)


def backtest(forecasts: Forecasts, is_new: bool, window_s: int, step_s: int) -> Backtest:
    """Return forecasts after the first window, each with the range of the window before it.

    Args:
        is_new: Whether forecasts are of jobs just submitted, or of others.
        step_s: How long a window's ranges are used.
    """
    rows: list[tuple[float, Range | None]] = []
    instant = forecasts.instant
    begin, end = (int(instant.min()), int(instant.max())) if len(instant) else (0, -1)
    for now in range(begin + window_s, end + 1, max(step_s, 1)):
        known = forecasts.at((instant >= now - window_s) & (instant < now))
        then = forecasts.at(
            (instant >= now)
            & (instant < now + step_s)
            & (forecasts.is_new == is_new)
            & (forecasts.came < UNKNOWN_S)
        )
        waits = ranges(known, then.expected.tolist(), is_new, now)
        rows += zip(then.came.tolist(), waits, strict=True)
    return as_backtest(rows)


def as_backtest(rows: Iterable[tuple[float, Range | None]]) -> Backtest:
    """Lay out waits that came, s, and the ranges of them."""
    table = []
    for waited, known in rows:
        each = known or _NO_RANGE
        table.append((waited, each.low, each.middle, each.high, each.tells))
    came, low, middle, high, tells = np.array(table, dtype=float).reshape(-1, 5).T
    return Backtest(came, low, middle, high, tells == 1)


_NO_RANGE = Range(math.nan, math.nan, math.nan, math.nan)


def in_words(forecasts: Forecasts) -> str:
    """Say where ranges come from, and how often they would have held; or why there are none."""
    instant, n_queues = forecasts.instant, len(np.unique(forecasts.instant))
    if n_queues < FEWEST:
        return f"no ranges: the accounting shows {n_queues} past waits; give {FEWEST} or more"
    span = int(instant.max() - instant.min()) + 1
    half = [backtest(forecasts, is_new, span // 2, span // 20 + 1) for is_new in (False, True)]
    holds = np.concatenate([each.holds[each.has_range] for each in half])
    held = f"{holds.mean():.0%} of {len(holds):,} waits" if len(holds) else "none: too few"
    tell = np.concatenate([each.holds[each.tells] for each in half])
    if len(tell):
        held += f"; {len(tell) / len(holds):.0%} tell a start, of which {tell.mean():.0%} held"
    return (
        f"ranges hold {HELD:.0%} of starts if the next are like the last; they are from {n_queues} "
        f"queues of the accounting. Those of its first half held in the second {held}"
    )
