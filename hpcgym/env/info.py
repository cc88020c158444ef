"""Infos of environments: numbers under flat keys, most of them when an episode ends."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.core.kernels.env.metrics import EPISODE_METRICS

_COLUMNS = {
    name: column for column, name in enumerate(EPISODE_METRICS) if not name.startswith("sum_")
}
"""Column of each metric shown. They are those of `core.metrics.summary` that need no sorting."""


def end_of(measured: NDArray[np.float64], saf: float) -> dict[str, float]:
    """Return what an info says of an episode that is over.

    Args:
        measured: What the kernel `measure` wrote, shape (N_METRICS,).
        saf: SAF's mean bounded slowdown on the same jobs.
    """
    values = measured.tolist()
    metrics = {name: values[column] for name, column in _COLUMNS.items()}
    return metrics | {"ratio": metrics["mean_bsld"] / saf}


def ends_where(
    over: NDArray[np.bool_], measured: NDArray[np.float64], saf: ArrayLike
) -> dict[str, NDArray[np.float64]]:
    """Return what infos say of episodes that are over, 0 where the episode goes on.

    Args:
        over: Which episodes are over, shape (n_envs,).
        measured: What `measure` wrote of each, shape (n_envs, N_METRICS).
        saf: SAF's mean bounded slowdown on each.

    Example:
        >>> ends_where(np.array([False, True]), np.ones((2, 15)), [2.0, 2.0])["ratio"]
        array([0. , 0.5])
    """
    columns = np.where(over, measured.T, 0.0)
    metrics = {name: columns[column] for name, column in _COLUMNS.items()}
    return metrics | {"ratio": metrics["mean_bsld"] / np.asarray(saf)}


def info_where(mask: NDArray[np.bool_], info: dict[str, Any]) -> dict[str, Any]:
    """Return the info of some environments, 0 and a False `_key` for the others.

    Example:
        >>> info_where(np.array([False, True]), {"ratio": np.array([3, 4]), "_ratio": np.ones(2)})
        {'ratio': array([0, 4]), '_ratio': array([False,  True])}
    """
    return {
        key: mask & (column > 0) if key.startswith("_") else _kept_where(mask, column)
        for key, column in info.items()
    }


def _kept_where(mask: NDArray[np.bool_], column: NDArray[Any]) -> NDArray[Any]:
    shown = mask.reshape(-1, *(1,) * (column.ndim - 1))
    return np.where(shown, column, column.dtype.type(0))
