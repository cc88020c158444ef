"""Make a machine of node and partition records: ids in the order of the file, types of alike nodes.

Source: Specification, section 14, "Machines".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from hpcgym.base.errors import MachineError, unknown_name
from hpcgym.base.ranges import number_ranges
from hpcgym.machine import Machine, NodeType, Partition
from hpcgym.machine.files.records import PartitionRecord, Records, hosts_of


def as_machine(records: Records, path: str) -> tuple[Machine, tuple[str, ...]]:
    """Return the machine, and the name of each node by its id."""
    if not records.nodes:
        raise MachineError(f"{path}: no node is listed; print nodes too: scontrol show node")
    members = {name: _members(partition, records) for name, partition in _stated(records)}
    kept = _in_partitions(records, members)
    if not kept:
        raise MachineError(f"{path}: no partition has a node")
    ids = {name: number for number, name in enumerate(kept)}
    partitions = []
    for name, nodes in members.items():
        if not nodes:
            records.note("partitions without nodes, left out", name)
            continue
        stated = records.partitions[name]
        numbers = number_ranges(sorted({ids[node] for node in nodes}))
        limits = (stated.max_time_s, stated.max_nodes, stated.tier)
        partitions.append(Partition(name, numbers, *limits))
    try:
        return Machine(_types(records, kept), tuple(partitions)), tuple(kept)
    except MachineError as error:
        raise MachineError(f"{path}: {error}") from None


def _stated(records: Records) -> Iterable[tuple[str, PartitionRecord]]:
    """Return the partitions, the default one first; without any, those that nodes name."""
    if not records.partitions:
        for node in records.nodes.values():
            for name in node.partitions:
                if name not in records.partitions:
                    records.partitions[name] = PartitionRecord(name, "", "")
                    records.note("partitions whose limits are not listed: none are taken", name)
    return sorted(records.partitions.items(), key=lambda item: not item[1].is_default)


def _members(partition: PartitionRecord, records: Records) -> list[str]:
    """Return the names of a partition's nodes: those it lists, else those that name it."""
    if partition.nodes == "ALL":
        return list(records.nodes)
    if not partition.nodes:
        return [node.name for node in records.nodes.values() if partition.name in node.partitions]
    names = hosts_of(partition.nodes, f"{partition.where}: nodes of partition {partition.name}")
    for name in names:
        if name not in records.nodes:
            what = unknown_name("node", name, list(records.nodes))
            raise MachineError(f"{partition.where}: partition {partition.name}: {what}")
    return names


def _in_partitions(records: Records, members: dict[str, list[str]]) -> list[str]:
    """Return the nodes that jobs can ask for, in order."""
    if not members:
        return list(records.nodes)
    used = {name for nodes in members.values() for name in nodes}
    for name in records.nodes:
        if name not in used:
            records.note("nodes in no partition, left out", name)
    return [name for name in records.nodes if name in used]


def _types(records: Records, names: list[str]) -> tuple[NodeType, ...]:
    """Return the node types: neighbours that are alike are one."""
    if records.leaves:
        for name in names:
            records.nodes[name] = replace(records.nodes[name], group=records.leaves.get(name, ""))
            if name not in records.leaves:
                records.note("on no switch that is listed", name)
        for host in filter(lambda host: host not in records.nodes, records.leaves):
            records.note("on a switch, and no node that is listed", host)
    nodes = [records.nodes[name] for name in names]
    keyed = groupby(nodes, key=lambda node: (node.cpus, node.gpus, node.memory_mb, node.group))
    return tuple(NodeType(len(list(alike)), *key) for key, alike in keyed)
