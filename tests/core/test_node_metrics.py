"""Metrics on machines of nodes: by hand, and equal to what is counted second by second."""

import math
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import drawn_machines as drawn
import reference_nodes as reference
from hpcgym.base.errors import HpcgymError
from hpcgym.base.ranges import number_ranges
from hpcgym.core import node_metrics
from hpcgym.core.nodes import Placement
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine, NodeType, Partition
from hpcgym.schedule.export import CSV_COLUMNS, PLACEMENT_COLUMNS
from hpcgym.schedule.schedule import Schedule

MACHINE = Machine(
    (NodeType(2, cpus=4, memory_mb=100, group="a"), NodeType(1, cpus=8, gpus=2, group="b")),
    (Partition("batch", "0-2"), Partition("gpu", "2", tier=1)),
)


def schedule_of(
    workload: Workload, starts: list[int], placements: list[dict[int, int]]
) -> Schedule:
    """Return a schedule of jobs none of which is killed."""
    never = np.zeros(len(workload), dtype=bool)
    return Schedule(
        workload,
        np.array(starts),
        workload.run_time,
        never,
        never,
        placement=Placement(
            np.cumsum([0, *map(len, placements)]),
            np.array([node for one in placements for node in one], dtype=np.int64),
            np.array([chunks for one in placements for chunks in one.values()], dtype=np.int64),
        ),
    )


@pytest.fixture
def schedule() -> Schedule:
    """Four jobs from 0 to 40 on nodes of 4, 4 and 8 cpus.

    Job 1 holds 3 cpus and 90 MB of node 0 and the same of node 1, until 20. Job 2 is exclusive and
    has node 2 until 10. Job 3 (2 chunks of 2 cpus and 60 MB, submitted at 5) needs two of the nodes
    free and starts at 20. Job 4 (8 cpus, 2 GPUs) waits from 5 to 10.
    """
    jobs = Workload.from_arrays(
        [0, 0, 5, 5],
        [20, 10, 20, 10],
        [20, 10, 20, 10],
        [6, 2, 4, 8],
        machine=MACHINE,
        chunks=[2, 1, 2, 1],
        gpus=[0, 0, 0, 2],
        memory_mb=[90, 0, 60, 0],
        exclusive=[False, True, False, False],
        partition=[0, 0, 0, 1],
        user=[7, 7, 8, 8],
    )
    return schedule_of(jobs, [0, 0, 20, 10], [{0: 1, 1: 1}, {2: 1}, {0: 1, 1: 1}, {2: 1}])


def test_usage_is_the_one_worked_by_hand(schedule: Schedule) -> None:
    frame = schedule.usage()
    assert frame["time"].tolist() == [0, 5, 10, 20, 40]
    assert frame["waiting"].tolist() == [0, 2, 1, 0, 0]
    assert frame["cpus"].tolist() == [14, 14, 14, 4, 0]
    assert frame["gpus"].tolist() == [2, 2, 2, 0, 0]
    assert frame["memory_mb"].tolist() == [180, 180, 180, 120, 0]
    # From 5 to 20 a cpu of node 0 and of node 1 is free, and job 3 needs two for a chunk.
    assert frame["unusable_cpus"].tolist() == [0, 2, 2, 0, 0]
    assert schedule.fragmentation() == 1.0


def test_free_cpus_are_usable_where_a_chunk_of_a_waiting_job_fits(schedule: Schedule) -> None:
    late = schedule.start_time + np.array([0, 0, 10, 0])  # job 3 waits ten seconds more
    waiting = schedule_of(schedule.workload, late.tolist(), [{0: 1, 1: 1}, {2: 1}] * 2)
    frame = waiting.usage().set_index("time")
    # Nodes 0 and 1 have memory for one chunk of two cpus each, node 2 counts none: room for four.
    assert frame["unusable_cpus"][20] == 2 + 2 + 0
    assert waiting.fragmentation() == (15 * 2 + 10 * 4) / (15 * 2 + 10 * 16)


def test_resources_are_those_worked_by_hand(schedule: Schedule) -> None:
    frame = schedule.metrics("resource")
    assert frame.index.name == "resource"
    assert frame.index.tolist() == ["cpus", "gpus", "memory_mb"]
    assert frame["capacity"].tolist() == [16, 2, 200]
    held = [6 * 20 + 8 * 10 + 4 * 20 + 8 * 10, 2 * 10 + 2 * 10, 180 * 20 + 120 * 20]
    assert frame["mean_held"].tolist() == [total / 40 for total in held]
    assert frame["utilisation"].tolist() == [360 / 640, 40 / 80, 6000 / 8000]
    assert schedule.metrics()["utilisation"] == 300 / 640  # 2 cpus of the exclusive job's 8


def test_a_resource_that_the_machine_lacks_has_no_utilisation() -> None:
    machine = Machine((NodeType(1, cpus=4),))
    jobs = Workload.from_arrays([0], [10], [10], [2], machine=machine)
    frame = schedule_of(jobs, [0], [{0: 2}]).metrics("resource")
    assert frame["utilisation"]["cpus"] == 0.5
    assert frame["utilisation"][["gpus", "memory_mb"]].isna().all()


def test_jobs_that_run_for_no_time_use_nothing() -> None:
    jobs = Workload.from_arrays([3], [0], [10], [2], machine=Machine((NodeType(1, cpus=4),)))
    schedule = schedule_of(jobs, [3], [{0: 2}])
    assert schedule.metrics("resource")["utilisation"]["cpus"] == 0
    assert schedule.usage()["cpus"].tolist() == [0]
    assert math.isnan(schedule.fragmentation())


def test_partitions_are_rows_with_their_names(schedule: Schedule) -> None:
    frame = schedule.metrics("partition")
    assert frame.index.name == "partition"
    assert frame["n_jobs"].to_dict() == {"batch": 3, "gpu": 1}
    assert frame["mean_wait_time"].to_dict() == {"batch": 5, "gpu": 5}
    assert list(frame.columns) == list(schedule.metrics("user").columns)


def test_placements_are_counted_in_nodes_and_groups(schedule: Schedule) -> None:
    wide = schedule_of(schedule.workload, [0] * 4, [{0: 1, 1: 1}, {2: 1}, {1: 1, 2: 1}, {2: 1}])
    assert wide.placement_metrics() == {
        "mean_nodes": 1.5,
        "mean_groups": 1.25,
        "share_one_group": 0.75,
    }


def test_rows_of_jobs_say_where_they_ran(schedule: Schedule, tmp_path: Path) -> None:
    frame = schedule.to_frame()
    assert frame["partition"].tolist() == ["batch", "batch", "batch", "gpu"]
    assert frame["n_nodes"].tolist() == [2, 1, 2, 1]
    assert frame["n_groups"].tolist() == [1, 1, 1, 1]
    assert frame["nodes"].tolist() == ["0-1", "2", "0-1", "2"]
    schedule.to_csv(tmp_path / "out.csv")
    written = pd.read_csv(tmp_path / "out.csv", dtype={"nodes": str})
    assert list(written.columns) == [*CSV_COLUMNS, *PLACEMENT_COLUMNS]
    assert written["nodes"].tolist() == ["0-1", "2", "0-1", "2"]


@given(st.lists(st.sets(st.integers(0, 9)), min_size=1))
def test_nodes_are_written_as_ranges(nodes: list[set[int]]) -> None:
    first = np.cumsum([0, *map(len, nodes)])
    node = np.array([v for one in nodes for v in sorted(one)], dtype=np.int64)
    texts = node_metrics.node_ranges(Placement(first, node, np.ones_like(node)))
    assert texts == [number_ranges(sorted(one)) if one else "" for one in nodes]


def test_metrics_of_nodes_need_nodes() -> None:
    jobs = Workload.from_arrays([0], [10], [10], [2], machine_processors=4, name="counted")
    never = np.zeros(1, dtype=bool)
    counted = Schedule(jobs, np.zeros(1, dtype=np.int64), jobs.run_time, never, never)
    for ask in (
        *(lambda: counted.metrics("partition"), lambda: counted.metrics("resource")),
        *(counted.placement_metrics, counted.fragmentation, counted.usage),
    ):
        with pytest.raises(HpcgymError, match=r"counted: .* need a machine of nodes"):
            ask()


def test_metrics_of_nodes_need_every_start(schedule: Schedule) -> None:
    unfinished = schedule_of(schedule.workload, [0, 0, -1, 10], [{0: 1, 1: 1}, {2: 1}, {}, {2: 1}])
    assert unfinished.to_frame()["nodes"].tolist() == ["0-1", "2", "", "2"]
    for ask in (unfinished.usage, lambda: unfinished.metrics("resource")):
        with pytest.raises(HpcgymError, match="1 of 4 jobs have not started"):
            ask()


# --- Equal to what is counted second by second ----------------------------------------------------


class Second(NamedTuple):
    """What is so during one second."""

    waiting: int
    held: tuple[int, ...]
    unusable_cpus: int
    node_shares: list[float]


class Row(NamedTuple):
    """A job, and when and where it started."""

    job: reference.Job
    start_time: int
    placement: dict[int, int]


def draw_rows(random: Random) -> tuple[reference.Machine, list[Row]]:
    """Draw a machine, and jobs as the reference starts them; others wait as long as you like.

    The others run for no time, so nodes never overflow. They make shapes come and go in the queue.
    """
    machine, jobs, settings = drawn.draw_case(random)
    made = reference.simulate(machine, jobs, **settings)
    if settings["kill"]:
        jobs = [job._replace(run_time=min(job.run_time, job.requested_time)) for job in jobs]
    rows = [Row(*row) for row in zip(jobs, made.starts, made.placements, strict=True)]
    for _ in range(random.randint(1, 20)):
        job = drawn.draw_request(random, machine, (random.randint(0, 20), 0, 1))
        node = min(machine.partitions[job.partition].nodes)
        rows.append(Row(job, job.submit_time + random.randint(0, 20), {node: 1}))
    return machine, sorted(rows, key=lambda row: row.job.submit_time)


def schedule_of_rows(machine: reference.Machine, rows: list[Row]) -> Schedule:
    """Return them as a schedule of ours."""
    ours = Machine(
        tuple(NodeType(1, *node) for node in machine.nodes),
        tuple(
            Partition(one.name, number_ranges(sorted(one.nodes)), *one[2:])
            for one in machine.partitions
        ),
    )
    fields, table = reference.Job._fields, np.array([row.job for row in rows])
    columns: dict[str, Any] = dict(zip(fields, table.T, strict=True))
    processors = columns["chunks"] * columns.pop("cpus")
    return schedule_of(
        Workload.from_arrays(processors=processors, machine=ours, **columns),
        [row.start_time for row in rows],
        [dict(sorted(row.placement.items())) for row in rows],
    )


def usable_cpus(
    machine: reference.Machine, job: reference.Job, v: int, free: reference.Free
) -> int:
    """Return the free cpus of node v that a job can use."""
    if v not in machine.partitions[job.partition].nodes:
        return 0
    room: int = reference.room(job, machine.nodes[v], free)
    return int(machine.nodes[v].cpus) if room and job.exclusive else room * job.cpus


def count_second(machine: reference.Machine, rows: list[Row], t: int) -> Second:
    """Count what is so from t to t + 1."""
    jobs = [row.job for row in rows]
    holds = [
        reference.Hold(j, row.placement, row.start_time, row.start_time + row.job.run_time)
        for j, row in enumerate(rows)
    ]
    holds = [hold for hold in holds if hold.begin <= t < hold.end]
    waiting = [row.job for row in rows if row.job.submit_time <= t < row.start_time]
    unusable, held, shares = 0, [0, 0, 0], []
    for v, node in enumerate(machine.nodes):
        free = reference.free_at(machine, jobs, v, [hold for hold in holds if v in hold.nodes])
        usable = [usable_cpus(machine, job, v, free) for job in waiting]
        unusable += free.cpus - max(usable) if waiting else 0
        taken = [node[r] - free[r] for r in range(3)]
        held = [total + more for total, more in zip(held, taken, strict=True)]
        shares.append(taken[0] / node.cpus)
    return Second(len(waiting), tuple(held), unusable, shares)


@given(st.randoms(use_true_random=False))
def test_every_second_is_as_the_reference_counts_it(random: Random) -> None:
    machine, rows = draw_rows(random)
    schedule = schedule_of_rows(machine, rows)
    begin, end = rows[0].job.submit_time, int(schedule.end_time.max())
    seconds = [count_second(machine, rows, t) for t in range(begin, end)]
    frame = schedule.usage()
    at = np.searchsorted(frame["time"], np.arange(begin, end), side="right") - 1
    assert frame["waiting"].iloc[at].tolist() == [one.waiting for one in seconds]
    held = frame[list(node_metrics.RESOURCES)].iloc[at].itertuples(index=False, name=None)
    assert list(held) == [one.held for one in seconds]
    assert frame["unusable_cpus"].iloc[at].tolist() == [one.unusable_cpus for one in seconds]
    free = sum(machine.cpus - one.held[0] for one in seconds if one.waiting)
    share = sum(one.unusable_cpus for one in seconds) / free if free else math.nan
    assert schedule.fragmentation() == pytest.approx(share, nan_ok=True)
    mean = np.mean([one.held for one in seconds], axis=0) if seconds else np.zeros(3)
    assert schedule.metrics("resource")["mean_held"].to_numpy() == pytest.approx(mean)


@given(st.randoms(use_true_random=False), st.integers(1, 9))
def test_occupation_is_the_mean_of_the_seconds_of_each_column(random: Random, n: int) -> None:
    machine, rows = draw_rows(random)
    schedule = schedule_of_rows(machine, rows)
    begin, end = rows[0].job.submit_time, int(schedule.end_time.max())
    width = max(-(-(end - begin) // n), 1)
    edges = begin + width * np.arange(n + 1, dtype=np.float64)
    jobs, placement = schedule.workload, schedule.placement
    assert placement is not None and jobs.machine is not None
    found = node_metrics.occupation(jobs, schedule.start_time, schedule.run_time, placement, edges)
    seconds = [count_second(machine, rows, t) for t in range(begin, begin + n * width)]
    shares = np.array([one.node_shares for one in seconds]).reshape(n, width, -1)
    np.testing.assert_allclose(found.T, shares.mean(axis=1), atol=1e-9)
    frame = schedule.usage()
    cpus = node_metrics.mean_between(frame["time"].to_numpy(), frame["cpus"].to_numpy(), edges)
    assert cpus == pytest.approx(jobs.machine.node_cpus @ found)
