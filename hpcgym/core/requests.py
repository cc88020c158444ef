"""Jobs that no machine of nodes can ever run: those without a placement on their empty partition.

Under every rule a placement of more chunks needs more of the partition. So one number decides for
all jobs whose chunks are alike: the most chunks that the rule places on the empty partition.

Source: Specification, section 13, "Request" and "Room and placement".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError, unknown_name
from hpcgym.core import constants as s
from hpcgym.machine import Machine

if TYPE_CHECKING:
    from hpcgym.core.workload import Workload

IntArray = NDArray[np.int64]

PLACEMENTS = {
    "lowest": s.PLACE_LOWEST,
    "tightest": s.PLACE_TIGHTEST,
    "fewest-groups": s.PLACE_FEWEST_GROUPS,
    "contiguous": s.PLACE_CONTIGUOUS,
    "local": s.PLACE_LOCAL,
    "best-effort-contiguous": s.PLACE_BEST_EFFORT_CONTIGUOUS,
    "best-effort-local": s.PLACE_BEST_EFFORT_LOCAL,
}
"""The placement rules by name, with their numbers in kernels."""

_FOUND: WeakKeyDictionary[Workload, dict[str, list[tuple[int, str]]]] = WeakKeyDictionary()
"""What `unplaceable` found, by workload and rule: a workload is prepared anew for each policy."""


class Requests(NamedTuple):
    """What decides whether jobs can run: columns of `Workload`, shape (n_jobs,)."""

    processors: NDArray[np.int64]
    requested_time: NDArray[np.int64]
    chunks: NDArray[np.int64]
    gpus: NDArray[np.int64]
    memory_mb: NDArray[np.int64]
    spread: NDArray[np.bool_]
    partition: NDArray[np.int64]


class Chunk(NamedTuple):
    """One chunk of a job, and where its chunks may go; or the columns of these for all jobs."""

    cpus: Any
    gpus: Any
    memory_mb: Any
    spread: Any
    partition: Any


def unplaceable(workload: Workload, placement: str = "lowest") -> list[tuple[int, str]]:
    """Return the row of each job that can never run, and why, such as "asks for 9 chunks; ...".

    Without a machine of nodes there is none.

    Raises:
        PolicyError: There is no such placement rule.
    """
    if workload.machine is None:
        return []
    refusals = _FOUND.setdefault(workload, {})
    if placement not in refusals:
        columns = {key: getattr(workload, key) for key in Requests._fields}
        refusals[placement] = refused(workload.machine, Requests(**columns), placement)
    return refusals[placement]


def refused(machine: Machine, jobs: Requests, placement: str) -> list[tuple[int, str]]:
    """Return the same for requests that are in no workload yet."""
    if placement not in PLACEMENTS:
        raise PolicyError(unknown_name("placement", placement, PLACEMENTS))
    reasons = _too_long(machine, jobs) | _too_wide(machine, jobs, placement)
    return sorted(reasons.items())


def _too_long(machine: Machine, jobs: Requests) -> dict[int, str]:
    """Return the jobs that ask for more time than their partition allows."""
    limit = machine.max_time_s[jobs.partition]
    return {
        int(job): f"asks for {jobs.requested_time[job]} s; partition "
        f"{machine.partition_names[jobs.partition[job]]!r} allows {limit[job]} s (max_time_s)"
        for job in np.flatnonzero((limit > 0) & (jobs.requested_time > limit))
    }


def _too_wide(machine: Machine, jobs: Requests, placement: str) -> dict[int, str]:
    """Return the jobs whose chunks the rule cannot place on their empty partition."""
    cpus = jobs.processors // jobs.chunks
    asked = Chunk(cpus, jobs.gpus, jobs.memory_mb, jobs.spread, jobs.partition)
    first, shape = distinct(asked)
    chunks = [Chunk(*(column[job].item() for column in asked)) for job in first]
    most = np.array([_capacity(machine, chunk, placement) for chunk in chunks])
    return {
        int(job): _why(machine, chunks[shape[job]], int(jobs.chunks[job]), placement)
        for job in np.flatnonzero(jobs.chunks > most[shape])
    }


def distinct(columns: Iterable[NDArray[Any]]) -> tuple[IntArray, IntArray]:
    """Return the first row of each distinct combination of values, and which one each row has."""
    code: Any = 0
    for column in columns:  # one by one: much faster than to sort rows
        values, codes = np.unique(column, return_inverse=True)
        code = np.unique(code * len(values) + codes, return_inverse=True)[1]
    _, first = np.unique(code, return_index=True)
    return first, code


def room(machine: Machine, chunk: Chunk) -> IntArray:
    """Return how many chunks each node takes when it is empty, 0 outside the partition.

    Source: Specification, section 13, "Room and placement".
    """
    taken = machine.node_cpus // chunk.cpus
    if chunk.gpus:
        taken = np.minimum(taken, machine.node_gpus // chunk.gpus)
    if chunk.memory_mb:
        counted = machine.node_memory_mb > 0
        fitting = machine.node_memory_mb // chunk.memory_mb
        taken = np.where(counted, np.minimum(taken, fitting), taken)
    if chunk.spread:
        taken = np.minimum(taken, 1)
    return np.where(machine.members[chunk.partition], taken, 0)


def _capacity(machine: Machine, chunk: Chunk, placement: str, *, limited: bool = True) -> int:
    """Return the most chunks that a rule places on the empty partition, under `max_nodes`."""
    taken = room(machine, chunk)
    limit = int(machine.max_nodes[chunk.partition]) if limited else 0
    limit = limit or machine.n_nodes
    if placement == "contiguous":
        return _most_in_a_row(taken, limit)
    if placement == "local":
        groups = [taken[machine.node_group == g] for g in range(len(machine.group_names))]
        return max(_most_of(group, limit) for group in groups)
    return _most_of(taken, limit)


def _most_of(taken: IntArray, limit: int) -> int:
    """Return the chunks that fit on so many nodes, those with most room first."""
    return int(np.sort(taken)[::-1][:limit].sum())


def _most_in_a_row(taken: IntArray, limit: int) -> int:
    """Return the chunks that fit on so many consecutive nodes, all with room."""
    n = len(taken)
    full = np.append(np.flatnonzero(taken == 0), n)
    end = np.minimum(full[np.searchsorted(full, np.arange(n))], np.arange(n) + limit)
    before = np.concatenate(([0], np.cumsum(taken)))
    return int((before[end] - before[:-1]).max())


def _why(machine: Machine, chunk: Chunk, chunks: int, placement: str) -> str:
    """Return which limit a job without a placement meets."""
    partition = f"partition {machine.partition_names[chunk.partition]!r}"
    taken = room(machine, chunk)
    if not taken.any():
        return _why_no_node(machine, chunk, partition)
    most = int(taken.sum())
    if most < chunks:
        spread = ", one on a node" if chunk.spread else ""
        return f"asks for {chunks} chunks{spread}; empty, {partition} has room for {most}"
    if _capacity(machine, chunk, placement, limited=False) >= chunks:
        limit = machine.max_nodes[chunk.partition]
        return (
            f"asks for {chunks} chunks, which need more nodes than {partition} allows, {limit} "
            "(max_nodes)"
        )
    most = _capacity(machine, chunk, placement)
    return f"asks for {chunks} chunks; empty, {partition} has room for {most} by {placement!r}"


def _why_no_node(machine: Machine, chunk: Chunk, partition: str) -> str:
    """Return what one chunk asks for that no node of its partition has."""
    members = machine.members[chunk.partition]
    has = {
        "cpus": (chunk.cpus, machine.node_cpus),
        "gpus": (chunk.gpus, machine.node_gpus),
        "MB": (chunk.memory_mb, machine.node_memory_mb),
    }
    for what, (asked, of_node) in has.items():
        largest = int(of_node[members].max())
        is_counted = what != "MB" or bool((of_node[members] > 0).all())
        if asked > largest and is_counted:
            return f"asks for {asked} {what} a chunk; the largest node of {partition} has {largest}"
    need = f"{chunk.cpus} cpus, {chunk.gpus} gpus and {chunk.memory_mb} MB"
    return f"asks for {need} a chunk; no node of {partition} has them together"
