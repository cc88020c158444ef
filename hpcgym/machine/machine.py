"""Machines of nodes: node types and partitions, read from TOML and checked.

Every array of a `Machine` is computed on first use. Node ids and group numbers start at 0.

Source: Specification, section 13, "Machine".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import HpcgymError, MachineError, unknown_name
from hpcgym.base.ranges import number_ranges, parse_numbers
from hpcgym.base.registry import read_toml
from hpcgym.machine.downtime import Downtime

IntArray = NDArray[np.int64]
EntryT = TypeVar("EntryT", "NodeType", "Partition")
SwfField = Literal["partition", "queue"]

TABLES = ("nodes", "partitions", "outage")

MOST_NODES = 1_000_000
MOST_MEMBERS = 2**28  # nodes times partitions: each pair takes a byte, and kernels have a copy
MOST_CPUS = 2**31 - 1  # cpus of a node: kernels count the chunks that a node takes in 32 bits

LARGEST_NUMBER = 2**40
"""Numbers of a machine stay below this, so that int64 holds their sums over all nodes."""


@dataclass(frozen=True)
class NodeType:
    """Nodes that are alike.

    Attributes:
        count: How many there are, >= 1.
        cpus: Cpus of each, >= 1.
        gpus: GPUs of each.
        memory_mb: Memory of each, MB; 0 = not counted, and a need for it is ignored.
        group: The leaf switch that they are on.
    """

    count: int
    cpus: int
    gpus: int = 0
    memory_mb: int = 0
    group: str = ""

    def __post_init__(self) -> None:
        _check_numbers(self, {"count": 1, "cpus": 1, "gpus": 0, "memory_mb": 0})
        if self.cpus > MOST_CPUS:
            raise MachineError(f"cpus is {self.cpus}; allowed: 1 to {MOST_CPUS}")
        _check_text(self, "group")


@dataclass(frozen=True)
class Partition:
    """Nodes that jobs may ask for together, and its limits.

    Attributes:
        name: What jobs and tables call it.
        nodes: Its node ids, as "0-63,70".
        max_time_s: Longest requested time, s; 0 = no limit.
        max_nodes: Most nodes of a job; 0 = no limit.
        tier: Jobs of a higher tier go first.
    """

    name: str
    nodes: str
    max_time_s: int = 0
    max_nodes: int = 0
    tier: int = 0

    def __post_init__(self) -> None:
        _check_text(self, "name")
        _check_text(self, "nodes")
        _check_numbers(self, {"max_time_s": 0, "max_nodes": 0, "tier": -LARGEST_NUMBER})
        if not self.name.strip():
            raise MachineError("name is empty")


@dataclass(frozen=True)
class SwfPartitions:
    """Which partition a record of an SWF log asks for.

    Attributes:
        names: Pairs of a number in the log and the partition's name.
        field: Field of the log with that number: "partition" (16) or "queue" (15).
    """

    names: tuple[tuple[int, str], ...]
    field: SwfField = "partition"

    def __post_init__(self) -> None:
        if self.field not in get_args(SwfField):
            raise MachineError(unknown_name("field", self.field, get_args(SwfField)))


@dataclass(frozen=True)
class Machine:
    """Nodes in order of their ids, and the partitions that share them.

    Without a partition there is one of all nodes, called "all". Arrays must not be written to.

    Attributes:
        nodes: Node types; ids follow their order, from 0.
        partitions: Partitions, the default one first.
        swf_partitions: Partitions of the records of an SWF log; None = all are in the first.
        outages: When which nodes are down; every simulation on the machine has these outages.

    Raises:
        MachineError: A partition or an outage names a node that isn't there, a node is in no
            partition, or two partitions have one name.

    Source: Specification, section 13, "Machine".

    Example:
        >>> machine = Machine((NodeType(3, cpus=32), NodeType(1, cpus=64, gpus=4)))
        >>> machine.cpus, machine.partition_names
        (160, ('all',))
        >>> machine.node_gpus
        array([0, 0, 0, 4])
    """

    nodes: tuple[NodeType, ...]
    partitions: tuple[Partition, ...] = ()
    swf_partitions: SwfPartitions | None = None
    outages: tuple[Downtime, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "outages", tuple(self.outages))
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "partitions", tuple(self.partitions))
        if not self.nodes:
            raise MachineError("a machine needs at least one node: a table [[nodes]]")
        if self.n_nodes > MOST_NODES:
            raise MachineError(f"the machine has {self.n_nodes} nodes; at most {MOST_NODES} work")
        if self.n_nodes * len(self.partitions) > MOST_MEMBERS:
            raise MachineError(
                f"the machine has {self.n_nodes} nodes and {len(self.partitions)} partitions; at "
                f"most {MOST_MEMBERS} pairs of a node and a partition work"
            )
        if not self.partitions:
            object.__setattr__(self, "partitions", (Partition("all", f"0-{self.n_nodes - 1}"),))
        self._check_partitions()
        for number, outage in enumerate(self.outages, start=1):
            with _naming(f"[[outage]] {number}"):
                self.find_nodes(outage.nodes, MachineError)

    def _check_partitions(self) -> None:
        """Refuse names that come twice, unknown nodes and nodes of no partition."""
        names = self.partition_names
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        if twice:
            raise MachineError(f"[[partitions]] two have the name {twice[0]!r}")
        alone = np.flatnonzero(~self.members.any(axis=0))
        if len(alone):
            raise MachineError(
                f"[[partitions]] no partition has the nodes {number_ranges(alone.tolist())}; "
                "every node needs one"
            )
        known = set(names)
        for number, name in self.swf_partitions.names if self.swf_partitions else ():
            if name not in known:
                what = unknown_name("partition", name, names)
                raise MachineError(f"[partitions.swf] {number}: {what}")

    @classmethod
    def from_toml(cls, path: str | Path) -> Machine:
        """Read a machine from a file of tables `[[nodes]]`, `[[partitions]]` and `[[outage]]`.

        Raises:
            MachineError: The file cannot be read, or has an error; the message names file and key.
        """
        document = read_toml(path, MachineError)
        try:
            return cls.from_dict(document)
        except MachineError as error:
            raise MachineError(f"{path}: {error}") from None

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Machine:
        """Read a machine from the tables of such a file.

        Raises:
            MachineError: As `from_toml`, without the file's name.

        Example:
            >>> Machine.from_dict({"nodes": [{"count": 2, "cpu": 8}]})
            Traceback (most recent call last):
            hpcgym.base.errors.MachineError: [[nodes]] 1: unknown key 'cpu'; did you mean 'cpus'? \
Allowed: count, cpus, gpus, memory_mb, group
        """
        for key in document:
            if key not in TABLES:
                raise MachineError(unknown_name("table or key", key, TABLES))
        nodes = _read_entries(NodeType, "nodes", document.get("nodes", []))
        tables, swf = _without_swf(document.get("partitions", []))
        partitions = _read_entries(Partition, "partitions", tables)
        outages = []
        for number, table in enumerate(_tables("outage", document.get("outage", [])), start=1):
            with _naming(f"[[outage]] {number}"):
                outages.append(Downtime.from_dict(table))
        return cls(nodes, partitions, swf, tuple(outages))

    def to_dict(self) -> dict[str, Any]:
        """Return the tables that `from_dict` reads."""
        partitions: list[dict[str, Any]] = [dict(vars(partition)) for partition in self.partitions]
        if self.swf_partitions is not None:
            names = {str(number): name for number, name in self.swf_partitions.names}
            partitions[-1]["swf"] = {"field": self.swf_partitions.field, **names}
        tables = {
            "nodes": [dict(vars(node_type)) for node_type in self.nodes],
            "partitions": partitions,
        }
        if self.outages:
            tables["outage"] = [outage.to_dict() for outage in self.outages]
        return tables

    def __str__(self) -> str:
        n = len(self.partitions)
        partitions = f"{n} partition" + "s" * (n > 1)
        return f"{self.n_nodes} nodes, {self.cpus} cpus, {partitions}"

    @cached_property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return sum(node_type.count for node_type in self.nodes)

    @cached_property
    def cpus(self) -> int:
        """Cpus of all nodes: the machine's size M."""
        return sum(node_type.count * node_type.cpus for node_type in self.nodes)

    @cached_property
    def node_cpus(self) -> IntArray:
        """Cpus of each node, shape (n_nodes,)."""
        return self._of_nodes(node_type.cpus for node_type in self.nodes)

    @cached_property
    def node_gpus(self) -> IntArray:
        """GPUs of each node, shape (n_nodes,)."""
        return self._of_nodes(node_type.gpus for node_type in self.nodes)

    @cached_property
    def node_memory_mb(self) -> IntArray:
        """Memory of each node, MB, 0 = not counted, shape (n_nodes,)."""
        return self._of_nodes(node_type.memory_mb for node_type in self.nodes)

    @cached_property
    def group_names(self) -> tuple[str, ...]:
        """Name of each group, in order of first appearance."""
        return tuple(dict.fromkeys(node_type.group for node_type in self.nodes))

    @cached_property
    def node_group(self) -> IntArray:
        """Number of each node's group in `group_names`, shape (n_nodes,)."""
        numbers = {name: number for number, name in enumerate(self.group_names)}
        return self._of_nodes(numbers[node_type.group] for node_type in self.nodes)

    @cached_property
    def partition_names(self) -> tuple[str, ...]:
        """Name of each partition."""
        return tuple(partition.name for partition in self.partitions)

    @property
    def has_partitions(self) -> bool:
        """Whether partitions are stated; False where there is only the one of all nodes, "all"."""
        return self.partitions != (Partition("all", f"0-{self.n_nodes - 1}"),)

    @cached_property
    def members(self) -> NDArray[np.bool_]:
        """Whether a partition has a node, shape (n_partitions, n_nodes)."""
        members = np.zeros((len(self.partitions), self.n_nodes), dtype=bool)
        first: dict[str, int] = {}
        for number, partition in enumerate(self.partitions):
            if first.setdefault(partition.nodes, number) < number:  # often many have the same
                members[number] = members[first[partition.nodes]]
                continue
            what = f"[[partitions]] {number + 1}: nodes"
            ids = parse_numbers(partition.nodes, range(self.n_nodes), what=what, error=MachineError)
            members[number, list(ids)] = True
        return members

    @cached_property
    def max_time_s(self) -> IntArray:
        """Longest requested time in each partition, s, 0 = no limit, shape (n_partitions,)."""
        return np.array([partition.max_time_s for partition in self.partitions], dtype=np.int64)

    @cached_property
    def max_nodes(self) -> IntArray:
        """Most nodes of a job in each partition, 0 = no limit, shape (n_partitions,)."""
        return np.array([partition.max_nodes for partition in self.partitions], dtype=np.int64)

    @cached_property
    def tier(self) -> IntArray:
        """Tier of each partition, shape (n_partitions,)."""
        return np.array([partition.tier for partition in self.partitions], dtype=np.int64)

    @cached_property
    def component(self) -> IntArray:
        """Number of each partition's component, shape (n_partitions,).

        Partitions that share nodes, directly or through others, are one component.
        """
        of_node = np.arange(self.n_nodes)
        for members in self.members:
            joined = np.zeros(self.n_nodes, dtype=bool)
            joined[of_node[members]] = True
            of_node[joined[of_node]] = np.argmax(joined)
        least = of_node[self.members.argmax(axis=1)].tolist()
        numbers = {node: number for number, node in enumerate(dict.fromkeys(least))}
        return np.array([numbers[node] for node in least], dtype=np.int64)

    @cached_property
    def n_components(self) -> int:
        """Number of components."""
        return int(self.component.max()) + 1

    def find_nodes(self, names: Iterable[str], error: type[HpcgymError]) -> tuple[int, ...]:
        """Return the ids of the nodes that an outage names, ascending, each once.

        Raises:
            HpcgymError: A name is no id, no range of ids and no group; `error` is raised.
        """
        node_ids: set[int] = set()
        for name in names:
            if name and name in self.group_names:
                group = self.group_names.index(name)
                node_ids.update(np.flatnonzero(self.node_group == group).tolist())
            elif re.fullmatch(r"[\d\s-]+", name):
                ids = range(self.n_nodes)
                node_ids.update(parse_numbers(name, ids, what="outage: nodes", error=error))
            else:
                known = [f"0-{self.n_nodes - 1}", *filter(None, self.group_names)]
                raise error(f"outage: {unknown_name('node or group', name, known)}")
        return tuple(sorted(node_ids))

    def _of_nodes(self, values: Iterable[int]) -> IntArray:
        """Repeat a number of each node type over its nodes."""
        counts = [node_type.count for node_type in self.nodes]
        return np.repeat(np.array(list(values), dtype=np.int64), counts)


def _check_numbers(entry: object, least: Mapping[str, int]) -> None:
    for key, low in least.items():
        value = getattr(entry, key)
        if isinstance(value, bool) or not isinstance(value, int):
            kind = type(value).__name__
            raise MachineError(f"{key} must be a whole number, got {kind} {value!r}")
        if not low <= value <= LARGEST_NUMBER:
            raise MachineError(f"{key} is {value}; allowed: {low} to {LARGEST_NUMBER}")


def _check_text(entry: object, key: str) -> None:
    value = getattr(entry, key)
    if not isinstance(value, str):
        raise MachineError(f"{key} must be a text, got {type(value).__name__} {value!r}")


def _read_entries(cls: type[EntryT], key: str, tables: Any) -> tuple[EntryT, ...]:
    """Return the entries of an array of tables; errors count them from 1."""
    entries = []
    for number, table in enumerate(_tables(key, tables), start=1):
        with _naming(f"[[{key}]] {number}"):
            entries.append(_read_entry(cls, table))
    return tuple(entries)


@contextmanager
def _naming(table: str) -> Iterator[None]:
    """Name a table in an error."""
    try:
        yield
    except HpcgymError as error:
        raise MachineError(f"{table}: {error}") from None


def _tables(key: str, tables: Any) -> list[dict[str, Any]]:
    """Return an array of tables; refuse anything else."""
    if not isinstance(tables, list | tuple) or not all(isinstance(table, dict) for table in tables):
        raise MachineError(f"{key} must be tables [[{key}]], got {type(tables).__name__}")
    return list(tables)


def _read_entry(cls: type[EntryT], table: dict[str, Any]) -> EntryT:
    """Return one table as its class; refuse unknown and missing keys."""
    allowed = {field.name: field for field in fields(cls)}
    for key in table:
        if key not in allowed:
            raise MachineError(unknown_name("key", key, allowed))
    for key, field in allowed.items():
        if key not in table and field.default is MISSING:
            raise MachineError(f"{key} is missing")
    return cls(**table)


def _without_swf(tables: Any) -> tuple[list[dict[str, Any]], SwfPartitions | None]:
    """Part the table `[partitions.swf]` from the partitions; TOML gives it to the one before it."""
    partitions = [dict(table) for table in _tables("partitions", tables)]
    swf_tables = [partition.pop("swf") for partition in partitions if "swf" in partition]
    if len(swf_tables) > 1:
        raise MachineError("[partitions.swf] comes twice; write one table with all numbers")
    return partitions, _read_swf(swf_tables[0]) if swf_tables else None


def _read_swf(table: Any) -> SwfPartitions:
    """Return the table that maps numbers of a log to partitions."""
    if not isinstance(table, dict):
        raise MachineError(f"[partitions.swf] must be a table, got {table!r}")
    names: list[tuple[int, str]] = []
    for key, name in table.items():
        if key == "field":
            continue
        if not key.removeprefix("-").isdecimal():
            raise MachineError(f"[partitions.swf] {key!r} is neither a number nor `field`")
        if not isinstance(name, str):
            raise MachineError(f"[partitions.swf] {key} must be a partition's name, got {name!r}")
        names.append((int(key), name))
    try:
        return SwfPartitions(tuple(names), table.get("field", "partition"))
    except MachineError as error:
        raise MachineError(f"[partitions.swf] {error}") from None
