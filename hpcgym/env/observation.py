"""Observation space, and the part of an observation that never changes during an episode."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.core.kernels.env.observation import HORIZONS_S, N_CLUSTER, N_FIELDS
from hpcgym.core.state import N_STATIC_FIELDS

N_SLOTS = 128
"""Visible positions of the queue, by default."""

FIELDS = (
    "log_estimate",
    "log_predicted_time",
    "processors",
    "log_area",
    "log_wait_time",
    "log_wait_by_estimate",
    "fits_now",
    "ends_before_shadow",
    "is_thresholded",
    "user_log_completed",
    "user_log_last_run_time",
    "user_log_last_but_one_run_time",
    "user_mean_run_by_request",
    "user_log_expected_bound",
    "user_log_recency",
    "log_expected_run_time_ratio",
    "log_expected_speed",
    "log_expected_index",
)
"""Names of a visible job's fields, in order."""

CLUSTER_FIELDS = (
    "free_processors",
    *(f"free_processors_in_{seconds}_s" for seconds in HORIZONS_S),
    "queued_processors",
    "queued_area",
    "submitted_last_hour",
    "submitted_last_day",
    "hour_of_week_sin",
    "hour_of_week_cos",
    "hidden_jobs",
    "hidden_area",
    "hidden_least_area",
    "hidden_largest_area",
)
"""Names of the cluster's fields, in order."""

assert len(FIELDS) == N_FIELDS and len(CLUSTER_FIELDS) == N_CLUSTER


def observation_space(n_slots: int) -> spaces.Space[Any]:
    """Return the space of observations.

    Args:
        n_slots: Visible positions of the queue.

    Returns:
        A dictionary of one-dimensional float32 boxes: `jobs` (n_slots * n_fields,), `cluster`
        (N_CLUSTER,), `action_mask` (n_slots,).

    Source:
        Specification, section 10, "Observation".

    Example:
        >>> observation_space(2)["jobs"].shape
        (36,)
    """
    return spaces.Dict(
        {
            "jobs": spaces.Box(-1.0, 1.0, (n_slots * N_FIELDS,), np.float32),
            "cluster": spaces.Box(-1.0, 1.0, (N_CLUSTER,), np.float32),
            "action_mask": spaces.Box(0.0, 1.0, (n_slots,), np.float32),
        }
    )


def static_fields(
    estimate: NDArray[np.int64],
    predicted_time: NDArray[np.int64],
    processors: NDArray[np.int64],
    machine_processors: int,
    largest_request: int,
) -> NDArray[np.float32]:
    """Work out the fields of each job that are known at its submission and never change.

    Args:
        estimate: What the scheduler takes run times to be, shape (n_jobs,), s.
        predicted_time: What a predictor says, shape (n_jobs,), s.
        processors: Processors requested, shape (n_jobs,).
        machine_processors: Processors of the machine.
        largest_request: Largest request of the scenario, s.

    Returns:
        The first four of `FIELDS`, shape (n_jobs, N_STATIC_FIELDS).

    Source:
        Specification, section 10, "Observation".
    """
    log_largest = math.log(max(largest_request, 2))
    log_machine = math.log(max(largest_request, 2) * machine_processors)
    field = np.empty((len(estimate), N_STATIC_FIELDS), dtype=np.float32)
    field[:, 0] = np.log(estimate) / log_largest
    field[:, 1] = np.log(predicted_time) / log_largest
    field[:, 2] = processors / machine_processors
    field[:, 3] = np.log(estimate * processors) / log_machine
    return np.minimum(field, np.float32(1.0))
