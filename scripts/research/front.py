"""The front of agents: what a smaller bounded slowdown costs in long waits, or in waste."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from hpcgym.evaluation.pictures.style import COLOURS, FAINT, blank_figure, plain_axes
from hpcgym.evaluation.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = {"guarded": "o", "open": "^", "requeue": "D", "-": "s"}
"""Mark of each contest."""


class FrontPoint(NamedTuple):
    """An agent on the front: its ratio to the baseline's, and what that costs; lower is better."""

    label: str
    contest: str
    mean_bsld: Estimate
    price: float


def front_figure(
    points: Sequence[FrontPoint],
    curve: Sequence[FrontPoint] = (),
    *,
    title: str,
    curve_name: str = "",
    price_name: str = "p99.9 of waits, ratio (lower is better)",
) -> Figure:
    """Return agents by their price and their mean bounded slowdown, with its interval.

    Args:
        points: The agents.
        curve: Points that a line joins, as of a rule under one threshold after another.
        title: A line above.
        curve_name: What the line is, for the legend.
        price_name: What the price is.

    Raises:
        HpcgymError: matplotlib is not installed.
    """
    figure = blank_figure(8.0, 5.2)
    axes = figure.subplots()
    places = [[one.price for one in curve], [one.mean_bsld.value for one in curve]]
    if curve:
        axes.plot(*places, "-", color=FAINT, marker=".", linewidth=1.2, label=curve_name)
        axes.axvline(1.0, color=FAINT, linewidth=0.6, zorder=0)
    for one in curve:
        _write(axes, one)
    for number, one in enumerate(points, 1):
        _draw_point(axes, one, number)
    axes.axhline(1.0, color=FAINT, linewidth=0.6, zorder=0)
    axes.margins(0.08)
    axes.set_xlabel(price_name)
    axes.set_ylabel("mean bounded slowdown, ratio (lower is better)")
    axes.set_title(title, loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=10)
    plain_axes(axes)
    return figure


def _draw_point(axes: Axes, one: FrontPoint, number: int) -> None:
    """Draw an agent as a mark with its interval, where it has one, and its number."""
    x, y, colour = one.price, one.mean_bsld, COLOURS[(number - 1) % len(COLOURS)]
    ends = y.ends()
    if ends is not None:
        axes.vlines(x, *ends, colors=colour, linewidth=1.0, alpha=0.35)
    label = f"{number} {one.label} ({one.contest})"
    axes.plot(x, y.value, MARKS[one.contest], color=colour, markersize=12, label=label)
    text = axes.text(x, y.value, str(number), ha="center", va="center_baseline", zorder=3)
    text.set(fontsize=8, fontweight="bold", color="white")


def _write(axes: Axes, one: FrontPoint) -> None:
    """Write beside a point of the curve."""
    axes.annotate(
        one.label,
        (one.price, one.mean_bsld.value),
        xytext=(6, 5),
        textcoords="offset points",
        fontsize=9,
        color=FAINT,
    )
