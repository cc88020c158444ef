"""Pictures of the lecture on batch scheduling, drawn from our runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from papers.common.figures import BLACK, LINES, figure_of, finish, panels, save
from papers.lecture.run import DOUBLING, EASY, F_TABLE, FACTORS, MODES, PLAIN, USER, Rerun


def draw(rerun: Rerun, folder: Path) -> list[Path]:
    """Draw the pictures into a folder: both metrics over f, and the changes by doubling.

    Raises:
        HpcgymError: matplotlib is not installed.
        OutputError: A picture cannot be written.
    """
    return [
        _draw_factors(rerun, folder / "estimates.png"),
        _draw_doubling(rerun, folder / "doubling.png"),
    ]


def _draw_factors(rerun: Rerun, path: Path) -> Path:
    """Draw response and slowdown of KTH under EASY by factor, published and ours."""
    figure = figure_of(9.0, 3.2, "KTH under EASY, estimates f times the run time")
    kth = rerun.means().loc["KTH", EASY]
    at = np.arange(len(FACTORS))
    for column, axes in enumerate(panels(figure, 1, 2)):
        name = ("response", "slowdown")[column]
        published = [F_TABLE[f][column] for f in FACTORS]
        for values, user, colour, label in (
            (published, F_TABLE[USER][column], LINES[1], "published"),
            (kth[name].loc[list(FACTORS)], kth[name][USER], LINES[0], "here"),
        ):
            axes.plot(at, values, marker="o", color=colour, label=label)
            axes.axhline(user, color=colour, linestyle=":", label=f"{label}, users' estimates")
        axes.set_xticks(at, [f"f = {f}" for f in FACTORS])
        finish(axes, "mean response, s" if column == 0 else "mean bounded slowdown")
    figure.axes[0].legend(frameon=False, fontsize=9)
    return save(figure, path)


def _draw_doubling(rerun: Rerun, path: Path) -> Path:
    """Draw the changes by doubling as bars, one group per log."""
    figure = figure_of(9.0, 3.2, "Change by doubling users' estimates (%), below 0 is better")
    logs = [log for log, _ in PLAIN.logs]
    at = np.arange(len(logs))
    for axes, column in zip(panels(figure, 1, 2), ("slowdown", "response"), strict=True):
        for place, (mode, name) in enumerate(MODES.items()):
            heights = [rerun.change(mode, log, column) for log in logs]
            axes.bar(at + 0.25 * (place - 1), heights, width=0.24, color=LINES[place], label=name)
        for place in range(2):
            published = [DOUBLING[column, log][place] for log in logs]
            axes.plot(at + 0.25 * (place - 1), published, "k_", markersize=12)
        axes.axhline(0.0, color=BLACK, linewidth=0.6)
        axes.set_xticks(at, logs)
        finish(axes, f"{column} (black: published)")
    figure.axes[0].legend(frameon=False, fontsize=9)
    return save(figure, path)
