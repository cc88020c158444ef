"""The metrics in the info of a step, for one environment and for many."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.kernels.env.metrics import EPISODE_METRICS

_SHOWN: tuple[tuple[str, str, int, type], ...] = tuple(
    (
        name,
        f"_{name}",
        column,
        {"complete": bool, "makespan": int}.get(name, int if name[0] == "n" else float),
    )
    for column, name in enumerate(EPISODE_METRICS)
    if not name.startswith("sum_")
)
"""Name, name of the mask, column and type of each metric shown."""


def metrics_of(measured: NDArray[np.float64]) -> dict[str, float]:
    """Return the metrics of a schedule by name, given what the kernel `measure` writes.

    They are those of `hpcgym.core.metrics.summary` that need no sorting.
    """
    values = measured.tolist()
    return {name: kind(values[column]) for name, _, column, kind in _SHOWN}


def metrics_where(over: NDArray[np.bool_], measured: NDArray[np.float64]) -> dict[str, Any]:
    """Return the metrics of the environments whose episodes are over.

    Args:
        over: Which environments, shape (n_envs,).
        measured: What `measure` wrote of each, shape (n_envs, N_METRICS).

    Returns:
        For each name of `metrics_of` an array of shape (n_envs,), 0 where the episode goes on, and
        `over` under `_name`, as infos of Gymnasium's vector environments have it.

    Example:
        >>> metrics = metrics_where(np.array([False, True]), np.ones((2, 15)))
        >>> metrics["n_jobs"], metrics["_n_jobs"], metrics["complete"]
        (array([0, 1]), array([False,  True]), array([False,  True]))
    """
    columns: dict[type, NDArray[Any]] = {float: np.where(over, measured.T, 0.0)}
    columns |= {kind: columns[float].astype(kind) for kind in (int, bool)}
    info: dict[str, Any] = {}
    for name, mask, column, kind in _SHOWN:
        info[name], info[mask] = columns[kind][column], over
    return info
