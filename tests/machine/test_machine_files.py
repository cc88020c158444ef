"""Machines as sites have them: what a real Slurm printed, later versions, Alea, broken files."""

import json
import random
from pathlib import Path

import pytest

from hpcgym.base.errors import MachineError
from hpcgym.machine import Machine, NodeType, Partition
from hpcgym.machine.files import MachineFile, read_machine, to_toml

SLURM = Path(__file__).parents[1] / "data" / "slurm"
NODES, PARTITIONS = ((SLURM / f"scontrol-{kind}.txt").read_text() for kind in ("node", "partition"))
SINFO = (SLURM / "sinfo.json").read_text()
TOY = Machine(
    (NodeType(1, 16, 4, 64000), NodeType(1, 16, 0, 128000)),
    (
        Partition("batch", "0-1", max_time_s=172_800, tier=1),
        Partition("debug", "0-1", max_time_s=1800, max_nodes=1, tier=2),
        Partition("gpu", "0", max_time_s=86_400, tier=1),
    ),
)
ALEA = "0\tlarge\t20\t80\t1\t529426432\n1\tsmall\t2\t12\t1\t94035968\n"
ROWS = [
    ("big", "n[01-03]", ["n01", "n02"], 64, 512_000, "gpu:a100:4(S:0-1),shard:8", ["IDLE"]),
    ("big", "n[01-03]", ["n03"], 32, 256_000, "", ["DOWN", "NOT_RESPONDING"]),
    ("small", "n[02-03]", ["n02"], 64, 512_000, "gpu:a100:4(S:0-1)", ["IDLE"]),
    ("small", "n[02-03]", ["n03"], 32, 256_000, "", ["DOWN"]),
]


def reading(tmp_path: Path, text: str) -> MachineFile:
    """Read a machine from a text."""
    (tmp_path / "machine.txt").write_text(text)
    return read_machine(tmp_path / "machine.txt")


def refusal(tmp_path: Path, text: str) -> str:
    """Return why a text is no machine; it names the file."""
    with pytest.raises(MachineError) as refused:
        reading(tmp_path, text)
    message = str(refused.value)
    assert message.startswith(str(tmp_path / "machine.txt"))
    return message.removeprefix(str(tmp_path / "machine.txt"))


def in_one_line(text: str) -> str:
    """Return records as `scontrol -o` prints them, a line each."""
    return "\n".join(" ".join(record.split()) for record in text.split("\n\n"))


def node(**keys: str) -> str:
    """Return the record of a node with other values."""
    known = {"NodeName": "n1", "CPUTot": "8", "RealMemory": "16000", "State": "IDLE"} | keys
    return " ".join(f"{key}={value}" for key, value in known.items()) + "\n"


def rows_of_sinfo(limit: object) -> str:
    """Return what later versions print: rows of nodes that are alike, with their partition."""
    rows = []
    for name, configured, nodes, cpus, memory, gres, state in ROWS:
        partition = {
            "name": name,
            "nodes": {"configured": configured, "total": 3},
            "maximums": {"time": limit, "nodes": {"set": False, "infinite": True, "number": 0}},
            "priority": {"tier": 3 if name == "small" else 1},
        }
        rows.append(
            {
                "partition": partition,
                "nodes": {"nodes": nodes, "total": len(nodes)},
                "cpus": {"minimum": cpus, "maximum": cpus},
                "memory": {"minimum": memory, "maximum": memory},
                "gres": {"total": gres},
                "node": {"state": state},
            }
        )
    return json.dumps({"sinfo": rows, "errors": []})


@pytest.mark.parametrize("text", [NODES + "\n" + PARTITIONS, PARTITIONS + "\n" + NODES])
def test_records_of_nodes_and_partitions_are_one_machine_in_either_order(
    text: str, tmp_path: Path
) -> None:
    for form in (text, in_one_line(text), text.replace("\n", "\r\n")):
        read = reading(tmp_path, form)
        assert read == MachineFile(TOY, "text of scontrol", ("c1", "c2"), ())


def test_nodes_without_partitions_are_in_those_that_they_name_without_limits(
    tmp_path: Path,
) -> None:
    for text in (NODES, SINFO):
        read = reading(tmp_path, text)
        assert read.machine.nodes == TOY.nodes
        assert read.machine.partitions == (
            Partition("batch", "0-1"),
            Partition("debug", "0-1"),
            Partition("gpu", "0"),
        )
        assert read.notes == (
            "3 partitions whose limits are not listed: none are taken: batch, debug, gpu",
        )


@pytest.mark.parametrize("limit", [120, {"set": True, "infinite": False, "number": 120}])
def test_rows_of_later_versions_are_nodes_and_partitions(limit: object, tmp_path: Path) -> None:
    read = reading(tmp_path, rows_of_sinfo(limit))
    assert read.node_names == ("n01", "n02", "n03")
    assert read.machine.nodes == (NodeType(2, 64, 4, 512_000), NodeType(1, 32, 0, 256_000))
    assert read.machine.partitions == (
        Partition("big", "0-2", max_time_s=7200, tier=1),
        Partition("small", "1-2", max_time_s=7200, tier=3),
    )
    assert read.notes == (
        "2 generic resource shard is not simulated: n01, n02",
        "1 down or drained now, kept: jobs ran on them before: n03",
    )


def test_lists_of_nodes_and_of_partitions_are_read_together(tmp_path: Path) -> None:
    partition = {"name": "all", "nodes": {"configured": "c[1-2]"}, "maximums": {"nodes": 1}}
    document = json.loads(SINFO) | {"partitions": [partition]}
    read = reading(tmp_path, json.dumps(document))
    assert read.machine.partitions == (Partition("all", "0-1", max_nodes=1),)


def test_clusters_of_alea_are_groups_of_nodes(tmp_path: Path) -> None:
    read = reading(tmp_path, ALEA)
    assert read.machine.nodes == (
        NodeType(20, 80, 0, 517_018, "large"),
        NodeType(2, 12, 0, 91_832, "small"),
    )
    assert read.node_names[19:21] == ("large20", "small1")
    assert reading(tmp_path, "36 fer 2 2 1.5 256 6.6 8\n").notes == (
        "1 speed 1.5 is not simulated: fer",
    )


def test_what_is_not_simulated_is_counted_and_named(tmp_path: Path) -> None:
    text = node(State="IDLE+DRAIN") + node(NodeName="n2", Gres="gpu:v100:2,nvme:1")
    text += node(NodeName="n3") + "PartitionName=p Nodes=n[1-2] OverSubscribe=EXCLUSIVE MinNodes=2"
    read = reading(tmp_path, text + "\nPartitionName=none Nodes=(null)")
    assert read.machine.node_gpus.tolist() == [0, 2]
    assert read.notes == (
        "1 down or drained now, kept: jobs ran on them before: n1",
        "1 generic resource nvme is not simulated: n2",
        "1 MinNodes=2 of partitions is not simulated: p",
        "1 OverSubscribe=EXCLUSIVE of partitions is not simulated: p",
        "1 nodes in no partition, left out: n3",
        "1 partitions without nodes, left out: none",
    )


@pytest.mark.parametrize(
    ("keys", "cpus", "gpus", "memory"),
    [
        ({"CPUEfctv": "6", "MemSpecLimit": "1000"}, 6, 0, 15_000),
        ({"Gres": "gpu"}, 8, 1, 16_000),
        ({"CfgTRES": "cpu=8,mem=16000M,gres/gpu=3,gres/gpu:a100=3"}, 8, 3, 16_000),
        ({"RealMemory": "1"}, 8, 0, 0),
        ({"OS": "Linux CPUTot=99", "Reason": "bad CPUTot=77 [root@2026]"}, 8, 0, 16_000),
    ],
)
def test_cpus_gpus_and_memory_are_those_that_jobs_can_have(
    keys: dict[str, str], cpus: int, gpus: int, memory: int, tmp_path: Path
) -> None:
    assert reading(tmp_path, node(**keys)).machine.nodes == (NodeType(1, cpus, gpus, memory),)


def test_a_machine_written_as_toml_is_the_same_machine(tmp_path: Path) -> None:
    for text in (NODES + PARTITIONS, rows_of_sinfo(60), ALEA, to_toml(MachineFile(TOY, "TOML"))):
        read = reading(tmp_path, text)
        assert reading(tmp_path, to_toml(read)) == MachineFile(read.machine, "TOML")
    assert "[[nodes]]  # large1 to large20" in to_toml(reading(tmp_path, ALEA))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (node(CPUTot="0"), ":1: node n1 states no CPUTot, CPUEfctv or CfgTRES"),
        (node(CPUTot="many"), ":1: CPUTot is 'many'; allowed: a whole number or UNLIMITED"),
        (node(Gres="gpu:x:y:z"), ":1: Gres is 'gpu:x:y:z'; allowed: gpu:COUNT or gpu:TYPE:COUNT"),
        (node() + node(CPUTot="9"), ":2: node n1 came before with other values"),
        (PARTITIONS, ": no node is listed; print nodes too: scontrol show node"),
        (node() + "PartitionName=p Nodes=n[1-3]", ":2: partition p: unknown node 'n2'. Allowed:"),
        (node() + "PartitionName=p Nodes=n[3-1]", "p: the range 3-1 runs backwards"),
        (node() + "PartitionName=p Nodes=n[0-9999999]", "p: allowed: at most 1000000 hosts"),
        (node() + "PartitionName=p Nodes=n[1", "p: allowed: hosts such as c[1-8,10],d7"),
        (node() + "PartitionName=p\nPartitionName=p", ":3: partition p was at "),
        (node() + "PartitionName=p MaxTime=soon", ":2: MaxTime is 'soon'; allowed: [D-]HH:MM:SS"),
        (node() + "PartitionName=p Nodes=(null)", ": no partition has a node"),
        ("{", ":1: no JSON here"),
        ('{"jobs": []}', ": an object without a list sinfo, nodes, partitions; print it by: sinfo"),
        ('{"nodes": [3]}', ": nodes 1: an object is needed, got int"),
        ('{"nodes": [{"name": "a"}]}', ": nodes 1: node a states no cpus"),
        ('{"nodes": [{"cpus": 3}]}', ": nodes 1: name is missing"),
        ('{"nodes": [{"name": "a", "cpus": -3}]}', "cpus is '-3'; allowed: a whole number"),
        (
            rows_of_sinfo(60).replace('"maximum": 64}', '"maximum": 128}'),
            ": sinfo 1: cpus of its nodes from 64 to 128",
        ),
        (ALEA + "2 tiny 4\n", ":3: '2 tiny 4' is no cluster; allowed: id, name, nodes, cpus"),
        ("0 none 0 4", ":1: 0 nodes of 4 cpus; allowed: 1 to 1000000, and 1 or more"),
        ("nonsense", "Nor is it slurm.conf, text of scontrol, JSON of sinfo, machines of Alea"),
    ],
)
def test_a_file_with_an_error_is_refused_by_place_and_what_is_allowed(
    text: str, why: str, tmp_path: Path
) -> None:
    assert why in refusal(tmp_path, text)


@pytest.mark.parametrize("text", [NODES + PARTITIONS, SINFO, rows_of_sinfo(60), ALEA])
def test_no_damage_to_a_file_ends_in_another_error(text: str, tmp_path: Path) -> None:
    draw = random.Random(1)
    pieces = [
        *("", "\0", "\ud7ff", "{", "[", "]", "=", "-1", "9" * 30, "null", "gpu:", "\n", '"', ",")
    ]
    for _ in range(300):
        begin = draw.randrange(len(text))
        end = begin + draw.choice([0, 1, 2, 5, 40])
        damaged = text[:begin] + draw.choice(pieces) + text[end:]
        try:
            assert reading(tmp_path, damaged).machine.n_nodes
        except MachineError as error:
            assert str(error).startswith(str(tmp_path))
