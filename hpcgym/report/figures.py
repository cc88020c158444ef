"""Figures of an evaluation: ratios with their intervals, and what happened week by week."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.errors import HpcgymError
from hpcgym.evaluation.results import Evaluation, Summary
from hpcgym.output import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BETTER, WORSE, EVEN, BASELINE = "#1b7f5c", "#b5442e", "#6b6f76", "#111111"
"""Colours of agents whose interval lies below 1, above 1, or across it, and of the baseline."""

ON_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
"""Box behind a word that may be on a line."""

SUFFIXES = (".png", ".pdf", ".svg")
"""Endings of a figure's file name."""

N_LINES = 4
"""Agents drawn week by week, besides the baseline."""

LINES = ("#0f6fb4", "#e08214", "#1b9e77", "#c2468f")
"""Their colours, best agent first; far apart for colour-blind readers as well."""


def draw_evaluation(evaluation: Evaluation, path: str | Path, *, force: bool = False) -> None:
    """Draw an evaluation into a file.

    Above, one row per agent, best first: the ratio of sums to the baseline with its interval, and
    the ratio of every single week. Below, the weeks in time order for the baseline and the best
    agents. A single week has the first part only.

    Args:
        path: A file ending in .png, .pdf or .svg.
        force: Whether to replace a file that is there.

    Raises:
        HpcgymError: matplotlib is not installed, or the name ends otherwise.
        OutputError: The file exists and `force` is False, or it cannot be written.
    """
    format_of(path)  # refuse before the figure is drawn
    save(evaluation_figure(evaluation), path, force=force)


def format_of(path: str | Path) -> str:
    """Return the format that the name of a figure ends in, such as "png".

    Raises:
        HpcgymError: It ends otherwise.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise HpcgymError(f"{path}: the name of a figure must end in {', '.join(SUFFIXES)}")
    return suffix.removeprefix(".")


def save(figure: Figure, path: str | Path, *, force: bool) -> None:
    """Write a figure to a file in the format of its name.

    Raises:
        HpcgymError: The name ends in no format.
        OutputError: The file exists and `force` is False, or it cannot be written.
    """
    with writing(path, force=force) as file:
        figure.savefig(file, dpi=160, format=format_of(path))


def blank_figure(width_in: float, height_in: float) -> Figure:
    """Return an empty figure, drawn into memory by matplotlib's object API: no global state.

    Raises:
        HpcgymError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise HpcgymError(
            "drawing needs matplotlib, which is not installed: pip install 'hpcgym[report]'"
        ) from None
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def evaluation_figure(evaluation: Evaluation) -> Figure:
    """Return an evaluation as a figure, to be saved or shown by the caller; see `draw_evaluation`.

    Raises:
        HpcgymError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise HpcgymError(
            "drawing needs matplotlib, which is not installed: pip install 'hpcgym[report]'"
        ) from None

    ranked = evaluation.ranked()
    has_weeks = len(evaluation.weeks) > 1
    rows_in = 0.27 * len(ranked) + 1.0
    weeks_in = 2.6 if has_weeks else 0.0
    figure = Figure(figsize=(11.0, rows_in + weeks_in + 0.9), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(evaluation.conditions, x=0.01, ha="left", fontsize=12, fontweight="bold")
    if not has_weeks:
        _draw_ratios(figure.subplots(), ranked, evaluation.baseline)
        return figure
    upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=(rows_in, weeks_in))[:, 0]
    left, right = upper.subplots(1, 2, sharey=True, width_ratios=(1.0, 1.25))
    _draw_ratios(left, ranked, evaluation.baseline)
    _draw_weekly_ratios(right, evaluation, ranked)
    _draw_weeks(lower.subplots(), evaluation, ranked)
    return figure


def _draw_ratios(axes: Axes, ranked: tuple[Summary, ...], baseline: str) -> None:
    """Draw each agent's ratio of sums with its interval, one row each."""
    for row, one in enumerate(ranked):
        colour = _colour(one, baseline)
        value, low, high = one.ratio.value, one.ratio.low, one.ratio.high
        if low is not None and high is not None:
            axes.plot((low, high), (row, row), color=colour, linewidth=2.2, alpha=0.65)
        axes.plot(value, row, "o", color=colour, markersize=5.5)
        axes.annotate(
            f"{value:.2f}",
            (high or value, row),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=colour,
            bbox=ON_WHITE,
        )
    axes.set_yticks(range(len(ranked)), [one.agent for one in ranked])
    axes.set_ylim(len(ranked) - 0.4, -0.6)
    axes.margins(x=0.12)
    if ranked[0].ratio.low is None:
        _finish_ratios(axes, "a single run gives no interval", baseline)
        return
    _finish_ratios(axes, "ratio of sums, 95 % interval", baseline)
    meaning = ((BETTER, "better"), (WORSE, "worse"), (EVEN, "not significant"))
    for line, (colour, word) in enumerate(reversed(meaning)):
        # best first: the corner below the best agents is always empty
        axes.annotate(
            word,
            (0.0, 0.0),
            xytext=(4, 6 + 12 * line),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=8,
            color=colour,
            bbox=ON_WHITE,
        )


def _draw_weekly_ratios(axes: Axes, evaluation: Evaluation, ranked: tuple[Summary, ...]) -> None:
    """Draw the ratio of every week as a dot, one row per agent, and count the weeks won."""
    spread = np.random.default_rng(0).uniform(-0.26, 0.26, len(evaluation.weeks))
    for row, one in enumerate(ranked):
        baseline = evaluation.baseline_values(one.agent).mean(axis=1)
        ratio = evaluation.values(one.agent).mean(axis=1) / baseline
        colour = _colour(one, evaluation.baseline)
        axes.plot(
            ratio, row + spread[: len(ratio)], "o", color=colour, markersize=3, alpha=0.4, mew=0
        )
        if one.agent != evaluation.baseline:
            axes.annotate(
                f"{(ratio < 1).sum()} : {(ratio > 1).sum()}",
                (1.0, row),
                xytext=(6, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=colour,
            )
    axes.tick_params(labelleft=False)
    axes.annotate(
        f"{evaluation.unit}s better : worse",
        (1.0, 1.0),
        xytext=(6, 4),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=8,
        color=EVEN,
    )
    _finish_ratios(axes, f"ratio of each {evaluation.unit}", evaluation.baseline)


def _draw_weeks(axes: Axes, evaluation: Evaluation, ranked: tuple[Summary, ...]) -> None:
    """Draw the mean bounded slowdown week by week, for the baseline and the best agents."""
    others = [one.agent for one in ranked if one.agent != evaluation.baseline]
    baseline = evaluation.values(evaluation.baseline).mean(axis=1)
    axes.fill_between(evaluation.weeks, 1.0, baseline, color=BASELINE, alpha=0.08, linewidth=0)
    axes.plot(evaluation.weeks, baseline, color=BASELINE, linewidth=1.6, label=evaluation.baseline)
    for agent, colour in zip(others[:N_LINES], LINES, strict=False):
        bsld = evaluation.values(agent).mean(axis=1)
        axes.plot(
            evaluation.weeks, bsld, ".-", color=colour, linewidth=1, markersize=4, label=agent
        )
    axes.set_yscale("log")
    axes.margins(x=0.01)
    axes.set_ylim(bottom=1.0)
    _plain_numbers(axes, "y")
    axes.grid(axis="y", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(evaluation.unit)
    axes.set_ylabel("mean bounded slowdown")
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=N_LINES + 1, frameon=False, fontsize=9
    )


def _finish_ratios(axes: Axes, title: str, baseline: str) -> None:
    """Give an axis of ratios its scale, its line at 1 and its labels."""
    axes.set_xscale("log")
    axes.axvline(1.0, color=BASELINE, linewidth=0.8, zorder=0)
    _plain_numbers(axes, "x")
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(f"mean bsld against {baseline}'s (lower is better)")


def _plain_numbers(axes: Axes, which: str) -> None:
    """Label a logarithmic axis with 0.5, 1, 2, 5 ... rather than powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    decades = np.log10(high / low)
    steps = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if decades < 1 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=steps if decades < 3 else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _colour(one: Summary, baseline: str) -> str:
    """Return the colour of better, worse, or neither."""
    if one.agent == baseline:
        return BASELINE
    if one.ratio.high is not None and one.ratio.high < 1:
        return BETTER
    return WORSE if one.ratio.low is not None and one.ratio.low > 1 else EVEN
