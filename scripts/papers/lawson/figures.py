"""Figures 5 to 7 of Lawson, Smirni, Puiu 2002, drawn from our runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from papers.common.figures import BLACK, LINES, figure_of, finish, panels, save
from papers.lawson.claims import COLUMNS, batch_ratios, ratios
from papers.lawson.run import DELAYED, MULTIPLE, SCHEDULERS, SHOWN, Reading, Rerun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = dict(zip((MULTIPLE, DELAYED), LINES, strict=False))


def draw(rerun: Rerun, folder: Path) -> list[Path]:
    """Draw the figures of every reading of `SHOWN` into a folder and return the pictures.

    Raises:
        HpcgymError: matplotlib is not installed.
        OutputError: A picture cannot be written.
    """
    return [path for reading in SHOWN for path in draw_reading(rerun, reading, folder)]


def draw_reading(rerun: Rerun, reading: Reading, folder: Path) -> list[Path]:
    """Draw one reading: R overall and by class, R by batch of 1000 submissions, and the delay.

    Source: Lawson, Smirni, Puiu 2002, figures 5 to 7.
    """
    short = reading.estimates
    return [
        _draw_classes(rerun, reading, folder / f"figure-5-and-7-{short}.png"),
        _draw_batches(rerun, reading, folder / f"figure-6-{short}.png"),
        _draw_delays(rerun, reading, folder / f"delay-{short}.png"),
    ]


def _draw_classes(rerun: Rerun, reading: Reading, path: Path) -> Path:
    """Draw R overall and by class as bars, one group per log."""
    title = f"Figs. 5 and 7, R against a single queue, {reading.name}"
    figure = figure_of(2.6 * len(COLUMNS), 2.8, title)
    logs = [name for name, _ in reading.logs]
    axes = panels(figure, 1, len(COLUMNS))
    for one, (column, name) in zip(axes, COLUMNS.items(), strict=True):
        for place, (mode, colour) in enumerate(COLOURS.items()):
            heights = ratios(rerun, reading, mode)[column].to_numpy()
            at = np.arange(len(logs)) + (place - 0.5) * 0.38
            one.bar(at, heights, width=0.38, color=colour, label=SCHEDULERS[mode])
        one.set_xticks(range(len(logs)), logs)
        _finish(one, name)
    axes[0].legend(frameon=False, fontsize=9)
    return save(figure, path)


def _draw_batches(rerun: Rerun, reading: Reading, path: Path) -> Path:
    """Draw R of each batch, one row per log."""
    logs = [name for name, _ in reading.logs]
    title = f"Fig. 6, R by batches of 1000 submissions, multiple queues, {reading.name}"
    figure = figure_of(9.0, 1.6 * len(logs), title)
    for one, log in zip(panels(figure, len(logs), 1), logs, strict=True):
        ratio = batch_ratios(rerun, reading, log, MULTIPLE)
        colours = np.where(ratio >= 0, LINES[0], LINES[1])
        one.bar(ratio.index, ratio, width=0.9, color=colours)
        _finish(one, log)
    return save(figure, path)


def _draw_delays(rerun: Rerun, reading: Reading, path: Path) -> Path:
    """Draw the adaptive delay day by day, one row per log."""
    logs = [name for name, _ in reading.logs]
    figure = figure_of(9.0, 1.6 * len(logs), f"The delay (s), day by day, {reading.name}")
    delays = rerun.delays[rerun.delays["scheduler"] == DELAYED]
    delays = delays[delays["reading"] == reading.name]
    for one, log in zip(panels(figure, len(logs), 1), logs, strict=True):
        days = delays[delays["log"] == log]
        one.step(days["day"], days["delay"], color=LINES[1], linewidth=1.0)
        _finish(one, log)
    return save(figure, path)


def _finish(axes: Axes, title: str) -> None:
    """Draw the line of no difference, and finish the axes."""
    axes.axhline(0.0, color=BLACK, linewidth=0.6)
    finish(axes, title, loc="left")
