"""Machines of nodes as kernels read them: columns of `Jobs`, and the sizes of a state.

Source: Specification, section 13.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core.compiler.struct import layout_of
from hpcgym.core.kernels.types import Jobs
from hpcgym.core.requests import distinct
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine

MOST_ROOMS = 2**25
"""Rooms kept of shapes by a simulation: 128 MB of them, where so many shapes wait."""

_ABOUT_NODES = (
    *("chunks", "shape", "request", "placed_first", "need", "capacity", "group", "member", "limit"),
    *("shown_partition", "largest_node"),
)
"""Columns of `Jobs` about nodes, besides `nodes_pass`."""


def columns_without_nodes() -> dict[str, Any]:
    """Return the columns of `Jobs` about nodes where processors are counted: all empty."""
    arrays = {key: layout_of(Jobs).arrays[key] for key in _ABOUT_NODES}
    columns: dict[str, Any] = {
        key: np.empty((0,) * array.n_axes, array.element) for key, array in arrays.items()
    }
    return columns | {"nodes_pass": 0}


def columns_of(workload: Workload) -> dict[str, Any]:
    """Return the columns of `Jobs` about the nodes of a workload's machine."""
    machine = workload.machine
    if machine is None:
        return columns_without_nodes()
    need, shape = _shapes_of(workload)
    most_nodes = _most_nodes(workload, machine)
    assert workload.chunks is not None
    _, request = distinct((shape, workload.chunks))
    capacity = capacity_of(machine)
    return {
        "nodes_pass": 1,
        "chunks": workload.chunks,
        "shape": shape,
        "request": np.ascontiguousarray(request),
        "placed_first": np.concatenate([[0], np.cumsum(most_nodes)[:-1]]).astype(np.int64),
        "need": need,
        "capacity": capacity,
        "group": machine.node_group,
        "member": machine.members.astype(np.uint8),
        "limit": np.ascontiguousarray(
            np.stack(
                [
                    machine.max_nodes,
                    machine.component,
                    _tier_ranks(machine),
                    _cpus_of_components(machine),
                    np.unique(-machine.tier, return_inverse=True)[1].ravel(),
                ],
                axis=1,
            )
        ),
        "shown_partition": shown_partitions(machine),
        "largest_node": capacity.max(axis=0),
    }


def capacity_of(machine: Machine) -> NDArray[np.int64]:
    """Return what each node has of cpus, GPUs and memory in MB, shape (n_nodes, 3)."""
    columns = (machine.node_cpus, machine.node_gpus, machine.node_memory_mb)
    return np.ascontiguousarray(np.stack(columns, axis=1))


def shown_partitions(machine: Machine) -> NDArray[np.int64]:
    """Return the partitions that observations show, higher tiers first, ties as in the file."""
    order = np.argsort(-machine.tier, kind="stable")
    return order[: s.MOST_PARTITIONS_SHOWN].astype(np.int64)


def _shapes_of(workload: Workload) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct requests of one chunk, in the columns NEED_*, and each job's."""
    assert workload.chunks is not None
    columns = (
        workload.processors // workload.chunks,
        workload.gpus,
        workload.memory_mb,
        workload.spread,
        workload.exclusive,
        workload.partition,
    )
    table = [np.asarray(column, dtype=np.int64) for column in columns]
    first, shape = distinct(table)
    need = np.stack([column[first] for column in table], axis=1)
    return np.ascontiguousarray(need), np.ascontiguousarray(shape)


def _most_nodes(workload: Workload, machine: Machine) -> NDArray[np.int64]:
    """Return on how many nodes each job may be placed at most, shape (n_jobs,)."""
    assert workload.chunks is not None and workload.partition is not None
    sizes = machine.members.sum(axis=1)
    limited = np.where(machine.max_nodes > 0, np.minimum(machine.max_nodes, sizes), sizes)
    most: NDArray[np.int64] = np.minimum(workload.chunks, limited[workload.partition])
    return most


def _tier_ranks(machine: Machine) -> NDArray[np.int64]:
    """Return the place of each partition's tier among those of its component, 0 = the highest."""
    ranks = np.zeros(len(machine.tier), dtype=np.int64)
    for component in range(machine.n_components):
        inside = machine.component == component
        tiers = np.unique(-machine.tier[inside], return_inverse=True)[1]
        ranks[inside] = tiers.ravel()
    return ranks


def _cpus_of_components(machine: Machine) -> NDArray[np.int64]:
    """Return the cpus of each partition's component, shape (n_partitions,)."""
    cpus = np.zeros(len(machine.component), dtype=np.int64)
    for component in range(machine.n_components):
        inside = machine.component == component
        cpus[inside] = machine.node_cpus[machine.members[inside].any(axis=0)].sum()
    return cpus


class Placement(NamedTuple):
    """On which nodes jobs are: job j on those from `first[j]` to `first[j + 1]` - 1, by id."""

    first: NDArray[np.int64]  # shape (n_jobs + 1,)
    node: NDArray[np.int64]
    chunks: NDArray[np.int64]  # of the job on that node

    def of(self, job: int) -> dict[int, int]:
        """Return the chunks of one job by node; empty if it has not started."""
        part = slice(self.first[job], self.first[job + 1])
        return dict(zip(self.node[part].tolist(), self.chunks[part].tolist(), strict=True))


class NodeSizes(NamedTuple):
    """How large the arrays of nodes of a state are."""

    nodes: int = 0  # nodes of the machine
    groups: int = 0
    partitions: int = 0
    components: int = 0
    shapes: int = 0  # shapes of requests
    requests: int = 0  # distinct requests: shapes, each with a number of chunks
    placements: int = 0  # nodes of all jobs at most
    reservations: int = 0  # reservations of a pass at most, and one that is tried
    planned: int = 0  # nodes of these at most
    changes: int = 0  # beginnings and ends of outages of nodes

    def fit(self, room: NodeSizes) -> bool:
        """Tell whether a state of other sizes has room for these."""
        return self == room or all(map(operator.le, self, room))

    def joined(self, other: NodeSizes) -> NodeSizes:
        """Return sizes that have room for both."""
        return NodeSizes(*map(max, self, other))

    def lengths(self) -> dict[str, int]:
        """Return the lengths of the axes that `Sim` names."""
        rows = min(self.shapes, max(MOST_ROOMS // max(self.nodes, 1), 1))
        shown = min(self.partitions, s.MOST_PARTITIONS_SHOWN)
        return {
            "nodes of the machine": self.nodes,
            "groups of nodes": self.groups,
            "partitions": self.partitions,
            "components": self.components,
            "shapes": self.shapes,
            "requests": self.requests,
            "rows of rooms": rows,
            "placements": self.placements,
            "plan": self.reservations,
            "plan of nodes": self.planned,
            "changes of nodes": self.changes,
            "cursors": 2 if self.nodes else 0,
            "fields of nodes": s.N_NODES_FIELDS if self.nodes else 0,
            "fields of the machine": shown * s.N_RESOURCES,
        }


def sizes_of(table: Jobs, depth: float) -> NodeSizes:
    """Return the sizes for a table of jobs under so many reservations of each partition."""
    if not table.nodes_pass:
        return NodeSizes()
    n_nodes, n_jobs, n_partitions = len(table.capacity), len(table.chunks), len(table.limit)
    limited = np.where(table.limit[:, s.LIMIT_NODES] > 0, table.limit[:, s.LIMIT_NODES], n_nodes)
    last = table.chunks[-1], limited[table.need[table.shape[-1], s.NEED_PARTITION]]
    placements = int(table.placed_first[-1] + min(*last))
    reservations = int(min(depth * n_partitions + 1, n_jobs))
    return NodeSizes(
        nodes=n_nodes,
        groups=int(table.group.max()) + 1,
        partitions=n_partitions,
        components=int(table.limit[:, s.LIMIT_COMPONENT].max()) + 1,
        shapes=len(table.need),
        requests=int(table.request.max()) + 1,
        placements=placements,
        reservations=reservations,
        planned=min(placements, reservations * n_nodes),
        changes=len(table.node_change),
    )
