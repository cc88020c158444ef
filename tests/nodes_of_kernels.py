"""The package, called as `reference_nodes.simulate` is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import hpcgym
import reference_nodes
from hpcgym.core.requests import unplaceable
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine, NodeType, Partition
from hpcgym.ranges import number_ranges
from reference_nodes import Job, Result


def machine_of(machine: reference_nodes.Machine) -> Machine:
    """Return a machine of the reference as the package holds it."""
    nodes = (NodeType(1, *node) for node in machine.nodes)
    parts = (partition_of(part) for part in machine.partitions)
    return Machine(tuple(nodes), tuple(parts))


def partition_of(partition: reference_nodes.Partition) -> Partition:
    """Return a partition of the reference with its nodes as text."""
    return Partition(**partition._asdict() | {"nodes": number_ranges(sorted(partition.nodes))})


def workload_of(machine: reference_nodes.Machine, jobs: Iterable[Sequence[int]]) -> Workload:
    """Return rows of `reference_nodes.Job` as the package holds them."""
    rows = [Job(*row) for row in jobs]
    columns = dict(zip(Job._fields, map(np.array, zip(*rows, strict=True)), strict=True))
    processors = columns["chunks"] * columns.pop("cpus")
    return Workload.from_arrays(processors=processors, machine=machine_of(machine), **columns)


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
) -> dict[str, Any]:
    """Return keywords of `reference_nodes.simulate` as those of `hpcgym.simulate`."""
    if conservative or depth == math.inf:
        backfill, backfill_order = "conservative", None
        backfill += f":planned={planned}" if planned else ""
    else:
        backfill = {0: "none", 1: "easy"}.get(int(depth), f"depth:k={depth}")
        backfill_order = backfill_order if depth else None
    return {
        "policy": order_of(order),
        "backfill": backfill,
        "backfill_order": order_of(backfill_order),
        "threshold": threshold,
        "kill_at_limit": kill,
        "placement": placement,
    }


def simulate(
    machine: reference_nodes.Machine,
    jobs: Iterable[Sequence[int]],
    *,
    estimates: Sequence[int] | str = "requested",
    **settings: Any,
) -> Result:
    """Schedule with `hpcgym.simulate`, without the jobs that can never run."""
    table = [Job(*row) for row in jobs]
    n = len(table)
    result = Result([None] * n, [{} for _ in table], [False] * n, [False] * n, [], [])
    given = settings_of(**settings)
    if table:
        all_jobs = workload_of(machine, table)
        result.refused.extend(row for row, _ in unplaceable(all_jobs, given["placement"]))
    kept = [j for j in range(n) if j not in result.refused]
    if not kept:
        return result
    if not isinstance(estimates, str):
        estimates = np.array([estimates[j] for j in kept])
    workload = workload_of(machine, [table[j] for j in kept])
    schedule = hpcgym.simulate(workload, estimates=estimates, **given)
    columns = schedule.start_time, schedule.backfilled, schedule.thresholded
    for row, (j, *values) in enumerate(zip(kept, *(c.tolist() for c in columns), strict=True)):
        result.starts[j], result.backfilled[j], result.thresholded[j] = values
        result.placements[j] = schedule.placement.of(row)
    return result
