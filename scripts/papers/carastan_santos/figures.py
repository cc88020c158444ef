"""Figures 1 to 4 of Carastan-Santos 2019, drawn from our runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from papers.carastan_santos.claims import TITLES, inner, runs_of, shares
from papers.carastan_santos.run import METRICS, POLICIES, SHARES, SHOWN, Reading, Rerun
from papers.common.figures import BLACK, LINES, figure_of, finish, panels, save

COLOURS = dict(zip(POLICIES, (BLACK, *LINES), strict=False))
"""One colour per policy, FCFS in black."""


def draw(rerun: Rerun, folder: Path) -> list[Path]:
    """Draw the figures of every reading of `SHOWN` into a folder and return the pictures.

    Raises:
        HpcgymError: matplotlib is not installed.
        OutputError: A picture cannot be written.
    """
    return [path for reading in SHOWN for path in draw_reading(rerun, reading, folder)]


def draw_reading(rerun: Rerun, reading: Reading, folder: Path) -> list[Path]:
    """Draw the four figures of one reading.

    Source: Carastan-Santos et al. 2019, figures 1-4.
    """
    logs = [name for name, _ in reading.logs]
    short = reading.over_limit
    return [
        _draw_weekly(rerun, reading, logs, folder / f"figure-1-{short}.png"),
        _draw_worst(rerun, reading, logs, folder / f"figure-2-{short}.png"),
        _draw_classes(rerun, reading, logs, folder / f"figure-3-{short}.png"),
        _draw_backfilled(rerun, reading, logs, folder / f"figure-4-{short}.png"),
    ]


def _draw_weekly(rerun: Rerun, reading: Reading, logs: list[str], path: Path) -> Path:
    """Draw the cumulative averages: one row per metric, one column per log."""
    figure = figure_of(2.6 * len(logs), 7.0, f"Fig. 1, cumulative averages, {reading.name}")
    axes = figure.subplots(len(METRICS), len(logs), squeeze=False)
    weekly = rerun.weekly[rerun.weekly["reading"] == reading.name]
    for column, log in enumerate(logs):
        for row, metric in enumerate(METRICS):
            one = axes[row, column]
            for policy in POLICIES:
                jobs = weekly[(weekly["log"] == log) & (weekly["policy"] == policy)]
                wide = jobs.pivot(index="week", columns="sample", values=metric).ffill()
                ordered = wide[wide.iloc[-1].sort_values().index]
                inside = ordered.iloc[:, 1:-1] if wide.shape[1] > 2 else ordered
                one.plot(inside.mean(axis=1), color=COLOURS[policy], label=policy, linewidth=1.2)
                for edge in (inside.min(axis=1), inside.max(axis=1)):
                    one.plot(edge, color=COLOURS[policy], linewidth=0.6, linestyle="--")
            one.set_ylim(bottom=0)
            finish(one, log if row == 0 else "", TITLES[metric] if column == 0 else "")
    axes[-1, 0].set_xlabel("week")
    axes[0, 0].legend(frameon=False, fontsize=9)
    return save(figure, path)


def _draw_worst(rerun: Rerun, reading: Reading, logs: list[str], path: Path) -> Path:
    """Draw the widths of the worst jobs as boxes."""
    figure = figure_of(2.2 * len(logs), 2.8, f"Fig. 2, width of the worst jobs, {reading.name}")
    worst = rerun.worst[rerun.worst["reading"] == reading.name]
    for one, log in zip(panels(figure, 1, len(logs)), logs, strict=True):
        jobs = worst[worst["log"] == log]
        boxes = [jobs[jobs["policy"] == policy]["worst"].to_numpy() for policy in POLICIES]
        one.boxplot(boxes, tick_labels=POLICIES, flierprops={"markersize": 2})
        one.set_yscale("log", base=2)
        finish(one, log, "processors" if log == logs[0] else "")
    return save(figure, path)


def _draw_classes(rerun: Rerun, reading: Reading, logs: list[str], path: Path) -> Path:
    """Draw the shares of jobs by class of slowdown as bars."""
    figure = figure_of(2.6 * len(logs), 2.8, f"Fig. 3, jobs by slowdown, {reading.name}")
    frame = shares(rerun, reading)
    for one, log in zip(panels(figure, 1, len(logs)), logs, strict=True):
        for place, policy in enumerate(POLICIES):
            heights = 100 * frame.loc[log].loc[policy, list(SHARES)].to_numpy()
            at = np.arange(len(SHARES)) + (place - 1.5) / 5
            one.bar(at, heights, width=0.2, color=COLOURS[policy], label=policy)
        one.set_xticks(range(len(SHARES)), SHARES)
        finish(one, log, "% of jobs" if log == logs[0] else "")
    one.legend(frameon=False, fontsize=9)
    return save(figure, path)


def _draw_backfilled(rerun: Rerun, reading: Reading, logs: list[str], path: Path) -> Path:
    """Draw the numbers of backfilled jobs of the samples as boxes."""
    figure = figure_of(2.2 * len(logs), 2.8, f"Fig. 4, backfilled jobs, {reading.name}")
    runs = runs_of(rerun, reading)
    for one, log in zip(panels(figure, 1, len(logs)), logs, strict=True):
        jobs = runs[runs["log"] == log]
        boxes = [inner(jobs[jobs["policy"] == p]["n_backfilled"].to_numpy()) for p in POLICIES]
        one.boxplot(boxes, tick_labels=POLICIES, flierprops={"markersize": 2})
        one.set_ylim(bottom=0)
        finish(one, log, "jobs" if log == logs[0] else "")
    return save(figure, path)
