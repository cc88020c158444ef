"""Machines of nodes: what a file may say, what follows from it, and which jobs it can never run."""

import dataclasses
import pickle
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn_machines import draw_machine, draw_request
from hpcgym import Machine, Workload, simulate
from hpcgym.base.errors import MachineError, PolicyError, WorkloadError, unknown_name
from hpcgym.base.ranges import number_ranges
from hpcgym.base.text_table import Column, TextTable
from hpcgym.core.columns import NODE_COLUMNS
from hpcgym.core.requests import PLACEMENTS, unplaceable
from hpcgym.machine import MOST_NODES, NodeType, Partition, SwfPartitions
from hpcgym.schedule.moldable import simulate_moldable
from hpcgym.trace import jitter, join_weeks, resample, resample_week, scale_load, weeks
from reference_nodes import RULES, is_refused
from reference_nodes import Job as ReferenceJob
from reference_nodes import Machine as ReferenceMachine

GOOD = """
[[nodes]]
count = 3
cpus = 32
memory_mb = 128000
group = "s1"

[[nodes]]
count = 2
cpus = 64
gpus = 4
group = "s2"

[[nodes]]
count = 1
cpus = 16
group = "s1"

[[partitions]]
name = "batch"
nodes = "0-2,5"
max_time_s = 3600

[[partitions]]
name = "gpu"
nodes = "3-4"
max_nodes = 1
tier = 2

[[partitions]]
name = "debug"
nodes = " 5 "
"""


def written(folder: Path, text: str) -> Path:
    """Write the file of a machine."""
    path = folder / "machine.toml"
    path.write_text(text)
    return path


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """The machine of `GOOD`."""
    return Machine.from_toml(written(tmp_path, GOOD))


# --- What a file says -----------------------------------------------------------------------------


def test_nodes_are_numbered_in_the_order_of_the_file(machine: Machine):
    assert machine.n_nodes == 6
    assert machine.cpus == 3 * 32 + 2 * 64 + 16
    assert machine.node_cpus.tolist() == [32, 32, 32, 64, 64, 16]
    assert machine.node_gpus.tolist() == [0, 0, 0, 4, 4, 0]
    assert machine.node_memory_mb.tolist() == [128_000] * 3 + [0] * 3


def test_groups_are_numbered_by_first_appearance(machine: Machine):
    assert machine.group_names == ("s1", "s2")
    assert machine.node_group.tolist() == [0, 0, 0, 1, 1, 0]
    assert Machine((NodeType(2, 1),)).node_group.tolist() == [0, 0]


def test_partitions_have_their_nodes_and_limits(machine: Machine):
    assert machine.partition_names == ("batch", "gpu", "debug")
    nodes = [np.flatnonzero(row).tolist() for row in machine.members]
    assert nodes == [[0, 1, 2, 5], [3, 4], [5]]
    assert machine.max_time_s.tolist() == [3600, 0, 0]
    assert machine.max_nodes.tolist() == [0, 1, 0]
    assert machine.tier.tolist() == [0, 2, 0]
    numbers = (machine.node_cpus, machine.node_group, machine.tier, machine.component)
    assert {array.dtype for array in numbers} == {np.dtype(np.int64)}


def test_without_partitions_there_is_one_of_all_nodes():
    machine = Machine((NodeType(3, 4), NodeType(1, 8)))
    assert machine.partition_names == ("all",)
    assert machine.members.all() and machine.members.shape == (1, 4)
    assert (machine.max_time_s.tolist(), machine.max_nodes.tolist()) == ([0], [0])


def test_partitions_that_share_nodes_directly_or_through_others_are_one_component():
    spans = ("0-1", "8", "2-3", "1-2", "5-6", "6-7", "4")
    machine = Machine((NodeType(9, 1),), tuple(Partition(f"p{n}", n) for n in spans))
    assert machine.component.tolist() == [0, 1, 0, 0, 2, 2, 3]
    assert machine.n_components == 4


@given(st.integers(1, 8).flatmap(lambda n: st.lists(st.sets(st.integers(0, 7)), max_size=n)))
def test_components_are_those_of_a_walk_from_node_to_node(sets: list[set[int]]):
    sets = [nodes for nodes in sets if nodes]
    alone = set(range(8)).difference(*sets)
    sets += [alone] if alone else []
    spans = [number_ranges(sorted(nodes)) for nodes in sets]
    machine = Machine((NodeType(8, 1),), tuple(Partition(f"p{i}", n) for i, n in enumerate(spans)))
    for one in range(len(sets)):
        reached: set[int] = set()
        frontier = set(sets[one])
        while frontier - reached:
            reached |= frontier
            frontier = set().union(*(nodes for nodes in sets if nodes & reached))
        with_it = [bool(nodes & reached) for nodes in sets]
        assert (machine.component == machine.component[one]).tolist() == with_it


def test_a_machine_survives_its_dictionary_and_a_pickle(machine: Machine):
    named = dataclasses.replace(machine, swf_partitions=SwfPartitions(((-1, "gpu"), (3, "batch"))))
    assert Machine.from_dict(named.to_dict()) == named != machine
    assert machine.node_cpus is machine.node_cpus
    copied = pickle.loads(pickle.dumps(machine))
    assert copied == machine and hash(copied) == hash(machine)


def test_numbers_of_a_log_are_mapped_to_partitions(tmp_path: Path):
    text = GOOD + '\n[partitions.swf]\nfield = "queue"\n1 = "batch"\n-1 = "gpu"\n'
    machine = Machine.from_toml(written(tmp_path, text))
    assert machine.swf_partitions == SwfPartitions(((1, "batch"), (-1, "gpu")), "queue")


# --- What it may not say --------------------------------------------------------------------------

WRONG = {
    "unknown key": ("cpus = 32", "cpu = 32", "[[nodes]] 1: unknown key 'cpu'; did you mean 'cpus'"),
    "missing key": ("cpus = 64\n", "", "[[nodes]] 2: cpus is missing"),
    "no cpus": ("cpus = 64", "cpus = 0", "[[nodes]] 2: cpus is 0; allowed: 1 to"),
    "no count": ("count = 3", "count = 0", "[[nodes]] 1: count is 0"),
    "too many": ("count = 3", "count = 9999999", f"at most {MOST_NODES}"),
    "text": ("gpus = 4", 'gpus = "4"', "gpus must be a whole number, got str '4'"),
    "truth": ("gpus = 4", "gpus = true", "gpus must be a whole number, got bool True"),
    "decimal": ("gpus = 4", "gpus = 1.5", "gpus must be a whole number, got float 1.5"),
    "negative": ("memory_mb = 128000", "memory_mb = -1", "memory_mb is -1; allowed: 0 to"),
    "huge": ("cpus = 64", "cpus = 9223372036854775807", "allowed: 1 to"),
    "group": ('group = "s2"', "group = 2", "[[nodes]] 2: group must be a text, got int 2"),
    "table": ("[[partitions]]", "[[partition]]", "unknown table or key 'partition'; did you mean"),
    "one table": ("[[nodes]]\ncount = 3", "[nodes]\ncount = 3", "not valid TOML"),
    "backwards": ('"3-4"', '"4-3"', '[[partitions]] 2: nodes "4-3": the range 4-3 runs backwards'),
    "no range": ('"3-4"', '"3..4"', "'3..4' is neither a number nor a range"),
    "empty range": ('"3-4"', '""', "'' is neither a number nor a range"),
    "unknown node": ('"3-4"', '"3-6"', "there is no 6; allowed are 0-5"),
    "far beyond": ('"3-4"', '"3-99999999999"', "allowed are 0-5"),
    "left out": ('"0-2,5"', '"0,5"', "no partition has the nodes 1-2; every node needs one"),
    "same name": ('name = "debug"', 'name = "gpu"', "[[partitions]] two have the name 'gpu'"),
    "no name": ('name = "debug"', 'name = ""', "[[partitions]] 3: name is empty"),
    "time": ("max_time_s = 3600", "max_time_s = -1", "[[partitions]] 1: max_time_s is -1"),
    "not TOML": ("[[nodes]]", "[[nodes]", "not valid TOML"),
}


@pytest.mark.parametrize(("old", "new", "message"), WRONG.values(), ids=WRONG)
def test_an_error_names_the_file_the_key_and_what_is_allowed(
    old: str, new: str, message: str, tmp_path: Path
):
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(MachineError) as caught:
        Machine.from_toml(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[partitions.swf]\n1 = 'bach'", "1: unknown partition 'bach'; did you mean 'batch'"),
        ("[partitions.swf]\none = 'batch'", "'one' is neither a number nor `field`"),
        ("[partitions.swf]\n1 = 2", "1 must be a partition's name, got 2"),
        ("[partitions.swf]\nfield = 'queu'", "unknown field 'queu'; did you mean 'queue'"),
        ("swf = 3", "must be a table, got 3"),
    ],
)
def test_a_wrong_map_from_numbers_to_partitions_is_refused(
    table: str, message: str, tmp_path: Path
):
    with pytest.raises(MachineError, match=r"\[partitions\.swf\]") as caught:
        Machine.from_toml(written(tmp_path, f"{GOOD}\n{table}\n"))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "content", [None, b"\xff\xfe", b"", b"nodes = 3", b"nodes = [3]", b"[[nodes]]\ncount = []"]
)
def test_a_file_that_is_no_machine_is_an_error_that_names_it(content: Any, tmp_path: Path):
    path = tmp_path / "machine.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(MachineError, match=r"machine\.toml: "):
        Machine.from_toml(path)


# --- Workloads on it ------------------------------------------------------------------------------


def drawn_workload(machine: Machine, n: int = 60) -> Workload:
    """Draw jobs whose columns tell them apart."""
    generator = np.random.default_rng(3)
    return Workload.from_arrays(
        generator.integers(0, 6 * 604_800, n),
        np.full(n, 50),
        np.full(n, 60),
        2 * np.arange(1, n + 1),
        machine=machine,
        user=generator.integers(0, 4, n),
        chunks=np.where(np.arange(n) % 3, 1, 2),
        gpus=1_000 + np.arange(n),
        memory_mb=2_000 + np.arange(n),
        spread=np.arange(n) % 2,
        exclusive=np.arange(n) % 5 == 0,
        partition=np.arange(n) % 3,
    )


def rows_of(workload: Workload) -> set[tuple[int, ...]]:
    """Return each job's request, its processors first."""
    columns = [getattr(workload, key) for key in ("processors", *NODE_COLUMNS)]
    assert all(column.flags["C_CONTIGUOUS"] for column in columns)
    return set(zip(*(column.tolist() for column in columns), strict=True))


def test_a_job_is_by_default_chunks_of_one_cpu_in_the_first_partition(machine: Machine):
    workload = Workload.from_arrays([0, 1], [1, 1], [1, 1], [3, 5], machine=machine)
    assert workload.machine_processors == machine.cpus
    assert rows_of(workload) == {(3, 3, 0, 0, 0, 0, 0), (5, 5, 0, 0, 0, 0, 0)}
    assert workload.spread is not None and workload.spread.dtype == np.bool_


def test_requests_stay_with_their_jobs_when_these_are_sorted_and_selected(machine: Machine):
    workload = drawn_workload(machine)
    known = rows_of(workload)
    gpus = workload.gpus
    assert gpus is not None
    assert (np.diff(workload.submit_time) >= 0).all() and (np.diff(gpus) < 0).any()
    part = workload.select(np.arange(20, 40), start=int(workload.submit_time[20]))
    assert rows_of(part) < known and part.machine is machine
    moved = part.resubmitted(part.submit_time[::-1].copy())
    assert rows_of(moved) == rows_of(part)
    assert (
        Workload.from_frame(workload.to_frame(), machine=machine)
        .to_frame()
        .equals(workload.to_frame())
    )


def test_every_way_to_make_another_workload_of_one_keeps_machine_and_requests(machine: Machine):
    workload = drawn_workload(machine)
    known, generator = rows_of(workload), np.random.default_rng(1)
    parts = weeks(workload)
    assert len(parts) > 2
    made = [
        *parts,
        join_weeks(parts),
        jitter(workload, generator),
        scale_load(workload, 2.0),
        resample(workload, generator),
        resample(workload, generator, mode="draw"),
        resample_week(workload, generator),
    ]
    for one in made:
        assert one.machine is machine
        assert rows_of(one) <= known
    assert rows_of(join_weeks(parts)) == set().union(*map(rows_of, parts))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"chunks": [2, 2]}, "job 2 (row 1) asks for 5 processors in 2 chunks; chunks must divide"),
        ({"chunks": [0, 1]}, "chunks of job 1 (row 0) is 0; allowed: 1 to"),
        ({"gpus": [0, -1]}, "gpus of job 2 (row 1) is -1; allowed: 0 to"),
        ({"partition": [0, 3]}, "partition of job 2 (row 1) is 3; allowed: 0 to 2"),
        ({"memory_mb": [1.5, 1]}, "memory_mb in row 0 is 1.5; whole numbers only"),
        ({"spread": [0, 2]}, "spread must be 2 times true or false, got 2 in row 1"),
        ({"exclusive": [True]}, "exclusive must be 2 times true or false, got shape (1,)"),
        ({"chunks": [1]}, "chunks must be of shape (2,)"),
        ({"machine_processors": 100}, "machine_processors is 100, yet the nodes of the machine"),
    ],
)
def test_a_request_out_of_range_is_refused(columns: dict[str, Any], message: str, machine: Machine):
    with pytest.raises(WorkloadError) as caught:
        Workload.from_arrays([0, 1], [1, 1], [1, 1], [4, 5], machine=machine, **columns)
    assert message in str(caught.value)


def test_a_job_wider_than_the_machine_is_refused_with_its_partition(machine: Machine):
    message = (
        rf"processors of job 2 \(row 1\) is 500, in partition '{machine.partition_names[1]}'; "
    )
    with pytest.raises(WorkloadError, match=message + "allowed: 1 to 240"):
        Workload.from_arrays([0, 1], [1, 1], [1, 1], [4, 500], machine=machine, partition=[0, 1])


def test_requests_of_nodes_need_a_machine_of_nodes():
    with pytest.raises(WorkloadError, match="gpus given without a machine of nodes"):
        Workload.from_arrays([0], [1], [1], [1], machine_processors=4, gpus=[0])
    with pytest.raises(WorkloadError, match="machine_processors is missing"):
        Workload.from_arrays([0], [1], [1], [1])
    plain = Workload.from_arrays([0], [1], [1], [1], machine_processors=4)
    assert plain.machine is None
    assert [getattr(plain, key) for key in NODE_COLUMNS] == [None] * 6
    assert unplaceable(plain) == [] and not set(plain.columns()) & set(NODE_COLUMNS)


def test_jobs_that_share_time_or_choose_shapes_need_counted_processors():
    jobs = Workload.from_arrays([0], [1], [1], [1], machine=Machine((NodeType(2, 4),)))
    with pytest.raises(PolicyError, match="'gang' counts processors; got a machine of nodes"):
        simulate(jobs, backfill="gang")
    with pytest.raises(WorkloadError, match="jobs with shapes need a machine of counted process"):
        simulate_moldable(jobs, [[(1, 1, 1)]])


# --- Jobs that can never run ----------------------------------------------------------------------


def machine_of(drawn: ReferenceMachine) -> Machine:
    """Make the machine of one that is drawn for the reference."""
    return Machine(
        tuple(
            NodeType(1, node.cpus, node.gpus, node.memory_mb, node.group) for node in drawn.nodes
        ),
        tuple(
            Partition(one.name, number_ranges(sorted(one.nodes)), *one[2:])
            for one in drawn.partitions
        ),
    )


def workload_of(drawn: list[ReferenceJob], machine: Machine) -> Workload:
    """Make the workload of jobs that are drawn for the reference."""
    keys = ("processors", "chunks", "gpus", "memory_mb", "spread", "exclusive", "partition")
    columns = {key: [getattr(job, key) for job in drawn] for key in keys}
    requested_time = [job.requested_time for job in drawn]
    zeros = np.zeros(len(drawn))
    return Workload.from_arrays(zeros, zeros, requested_time, machine=machine, **columns)


@given(st.randoms(use_true_random=False))
def test_jobs_that_can_never_run_are_those_that_the_reference_refuses(random: Random):
    assert list(RULES) == list(PLACEMENTS)
    drawn = draw_machine(random)
    asked = [draw_request(random, drawn, (0, 1, random.choice((5, 30)))) for _ in range(12)]
    jobs = [job._replace(chunks=random.choice((job.chunks, 2 * job.chunks))) for job in asked]
    jobs += [job._replace(gpus=job.gpus + 1) for job in asked[:3]]
    jobs = [job for job in jobs if job.processors <= drawn.cpus]
    if jobs:
        workload = workload_of(jobs, machine_of(drawn))
        for rule in RULES:
            refused = [row for row, _ in unplaceable(workload, rule)]
            assert refused == [j for j, job in enumerate(jobs) if is_refused(drawn, job, rule)]


@pytest.mark.parametrize(
    ("request_", "placement", "reason"),
    [
        ({"requested_time": 3601}, "lowest", "asks for 3601 s; partition 'batch' allows 3600 s"),
        ({"processors": 64}, "lowest", "asks for 64 cpus a chunk; the largest node of partition"),
        ({"gpus": 1}, "lowest", "asks for 1 gpus a chunk; the largest node of partition 'batch'"),
        (
            {"gpus": 1, "processors": 65, "partition": 1},
            "lowest",
            "asks for 65 cpus a chunk; the largest node of partition 'gpu' has 64",
        ),
        (
            {"memory_mb": 130_000, "processors": 32},
            "lowest",
            "asks for 32 cpus, 0 gpus and 130000 MB a chunk; no node of partition 'batch' has them",
        ),
        (
            {"processors": 128, "chunks": 128},
            "lowest",
            "asks for 128 chunks; empty, partition 'batch' has room for 112",
        ),
        (
            {"processors": 5, "chunks": 5, "spread": True},
            "lowest",
            "asks for 5 chunks, one on a node; empty, partition 'batch' has room for 4",
        ),
        (
            {"processors": 65, "chunks": 65, "partition": 1},
            "lowest",
            "asks for 65 chunks, which need more nodes than partition 'gpu' allows, 1 (max_nodes)",
        ),
        (
            {"processors": 112, "chunks": 112},
            "contiguous",
            "asks for 112 chunks; empty, partition 'batch' has room for 96 by 'contiguous'",
        ),
    ],
)
def test_the_reason_names_the_limit_that_a_job_meets(
    request_: dict[str, Any], placement: str, reason: str, machine: Machine
):
    asked = {"requested_time": 10, "processors": 1, "chunks": 1} | request_
    columns = {key: [value] for key, value in asked.items()}
    workload = Workload.from_arrays([0], [1], machine=machine, **columns)
    ((row, why),) = unplaceable(workload, placement)
    assert row == 0 and why.startswith(reason)


def test_an_unknown_placement_is_refused_with_the_nearest_name(machine: Machine):
    workload = Workload.from_arrays([0], [1], [1], [1], machine=machine)
    with pytest.raises(PolicyError, match="unknown placement 'locale'; did you mean 'local'"):
        unplaceable(workload, "locale")


def test_nodes_with_more_cpus_than_kernels_count_are_refused():
    with pytest.raises(MachineError, match="cpus is 2147483648; allowed: 1 to 2147483647"):
        NodeType(1, cpus=2**31)
    assert Machine((NodeType(1, cpus=2**31 - 1),)).cpus == 2**31 - 1


@pytest.mark.long
def test_thousands_of_partitions_are_read_and_used_within_seconds():
    n = 4_000  # work for each pair of partitions would take many minutes
    partitions = [{"name": f"p{k}", "nodes": f"{k % 999}-{k % 999 + 1}"} for k in range(n)]
    partitions[-1]["swf"] = {str(k): f"p{k}" for k in range(n)}
    machine = Machine.from_dict({"nodes": [{"count": 1_000, "cpus": 8}], "partitions": partitions})
    assert machine.n_components == 1  # each shares a node with the next
    number = np.arange(n)
    jobs = Workload.from_arrays(
        number,
        number % 7,
        number % 7 + 1,
        number % 8 + 1,
        machine=machine,
        chunks=[1] * n,
        partition=number,
    )
    groups = simulate(jobs).metrics("partition")
    table = TextTable([Column("partition", list(groups.index)), Column("jobs", ["1"] * n)])
    assert len(list(table.lines(80))) == n + 1


def test_more_nodes_in_partitions_than_memory_has_room_for_are_refused():
    partitions = tuple(Partition(f"p{k}", "0") for k in range(300))
    with pytest.raises(MachineError, match=r"1000000 nodes and 300 partitions; at most 268435456"):
        Machine((NodeType(10**6, cpus=1),), partitions)


def test_an_unknown_name_among_thousands_is_answered_in_a_few_lines():
    names = [f"p{k}" for k in range(20_000)]
    message = unknown_name("partition", "p2O", names)
    assert "did you mean 'p2'" in message and message.endswith("p199, and 20000 in all")
    assert len(message) < 1_500
