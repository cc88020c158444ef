"""Observation space, and the fields of a job that never change during an episode."""

from __future__ import annotations

import math
import re
import textwrap
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core.kernels.env.observation import HORIZONS_S
from hpcgym.core.nodes import shown_partitions
from hpcgym.core.observation_fields import (
    N_STATIC_FIELDS,
    ClusterField,
    ControlsField,
    JobField,
    NodesField,
    ObservationField,
)
from hpcgym.machine import Machine

N_SLOTS = 128
"""Visible positions of the queue, by default."""

FIELDS = tuple(field.field_name for field in JobField)
"""Names of a visible job's fields, in order."""

NODES_FIELDS = tuple(field.field_name for field in NodesField)
"""Names of the fields that follow for each job on a machine of nodes, in order."""

CLUSTER_FIELDS = tuple(field.field_name for field in ClusterField)
"""Names of the cluster's fields, in order."""

CONTROLS_FIELDS = tuple(field.field_name for field in ControlsField)
"""Names of the fields that follow with action `controls`, in order."""

ObservationKind = Literal["dict", "flat"]

Expectations = Literal["records", "regression", "urgency"]
EXPECTATIONS: dict[Expectations, int] = {
    "records": s.EXPECT_BY_RECORDS,
    "regression": s.EXPECT_BY_REGRESSION,
    "urgency": s.EXPECT_URGENCY,
}
"""From what the expected fields of a job may be computed, and its number in kernels."""

assert CLUSTER_FIELDS[1 : 1 + len(HORIZONS_S)] == tuple(
    f"free_processors_in_{seconds}_s" for seconds in HORIZONS_S
)


def observation_space(
    n_slots: int, machine: Machine | None = None, controls: bool = False
) -> spaces.Space[Any]:
    """Return the space of observations, with the fields that controls need or without them.

    Returns:
        One-dimensional float32 boxes: `jobs` (n_slots * n_fields,), `cluster` (n_cluster,) and
        `action_mask` (n_slots,); on a machine of nodes also `machine` (3 * n_partitions,).

    Source: Specification, section 10, "Observation"; section 13, "Environment".

    Example:
        >>> observation_space(2)["jobs"].shape
        (36,)
    """
    boxes: dict[str, spaces.Space[Any]] = {
        "jobs": _box(JobField, n_slots * fields_per_job(machine)),
        "cluster": _box(ClusterField, cluster_fields(controls)),
        "action_mask": spaces.Box(0.0, 1.0, (n_slots,), np.float32),
    }
    if machine is not None:
        shape = (machine_fields(machine),)
        boxes["machine"] = spaces.Box(0.0, 1.0, shape, np.float32)
    return spaces.Dict(boxes)


def flat_space(n_slots: int, machine: Machine | None = None, controls: bool = False) -> spaces.Box:
    """Return the space of observations in one array: the parts in the order of `flat_places`.

    Its bounds are those of each field.

    Example:
        >>> flat_space(2).shape, flat_space(2).low[:6]
        ((57,), array([ 0.,  0.,  0.,  0.,  0., -1.], dtype=float32))
    """
    of_job = [*JobField] if machine is None else [*JobField, *NodesField]
    shares = n_slots + machine_fields(machine)  # of the partitions and the mask lie in [0, 1]
    of_cluster = [*ClusterField, *ControlsField][: cluster_fields(controls)]
    low, high = (
        [getattr(field, end) for field in (*of_job * n_slots, *of_cluster)] + [limit] * shares
        for end, limit in (("low", 0), ("high", 1))
    )
    return spaces.Box(np.array(low, dtype=np.float32), np.array(high, dtype=np.float32))


def flat_places(
    n_slots: int, machine: Machine | None = None, controls: bool = False
) -> dict[str, slice]:
    """Return where each part of an observation is in a flat one.

    Example:
        >>> flat_places(2)
        {'jobs': slice(0, 36, None), 'cluster': slice(36, 55, None), 'action_mask': slice(55, 57, \
None)}
    """
    lengths = {
        "jobs": n_slots * fields_per_job(machine),
        "cluster": cluster_fields(controls),
        "machine": machine_fields(machine),
        "action_mask": n_slots,
    }
    places, end = {}, 0
    for part, length in lengths.items():
        places[part], end = slice(end, end + length), end + length
    if machine is None:
        del places["machine"]
    return places


def fields_per_job(machine: Machine | None) -> int:
    """Return how many numbers are shown of each visible job."""
    return len(JobField) + (0 if machine is None else len(NodesField))


def cluster_fields(controls: bool) -> int:
    """Return how many numbers are shown of the cluster."""
    return len(ClusterField) + (len(ControlsField) if controls else 0)


def machine_fields(machine: Machine | None) -> int:
    """Return how many numbers are shown of the machine's partitions."""
    return 0 if machine is None else len(shown_partitions(machine)) * s.N_RESOURCES


def with_field_tables(sheet: str) -> str:
    """Return the data sheet with each line `TABLE OF JobField`, or another, as that table."""
    for fields in (JobField, NodesField, ClusterField, ControlsField):
        line = re.search(rf"^( *)TABLE OF {fields.__name__}$", sheet, re.MULTILINE)
        if line is not None:
            table = textwrap.indent(_table_of(fields), line[1])
            sheet = sheet[: line.start()] + table + sheet[line.end() :]
    return sheet


def _table_of(fields: type[ObservationField]) -> str:
    """Return the fields as a table in Markdown."""
    rows = ["| place and name | meaning | formula | min | max |", "|---|---|---|---|---|"]
    for field in fields:
        cells = (field.meaning, field.formula, field.low, field.high)
        rows.append(f"| {int(field)} `{field.field_name}` | {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def _box(fields: type[ObservationField], n: int) -> spaces.Box:
    """Return a box of n numbers: its bounds are those of the widest field."""
    low, high = min(field.low for field in fields), max(field.high for field in fields)
    return spaces.Box(float(low), float(high), (n,), np.float32)


def static_fields(
    estimate: NDArray[np.int64],
    predicted_time: NDArray[np.int64],
    processors: NDArray[np.int64],
    machine_processors: int,
    largest_request: int,
) -> NDArray[np.float32]:
    """Return the fields of each job that are known at its submission and never change.

    Returns:
        The first four of `FIELDS`, shape (n_jobs, N_STATIC_FIELDS).
    """
    log_largest = math.log(max(largest_request, 2))
    log_machine = math.log(max(largest_request, 2) * machine_processors)
    field = np.empty((len(estimate), N_STATIC_FIELDS), dtype=np.float32)
    field[:, JobField.LOG_ESTIMATE] = np.log(estimate) / log_largest
    field[:, JobField.LOG_PREDICTED_TIME] = np.log(predicted_time) / log_largest
    field[:, JobField.PROCESSORS] = processors / machine_processors
    field[:, JobField.LOG_AREA] = np.log(estimate * processors) / log_machine
    return np.minimum(field, np.float32(1.0))
