"""Pictures of an evaluation: ratios with their intervals, and what happened week by week."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.evaluation.pictures import style
from hpcgym.evaluation.results import Evaluation, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASELINE, OTHERS = "#111111", "#6b6f76"
"""Colours of the baseline, and of agents beyond those that have their own (`COLOURS`)."""

BETTER, WORSE, EVEN, COMPARED = "v", "^", "o", "s"
"""Marks of agents below 1 for sure, above it, or neither, and of the baseline.

Sure is what an interval says that allows for the choice among all agents, the thin line.
"""

MEANINGS = {BETTER: "better", WORSE: "worse", EVEN: "not significant", COMPARED: "baseline"}

LETTERS = 24  # letters of an agent's name; the middle of a longer one is left out
N_LINES = 4  # agents drawn week by week, besides the baseline


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
    style.format_of(path)  # refuse before the figure is drawn
    style.save(evaluation_figure(evaluation), path, force=force)


def evaluation_figure(evaluation: Evaluation) -> Figure:
    """Return an evaluation as a figure, to be saved or shown by the caller; see `draw_evaluation`.

    Raises:
        HpcgymError: matplotlib is not installed.
    """
    ranked = evaluation.ranked()
    has_weeks = len(evaluation.weeks) > 1
    rows_in = 0.27 * len(ranked) + 1.0
    weeks_in = 2.6 if has_weeks else 0.0
    figure = style.blank_figure(style.WIDTH_IN, rows_in + weeks_in + 1.1)
    style.write_title(figure, evaluation.conditions)
    colours = _colours(ranked, evaluation.baseline)
    if not has_weeks:
        _draw_ratios(figure.subplots(), ranked, evaluation.baseline, colours)
        return figure
    _explain_marks(figure)
    upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=(rows_in, weeks_in))[:, 0]
    left, right = upper.subplots(1, 2, sharey=True, width_ratios=(1.0, 1.25))
    _draw_ratios(left, ranked, evaluation.baseline, colours)
    _draw_weekly_ratios(right, evaluation, colours)
    _draw_weeks(lower.subplots(), evaluation, colours)
    return figure


def _draw_ratios(
    axes: Axes, ranked: tuple[Summary, ...], baseline: str, colours: dict[str, str]
) -> None:
    """Draw each agent's ratio of sums with its interval, one row each."""
    for row, summary in enumerate(ranked):
        colour = colours[summary.agent]
        value, wide = summary.ratio.value, summary.ratio.ends(among=_others(ranked))
        for ends, width in ((wide, 0.8), (summary.ratio.ends(), 2.2)):
            if ends is not None:
                axes.plot(ends, (row, row), color=colour, linewidth=width, alpha=0.65)
        axes.plot(value, row, _mark(summary, ranked, baseline), color=colour, markersize=6.5)
        right = value if wide is None else wide[1]
        _note(axes, f"{value:.2f}", (right, row), (6, 0), va="center", bbox=style.ON_WHITE)
    axes.set_yticks(
        range(len(ranked)), [style.shortened(summary.agent, LETTERS) for summary in ranked]
    )
    axes.set_ylim(len(ranked) - 0.4, -0.6)
    axes.margins(x=0.12)
    has_interval = ranked[0].ratio.ends() is not None
    title = "ratio of sums, 95 % intervals" if has_interval else "a single run gives no interval"
    _finish_ratios(axes, title, baseline)


def _explain_marks(figure: Figure) -> None:
    """Say what the marks mean, below the panels."""
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], linestyle="", marker=mark, color=OTHERS, markersize=6, label=word)
        for mark, word in MEANINGS.items()
    ]
    figure.legend(
        handles=marks,
        loc="outside lower left",
        ncols=len(marks),
        frameon=False,
        fontsize=9,
        handletextpad=0.0,
        columnspacing=0.8,
    )


def _draw_weekly_ratios(axes: Axes, evaluation: Evaluation, colours: dict[str, str]) -> None:
    """Draw the ratio of every week as a dot, one row per agent, and count the weeks won."""
    spread = np.random.default_rng(0).uniform(-0.26, 0.26, len(evaluation.weeks))
    for row, summary in enumerate(evaluation.ranked()):
        baseline = evaluation.baseline_values(summary.agent).mean(axis=1)
        ratio = evaluation.values(summary.agent).mean(axis=1) / baseline
        places = row + spread[: len(ratio)]
        axes.plot(
            ratio, places, "o", color=colours[summary.agent], markersize=3.5, alpha=0.5, mew=0
        )
        if summary.agent != evaluation.baseline:
            won = f"{(ratio < 1).sum()} : {(ratio > 1).sum()}"
            _note(axes, won, (1.0, row), (6, 0), xycoords=("axes fraction", "data"), va="center")
    axes.tick_params(labelleft=False)
    head = f"{evaluation.unit}s better : worse"
    _note(axes, head, (1.0, 1.0), (6, 4), xycoords="axes fraction", color=style.FAINT)
    _finish_ratios(axes, f"ratio of each {evaluation.unit}", evaluation.baseline)


def _draw_weeks(axes: Axes, evaluation: Evaluation, colours: dict[str, str]) -> None:
    """Draw the mean bounded slowdown week by week, for the baseline and the best agents."""
    from matplotlib.ticker import MaxNLocator

    baseline = evaluation.values(evaluation.baseline).mean(axis=1)
    axes.fill_between(evaluation.weeks, 1.0, baseline, color=BASELINE, alpha=0.08, linewidth=0)
    for rank, agent in enumerate(list(colours)[: N_LINES + 1]):
        rows = evaluation.frame[evaluation.frame["agent"] == agent]
        bsld = rows.groupby("week")["mean_bsld"].mean()
        stroke = style.DASHES[rank - 1] if rank else "-"
        width, mark = (1.2, 4.0) if rank else (1.6, 0.0)
        line = axes.plot(bsld.index, bsld, stroke, label=style.shortened(agent, LETTERS))[0]
        line.set(color=colours[agent], linewidth=width, marker=".", markersize=mark)
    axes.set_yscale("log")
    axes.margins(x=0.01)
    axes.set_xlim(left=max(axes.get_xlim()[0], 0.5))  # there is no week 0
    axes.set_ylim(bottom=1.0)
    style.plain_numbers(axes, "y")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True))
    axes.grid(axis="y", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(evaluation.unit)
    axes.set_ylabel("mean bounded slowdown")
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=N_LINES + 1, frameon=False, fontsize=9
    )
    n_left_out = len(colours) - 1 - N_LINES
    if n_left_out > 0:
        text = f"the best {N_LINES} and the baseline; {n_left_out} more above only"
        right = {"xycoords": "axes fraction", "ha": "right", "va": "top"}
        _note(axes, text, (1, 0), (0, -22), color=style.FAINT, **right)


def _note(
    axes: Axes, text: str, at: tuple[float, float], shift: tuple[float, float], **how: Any
) -> None:
    """Write small words beside a place; the shift is in points."""
    axes.annotate(text, at, shift, textcoords="offset points", fontsize=9, **how)


def _finish_ratios(axes: Axes, title: str, baseline: str) -> None:
    """Give an axis of ratios its scale, its line at 1 and its labels."""
    axes.set_xscale("log")
    axes.axvline(1.0, color=BASELINE, linewidth=0.8, zorder=0)
    style.plain_numbers(axes, "x")
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(f"mean bsld against {baseline}'s (lower is better)")


def _colours(ranked: tuple[Summary, ...], baseline: str) -> dict[str, str]:
    """Return the colour that each agent has in all panels, the best agents' far apart."""
    others = [summary.agent for summary in ranked if summary.agent != baseline]
    colours = dict(zip(others, style.COLOURS, strict=False))
    return {baseline: BASELINE} | {agent: colours.get(agent, OTHERS) for agent in others}


def _others(ranked: tuple[Summary, ...]) -> int:
    """Return how many agents are compared with the baseline."""
    return max(len(ranked) - 1, 1)


def _mark(summary: Summary, ranked: tuple[Summary, ...], baseline: str) -> str:
    """Return the mark of better, worse, neither, or the baseline."""
    if summary.agent == baseline:
        return COMPARED
    low, high = summary.ratio.ends(among=_others(ranked)) or (1.0, 1.0)
    return BETTER if high < 1 else WORSE if low > 1 else EVEN
