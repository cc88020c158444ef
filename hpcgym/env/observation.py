"""Observation space, and the fields of a job that never change during an episode."""

from __future__ import annotations

import math
import re
import textwrap
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.base.errors import ScenarioError, unknown_name
from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import address_of_field
from hpcgym.core.kernels.env.cluster import HORIZONS_S
from hpcgym.core.nodes import shown_partitions
from hpcgym.core.observation_fields import (
    N_STATIC_FIELDS,
    OWN_FIELDS,
    SHOWN_RUNNING,
    ClusterField,
    ControlsField,
    JobField,
    JobTrialField,
    NodesField,
    ObservationField,
    OwnField,
    RunningField,
    TrialField,
)
from hpcgym.machine import Machine

FIELDS = tuple(field.field_name for field in JobField)  # names of a visible job's fields, in order

NODES_FIELDS = tuple(field.field_name for field in NodesField)
"""Names of the fields that follow for each job on a machine of nodes, in order."""

CLUSTER_FIELDS = tuple(field.field_name for field in ClusterField)
"""Names of the cluster's fields, in order."""

CONTROLS_FIELDS = tuple(field.field_name for field in ControlsField)
"""Names of the fields that follow with action `controls`, in order."""

AnyField: TypeAlias = ObservationField | OwnField
Own: TypeAlias = Sequence[OwnField]
Only: TypeAlias = type[ObservationField] | None

ObservationKind = Literal["dict", "flat", "small"]

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


def fields_of(
    machine: Machine | None = None,
    controls: bool = False,
    own: Own = (),
    trials: bool = False,
    only: Only = None,
) -> tuple[list[AnyField], list[AnyField]]:
    """Return what is shown of each visible job, and of the cluster; fields of your own come last.

    Where a list of fields stands in place of jobs and cluster, `only` these are shown.
    """
    if only is not None:
        return [], [*only]
    of_job: list[AnyField] = [*JobField, *(() if machine is None else NodesField)]
    of_cluster: list[AnyField] = [*ClusterField, *(ControlsField if controls else ())]
    if trials:
        of_job, running = [*of_job, *JobTrialField], [*RunningField] * SHOWN_RUNNING
        of_cluster = [*of_cluster, *TrialField, *running]
    for field in own:
        (of_job if field.is_of_job else of_cluster).append(field)
    return of_job, of_cluster


def observation_space(
    n_slots: int,
    machine: Machine | None = None,
    controls: bool = False,
    own: Own = (),
    trials: bool = False,
    only: Only = None,
) -> spaces.Space[Any]:
    """Return the space of observations, with the fields that some actions need or without them.

    Returns:
        Boxes of float32: `jobs` (n_slots, n_fields), `cluster` (n_cluster,) and `action_mask`
        (n_slots,); on a machine of nodes also `machine` (3 * n_partitions,). They stand in the
        order of `flat_places`, so that Gymnasium's `FlattenObservation` makes the flat one.

    Source: Specification, section 10, "Observation"; section 13, "Environment".

    Example:
        >>> observation_space(2)["jobs"].shape
        (2, 18)
    """
    of_job, of_cluster = fields_of(machine, controls, own, trials, only)
    boxes: OrderedDict[str, spaces.Space[Any]] = OrderedDict()  # a dict would be sorted by key
    if only is not None:
        return spaces.Dict({"cluster": _box(of_cluster, len(of_cluster))})
    boxes["jobs"] = _box(of_job, n_slots, len(of_job))
    boxes["cluster"] = _box(of_cluster, len(of_cluster))
    if machine is not None:
        boxes["machine"] = spaces.Box(0.0, 1.0, (machine_fields(machine),), np.float32)
    boxes["action_mask"] = spaces.Box(0.0, 1.0, (n_slots,), np.float32)
    return spaces.Dict(boxes)


def flat_space(
    n_slots: int,
    machine: Machine | None = None,
    controls: bool = False,
    own: Own = (),
    trials: bool = False,
    only: Only = None,
) -> spaces.Box:
    """Return the space of observations in one array: the parts in the order of `flat_places`.

    Its bounds are those of each field.
    """
    of_job, of_cluster = fields_of(machine, controls, own, trials, only)
    # Shares of the partitions, and the mask, lie in [0, 1].
    shares = 0 if only is not None else n_slots + machine_fields(machine)
    low, high = (
        [getattr(field, end) for field in (*of_job * n_slots, *of_cluster)] + [limit] * shares
        for end, limit in (("low", 0), ("high", 1))
    )
    return spaces.Box(np.array(low, dtype=np.float32), np.array(high, dtype=np.float32))


def flat_places(
    n_slots: int,
    machine: Machine | None = None,
    controls: bool = False,
    own: Own = (),
    trials: bool = False,
    only: Only = None,
) -> dict[str, slice]:
    """Return where each part of an observation is in a flat one; a part of no length is not shown.

    Example:
        >>> flat_places(2)
        {'jobs': slice(0, 36, None), 'cluster': slice(36, 55, None), 'action_mask': slice(55, 57, \
None)}
    """
    of_job, of_cluster = map(len, fields_of(machine, controls, own, trials, only))
    lengths = {"jobs": n_slots * of_job, "cluster": of_cluster}
    if machine is not None:
        lengths["machine"] = machine_fields(machine)
    places, end = {}, 0
    for part, length in (lengths | {"action_mask": n_slots * (only is None)}).items():
        places[part], end = slice(end, end + length), end + length
    return places


def machine_fields(machine: Machine | None) -> int:
    """Return how many numbers are shown of the machine's partitions."""
    return 0 if machine is None else len(shown_partitions(machine)) * s.N_RESOURCES


def state_keywords(given: Mapping[str, Any], *both: spaces.Space[Any]) -> None:
    """Note on the spaces of an environment by which keywords it was made.

    Models of Stable-Baselines3 are saved with their spaces, so that a file says what it is to play.
    Objects of one's own may not be there when it is loaded: with any, nothing is noted.
    """
    values = [value if isinstance(value, (list, tuple)) else [value] for value in given.values()]
    if all(isinstance(part, (str, Integral)) for parts in values for part in parts):
        for space in both:
            space.env_keywords = dict(given)  # type: ignore[attr-defined]


def own_fields(named: Sequence[str | OwnField]) -> tuple[OwnField, ...]:
    """Return fields of your own that are given by name, or as `register_field` returns them.

    Raises:
        ScenarioError: No list, an unknown name, or a field that is named twice.
    """
    if isinstance(named, str) or not isinstance(named, Iterable):
        raise ScenarioError(f"fields must be a list of names, got {named!r}")
    chosen: dict[str, OwnField] = {}
    for given in named:
        if not isinstance(given, OwnField) and given not in OWN_FIELDS:
            raise ScenarioError(unknown_name("field", given, OWN_FIELDS))
        field = given if isinstance(given, OwnField) else OWN_FIELDS[given]
        if field.field_name in chosen:
            raise ScenarioError(f"fields names {field.field_name!r} twice")
        chosen[field.field_name] = field
    return tuple(chosen.values())


def columns_of_fields(fields: Own) -> dict[str, NDArray[Any]]:
    """Return fields of your own as columns of `Jobs`, which hold in this process only."""
    in_turn = sorted(fields, key=lambda field: not field.is_of_job)  # those of a job first
    of_job = sum(field.is_of_job for field in fields)
    kernels = [address_of_field(field.show, int(field.is_of_job)) for field in in_turn]
    return {
        "own_of_job": np.array(kernels[:of_job], dtype=np.int64),
        "own_of_cluster": np.array(kernels[of_job:], dtype=np.int64),
        "own_bounds": np.array([(field.low, field.high) for field in in_turn], float).reshape(
            -1, 2
        ),
    }


def with_tables(sheet: str, tables: Mapping[str, str]) -> str:
    """Return the data sheet with each line `TABLE OF name` as that table."""
    return re.sub(
        r"^( *)TABLE OF (\w+)$",
        lambda line: textwrap.indent(tables[line[2]], line[1]),
        sheet,
        flags=re.MULTILINE,
    )


def _table_of(fields: type[ObservationField]) -> str:
    rows = ["| place and name | meaning | formula | min | max |", "|---|---|---|---|---|"]
    for field in fields:
        cells = (field.meaning, field.formula, field.low, field.high)
        rows.append(f"| {int(field)} `{field.field_name}` | {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def _table_of_named() -> str:
    """Return the fields that ship and are shown if they are named, likewise."""
    rows = ["| name | meaning | formula | min | max |", "|---|---|---|---|---|"]
    for field in map(OWN_FIELDS.__getitem__, OWN_FIELDS.shipped):
        cells = (field.meaning, field.formula, field.low, field.high)
        rows.append(f"| `{field.field_name}` | {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


FIELD_TABLES = {kind.__name__: _table_of(kind) for kind in ObservationField.__subclasses__()}
FIELD_TABLES["shares"] = _table_of_named()  # tables of the data sheet


def _box(fields: Sequence[AnyField], *shape: int) -> spaces.Box:
    """Return a box of some shape: its bounds are those of the widest field."""
    low, high = min(field.low for field in fields), max(field.high for field in fields)
    return spaces.Box(float(low), float(high), shape, np.float32)


def static_fields(
    estimate: NDArray[np.int64],
    predicted_time: NDArray[np.int64],
    processors: NDArray[np.int64],
    machine_processors: int,
    largest_request: int,
) -> NDArray[np.float32]:
    """Return the first four of `FIELDS`, which never change, shape (n_jobs, N_STATIC_FIELDS)."""
    log_largest = math.log(max(largest_request, 2))
    log_machine = math.log(max(largest_request, 2) * machine_processors)
    field = np.empty((len(estimate), N_STATIC_FIELDS), dtype=np.float32)
    field[:, JobField.LOG_ESTIMATE] = np.log(estimate) / log_largest
    field[:, JobField.LOG_PREDICTED_TIME] = np.log(predicted_time) / log_largest
    field[:, JobField.PROCESSORS] = processors / machine_processors
    field[:, JobField.LOG_AREA] = np.log(estimate * processors) / log_machine
    return np.minimum(field, np.float32(1.0))
