"""Agents that name slots, each playing a workload to its end beside others."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.workload import Workload

METRICS = ("mean_bsld", "max_wait_time")

Floats: TypeAlias = NDArray[np.float64]
Chooses: TypeAlias = Callable[[NDArray[np.float32]], NDArray[Any]]
"""Slots, one per observation, of observations in one array each."""


class Seen(NamedTuple):
    """What is measured of windows, each of shape (n_windows, 1 + copies); `wait` is in s."""

    bsld: Floats
    wait: Floats


def played_once(chooses: Chooses, envs: Any, workloads: Sequence[Workload]) -> Seen:
    """Return what is seen of an agent in one workload each, shape (n_workloads,).

    Args:
        chooses: The agent.
        envs: As many environments, which reset in the step that ends an episode.
        workloads: What each plays first.
    """
    shown, _ = envs.reset(seed=0, options={"workload": list(workloads)})
    seen = np.full((len(METRICS), len(workloads)), np.nan)
    while np.isnan(seen).any():
        shown, _, ended, _, info = envs.step(chooses(shown))
        ended = ended & np.isnan(seen[0])
        for row, metric in enumerate(METRICS):
            if ended.any():
                seen[row, ended] = info["final_info"][metric][ended]
    return Seen(*seen)
