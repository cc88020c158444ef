"""More and fewer nodes: where partitions name their nodes, each has so many times as many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from hpcgym.base.errors import HpcgymError
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine, NodeType, Partition
from hpcgym.machine.downtime import Downtime
from hpcgym.site import Reading, report_on
from hpcgym.site.options import options_beside, resized_nodes
from hpcgym.trace import read_swf


def kinds_of(machine: Machine) -> Counter[tuple[Any, ...]]:
    """Count nodes by what they have, and by the partitions that name them."""
    nodes = [kind for kind in machine.nodes for _ in range(kind.count)]
    named: dict[str, set[int]] = {}
    for partition in machine.partitions:
        ids = named.setdefault(partition.name, set())
        for part in partition.nodes.split(","):
            first, _, last = part.partition("-")
            ids.update(range(int(first), int(last or first) + 1))
    return Counter(
        (*vars(replace(kind, count=1)).values(), *(name for name in named if node in named[name]))
        for node, kind in enumerate(nodes)
    )


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Machines of two types of nodes, whose partitions overlap in any way."""
    counts = [draw(st.integers(1, 30)), draw(st.integers(1, 12))]
    n_nodes = sum(counts)
    members = draw(st.lists(st.sets(st.integers(0, n_nodes - 1), min_size=1), max_size=3))
    named = [Partition("all-nodes", f"0-{n_nodes - 1}", max_time_s=900, tier=2)]
    named += [
        Partition(f"p{number}", ",".join(map(str, sorted(ids))), max_nodes=5)
        for number, ids in enumerate(members)
    ]
    types = (NodeType(counts[0], cpus=4), NodeType(counts[1], cpus=8, gpus=2, group="b"))
    return Machine(types, tuple(draw(st.permutations(named))))


@given(machines(), st.sampled_from([0.9, 0.95, 1.05, 1.1, 1.0]))
def test_each_kind_of_node_is_scaled_in_the_partitions_that_it_is_in(
    machine: Machine, factor: float
) -> None:
    jobs = Workload.from_arrays([0], [1], [1], [1], machine=machine)
    other = resized_nodes(jobs, factor).machine
    assert other is not None
    expected = {kind: round(n * factor) for kind, n in kinds_of(machine).items()}
    assert kinds_of(other) == expected
    limits = [replace(partition, nodes="0") for partition in machine.partitions]
    assert [replace(partition, nodes="0") for partition in other.partitions] == limits


@pytest.mark.long
def test_waits_on_more_nodes_of_partitions_are_those_of_the_machine_that_is_meant(
    site_log: Callable[..., Path],
) -> None:
    partitions = (Partition("batch", "0-15"), Partition("gpu", "12-19"))
    machine = Machine((NodeType(20, cpus=8),), partitions)
    file = site_log("FCFS", machine=machine)
    report = report_on(file, Reading(machine=machine))
    sizes = {row["processors"]: row["wait_mean"] for row in report["machine_sizes"]}
    assert list(sizes) == [160, 168]  # with less, jobs of 128 cpus no longer fit
    larger = Machine(
        (NodeType(13, cpus=8), NodeType(4, cpus=8), NodeType(4, cpus=8)),
        (Partition("batch", "0-16"), Partition("gpu", "13-20")),
    )
    jobs = hpcgym.load_workload(file, machine=larger)
    waits = hpcgym.simulate(jobs, "FCFS", kill_at_limit=False).wait_time
    split = read_swf(file).records["submit_time"].iloc[[0, -1]].sum() // 2
    judged = jobs.submit_time + jobs.time_offset >= split
    assert sizes[168] == pytest.approx(waits[judged].mean() / 3600)
    option = next(row for row in report["options"] if row["group"] == "machine")
    assert (option["name"], option["what"]) == ("168 processors", "+5.0% processors, today's order")


def sizes_of(jobs: Workload) -> list[str]:
    """Return the names of the sizes that are tried, and what is said of others."""
    options = options_beside(SchedulerSettings(), jobs)
    return [
        option if isinstance(option, str) else option.name
        for option in options
        if ("the machine" in option if isinstance(option, str) else option.group == "machine")
    ]


def test_a_size_on_which_a_job_of_a_partition_no_longer_fits_is_not_tried() -> None:
    machine = Machine((NodeType(40, cpus=8),), (Partition("a", "0-19"), Partition("b", "20-39")))
    small = {"chunks": [1], "partition": [1]}
    jobs = Workload.from_arrays([0], [1], [1], [8], machine=machine, **small)
    assert sizes_of(jobs) == [
        *("288 processors", "304 processors", "336 processors", "352 processors")
    ]
    wide = replace(jobs, processors=jobs.processors * 19, chunks=jobs.chunks * 19)
    assert sizes_of(wide) == [
        "90% of the machine: not all jobs fit; the widest asks for 152 processors",
        *("304 processors", "336 processors", "352 processors"),
    ]
    with pytest.raises(HpcgymError, match="a job can never run on 36 nodes"):
        resized_nodes(wide, 0.9)


def test_where_outages_name_nodes_no_other_size_is_tried() -> None:
    outage = Downtime.from_dict({"from": 5, "to": 9, "nodes": ["0-3"]})
    machine = Machine((NodeType(40, cpus=8),), (), None, (outage,))
    jobs = Workload.from_arrays([0], [1], [1], [8], machine=machine)
    assert sizes_of(jobs) == ["other sizes of the machine: outages name its nodes"]
    said = options_beside(SchedulerSettings(), jobs, is_machine_known=False)
    assert "other sizes of the machine: today's is a guess; give --processors or --machine" in said
