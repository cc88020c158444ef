"""What a reset of many environments is asked: seeds, a mask, and options for each."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import ScenarioError


def checked_seeds(seed: Any, num_envs: int) -> list[int | None]:
    """Return one seed per environment, None where it keeps its generator."""
    if seed is None:
        return [None] * num_envs
    try:
        first = operator.index(seed)
        seeds: list[int | None] = [first + env for env in range(num_envs)]
    except TypeError:
        is_many = isinstance(seed, (Sequence, np.ndarray)) and not isinstance(seed, str)
        seeds = list(seed) if is_many and np.ndim(seed) == 1 else []
    are_whole = [number is None or isinstance(number, (int, np.integer)) for number in seeds]
    if len(seeds) != num_envs or isinstance(seed, bool) or not all(are_whole):
        raise ScenarioError(
            f"seed must be a whole number or one for each of {num_envs} environments, got {seed!r}"
        )
    for number in seeds:
        if isinstance(number, bool) or (number is not None and number < 0):
            raise ScenarioError(f"a seed must be a whole number >= 0, got {number!r}")
    return [None if number is None else int(number) for number in seeds]


def checked_mask(mask: Any, num_envs: int) -> NDArray[np.bool_]:
    """Return which environments a reset begins anew."""
    if mask is None:
        return np.ones(num_envs, dtype=np.bool_)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (num_envs,):
        raise ScenarioError(
            f"option 'reset_mask' must be an array of bools of shape ({num_envs},), got {mask!r}"
        )
    if not mask.any():
        raise ScenarioError("option 'reset_mask' resets no environment")
    return mask.copy()


def options_of(options: dict[str, Any], env: int, num_envs: int) -> dict[str, Any]:
    """Return the options of a reset that are for one environment."""
    chosen = dict(options)
    for key, value in options.items():
        if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) > 0:
            if len(value) != num_envs:
                raise ScenarioError(
                    f"option {key!r} must be one for all or one for each of {num_envs} "
                    f"environments, got {len(value)}"
                )
            chosen[key] = value[env]
    return chosen
