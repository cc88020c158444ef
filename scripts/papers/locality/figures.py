"""Figures 1 and 3 of the study, drawn from our runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from papers.common.figures import BLACK, LINES, figure_of, finish, panels, save
from papers.locality.claims import BASIC, NAMES, layouts_of, makespans, trend
from papers.locality.engine import VARIANTS
from papers.locality.platform import LAYOUTS
from papers.locality.run import Rerun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (*LINES, "#808080")
FACTOR, MAKESPAN_S = 1e8, 1e6
"""Units of the axes, byte/s and s."""

ASIDE = 0.03
"""By how much points of a layout are drawn beside those of the one before, in `FACTOR`."""


def draw(rerun: Rerun, folder: Path) -> list[Path]:
    """Draw the makespans of every run, and the trends of the variants, into a folder.

    Raises:
        HpcgymError: matplotlib is not installed.
        OutputError: A picture cannot be written.
    """
    return [
        _draw_makespans(rerun, folder / "makespans.png"),
        _draw_trends(rerun, folder / "trends.png"),
        _draw_layouts(rerun, folder / "layouts.png"),
    ]


def _draw_makespans(rerun: Rerun, path: Path) -> Path:
    """Draw makespans over the factor: a row per experiment, a panel per variant.

    Source: Dutot, Poquet and Trystram, figures 1 and 3.
    """
    title = "Makespan (10⁶ s) over F_comm (10⁸ byte/s), every run; black: linear trend"
    figure = figure_of(9.5, 6.6, title)
    axes = panels(figure, len(NAMES), len(VARIANTS))
    for place, one in enumerate(axes):
        name = NAMES[place // len(VARIANTS)]
        variant = tuple(VARIANTS)[place % len(VARIANTS)]
        _draw_runs(one, rerun, name, variant)
        first = place % len(VARIANTS) == 0
        finish(one, variant if place < len(VARIANTS) else "", name if first else "")
        one.set_ylim(0, 1.05 * _highest(rerun, name) / MAKESPAN_S)
    axes[len(VARIANTS)].legend(frameon=False, fontsize=9, markerscale=5, loc="upper left")
    return save(figure, path, dpi=87)


def _draw_runs(axes: Axes, rerun: Rerun, name: str, variant: str) -> None:
    """Draw the runs of one variant in one experiment, coloured by layout, and their trend."""
    layouts = layouts_of(name, tuple(LAYOUTS))
    for place, (colour, layout) in enumerate(zip(COLOURS, layouts, strict=False)):
        wide = makespans(rerun, name, variant, (layout,)) / MAKESPAN_S
        factors = wide.columns.get_level_values("f_comm").to_numpy(dtype=float) / FACTOR
        at = np.tile(factors + ASIDE * place, len(wide))
        axes.plot(
            at,
            wide.to_numpy().ravel(),
            "s",
            color=colour,
            label=layout,
            markersize=1.6,
            markeredgewidth=0.0,
            antialiased=False,
        )
    found = trend(rerun, name, variant)
    ends = np.array([0.0, factors.max() * FACTOR])
    line = (found.intercept + found.slope * ends) / MAKESPAN_S
    axes.plot(ends / FACTOR, line, color=BLACK, linewidth=1.0)


def _highest(rerun: Rerun, name: str) -> float:
    """Return the largest makespan of an experiment, s."""
    layouts = tuple(LAYOUTS)
    return max(float(makespans(rerun, name, one, layouts).to_numpy().max()) for one in VARIANTS)


def _draw_trends(rerun: Rerun, path: Path) -> Path:
    """Draw the mean makespan of each variant over the factor, one panel per experiment."""
    figure = figure_of(9.0, 3.2, "Mean makespan (10⁶ s) over F_comm (10⁸ byte/s)")
    for axes, name in zip(panels(figure, 1, len(NAMES)), NAMES, strict=True):
        for colour, variant in zip(COLOURS, VARIANTS, strict=True):
            mean = makespans(rerun, name, variant).mean().groupby("f_comm").mean() / MAKESPAN_S
            axes.plot(mean.index / FACTOR, mean, color=colour, label=variant)
        finish(axes, name)
    figure.axes[0].legend(frameon=False, fontsize=9)
    return save(figure, path)


def _draw_layouts(rerun: Rerun, path: Path) -> Path:
    """Draw the mean makespan in each layout over the factor: a row per experiment."""
    title = "Mean makespan (10⁶ s) over F_comm (10⁸ byte/s), by order of the clusters"
    figure = figure_of(11.0, 4.6, title)
    axes = iter(panels(figure, 2, len(VARIANTS)))
    for name in NAMES[1:]:
        for variant in VARIANTS:
            one = next(axes)
            for colour, layout in zip(COLOURS, LAYOUTS, strict=True):
                mean = makespans(rerun, name, variant, (layout,)).mean() / MAKESPAN_S
                factors = mean.index.get_level_values("f_comm") / FACTOR
                one.plot(factors, mean, color=colour, linewidth=1.0, label=layout)
            finish(one, variant if name == NAMES[1] else "", name if variant == BASIC else "")
    figure.axes[0].legend(frameon=False, fontsize=9)
    return save(figure, path)
