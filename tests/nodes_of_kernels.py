"""The package, called as `reference_nodes.simulate` is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hpcgym
import reference_nodes
import reference_nodes_capped
import reference_nodes_log
from hpcgym.base.ranges import number_ranges
from hpcgym.core.requests import Requests, refused
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine, NodeType, Partition
from hpcgym.schedule.schedule import Schedule
from reference_nodes import Job, Result


def machine_of(machine: reference_nodes.Machine) -> Machine:
    """Return a machine of the reference as the package holds it."""
    nodes = (NodeType(1, *node) for node in machine.nodes)
    parts = (partition_of(part) for part in machine.partitions)
    return Machine(tuple(nodes), tuple(parts))


def partition_of(partition: reference_nodes.Partition) -> Partition:
    """Return a partition of the reference with its nodes as text."""
    return Partition(**partition._asdict() | {"nodes": number_ranges(sorted(partition.nodes))})


def columns_of(jobs: Iterable[Sequence[int]]) -> dict[str, Any]:
    """Return rows of `reference_nodes.Job` as columns of a workload."""
    table = np.array([Job(*row) for row in jobs], dtype=np.int64).reshape(-1, len(Job._fields))
    columns = dict(zip(Job._fields, table.T, strict=True))
    return columns | {"processors": columns["chunks"] * columns.pop("cpus")}


def workload_of(machine: reference_nodes.Machine, jobs: Iterable[Sequence[int]]) -> Workload:
    """Return rows of `reference_nodes.Job` as the package holds them."""
    return Workload.from_arrays(machine=machine_of(machine), **columns_of(jobs))


def refused_rows(
    machine: reference_nodes.Machine, jobs: Iterable[Sequence[int]], placement: str
) -> list[int]:
    """Return the jobs that can never run."""
    columns = columns_of(jobs)
    requests = Requests(**{key: columns[key] for key in Requests._fields})
    return [row for row, _ in refused(machine_of(machine), requests, placement)]


def order_of(order: Any) -> Any:
    """Return an order of the reference as the package takes it."""
    return list(order) if isinstance(order, tuple) else order


def settings_of(
    depth: float = 1,
    placement: str = "lowest",
    order: Any = "FCFS",
    backfill_order: Any = None,
    threshold: float | None = None,
    kill: bool = True,
    conservative: bool = False,
    planned: float | None = None,
    mode: str | None = None,
) -> dict[str, Any]:
    """Return keywords of a reference's `simulate` as those of `hpcgym.simulate`."""
    if conservative or depth == math.inf:
        backfill, backfill_order = "conservative", None
        backfill += f":planned={planned}" if planned else ""
    else:
        backfill = {0: "none", 1: "easy"}.get(int(depth), f"depth:k={depth}")
        backfill_order = backfill_order if depth else None
        backfill = backfill if mode is None else mode
    return {
        "policy": order_of(order),
        "backfill": backfill,
        "backfill_order": order_of(backfill_order),
        "threshold": threshold,
        "kill_at_limit": kill,
        "placement": placement,
    }


def simulate(
    machine: reference_nodes.Machine, jobs: Iterable[Sequence[int]], **settings: Any
) -> Result:
    """Schedule with `hpcgym.simulate`, without the jobs that can never run."""
    table = [Job(*row) for row in jobs]
    n = len(table)
    given = settings_of(**settings)
    refused_jobs = refused_rows(machine, table, given["placement"])
    result = Result([None] * n, [{} for _ in table], [False] * n, [False] * n, refused_jobs, [])
    kept = [j for j in range(n) if j not in refused_jobs]
    if kept:
        workload = workload_of(machine, [table[j] for j in kept])
        own = result_of(hpcgym.simulate(workload, **given))
        for row, j in enumerate(kept):
            for column, values in zip(result[:4], own[:4], strict=True):
                column[j] = values[row]
    return result


def result_of(schedule: Schedule | Simulator) -> Result:
    """Return a schedule as the reference gives it, without its passes."""
    columns = schedule.start_time, schedule.backfilled, schedule.thresholded
    starts, backfilled, thresholded = (column.tolist() for column in columns)
    placements = [schedule.placement.of(j) for j in range(len(starts))]
    return Result(starts, placements, backfilled, thresholded, [], [])


def first_difference(expected: Result, got: Result) -> str:
    """Compare start, nodes and kind of every job; return "" where all are equal."""
    rows = zip(*(zip(*result[:4], strict=True) for result in (expected, got)), strict=True)
    differing = [j for j, (one, other) in enumerate(rows) if one != other]
    if not differing:
        return ""
    j = min(differing, key=lambda k: (expected.starts[k], k))
    return (
        f"{len(differing)} of {len(expected.starts)} jobs differ; the first, in row {j}: "
        f"reference {[column[j] for column in expected[:4]]}, "
        f"hpcgym {[column[j] for column in got[:4]]}"
    )


def by_reference(workload: Workload, kind: Callable[..., Result], **settings: Any) -> Result:
    """Schedule a workload with a reference: `reference_nodes.simulate`, or one called like it."""
    found = workload.machine
    assert found is not None
    groups = [found.group_names[g] for g in found.node_group]
    columns = found.node_cpus.tolist(), found.node_gpus.tolist(), found.node_memory_mb.tolist()
    nodes = [reference_nodes.Node(*row) for row in zip(*columns, groups, strict=True)]
    parts = [
        reference_nodes.Partition(
            **asdict(part) | {"nodes": frozenset(np.flatnonzero(members).tolist())}
        )
        for part, members in zip(found.partitions, found.members, strict=True)
    ]
    asked = {key: getattr(workload, key) for key in Job._fields if key != "cpus"}
    asked["cpus"] = workload.processors // workload.chunks
    jobs = zip(*(asked[key].tolist() for key in Job._fields), strict=True)
    return kind(reference_nodes.Machine(tuple(nodes), tuple(parts)), jobs, **settings)


def first_difference_on_log(
    workload: Workload, kind: Callable[..., Result] = reference_nodes_log.simulate, **settings: Any
) -> str:
    """Compare a workload's schedule with that of a reference; return "" where all is equal."""
    got = result_of(hpcgym.simulate(workload, **settings_of(**settings)))
    if "mode" in settings:
        kind = partial(reference_nodes_capped.simulate_log, day_start=workload.week_start)
    return first_difference(by_reference(workload, kind, **settings), got)


MACHINES = {
    "KTH-SP2-1996-2.1-cln": Machine(tuple(NodeType(5, 4, group=f"s{g}") for g in range(5))),
    "HPC2N-2002-2.2-cln": Machine(
        (
            NodeType(20, 2, memory_mb=512, group="small"),
            *[NodeType(20, 2, memory_mb=1024, group=f"s{g}") for g in range(4)],
            NodeType(20, 2, memory_mb=2048, group="large"),
        )
    ),
}
"""Machines of nodes for real logs, with as many cpus as each had processors."""


def log_on_nodes(path: Path) -> Workload:
    """Read a log onto its machine of nodes, with the memory that its jobs ask for."""
    machine = MACHINES[path.name.removesuffix(".swf.gz")]
    return hpcgym.load_workload(path, machine=machine, requested_memory=True)
