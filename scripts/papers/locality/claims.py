"""Contiguity and locality: trend and spread of each variant, and verdicts on the claims.

Variants are compared on the same jobs, platforms and factors. Draws of jobs are the unit of
intervals, since all runs of a draw share its jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.evaluation.statistics import Estimate, mean_log_ratio, ratio_of_sums
from papers.common.claims import Claim, counted
from papers.locality.engine import VARIANTS
from papers.locality.run import DEFAULT, HIGH, HOMOGENEOUS, LOW, ONE_LAYOUT, Rerun

FloatArray = NDArray[np.float64]

BASIC, NEAR_BLOCK, NEAR_CLUSTER, BLOCK, CLUSTER = VARIANTS
NAMES = (HOMOGENEOUS, HIGH, LOW)
PRINTED = ("o1", "o2", "o3", "o4")
REORDERED = ("o3", "o4", "o2fix")
"""The layouts with the clusters of `o1` in another order."""

SAME = 0.02
"""A ratio whose whole interval is this near to 1 counts as no difference."""

ALIKE = 0.1
"""The same for platforms that are to look alike."""


class Trend(NamedTuple):
    """Makespan over the communication factor, by least squares over all runs of a variant.

    Attributes:
        slope: s for each byte/s of the factor.
        intercept: s.
        residual: Standard deviation of the makespans around the trend, s.
        between: Standard deviation between draws, on the same platform with the same factor, s.
    """

    slope: float
    intercept: float
    residual: float
    between: float


def layouts_of(experiment: str, layouts: Sequence[str] = PRINTED) -> Sequence[str]:
    """Return the layouts of an experiment, the printed ones unless others are asked for."""
    return (ONE_LAYOUT,) if experiment == HOMOGENEOUS else layouts


def makespans(
    rerun: Rerun,
    experiment: str,
    variant: str,
    layouts: Sequence[str] = PRINTED,
    *,
    reading: str = DEFAULT.name,
) -> pd.DataFrame:
    """Return makespans, s: a row per draw, a column per (layout, factor)."""
    runs = rerun.runs
    runs = runs[(runs["reading"] == reading) & (runs["experiment"] == experiment)]
    runs = runs[(runs["variant"] == variant) & runs["layout"].isin(layouts_of(experiment, layouts))]
    return runs.pivot(index="seed", columns=["layout", "f_comm"], values="makespan")


def trend(rerun: Rerun, experiment: str, variant: str) -> Trend:
    """Return trend and spread of a variant over the printed layouts.

    Source: Dutot, Poquet and Trystram, figures 1 and 3.
    """
    wide = makespans(rerun, experiment, variant)
    factors = np.tile(wide.columns.get_level_values("f_comm").to_numpy(dtype=float), len(wide))
    slope, intercept = np.polyfit(factors, wide.to_numpy().ravel(), 1)
    between = float(np.sqrt(wide.var(axis=0).mean()))
    residual = float(np.sqrt(squared_residuals(wide).mean()))
    return Trend(float(slope), float(intercept), residual, between)


def squared_residuals(wide: pd.DataFrame) -> FloatArray:
    """Return the squared distances of makespans from their trend, s^2, in the shape of `wide`."""
    factors = wide.columns.get_level_values("f_comm").to_numpy(dtype=float)
    values = wide.to_numpy(dtype=float)
    slope, intercept = np.polyfit(np.tile(factors, len(wide)), values.ravel(), 1)
    found: FloatArray = (values - intercept - slope * factors) ** 2
    return found


def ratio(rerun: Rerun, experiment: str, variant: str, baseline: str) -> Estimate:
    """Compare the makespans of two variants, added up over all factors above 0.

    Returns:
        The ratio, below 1 where `variant` is better, with its interval over draws.
    """
    ours, other = (
        communicating(makespans(rerun, experiment, name)) for name in (variant, baseline)
    )
    return ratio_of_sums(ours, other)


def ratio_of_layouts(rerun: Rerun, experiment: str, variant: str, layout: str) -> Estimate:
    """Compare the makespans of a variant in a layout with those in `o1`."""
    ours, other = (
        communicating(makespans(rerun, experiment, variant, (one,))) for one in (layout, "o1")
    )
    return ratio_of_sums(ours, other)


def ratio_of_spreads(rerun: Rerun, experiment: str, variant: str, baseline: str) -> Estimate:
    """Compare the standard deviations of two variants' makespans around their trends."""
    ours, other = (
        squared_residuals(makespans(rerun, experiment, name)) for name in (variant, baseline)
    )
    found = ratio_of_sums(ours, other)
    return replace(found, value=found.value**0.5, error=found.error and found.error / 2)


def widening(
    rerun: Rerun,
    experiment: str,
    variant: str,
    layouts: Sequence[str] = PRINTED,
    *,
    against: str = DEFAULT.name,
) -> Estimate:
    """Compare a variant's gain over basic with its gain on the homogeneous platform.

    Args:
        rerun: The results.
        experiment: `HIGH` or `LOW`.
        variant: The variant.
        layouts: Those of the experiment.
        against: Reading of the homogeneous platform, by its name.

    Returns:
        By which factor basic / variant is larger, on the geometric mean over draws and the factors
        above 0 that both platforms have.
    """
    ours = gains(rerun, experiment, variant, layouts, DEFAULT.name)
    other = gains(rerun, HOMOGENEOUS, variant, layouts, against)
    both = [factor for factor in ours.columns if factor > 0 and factor in other.columns]
    found = mean_log_ratio(ours[both].to_numpy(), other.loc[ours.index, both].to_numpy())
    return replace(found, value=float(np.exp(found.value)), is_ratio=True)


def gains(
    rerun: Rerun, experiment: str, variant: str, layouts: Sequence[str], reading: str
) -> pd.DataFrame:
    """Return basic / variant, averaged over layouts: a row per draw, a column per factor."""
    basic, other = (
        makespans(rerun, experiment, one, layouts, reading=reading) for one in (BASIC, variant)
    )
    return (basic / other).T.groupby("f_comm").mean().T


def likeness(rerun: Rerun, variant: str) -> Estimate:
    """Compare the makespans of a variant on the platforms of high and of low heterogeneity."""
    high, low = (communicating(makespans(rerun, name, variant)) for name in (HIGH, LOW))
    return ratio_of_sums(high, low)


def communicating(wide: pd.DataFrame) -> FloatArray:
    """Return the makespans of all factors above 0, shape (n_draws, n_runs)."""
    values: FloatArray = wide.loc[:, wide.columns.get_level_values("f_comm") > 0].to_numpy()
    return values


def claims(rerun: Rerun) -> list[Claim]:
    """Return verdicts on the paper's claims under the default reading, in the paper's order.

    A case holds if its whole interval does.

    Source: Dutot, Poquet and Trystram, sections 5.3 and 5.4.
    """
    pairs = ((BLOCK, NEAR_BLOCK), (CLUSTER, NEAR_CLUSTER))
    knowing = ((NEAR_CLUSTER, NEAR_BLOCK), (CLUSTER, BLOCK))
    return [
        _smaller(
            "basic is worst: each other variant has a smaller makespan",
            "5.3, Figs. 1, 3",
            [ratio(rerun, name, one, BASIC) for name in NAMES for one in VARIANTS if one != BASIC],
            "over basic",
        ),
        _smaller(
            "locality is better than contiguity, strict and best-effort",
            "5.3, Figs. 1, 3",
            [ratio(rerun, name, *pair) for name in NAMES for pair in knowing],
            "local over contiguous",
        ),
        _smaller(
            "strict variants are better than best-effort ones",
            "5.3, 5.4, Figs. 1, 3",
            [ratio(rerun, name, *pair) for name in NAMES for pair in pairs],
            "strict over best-effort",
        ),
        _smaller(
            "and vary less around the trend",
            "5.3, 5.4, Figs. 1, 3",
            [ratio_of_spreads(rerun, name, *pair) for name in NAMES for pair in pairs],
            "strict over best-effort",
        ),
        _larger_gap(rerun),
        *_order(rerun),
        *_alike(rerun),
    ]


def _smaller(text: str, where: str, found: list[Estimate], what: str) -> Claim:
    """Check that whole intervals are below 1."""
    held = sum(one.high is not None and one.high < 1 for one in found)
    return counted(text, where, held, len(found), f"{what}, {span(found)}")


def _larger_gap(rerun: Rerun) -> Claim:
    """Check what section 5.4 says of the gap between basic and the local variants."""
    found = [widening(rerun, name, one) for name in (HIGH, LOW) for one in (NEAR_CLUSTER, CLUSTER)]
    held = sum(one.low is not None and one.low > 1 for one in found)
    finding = f"{span(found)} times"
    text = "basic over local variants is larger when heterogeneous"
    return counted(text, "5.4", held, len(found), finding)


def _order(rerun: Rerun) -> list[Claim]:
    """Check what section 5.4 says of the order of the clusters."""
    found = [
        ratio_of_layouts(rerun, name, variant, layout)
        for name in (HIGH, LOW)
        for variant in VARIANTS
        for layout in REORDERED
    ]
    what = f"ratios {span(found)}"
    unnoticed, same = (sum(is_near(one, most) for one in found) for most in (None, SAME))
    text = "the order of the clusters has no effect:"
    return [
        counted(f"{text} none is noticed", "5.4", unnoticed, len(found), what),
        counted(f"{text} none above {100 * SAME:.0f} %", "5.4", same, len(found), what),
    ]


def _alike(rerun: Rerun) -> list[Claim]:
    """Check what section 5.4 says of high and low heterogeneity."""
    found = [likeness(rerun, variant) for variant in VARIANTS]
    held = sum(is_near(one, ALIKE) for one in found)
    ranks = [
        pd.Series({one: makespans(rerun, name, one).to_numpy().sum() for one in VARIANTS}).rank()
        for name in (HIGH, LOW)
    ]
    text = "high and low heterogeneity are alike:"
    return [
        counted(
            f"{text} variants in the same order",
            "5.4",
            int((ranks[0] == ranks[1]).sum()),
            len(VARIANTS),
        ),
        counted(
            f"{text} makespans within {100 * ALIKE:.0f} %",
            "5.4",
            held,
            len(found),
            f"high over low, {span(found)}",
        ),
    ]


def is_near(found: Estimate, most: float | None) -> bool:
    """Tell whether a whole interval is within so much of 1, or, for None, whether it holds 1."""
    if found.low is None or found.high is None:
        return False
    if most is None:
        return found.low <= 1 <= found.high
    return max(1 - found.low, found.high - 1) <= most


def span(found: Sequence[Estimate]) -> str:
    """Return the smallest and the largest of some ratios, in words."""
    values = [one.value for one in found]
    return f"from {min(values):.2f} to {max(values):.2f}"
