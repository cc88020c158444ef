"""Infos of many environments, gathered into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def gathered(
    n_envs: int, envs: NDArray[np.int64], infos: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Gather the infos of some environments into one of arrays, as Gymnasium does.

    Args:
        n_envs: Environments side by side.
        envs: Those that have an info, shape (n_infos,).
        infos: Their infos, all with the same keys.

    Returns:
        For each key an array of shape (n_envs,), 0 or None where an environment has no info, and
        for `_key` the mask of those that have one; dictionaries likewise, within.

    Source:
        Gymnasium, "Vector environments", infos.

    Example:
        >>> gathered(3, np.array([1]), [{"bsld": 2.5}])
        {'bsld': array([0. , 2.5, 0. ]), '_bsld': array([False,  True, False])}
    """
    mask = np.zeros(n_envs, dtype=np.bool_)
    mask[envs] = True
    places = envs.tolist()
    together: dict[str, Any] = {}
    for key, first in infos[0].items() if infos else ():
        if isinstance(first, dict):
            together[key] = gathered(n_envs, envs, [info[key] for info in infos])
        else:
            is_number = isinstance(first, (bool, int, float))
            column = np.zeros(n_envs, type(first)) if is_number else np.full(n_envs, None, object)
            for env, info in zip(places, infos, strict=True):  # few: quicker than many at once
                column[env] = info[key]
            together[key] = column
        together[f"_{key}"] = mask
    return together
