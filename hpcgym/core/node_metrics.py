"""Metrics of a schedule on a machine of nodes: resources, placements, fragmentation.

An *entry* of a placement is one node of one job. All jobs have started. Times are s.

Cost: sums over entries in numpy, a second for a million of them; for `usage` see
`kernels/nodes/fragmentation` as well.

Source: Specification, section 13, "Metrics".
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import metrics
from hpcgym.core.constants import CPUS, MEMORY, N_RESOURCES, OUTAGE_FROM, OUTAGE_NODE, OUTAGE_TO
from hpcgym.core.kernels.nodes import fragmentation as kernels
from hpcgym.core.nodes import Placement, capacity_of, columns_of
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

RESOURCES = ("cpus", "gpus", "memory_mb")  # resources of a node, in the order of columns


def job_of(placement: Placement) -> IntArray:
    """Return the job of each entry, shape (n_entries,)."""
    return np.repeat(np.arange(len(placement.first) - 1), np.diff(placement.first))


def held(workload: Workload, placement: Placement) -> IntArray:
    """Return what each entry holds of its node's `RESOURCES`, shape (n_entries, 3).

    An exclusive job holds its nodes wholly. Memory that a node does not count is not held.
    """
    assert workload.machine is not None and workload.chunks is not None
    job = job_of(placement)
    capacity = capacity_of(workload.machine)[placement.node]
    columns = (workload.processors // workload.chunks, workload.gpus, workload.memory_mb)
    need = np.stack([np.asarray(column)[job] for column in columns], axis=1)
    used = need * placement.chunks[:, np.newaxis]
    used[capacity[:, MEMORY] == 0, MEMORY] = 0
    is_exclusive = np.asarray(workload.exclusive)[job]
    used[is_exclusive] = capacity[is_exclusive]
    return used


def downtimes(
    workload: Workload, start_time: IntArray, run_time: IntArray, outage: IntArray | None
) -> tuple[IntArray, IntArray, IntArray]:
    """Return which nodes were down, from when and until when, s, within the makespan.

    `outage` is as `hpcgym.core.kernels.types.Jobs.outage`; None = none was down.
    """
    if outage is None or not len(outage):
        return (np.empty(0, dtype=np.int64),) * 3
    first, last = int(workload.submit_time.min()), int((start_time + run_time).max())
    begin, end = outage[:, OUTAGE_FROM].clip(first, last), outage[:, OUTAGE_TO].clip(first, last)
    lasts = begin < end
    return outage[lasts, OUTAGE_NODE], begin[lasts], end[lasts]


def by_resource(
    workload: Workload,
    start_time: IntArray,
    run_time: IntArray,
    placement: Placement,
    outage: IntArray | None = None,
) -> dict[str, dict[str, float]]:
    """Compute `capacity`, `mean_held` and `utilisation` of each of `RESOURCES`.

    The mean is over the makespan. The utilisation is its share of the capacity that was there, in
    the mean: NaN where the machine has none, 0 where the makespan is 0. It counts the nodes of
    exclusive jobs wholly, unlike the utilisation of `hpcgym.core.metrics.summary`.
    """
    assert workload.machine is not None
    capacity = capacity_of(workload.machine).sum(axis=0)
    duration = run_time[job_of(placement)].astype(np.float64)
    work = duration @ held(workload, placement)
    span = metrics.makespan(workload.submit_time, start_time, run_time)
    mean = work / span if span else np.zeros(N_RESOURCES)
    node, begin, end = downtimes(workload, start_time, run_time, outage)
    lacking = (end - begin).astype(np.float64) @ capacity_of(workload.machine)[node]
    with np.errstate(invalid="ignore"):
        share = mean / (capacity - lacking / max(span, 1))
    columns = zip(capacity.tolist(), mean.tolist(), share.tolist(), strict=True)
    keys = ("capacity", "mean_held", "utilisation")
    return {
        name: dict(zip(keys, column, strict=True))
        for name, column in zip(RESOURCES, columns, strict=True)
    }


def nodes_per_job(placement: Placement) -> IntArray:
    """Return how many nodes each job had, shape (n_jobs,)."""
    return np.diff(placement.first)


def groups_per_job(machine: Machine, placement: Placement) -> IntArray:
    """Return from how many groups the nodes of each job were, shape (n_jobs,)."""
    n_groups = len(machine.group_names)
    pairs = np.unique(job_of(placement) * n_groups + machine.node_group[placement.node])
    return np.bincount(pairs // n_groups, minlength=len(placement.first) - 1)


def node_ranges(placement: Placement) -> list[str]:
    """Return the nodes of each job as text, as `hpcgym.base.ranges.number_ranges` writes it."""
    node = placement.node
    begins = np.ones(len(node) + 1, dtype=bool)  # a run of consecutive ids, and the end of all
    begins[1:-1] = node[1:] != node[:-1] + 1
    begins[placement.first] = True
    first = np.flatnonzero(begins[:-1])
    last = np.flatnonzero(begins[1:])
    runs = [
        str(low) if low == high else f"{low}-{high}"
        for low, high in zip(node[first].tolist(), node[last].tolist(), strict=True)
    ]
    part = np.searchsorted(first, placement.first).tolist()
    return [",".join(runs[low:high]) for low, high in pairwise(part)]


def placement_summary(machine: Machine, placement: Placement) -> dict[str, float]:
    """Compute `mean_nodes` and `mean_groups` of a job, and `share_one_group`, the share of jobs."""
    groups = groups_per_job(machine, placement)
    return {
        "mean_nodes": float(nodes_per_job(placement).mean()),
        "mean_groups": float(groups.mean()),
        "share_one_group": float((groups == 1).mean()),
    }


def usage(
    workload: Workload,
    start_time: IntArray,
    run_time: IntArray,
    placement: Placement,
    outage: IntArray | None = None,
) -> dict[str, IntArray]:
    """Return what is held, and who waits, from each instant of a change to the next one.

    The arrays are `time`, ascending, from the first submission to the last end; `waiting`, the jobs
    in the queue; what is held of each of `RESOURCES`; `unusable_cpus`, the free cpus that no
    waiting job can use, 0 while none waits; and `down_cpus`, those of nodes that are down, where
    any was. Such cpus are not free.

    A waiting job can use, on a node of its partition, the cpus of as many chunks as the node has
    room for; an exclusive job all cpus of the node, if it has room for one chunk. Of several jobs
    the one that can use most counts, node by node.
    """
    end_time = start_time + run_time
    down, begin, end = downtimes(workload, start_time, run_time, outage)
    time = np.unique(np.concatenate([workload.submit_time, start_time, end_time, begin, end]))
    submitted, started, ended = (
        np.searchsorted(time, column) for column in (workload.submit_time, start_time, end_time)
    )
    used = held(workload, placement)
    job = job_of(placement)
    steps = {"waiting": _level(len(time), submitted, started)}
    for resource, name in enumerate(RESOURCES):
        steps[name] = _level(len(time), started[job], ended[job], used[:, resource])
    rows = submitted, started, ended
    if len(down):
        assert workload.machine is not None
        begun, over = np.searchsorted(time, begin), np.searchsorted(time, end)
        whole = capacity_of(workload.machine)[down]
        steps["down_cpus"] = _level(len(time), begun, over, whole[:, CPUS])
        # As if jobs that never wait held them.
        first = placement.first[-1] + 1 + np.arange(len(down))
        placement = Placement(
            np.concatenate([placement.first, first]),
            np.concatenate([placement.node, down]),
            np.empty(0, dtype=np.int64),
        )
        used = np.concatenate([used, whole])
        more = begun, begun, over
        rows = tuple(map(np.concatenate, zip(rows, more, strict=True)))  # type: ignore[assignment]
    unusable = _unusable_cpus(workload, placement, used, rows, len(time))
    return {"time": time, **steps, "unusable_cpus": unusable}


def fragmentation(workload: Workload, series: dict[str, IntArray]) -> float:
    """Compute the share of free cpu-seconds that no waiting job could use, of what `usage` returns.

    Time during which no job waits is left out. NaN where nothing was free while a job waited.
    """
    free, unusable = free_while_waiting(workload, series)
    duration = np.diff(series["time"], append=series["time"][-1]).astype(np.float64)
    total = float(duration @ free)
    return float(duration @ unusable) / total if total else float("nan")


def free_while_waiting(
    workload: Workload, series: dict[str, IntArray]
) -> tuple[IntArray, IntArray]:
    """Return the free cpus, and those that no waiting job can use; both 0 while none waits."""
    free = workload.machine_processors - series["cpus"]
    if "down_cpus" in series:
        free = free - series["down_cpus"]
    return np.where(series["waiting"] > 0, free, 0), series["unusable_cpus"]


def mean_between(time: IntArray, values: IntArray, edges: FloatArray) -> FloatArray:
    """Average a value over each stretch between two edges, s, shape (n_edges - 1,).

    The value is `values[i]` from `time[i]` to `time[i + 1]`, and 0 outside.
    """
    total = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(time).astype(np.float64))])
    means: FloatArray = np.diff(np.interp(edges, time, total)) / np.diff(edges)
    return means


def occupation(
    workload: Workload,
    start_time: IntArray,
    run_time: IntArray,
    placement: Placement,
    edges: FloatArray,
) -> FloatArray:
    """Return the mean share of each node's cpus that jobs hold between two edges.

    The edges are equally far apart, s; the shape is (n_nodes, n_edges - 1).
    """
    assert workload.machine is not None
    cpus = workload.machine.node_cpus
    share = held(workload, placement)[:, CPUS] / cpus[placement.node]
    job = job_of(placement)
    steps = np.zeros((len(cpus), len(edges) + 1))
    for time, height in ((start_time[job], share), (start_time[job] + run_time[job], -share)):
        position = np.clip((time - edges[0]) / (edges[1] - edges[0]), 0.0, len(edges) - 1)
        column = position.astype(np.int64)
        later = height * (position - column)  # a step inside a column is whole from the next one on
        steps += _scattered(steps.shape, placement.node, column, height - later)
        steps += _scattered(steps.shape, placement.node, column + 1, later)
    return np.cumsum(steps, axis=1)[:, : len(edges) - 1]


def _scattered(
    shape: tuple[int, int], row: IntArray, column: IntArray, values: FloatArray
) -> FloatArray:
    """Return an array with the sums of the values of each place."""
    cell = row * shape[1] + column
    flat: NDArray[Any] = np.bincount(cell, weights=values, minlength=shape[0] * shape[1])
    return flat.reshape(shape)


def _level(n: int, up: IntArray, down: IntArray, height: IntArray | None = None) -> IntArray:
    """Return the sum of steps in each of n rows; each goes up in one row and down in another."""
    change = np.bincount(up, height, n) - np.bincount(down, height, n)
    return np.cumsum(change).astype(np.int64)


def _unusable_cpus(
    workload: Workload,
    placement: Placement,
    used: IntArray,
    rows: tuple[IntArray, IntArray, IntArray],
    n_rows: int,
) -> IntArray:
    """Return the free cpus that no waiting job can use, row by row of `usage`."""
    table = columns_of(workload)
    past = kernels.Past(
        member=table["member"],
        capacity=table["capacity"],
        first=placement.first,
        node=placement.node,
        held=used,
        **_families(table["need"], table["shape"]),
        **_changes(*rows),
    )
    n_nodes, n_shapes, n_families = len(past.capacity), len(past.need), len(past.family_end)
    now = kernels.Present(
        free=past.capacity.copy(),
        most=np.zeros(n_nodes, dtype=np.int64),
        best=np.full(n_nodes, kernels.NOBODY),
        is_stale=np.zeros(n_nodes, dtype=np.bool_),
        stale=np.empty(n_nodes, dtype=np.int64),
        n_waiting=np.zeros(n_shapes, dtype=np.int64),
        least=np.full(n_families, kernels.NOBODY),
        waiting=np.empty(n_families, dtype=np.int64),
        position=np.empty(n_families, dtype=np.int64),
        counts=np.array([0, 0, 0, workload.machine_processors]),
    )
    unusable = np.zeros(n_rows, dtype=np.int64)
    kernels.count_unusable(past, now, unusable)
    return unusable


def _families(need: IntArray, shape: IntArray) -> dict[str, IntArray]:
    """Return the columns of `Past` about shapes, sorted, and about their families."""
    others = np.delete(need, MEMORY, axis=1)
    family = np.unique(others, axis=0, return_inverse=True)[1].ravel()
    order = np.lexsort((need[:, MEMORY], family))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return {
        "need": np.ascontiguousarray(need[order]),
        "shape": rank[shape],
        "family": family[order],
        "family_end": np.cumsum(np.bincount(family)),
    }


def _changes(submitted: IntArray, started: IntArray, ended: IntArray) -> dict[str, NDArray[Any]]:
    """Return the columns of `Past` about changes, without jobs that wait or run for no time."""
    waits, runs = np.flatnonzero(submitted < started), np.flatnonzero(started < ended)
    jobs = (waits, waits, runs, runs)
    rows = (submitted[waits], started[waits], started[runs], ended[runs])
    lengths = [len(part) for part in jobs]
    row = np.concatenate(rows)
    order = np.argsort(row, kind="stable")
    return {
        "change_row": row[order],
        "change_job": np.concatenate(jobs)[order],
        "change_sign": np.repeat([1, -1, 1, -1], lengths)[order],
        "is_on_nodes": np.repeat([False, False, True, True], lengths)[order],
    }
