"""Pictures of the lecture on batch scheduling, drawn from a rerun."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hpcgym.report.canvas import LINES, blank_figure, save
from papers.lecture.run import DOUBLING, EASY, F_TABLE, FACTORS, MODES, PLAIN, USER, Rerun


def draw_lecture(rerun: Rerun, folder: str | Path) -> list[Path]:
    """Draw slowdown and response over f, and what doubling changes.

    Args:
        rerun: The figures.
        folder: Where the pictures go; those of the same names are replaced.

    Returns:
        The pictures written.

    Raises:
        HpcgymError: matplotlib is not installed.
        OutputError: A picture cannot be written.

    Source:
        Lecture on batch scheduling.
    """
    return [
        _draw_factors(rerun, Path(folder, "estimates.png")),
        _draw_doubling(rerun, Path(folder, "doubling.png")),
    ]


def _draw_factors(rerun: Rerun, path: Path) -> Path:
    """Draw both figures of KTH under EASY by factor, published and ours."""
    figure = blank_figure(9.0, 3.2, "KTH under EASY, estimates f times the run time")
    kth = rerun.means().loc["KTH", EASY]
    at = np.arange(len(FACTORS))
    for column, axes in enumerate(figure.subplots(1, 2)):
        name = ("response", "slowdown")[column]
        published = [F_TABLE[f][column] for f in FACTORS]
        for values, user, colour, label in (
            (published, F_TABLE[USER][column], LINES[1], "published"),
            (kth[name].loc[list(FACTORS)], kth[name][USER], LINES[0], "here"),
        ):
            axes.plot(at, values, marker="o", color=colour, label=label)
            axes.axhline(user, color=colour, linestyle=":", label=f"{label}, users' estimates")
        axes.set_xticks(at, [f"f = {f}" for f in FACTORS])
        axes.set_title("mean response, s" if column == 0 else "mean bounded slowdown", fontsize=9)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=7)
    return save(figure, path)


def _draw_doubling(rerun: Rerun, path: Path) -> Path:
    """Draw what doubling changes as bars, one group per log."""
    figure = blank_figure(9.0, 3.2, "Change by doubling users' estimates (%), below 0 is better")
    logs = [log for log, _ in PLAIN.logs]
    at = np.arange(len(logs))
    for axes, column in zip(figure.subplots(1, 2), ("slowdown", "response"), strict=True):
        for place, (mode, name) in enumerate(MODES.items()):
            heights = [rerun.change(mode, log, column) for log in logs]
            axes.bar(at + 0.25 * (place - 1), heights, width=0.24, color=LINES[place], label=name)
        for place in range(2):
            published = [DOUBLING[column, log][place] for log in logs]
            axes.plot(at + 0.25 * (place - 1), published, "k_", markersize=12)
        axes.axhline(0.0, color="#111111", linewidth=0.6)
        axes.set_xticks(at, logs)
        axes.set_title(f"{column} (black: published)", fontsize=9)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=7)
    return save(figure, path)
