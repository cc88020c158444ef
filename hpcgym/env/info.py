"""Infos of environments: numbers under flat keys, the same keys at every reset and step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.kernels.env.metrics import EPISODE_METRICS

_COLUMNS = {
    name: column for column, name in enumerate(EPISODE_METRICS) if not name.startswith("sum_")
}
"""Column of each metric shown. They are those of `core.metrics.summary` that need no sorting."""

NOT_YET = -1.0
"""Each metric while its episode goes on. NaN, unequal to itself, fails Gymnasium's `check_env`."""

UNMEASURED = dict.fromkeys(_COLUMNS, NOT_YET)
"""The metrics while an episode goes on."""


def metrics_of(measured: NDArray[np.float64]) -> dict[str, float]:
    """Return the metrics of a schedule by name, given what the kernel `measure` writes."""
    values = measured.tolist()
    return {name: values[column] for name, column in _COLUMNS.items()}


def metrics_where(
    over: NDArray[np.bool_], measured: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Return the metrics of environments, `NOT_YET` where the episode goes on.

    Args:
        over: Which episodes are over, shape (n_envs,).
        measured: What `measure` wrote of each, shape (n_envs, N_METRICS).

    Example:
        >>> metrics_where(np.array([False, True]), np.ones((2, 15)))["n_jobs"]
        array([-1.,  1.])
    """
    columns = np.where(over, measured.T, NOT_YET)
    return {name: columns[column] for name, column in _COLUMNS.items()}


def info_where(mask: NDArray[np.bool_], info: dict[str, Any]) -> dict[str, Any]:
    """Return the info of some environments, 0 and a False `_key` for the others.

    Example:
        >>> info_where(np.array([False, True]), {"now": np.array([3, 4]), "_now": np.ones(2)})
        {'now': array([0, 4]), '_now': array([False,  True])}
    """
    return {
        key: mask if key.startswith("_") else np.where(mask, column, column.dtype.type(0))
        for key, column in info.items()
    }
