"""Empty figures of matplotlib's object API, which has no global state, and how they are saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.errors import HpcgymError
from hpcgym.output import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = ("#0f6fb4", "#e08214", "#1b9e77", "#c2468f")
"""Colours of lines, far apart for colour-blind readers as well."""


def blank_figure(width_in: float, height_in: float, title: str = "") -> Figure:
    """Return an empty figure of a size in inches, with a title at the upper left.

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
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return figure


def save(figure: Figure, path: Path, *, dpi: int = 110) -> Path:
    """Write a figure as PNG, replace a file of that name, and return the path.

    Raises:
        OutputError: It cannot be written.
    """
    with writing(path, force=True) as file:
        figure.savefig(file, dpi=dpi, format="png")
    return path
