"""Nodes, partitions and switches of `slurm.conf`, the files it includes, and `topology.conf`.

Source: Specification, section 14, "Machines"; manual pages slurm.conf(5) and topology.conf(5).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from math import prod
from pathlib import Path

from hpcgym.base.errors import MachineError
from hpcgym.base.ranges import parse_numbers
from hpcgym.machine.files.records import (
    NodeRecord,
    PartitionRecord,
    Records,
    count_of,
    gpus_of,
    hosts_of,
    memory_of,
    other_resources,
    read_field,
    seconds_of,
    text_of,
)
from hpcgym.machine.files.scontrol import SIMULATED_AS

KINDS = ("nodename", "partitionname", "nodeset", "switchname", "downnodes")
"""Keys that begin records; others are of the whole cluster."""

PARTS = ("Boards", "SocketsPerBoard", "Sockets", "CoresPerSocket", "ThreadsPerCore")
PLAIN = {key: (*values, "", "(NULL)") for key, values in SIMULATED_AS.items()}
"""Values of a partition's fields that change nothing here."""

OLD = {"OverSubscribe": "shared"}  # names that older versions have for keys
NO_NODES = ("FUTURE", "EXTERNAL")  # states of nodes that are not there, or take no jobs

_RECORD = re.compile(
    r"^[ \t]*(?:NodeName|PartitionName|SwitchName|ClusterName|SlurmctldHost|ControlMachine)[ \t]*=",
    re.I | re.M,
)
_PRINTED = re.compile(r"\b(?:CPUTot|CfgTRES|TotalCPUs|TotalNodes)=")
_PAIR = re.compile(r'([\w.]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S+))')
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*", re.I)
_COMMENT = re.compile(r"(?<!\\)#.*")

PRINT = "print what Slurm makes of it: scontrol show node; scontrol show partition"

Keys = Mapping[str, str]  # values by key, in lower case


def recognises(text: str) -> bool:
    """Tell whether a text has a line of a configuration, and no record that scontrol printed."""
    return _RECORD.search(text) is not None and _PRINTED.search(text) is None


def read(text: str, path: str) -> Records:
    """Read all records."""
    conf = _Configuration()
    for where, keys in _lines(text, path, conf.cluster):
        conf.add(keys, where)
    if not conf.records.nodes:
        raise MachineError(
            f"{path}: no node is listed, as slurm.conf lists them; switches go behind that: "
            "cat slurm.conf topology.conf > machine.conf"
        )
    conf.add_partitions()
    conf.note_cluster(path)
    return conf.records


def _lines(
    text: str, path: str, cluster: Keys, within: tuple[Path, ...] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield place and pairs of each line, joined at backslashes, and of files included `within`."""
    begun, where = "", ""
    for number, part in enumerate([*text.split("\n"), ""], start=1):
        line = begun + _COMMENT.sub("", part)
        where = where if begun else f"{path}:{number}"
        if line.endswith("\\"):
            begun = line[:-1] + " "
            continue
        begun = ""
        if include := _INCLUDE.fullmatch(line):
            file = Path(path).parent / include[1].replace("%c", cluster.get("clustername", "%c"))
            if file in within:
                raise MachineError(f"{where}: {file} includes itself")
            try:
                included = text_of(file)
            except MachineError as error:
                raise MachineError(f"{where}: Include: {error}") from None
            yield from _lines(included, str(file), cluster, (*within, file))
        elif pairs := _PAIR.findall(line):
            yield where, {key.casefold(): quoted or plain for key, quoted, plain in pairs}


class _Configuration:
    """What lines say: nodes, defaults of later lines, sets of nodes, partitions, the cluster."""

    def __init__(self) -> None:
        self.records = Records()
        self.cluster: dict[str, str] = {}
        self.defaults: dict[str, dict[str, str]] = {}
        self.absent: set[str] = set()
        self.sets: dict[str, list[tuple[str, Keys]]] = defaultdict(list)
        self.of_feature: dict[str, list[str]] = defaultdict(list)
        self.partitions: list[tuple[str, Keys]] = []

    def add(self, keys: dict[str, str], where: str) -> None:
        """Add a line."""
        kind = next((key for key in keys if key in KINDS), "")
        name = keys.get(kind, "")
        if not kind:
            self.cluster |= keys
        elif kind == "downnodes":
            self.records.note("DownNodes, kept: jobs ran on them before", name)
        elif kind == "switchname":
            below = keys.get("switches", "")
            self.records.add_switch(name, keys.get("nodes", ""), below, where)
        elif kind == "nodeset":
            self.sets[name].append((where, keys))
        elif name.upper() == "DEFAULT":
            self.defaults[kind] = self.defaults.get(kind, {}) | keys
        elif kind == "nodename":
            self._add_nodes(self.defaults.get(kind, {}) | keys, where)
        else:
            self.partitions.append((where, self.defaults.get(kind, {}) | keys))

    def _add_nodes(self, keys: Keys, where: str) -> None:
        names = hosts_of(keys["nodename"], f"{where}: NodeName")
        state = keys.get("state", "").upper()
        for feature in keys.get("feature", keys.get("features", "")).split(","):
            self.of_feature[feature] += names if feature else []
        cpus, gpus = _cpus_of(keys, where), _read(keys, "Gres", gpus_of, where)
        memory = _read(keys, "RealMemory", count_of, where)
        memory = memory_of(memory - _read(keys, "MemSpecLimit", count_of, where))
        for name in names:
            if any(word in state for word in NO_NODES):
                self.absent.add(name)
                self.records.note(f"in state {state}, left out", name)
                continue
            self.records.add_node(NodeRecord(name, cpus, gpus, memory), where)
            self.records.note_state(state, name)
            for other in other_resources(keys.get("gres", "")):
                self.records.note(f"generic resource {other} is not simulated", name)

    def add_partitions(self) -> None:
        """Add the partitions, their nodes by name."""
        for where, keys in self.partitions:
            name = keys["partitionname"]
            self.records.add_partition(
                PartitionRecord(
                    name,
                    self._nodes_of(keys.get("nodes", ""), f"{where}: nodes of partition {name}"),
                    where,
                    _read(keys, "MaxTime", seconds_of, where),
                    _read(keys, "MaxNodes", count_of, where),
                    _tier(keys, where),
                    keys.get("default", "").upper() == "YES",
                )
            )
            stated = {key: keys.get(key.casefold(), keys.get(OLD.get(key, ""))) for key in PLAIN}
            for key, value in stated.items():
                if value is not None and value.upper() not in PLAIN[key]:
                    self.records.note(f"{key}={value} of partitions is not simulated", name)

    def _nodes_of(self, text: str, where: str) -> str:
        """Return a list of hosts, with the nodes of sets in place of their names."""
        if text.upper() in ("", "ALL", "(NULL)"):
            return "ALL" if text.upper() == "ALL" else ""
        nodes = (node for name in hosts_of(text, where) for node in self._set(name) or [name])
        return ",".join(node for node in dict.fromkeys(nodes) if node not in self.absent)

    def _set(self, name: str) -> list[str]:
        nodes = []
        for where, keys in self.sets.get(name, []):
            nodes += hosts_of(keys.get("nodes", ""), f"{where}: Nodes of NodeSet {name}")
            nodes += self.of_feature[keys.get("feature", "")]
        return nodes

    def note_cluster(self, path: str) -> None:
        """Note what of the whole cluster matters, and read the switches beside the file."""
        if self.cluster.get("selecttype", "").endswith("linear"):
            self.records.note("SelectType=select/linear, whole nodes, is not simulated", path)
        topology = self.cluster.get("topologyplugin", "")
        if not topology or topology.endswith(("none", "default", "flat")) or self.records.leaves:
            return
        beside = Path(path).parent / "topology.conf"
        if not topology.endswith("tree"):
            self.records.note(f"TopologyPlugin={topology} is not simulated: one switch", path)
        elif not beside.exists():
            self.records.note(
                f"TopologyPlugin={topology}, no topology.conf beside: one switch", path
            )
        else:
            self.records.note("file of switches read beside it", str(beside))
            for where, keys in _lines(text_of(beside), str(beside), {}):
                self.add(keys, where)
            if not self.records.leaves:
                self.records.note("no switch with nodes there: one switch", str(beside))


def _read(keys: Keys, key: str, read: Callable[[str], int], where: str) -> int:
    """Read a field; an error names it as the manual does."""
    return read_field({key: keys.get(key.casefold(), "")}, key, read, where)


def _tier(keys: Keys, where: str) -> int:
    """Read the tier of a partition, 1 where none is stated."""
    key = "PriorityTier" if "prioritytier" in keys else "Priority"
    return _read(keys, key, count_of, where) if key.casefold() in keys else 1


def _cpus_of(keys: Keys, where: str) -> int:
    """Return the cpus of a node that jobs can have: all less those kept for the system."""
    stated = {key: _read(keys, key, count_of, where) for key in PARTS if key.casefold() in keys}
    sockets = prod(stated.get(key, 1) for key in PARTS[:3])
    cores = sockets * stated.get("CoresPerSocket", 1)
    threads = cores * stated.get("ThreadsPerCore", 1)
    cpus = _read(keys, "CPUs", count_of, where) or _read(keys, "Procs", count_of, where)
    if not (cpus or stated) or not threads:
        name = keys["nodename"]
        raise MachineError(f"{where}: node {name} states no CPUs, nor Sockets; {PRINT}")
    if cpus and stated and cpus not in (sockets, cores, threads):
        raise MachineError(
            f"{where}: CPUs is {cpus}; allowed beside its sockets, cores and threads: {sockets}, "
            f"{cores} or {threads}"
        )
    cpus = cpus or threads
    of_core = max(cpus // cores, 1) if stated else 1
    kept = _read(keys, "CoreSpecCount", count_of, where)
    if ids := keys.get("cpuspeclist", ""):
        listed = parse_numbers(ids, range(cpus), what=f"{where}: CpuSpecList", error=MachineError)
        kept = len({cpu // of_core for cpu in listed})
    if kept * of_core >= cpus:
        raise MachineError(f"{where}: {kept * of_core} of {cpus} cpus are kept for the system")
    return cpus - kept * of_core
