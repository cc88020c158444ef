"""What the figures of all reruns share: canvas, colours, axes, the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from hpcgym.base.output import writing
from hpcgym.evaluation.pictures.style import LINES, blank_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BLACK", "LINES", "figure_of", "finish", "panels", "save"]

BLACK = "#111111"


def figure_of(width_in: float, height_in: float, title: str) -> Figure:
    """Return an empty figure with a title.

    Raises:
        HpcgymError: matplotlib is not installed.
    """
    figure = blank_figure(width_in, height_in)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return figure


def panels(figure: Figure, rows: int, columns: int) -> list[Axes]:
    """Divide a figure into axes, row by row."""
    return list(np.ravel(figure.subplots(rows, columns, squeeze=False)))


def finish(
    axes: Axes, title: str, label: str = "", loc: Literal["center", "left"] = "center"
) -> None:
    """Give axes their title and the label of y, and draw two of the four sides."""
    axes.set_title(title, fontsize=10, loc=loc)
    axes.set_ylabel(label, fontsize=9)
    axes.tick_params(labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: Path, *, dpi: int = 110) -> Path:
    """Write a figure as PNG, in place of one of the same name, and return the path.

    Raises:
        OutputError: The file cannot be written.
    """
    with writing(path, force=True) as file:
        figure.savefig(file, dpi=dpi, format="png")
    return path
