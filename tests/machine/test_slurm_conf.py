"""Machines of slurm.conf and topology.conf: a real one, drawn ones, what is noted and refused."""

import random
from pathlib import Path
from typing import Any

import pytest

from hpcgym.base.errors import MachineError
from hpcgym.base.ranges import number_ranges, parse_numbers
from hpcgym.machine import Machine, NodeType, Partition
from hpcgym.machine.files import MachineFile, read_machine

SLURM = Path(__file__).parents[1] / "data" / "slurm"
NODES = "NodeName=c[1-4] CPUs=8 RealMemory=16000\n"
BATCH = "PartitionName=batch Nodes=ALL Default=YES\n"
SWITCHES = (
    "SwitchName=s1 Nodes=c[1-2]\nSwitchName=s2 Nodes=c[3-4]\nSwitchName=top Switches=s[1-2]\n"
)


def reading(folder: Path, text: str, **files: str) -> MachineFile:
    """Read slurm.conf of a text, beside other files."""
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    (folder / "slurm.conf").write_text(text)
    return read_machine(folder / "slurm.conf")


def test_slurm_conf_and_what_scontrol_prints_are_one_machine(tmp_path: Path) -> None:
    printed = tmp_path / "printed.txt"
    parts = [(SLURM / f"scontrol-{kind}.txt").read_text() for kind in ("node", "partition")]
    printed.write_text("\n".join(parts))
    conf, shown = read_machine(SLURM / "slurm.conf"), read_machine(printed)
    assert (conf.machine, conf.node_names, conf.notes) == (shown.machine, shown.node_names, ())
    assert (conf.format, shown.format) == ("slurm.conf", "text of scontrol")


@pytest.mark.parametrize(
    ("keys", "cpus"),
    [
        ("CPUs=8", 8),
        ("Procs=8", 8),
        ("Sockets=2", 2),
        ("Sockets=2 CoresPerSocket=8", 16),
        ("Sockets=2 CoresPerSocket=8 ThreadsPerCore=2", 32),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=4", 16),
        ("CPUs=16 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2", 16),
        ("CPUs=32 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2", 32),
        ("CPUs=32 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CoreSpecCount=2", 28),
        ("CPUs=16 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CoreSpecCount=2", 14),
        ("Sockets=1 CoresPerSocket=8 ThreadsPerCore=2 CpuSpecList=0-2,15", 10),
        ("CPUs=8 CoreSpecCount=1 CpuSpecList=0-2", 5),
        ("cpus=8 CORESPECCOUNT=1", 7),
    ],
)
def test_cpus_are_threads_or_those_stated_less_those_of_the_system(
    keys: str, cpus: int, tmp_path: Path
) -> None:
    read = reading(tmp_path, f"NodeName=n1 {keys} State=UNKNOWN\n")
    assert read.machine.nodes == (NodeType(1, cpus),)


def test_lines_go_on_have_comments_and_take_defaults(tmp_path: Path) -> None:
    text = """
    ClusterName=toy # NodeName=no CPUs=3
    nodename=DEFAULT Sockets=2 CoresPerSocket=4 RealMemory=32000 \\
        MemSpecLimit=2000   # of all
    NodeName=c[01-02] Gres=gpu:a100:2(S:0-1),nvme:1 Reason="two # words=3"
    NodeName = DEFAULT CPUs=64 Sockets=64 CoresPerSocket=1
    NodeName=d1,e1n[1-2] Feature=big State=DOWN
    NodeName=f[1-9] State=FUTURE
    DownNodes=c01 State=DOWN Reason=fan
    PartitionName=DEFAULT MaxTime=1-0 OverSubscribe=EXCLUSIVE
    NodeSet=large Feature=big
    PartitionName=old Nodes=c[01-02],f1 MaxTime=30 MaxNodes=2 Priority=7 Shared=NO
    PartitionName=big Nodes=large Default=yes MaxTime=INFINITE PriorityTier=3 OverSubscribe=NO
    """
    read = reading(tmp_path, text)
    assert read.node_names == ("c01", "c02", "d1", "e1n1", "e1n2")
    assert read.machine.nodes == (NodeType(2, 8, 2, 30_000), NodeType(3, 64, 0, 30_000))
    assert read.machine.partitions == (
        Partition("big", "2-4", tier=3),
        Partition("old", "0-1", max_time_s=1800, max_nodes=2, tier=7),
    )
    assert read.notes == (
        "2 generic resource nvme is not simulated: c01, c02",
        "3 down or drained now, kept: jobs ran on them before: d1, e1n1, e1n2",
        "9 in state FUTURE, left out: f1, f2, f3, ...",
        "1 DownNodes, kept: jobs ran on them before: c01",
        "1 OverSubscribe=EXCLUSIVE of partitions is not simulated: old",
    )


def test_included_files_are_read_in_their_place(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "toy.conf").write_text("NodeName=c3 CPUs=4\nInclude last.conf\n")
    (tmp_path / "more" / "last.conf").write_text("NodeName=c2 CPUs=4\n")
    text = f"ClusterName=toy\nNodeName=c1 CPUs=4\nInclude more/%c.conf\ninclude {tmp_path}/p_conf\n"
    (tmp_path / "p_conf").write_text("PartitionName=p Nodes=c[1-3]\n")
    assert reading(tmp_path, text).node_names == ("c1", "c3", "c2")


@pytest.mark.parametrize("how", ["behind", "beside", "printed"])
def test_switches_are_groups_of_nodes(how: str, tmp_path: Path) -> None:
    notes = ["1 switches above others are not simulated: top"]
    if how == "beside":
        conf = "TopologyPlugin=topology/tree\n" + NODES + BATCH
        read = reading(tmp_path, conf, topology_conf=SWITCHES)
        notes.insert(0, f"1 file of switches read beside it: {tmp_path / 'topology.conf'}")
    elif how == "behind":
        read = reading(tmp_path, NODES + BATCH + SWITCHES)
    else:
        nodes = [f"NodeName=c{n} CPUTot=8 RealMemory=16000 State=IDLE\n" for n in (1, 2, 3, 4)]
        switches = "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=c[1-2]\n"
        switches += "SwitchName=s2 Level=0 LinkSpeed=1 Nodes=c[3-4]\n"
        switches += "SwitchName=top Level=1 LinkSpeed=1 Nodes=c[1-4] Switches=s[1-2]\n"
        read = reading(tmp_path, "".join(nodes) + BATCH + "PriorityTier=1\n" + switches)
    assert read.machine.nodes == (NodeType(2, 8, 0, 16_000, "s1"), NodeType(2, 8, 0, 16_000, "s2"))
    assert list(read.notes) == notes


def test_what_of_a_cluster_is_not_simulated_is_named(tmp_path: Path) -> None:
    conf = NODES + BATCH
    file = tmp_path / "slurm.conf"
    for line, note in {
        "SelectType=select/linear": "SelectType=select/linear, whole nodes, is not simulated",
        "TopologyPlugin=topology/block": (
            "TopologyPlugin=topology/block is not simulated: one switch"
        ),
        "TopologyPlugin=topology/tree": (
            "TopologyPlugin=topology/tree, no topology.conf beside: one switch"
        ),
    }.items():
        assert reading(tmp_path, f"{line}\n{conf}").notes == (f"1 {note}: {file}",)
    assert reading(tmp_path, "TopologyPlugin=topology/default\n" + conf).notes == ()
    read = reading(tmp_path, conf + "SwitchName=s1 Nodes=c[1-3]\n")
    assert read.notes == ("1 on no switch that is listed: c4",)
    read = reading(tmp_path, conf + "SwitchName=s1 Nodes=c[1-5]\n")
    assert read.notes == ("1 on a switch, and no node that is listed: c5",)
    read = reading(tmp_path, "TopologyPlugin=topology/tree\n" + conf, topology_conf="# none\n")
    assert f"1 no switch with nodes there: one switch: {tmp_path / 'topology.conf'}" in read.notes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("NodeName=c1 State=UNKNOWN", ":1: node c1 states no CPUs, nor Sockets; print what"),
        ("NodeName=c1 CPUs=0 RealMemory=9", ":1: node c1 states no CPUs"),
        ("NodeName=c1 Sockets=0", ":1: node c1 states no CPUs"),
        ("\nNodeName=c1 CPUs=many", ":2: CPUs is 'many'; allowed: a whole number"),
        ("NodeName=c1 CPUs=9 Sockets=2 CoresPerSocket=4", "CPUs is 9; allowed beside its sockets"),
        ("NodeName=c1 CPUs=2 CoreSpecCount=2", ":1: 2 of 2 cpus are kept for the system"),
        ("NodeName=c1 CPUs=2 CpuSpecList=7", ':1: CpuSpecList "7": there is no 7; allowed are 0-1'),
        ("NodeName=c[1 CPUs=2", ":1: NodeName: allowed: hosts such as c[1-8,10],d7"),
        ("NodeName=c1 CPUs=2\nNodeName=c1 CPUs=3", ":2: node c1 came before with other values"),
        ("NodeName=c1 CPUs=2 Gres=gpu:x:y:z", ":1: Gres is 'gpu:x:y:z'; allowed"),
        (NODES + "PartitionName=p Nodes=c[1-5]", ":2: partition p: unknown node 'c5'. Allowed"),
        (NODES + "PartitionName=p Nodes=c[1-", ":2: nodes of partition p: allowed: hosts"),
        (NODES + "PartitionName=p \\\nNodes=ALL MaxTime=x", ":2: MaxTime is 'x'; allowed"),
        (NODES + BATCH + BATCH, ":3: partition batch was at "),
        (NODES + "NodeSet=s Nodes=c[\nPartitionName=p Nodes=s", ":2: Nodes of NodeSet s: allowed"),
        (NODES + SWITCHES + "SwitchName=s3 Nodes=c1", ":5: node c1 is on switch s3 and on s1"),
        (SWITCHES, ": no node is listed, as slurm.conf lists them; switches go behind that: cat"),
        ("ClusterName=toy\n", ": no node is listed, as slurm.conf lists them"),
        (NODES + "Include none.conf", "none.conf: no such file"),
        (NODES + "Include slurm.conf", "slurm.conf includes itself"),
    ],
)
def test_a_configuration_with_an_error_is_refused_by_place_and_what_is_allowed(
    text: str, why: str, tmp_path: Path
) -> None:
    with pytest.raises(MachineError) as refused:
        reading(tmp_path, text)
    assert str(refused.value).startswith(str(tmp_path / "slurm.conf"))
    assert why in str(refused.value)


def drawn(draw: random.Random) -> tuple[str, str, str, Machine | None]:
    """Draw a machine; return it as slurm.conf, topology.conf and scontrol have it, and itself.

    None stands for one with nodes in no partition.
    """
    types: list[NodeType] = []
    conf, printed, topology = ["ClusterName=drawn"], [], []
    names: list[str] = []
    for number in range(draw.randint(1, 5)):
        count, sockets, cores, threads = (draw.randint(1, 4) for _ in range(4))
        of_system = draw.randint(0, sockets * cores - 1)
        cpus = (sockets * cores - of_system) * threads
        gpus, memory = draw.choice([0, 4]), draw.choice([1, 64_000])
        hosts = [f"n{number}x{index:02d}" for index in range(1, count + 1)]
        keys: dict[str, Any] = {
            "Sockets": sockets,
            "CoresPerSocket": cores,
            "ThreadsPerCore": threads,
            "RealMemory": memory,
        }
        if draw.random() < 0.5:
            keys["CPUs"] = sockets * cores * threads
        if gpus:
            keys["Gres"] = draw.choice([f"gpu:{gpus}", "gpu:a:1,gpu:b:3"])
        if of_system:
            keys["CoreSpecCount"] = of_system
        pairs = [f"{draw.choice([key, key.lower()])}={value}" for key, value in keys.items()]
        draw.shuffle(pairs)
        if draw.random() < 0.3:
            conf.append("NodeName=DEFAULT " + " ".join(pairs))
            pairs = []
        conf.append(
            f"NodeName=n{number}x[01-{count:02d}] " + draw.choice([" ", " \\\n  "]).join(pairs)
        )
        conf.append("NodeName=DEFAULT CPUs=0 CoreSpecCount=0 Gres=(null) # as before")
        switch = f"s{number}"
        topology.append(f"SwitchName={switch} Nodes=n{number}x[01-{count:02d}]")
        printed += [
            f"NodeName={host} CPUTot={cpus + of_system * threads} CPUEfctv={cpus} "
            f"RealMemory={memory} Gres={keys.get('Gres', '(null)')} State=IDLE"
            for host in hosts
        ]
        printed.append(topology[-1] + " Level=0")
        types.append(NodeType(count, cpus, gpus, memory if memory > 1 else 0, switch))
        names += hosts
    partitions: list[Partition] = []
    for number in range(draw.randint(1, 3)):
        chosen = sorted(draw.sample(range(len(names)), draw.randint(1, len(names))))
        hours, most, tier = draw.randint(0, 9), draw.randint(0, 3), draw.randint(1, 4)
        listed = ",".join(names[node] for node in chosen)
        is_all = len(chosen) == len(names) and draw.random() < 0.5
        keys = {
            "Nodes": "ALL" if is_all else listed,
            "MaxTime": f"{hours}:00:00" if hours else draw.choice(["INFINITE", "UNLIMITED"]),
            "MaxNodes": most or "UNLIMITED",
            "PriorityTier": tier,
        }
        written = {key: value for key, value in keys.items() if value != "UNLIMITED"}
        for lines, shown in ((conf, written), (printed, keys)):
            pairs = [f"{key}={value}" for key, value in shown.items()]
            lines.append(f"PartitionName=p{number} " + " ".join(pairs))
        nodes = number_ranges(chosen)
        partitions.append(Partition(f"p{number}", nodes, hours * 3600, most, tier))
    used = {node for partition in partitions for node in parse_numbers(partition.nodes, range(99))}
    machine = Machine(tuple(types), tuple(partitions)) if len(used) == len(names) else None
    return "\n".join(conf), "\n".join(topology), "\n".join(printed), machine


def test_drawn_machines_come_back_from_slurm_conf_and_from_scontrol(tmp_path: Path) -> None:
    draw, complete = random.Random(1), 0
    for _ in range(100):
        conf, topology, printed, machine = drawn(draw)
        read = reading(tmp_path, f"{conf}\n{topology}\n")
        (tmp_path / "printed.txt").write_text(printed)
        shown = read_machine(tmp_path / "printed.txt")
        assert (read.machine, read.node_names) == (shown.machine, shown.node_names)
        assert machine in (None, read.machine)
        complete += machine is not None
    assert complete > 30


def test_no_damage_to_a_configuration_ends_in_another_error(tmp_path: Path) -> None:
    draw = random.Random(1)
    text = (
        (SLURM / "slurm.conf").read_text() + SWITCHES.replace("[3-4]", "9") + "NodeSet=a Nodes=c1"
    )
    pieces = ["", "\0", "\ud7ff", "[", "]", "=", "-1", "9" * 30, "\n", '"', ",", "\\\n", "#", "0"]
    for _ in range(300):
        begin = draw.randrange(len(text))
        end = begin + draw.choice([0, 1, 2, 5, 40])
        try:
            assert reading(
                tmp_path, text[:begin] + draw.choice(pieces) + text[end:]
            ).machine.n_nodes
        except MachineError as error:
            assert str(error).startswith(str(tmp_path))
