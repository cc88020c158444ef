"""Long waits of agents, as ratios to the baseline's: p99.9, the longest, and those beyond theta.

All jobs of an agent's weeks, copies and training seeds are one population: a week alone has too few
for a 99.9th percentile. These ratios have no interval. A few weeks decide them, so that neither a
bootstrap nor a jackknife over weeks covers what other weeks would show.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.text_table import Column
from hpcgym.evaluation.statistics import Estimate

if TYPE_CHECKING:
    import pandas as pd

IntArray = NDArray[np.int64]

ONE_IN = 1000  # one job in so many may wait longer than p99.9

Waits: TypeAlias = Mapping[tuple[str, int, int], Sequence[str]]
"""The packed waits of all training seeds, by agent, week and replica."""

STATISTICS = ("p999_wait_time", "max_wait_time", "share_beyond_threshold")
RATIOS = ("p999_wait_ratio", "max_wait_ratio", "share_beyond_ratio")
"""Columns of the statistics, and of their ratios to the baseline."""

_TITLES = ("p99.9", "longest", "beyond")

NOTES = (
    "p99.9: the wait that one job in 1000 exceeds, all runs pooled; longest: of any job; beyond: "
    "share of jobs that wait longer than the threshold; -: the baseline has none; no intervals: a "
    "few weeks decide these",
    "guarded: jobs beyond the threshold go first, and nothing delays them further; open: the agent "
    "may delay them",
)
"""What is said below a table of contests and of these ratios."""


def notes_on(contests: Iterable[str]) -> tuple[str, ...]:
    """Return what is said below such a table of agents in these contests."""
    return (*NOTES, *["requeue: the agent kills jobs that run"] * ("requeue" in contests))


@dataclass(frozen=True)
class LongWaits:
    """Statistics of an agent's waits, in the order of `STATISTICS`."""

    # p99.9, s; the longest, s; the share of jobs that wait longer than the scenario's threshold,
    # NaN without one.
    values: tuple[float, ...]
    ratios: tuple[float, ...]  # to the baseline's; NaN where it has none

    def columns(self) -> dict[str, float]:
        """Return the statistics by column, without the longest wait, and the ratios."""
        by_column = dict(zip(STATISTICS, self.values, strict=True))
        del by_column["max_wait_time"]  # a column of every summary
        return by_column | dict(zip(RATIOS, self.ratios, strict=True))


def packed(wait_time: IntArray) -> str:
    """Pack the waits of a run into a text; `unpacked` gives them back in ascending order."""
    gaps = np.diff(np.sort(wait_time), prepend=0).astype("<i8")
    return base64.b64encode(zlib.compress(gaps.tobytes())).decode()


def unpacked(texts: Iterable[str]) -> IntArray:
    """Return the waits of one run or several, ascending, s."""
    runs = [np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i8") for text in texts]
    return np.sort(np.concatenate([np.cumsum(gaps) for gaps in runs]))


def waits_of(runs: pd.DataFrame, texts: pd.Series[str]) -> dict[tuple[str, int, int], list[str]]:
    """Return the packed waits of runs, which are in a column of their own."""
    keys = [runs[name] for name in ("agent", "week", "replica")]
    return {key: list(some) for key, some in texts.groupby(keys, sort=False)}


def long_waits(agent: IntArray, baseline: IntArray, threshold: int | None) -> LongWaits:
    """Compare the waits of an agent with the baseline's.

    Args:
        agent: Those of all its runs, ascending, s.
        baseline: Those of the baseline on the same weeks and replicas, ascending, s.
        threshold: The scenario's, s.

    Source: Specification, section 10, "Long waits".
    """
    of_agent, of_baseline = (_statistics(waits, threshold) for waits in (agent, baseline))
    pairs = zip(of_agent, of_baseline, strict=True)
    return LongWaits(of_agent, tuple(mine / base if base else math.nan for mine, base in pairs))


def _statistics(waits: IntArray, threshold: int | None) -> tuple[float, float, float]:
    """Return p99.9, longest wait and share beyond the threshold."""
    share = math.nan
    if threshold is not None:
        share = (len(waits) - int(np.searchsorted(waits, threshold, side="right"))) / len(waits)
    return float(waits[-1 - len(waits) // ONE_IN]), float(waits[-1]), share


def mean_ratios(logs: Sequence[LongWaits]) -> tuple[float, ...]:
    """Return the geometric mean over logs of each ratio; NaN where one log's is."""
    with np.errstate(divide="ignore"):
        return tuple(np.exp(np.log([log.ratios for log in logs]).mean(axis=0)).tolist())


def row_of(summary: object) -> dict[str, Any]:
    """Return the metrics of an agent by column, with the intervals of those that have one."""
    row: dict[str, Any] = {}
    for name, value in vars(summary).items():
        if isinstance(value, LongWaits):
            row |= value.columns()
        elif isinstance(value, tuple):
            row |= dict(zip(RATIOS, value, strict=True))
        else:
            row |= value.columns(name) if isinstance(value, Estimate) else {name: value}
    return row


def table_columns(ratios: Sequence[Sequence[float]]) -> list[Column]:
    """Return the columns of a table that has the ratios of some agents."""
    by_title = zip(_TITLES, zip(*ratios, strict=True), strict=True)
    return [Column(f"{title}\nratio", list(map(ratio_text, column))) for title, column in by_title]


def ratio_text(ratio: float) -> str:
    """Format a ratio of long waits, "-" where there is none."""
    return "-" if math.isnan(ratio) else f"{ratio:.3f}"
