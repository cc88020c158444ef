"""What the info of a step says of a schedule: for one environment, and for many."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.kernels.env.metrics import FIGURES

_SHOWN: tuple[tuple[str, str, int, type], ...] = tuple(
    (
        name,
        f"_{name}",
        column,
        {"complete": bool, "makespan": int}.get(name, int if name[0] == "n" else float),
    )
    for column, name in enumerate(FIGURES)
    if not name.startswith("sum_")
)
"""Name, name of the mask, column and type of each figure shown."""


def metrics_of(figure: NDArray[np.float64]) -> dict[str, float]:
    """Name what was measured of a schedule.

    Args:
        figure: As `hpcgym.core.kernels.env.metrics.measure` writes it, shape (N_FIGURES,).

    Returns:
        A part of what `hpcgym.core.metrics.summary` gives: all that needs no sorting.

    Source:
        Specification, section 1, "Metrics".
    """
    values = figure.tolist()
    return {name: kind(values[column]) for name, _, column, kind in _SHOWN}


def metrics_where(measured: NDArray[np.bool_], figure: NDArray[np.float64]) -> dict[str, Any]:
    """Name what was measured of the schedules of some environments.

    Args:
        measured: Which environments, shape (n_envs,).
        figure: What was measured of each, shape (n_envs, N_FIGURES).

    Returns:
        For each name of `metrics_of` an array of shape (n_envs,), 0 where nothing was measured, and
        under `_name` the mask.

    Source:
        Gymnasium, "Vector environments", infos.

    Example:
        >>> metrics = metrics_where(np.array([False, True]), np.ones((2, 15)))
        >>> metrics["n_jobs"], metrics["_n_jobs"], metrics["complete"]
        (array([0, 1]), array([False,  True]), array([False,  True]))
    """
    columns: dict[type, NDArray[Any]] = {float: np.where(measured, figure.T, 0.0)}
    columns |= {kind: columns[float].astype(kind) for kind in (int, bool)}
    together: dict[str, Any] = {}
    for name, mask, column, kind in _SHOWN:
        together[name], together[mask] = columns[kind][column], measured
    return together
