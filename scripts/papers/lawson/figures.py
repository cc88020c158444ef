"""Figures 5 to 7 of Lawson, Smirni, Puiu 2002, drawn from a rerun."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.report.canvas import LINES, blank_figure, save
from papers.lawson.claims import COLUMNS, batch_ratios, ratios
from papers.lawson.run import DELAYED, MULTIPLE, SCHEDULERS, Rerun, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = dict(zip((MULTIPLE, DELAYED), LINES, strict=False))


def draw_lawson(rerun: Rerun, setting: Setting, folder: str | Path) -> list[Path]:
    """Draw one reading: R overall and by class, R by batch of 1000 submissions, and the delay.

    Args:
        rerun: The figures.
        setting: Which reading, one of those shown in full.
        folder: Where the pictures go; those of the same names are replaced.

    Returns:
        The pictures written.

    Raises:
        HpcgymError: matplotlib is not installed.
        OutputError: A picture cannot be written.

    Source:
        Lawson, Smirni, Puiu 2002, figures 5 to 7.
    """
    short = setting.estimates
    return [
        _draw_classes(rerun, setting, Path(folder, f"figure-5-and-7-{short}.png")),
        _draw_batches(rerun, setting, Path(folder, f"figure-6-{short}.png")),
        _draw_delays(rerun, setting, Path(folder, f"delay-{short}.png")),
    ]


def _draw_classes(rerun: Rerun, setting: Setting, path: Path) -> Path:
    """Draw R overall and by class as bars, one group per log."""
    title = f"Figs. 5 and 7, R against a single queue, {setting.name}"
    figure = blank_figure(2.6 * len(COLUMNS), 2.8, title)
    logs = [name for name, _ in setting.logs]
    axes = figure.subplots(1, len(COLUMNS))
    for one, (column, name) in zip(axes, COLUMNS.items(), strict=True):
        for place, (mode, colour) in enumerate(COLOURS.items()):
            heights = ratios(rerun, setting, mode)[column].to_numpy()
            at = np.arange(len(logs)) + (place - 0.5) * 0.38
            one.bar(at, heights, width=0.38, color=colour, label=SCHEDULERS[mode])
        one.set_xticks(range(len(logs)), logs)
        _finish(one, name)
    axes[0].legend(frameon=False, fontsize=7)
    return save(figure, path)


def _draw_batches(rerun: Rerun, setting: Setting, path: Path) -> Path:
    """Draw R of each batch, one row per log."""
    logs = [name for name, _ in setting.logs]
    title = f"Fig. 6, R by batches of 1000 submissions, multiple queues, {setting.name}"
    figure = blank_figure(9.0, 1.6 * len(logs), title)
    for one, log in zip(np.atleast_1d(figure.subplots(len(logs), 1)), logs, strict=True):
        ratio = batch_ratios(rerun, setting, log, MULTIPLE)
        colours = np.where(ratio >= 0, LINES[0], LINES[1])
        one.bar(ratio.index, ratio, width=0.9, color=colours)
        _finish(one, log)
    return save(figure, path)


def _draw_delays(rerun: Rerun, setting: Setting, path: Path) -> Path:
    """Draw the adaptive delay day by day, one row per log."""
    logs = [name for name, _ in setting.logs]
    figure = blank_figure(9.0, 1.6 * len(logs), f"The delay (s), day by day, {setting.name}")
    delays = rerun.delays[rerun.delays["scheduler"] == DELAYED]
    delays = delays[delays["setting"] == setting.name]
    for one, log in zip(np.atleast_1d(figure.subplots(len(logs), 1)), logs, strict=True):
        days = delays[delays["log"] == log]
        one.step(days["day"], days["delay"], color=LINES[1], linewidth=1.0)
        _finish(one, log)
    return save(figure, path)


def _finish(axes: Axes, title: str) -> None:
    """Give an axis its title and the line of no difference."""
    axes.axhline(0.0, color="#111111", linewidth=0.6)
    axes.set_title(title, fontsize=9, loc="left")
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
