"""An empty figure of matplotlib's object API, and how it is saved; no global state."""

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
    """Return an empty figure that draws into memory.

    Args:
        width_in: Width, inches.
        height_in: Height, inches.
        title: What stands above all.

    Returns:
        The figure.

    Raises:
        HpcgymError: matplotlib is not installed.

    Source:
        House rule: matplotlib's object API, so that nothing is shared between callers.
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
    """Write a figure as PNG, in place of one of the same name.

    Args:
        figure: The figure.
        path: The file.
        dpi: Dots per inch.

    Returns:
        The file.

    Raises:
        OutputError: It cannot be written.

    Source:
        House rule: a file is whole or absent.
    """
    with writing(path, force=True) as file:
        figure.savefig(file, dpi=dpi, format="png")
    return path
