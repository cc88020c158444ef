"""Long waits of agents, as ratios to the baseline's: p99.9, the longest, and those beyond theta.

All jobs of an agent's weeks, copies and training seeds are one population. A week alone has too few
jobs for a 99.9th percentile. In a bootstrap sample a week's jobs are there as often as the week is
drawn, the same weeks for agent and baseline.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hpcgym.evaluation.statistics import Estimate, FloatArray, Resampled, geometric_mean
from hpcgym.text_table import Column

if TYPE_CHECKING:
    import pandas as pd

IntArray = NDArray[np.int64]

ONE_IN = 1000
"""One job in so many may wait longer than p99.9."""

Waits: TypeAlias = Mapping[tuple[str, int, int], Sequence[str]]
"""The packed waits of all training seeds, by agent, week and replica."""

STATISTICS = ("p999_wait_time", "max_wait_time", "share_beyond_threshold")
RATIOS = ("p999_wait_ratio", "max_wait_ratio", "share_beyond_ratio")
"""Columns of the statistics, and of their ratios to the baseline."""

_TITLES = ("p99.9", "longest", "beyond")

NOTES = (
    "p99.9: the wait that one job in 1000 exceeds, all runs pooled; longest: of any job; beyond: "
    "share of jobs that wait longer than the threshold; -: the baseline has none; no interval: a "
    "sample has none",
    "guarded: jobs beyond the threshold go first, and nothing delays them further; open: the agent "
    "may delay them",
)
"""What is said below a table of contests and of these ratios."""


def notes_on(contests: Iterable[str]) -> tuple[str, ...]:
    """Return what is said below such a table of agents in these contests."""
    return (*NOTES, *["requeue: the agent kills jobs that run"] * ("requeue" in contests))


@dataclass(frozen=True)
class LongWaits:
    """Statistics of an agent's waits, in the order of `STATISTICS`.

    Attributes:
        values: p99.9, s; the longest, s; the share of jobs that wait longer than the scenario's
            threshold, NaN without one.
        ratios: To the baseline's, before intervals are taken.
    """

    values: tuple[float, ...]
    ratios: tuple[Resampled, ...]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The ratios with their intervals."""
        return tuple(ratio.estimate for ratio in self.ratios)

    def columns(self) -> dict[str, float]:
        """Return the statistics by column, without the longest wait, and the ratios."""
        by_column = dict(zip(STATISTICS, self.values, strict=True))
        del by_column["max_wait_time"]  # a column of every summary
        return by_column | columns_of(self.estimates)


def packed(wait_time: IntArray) -> str:
    """Pack the waits of a run into a text; `unpacked` gives them back in ascending order."""
    gaps = np.diff(np.sort(wait_time), prepend=0).astype("<i8")
    return base64.b64encode(zlib.compress(gaps.tobytes())).decode()


def unpacked(texts: Iterable[str]) -> IntArray:
    """Return the waits of one run or several, ascending, s.

    Example:
        >>> unpacked([packed(np.array([30, 0])), packed(np.array([7]))])
        array([ 0,  7, 30])
    """
    runs = [np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i8") for text in texts]
    return np.sort(np.concatenate([np.cumsum(gaps) for gaps in runs]))


def waits_of(runs: pd.DataFrame, texts: pd.Series[str]) -> dict[tuple[str, int, int], list[str]]:
    """Return the packed waits of runs, which are in a column of their own."""
    keys = [runs[name] for name in ("agent", "week", "replica")]
    return {key: list(some) for key, some in texts.groupby(keys, sort=False)}


def long_waits(
    agent: Sequence[IntArray],
    baseline: Sequence[IntArray],
    draws: FloatArray,
    threshold: int | None,
) -> LongWaits:
    """Compare the waits of an agent with the baseline's.

    Args:
        agent: The agent's waits, ascending, s, week by week; of each week all runs.
        baseline: The baseline's, of the same weeks and replicas.
        draws: Samples of weeks from `draw_weeks`, shape (resamples, n_weeks).
        threshold: The scenario's, s.

    Source: Specification, section 10, "Long waits".

    Example:
        >>> week = [np.array([0, 8]), np.array([0, 2])]
        >>> long_waits(week, week, np.ones((1, 2)), threshold=5).values
        (8.0, 8.0, 0.25)
    """
    every = np.ones((1, len(agent)))
    of_agent, of_baseline = [
        _statistics(weeks, threshold, np.vstack([every, draws])) for weeks in (agent, baseline)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [mine / theirs for mine, theirs in zip(of_agent, of_baseline, strict=True)]
    return LongWaits(
        values=tuple(float(statistic[0]) for statistic in of_agent),
        ratios=tuple(Resampled(float(ratio[0]), ratio[1:], (len(agent),)) for ratio in ratios),
    )


def _statistics(
    weeks: Sequence[IntArray], threshold: int | None, draws: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return p99.9, longest wait and share beyond the threshold in samples of weeks."""
    longest = np.array([week[-1] for week in weeks])
    of_sample = np.where(draws > 0, longest, 0).max(axis=1)
    if threshold is None:
        share = np.full(len(draws), np.nan)
    else:
        sizes = np.array([len(week) for week in weeks])
        share = draws @ _counts_above(weeks, np.array([threshold]))[:, 0] / (draws @ sizes)
    return pooled_p999(weeks, draws), of_sample.astype(np.float64), share


def pooled_p999(weeks: Sequence[IntArray], draws: FloatArray) -> FloatArray:
    """Return the shortest wait that at most one job in 1000 of each sample exceeds, s.

    Waits are whole seconds, so it is found by halving. Few distinct waits are looked up at a time,
    as samples share most of their jobs: 10,000 samples of 138 weeks take a third of a second.
    """
    exceed = draws @ np.array([len(week) for week in weeks]) // ONE_IN
    low = np.zeros(len(draws), dtype=np.int64)
    high = np.full(len(draws), max(week[-1] for week in weeks))
    while (low < high).any():
        middle = (low + high) // 2
        values, inverse = np.unique(middle, return_inverse=True)
        above = np.einsum("sw,ws->s", draws, _counts_above(weeks, values)[:, inverse])
        low = np.where(above > exceed, middle + 1, low)
        high = np.where(above > exceed, high, middle)
    return low.astype(np.float64)


def _counts_above(weeks: Sequence[IntArray], values: IntArray) -> FloatArray:
    """Count the jobs of each week that wait longer than each value, shape (n_weeks, n_values)."""
    counts = [len(week) - np.searchsorted(week, values, side="right") for week in weeks]
    return np.array(counts, dtype=np.float64)


def mean_ratios(logs: Sequence[LongWaits]) -> tuple[Resampled, ...]:
    """Return the geometric mean over logs of each ratio; undefined where one log's is."""
    return tuple(map(geometric_mean, zip(*(log.ratios for log in logs), strict=True)))


def columns_of(estimates: Sequence[Estimate]) -> dict[str, float]:
    """Return the ratios of an agent and their intervals by column."""
    named = zip(RATIOS, estimates, strict=True)
    return {key: value for name, estimate in named for key, value in estimate.columns(name).items()}


def row_of(summary: object) -> dict[str, Any]:
    """Return the metrics of an agent by column, with the intervals of those that have one."""
    row: dict[str, Any] = {}
    for name, value in vars(summary).items():
        if isinstance(value, LongWaits):
            row |= value.columns()
        elif isinstance(value, tuple):
            row |= columns_of(value)
        else:
            row |= value.columns(name) if isinstance(value, Estimate) else {name: value}
    return row


def table_columns(ratios: Sequence[Sequence[Estimate]]) -> list[Column]:
    """Return the columns of a table that has the ratios of some agents, and their intervals."""
    columns = []
    for title, estimates in zip(_TITLES, zip(*ratios, strict=True), strict=True):
        cells = ["-" if np.isnan(ratio.value) else f"{ratio.value:.3f}" for ratio in estimates]
        intervals = [interval_text(ratio, ".3f") for ratio in estimates]
        columns += [
            Column(f"{title}\nratio", cells),
            Column("95\u00a0%\ninterval", intervals, rank=1),
        ]
    return columns


def interval_text(estimate: Estimate, digits: str, between: str = "-") -> str:
    """Format the ends of an interval; "" where there are none."""
    low, high = estimate.low, estimate.high
    if low is None or high is None or np.isnan(low):
        return ""
    return f"{low:{digits}}{between}{high:{digits}}"
