"""JSON of `sinfo`, also of `scontrol show nodes` and `show partitions`, whichever version.

Slurm 22.05 lists nodes, which name their partitions. Later ones list rows of nodes that are alike,
each with its partition. Memory is in MB and time limits in minutes.

Source: Specification, section 14, "Machines".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpcgym.base.errors import MachineError
from hpcgym.machine import LARGEST_NUMBER
from hpcgym.machine.files.records import (
    NodeRecord,
    PartitionRecord,
    Records,
    count_of,
    gpus_of,
    hosts,
    other_resources,
    resource_of,
)

_KEYS = ("sinfo", "nodes", "partitions")
_FIRST_KEY = re.compile(r"\s*\{")


def recognises(text: str) -> bool:
    """Tell whether a text is an object."""
    return _FIRST_KEY.match(text) is not None


def read(text: str, path: str) -> Records:
    """Read all nodes and partitions."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise MachineError(f"{path}:{error.lineno}: no JSON here: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise MachineError(f"{path}: cannot be read as JSON: {error}") from None
    if not any(isinstance(document.get(key), list) for key in _KEYS):
        raise MachineError(
            f"{path}: an object without a list {', '.join(_KEYS)}; print it by: sinfo --json"
        )
    records = Records()
    for where, row in _entries(document, "sinfo", path):
        _add_row(records, row, where)
    for where, row in _entries(document, "nodes", path):
        _add_node(records, row, where)
    for where, row in _entries(document, "partitions", path):
        _add_partition(records, row, where)
    return records


def _entries(document: Any, key: str, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the objects of a list, and where each is."""
    for number, entry in enumerate(document.get(key) or [], start=1):
        where = f"{path}: {key} {number}"
        if not isinstance(entry, Mapping):
            raise MachineError(f"{where}: an object is needed, got {type(entry).__name__}")
        yield where, entry


def _at(entry: Any, path: str) -> Any:
    """Return what is at a path of keys; None where nothing is."""
    for key in path.split("."):
        entry = entry.get(key) if isinstance(entry, Mapping) else None
    return entry


def _number(entry: Mapping[str, Any], path: str, where: str) -> int:
    """Return a whole number, plain or as an object that may say that it is infinite; 0 unset."""
    value = _at(entry, path)
    if isinstance(value, Mapping):
        limited = value.get("set", True) and not value.get("infinite")
        value = value.get("number") if limited else 0
    if value is None or value == "":
        return 0
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 13:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LARGEST_NUMBER:
        raise MachineError(f"{where}: {path} is {str(value)[:60]!r}; allowed: a whole number")
    return value


def _text(entry: Mapping[str, Any], path: str) -> str:
    """Return a text, a list of texts joined by commas, or ""."""
    value = _at(entry, path)
    text = ",".join(map(str, value)) if isinstance(value, list) else value
    return text.encode(errors="replace").decode() if isinstance(text, str) else ""


def _gpus(records: Records, name: str, gres: str, configured: str, where: str) -> int:
    """Return the GPUs of a node, and note other generic resources."""
    for other in other_resources(gres):
        records.note(f"generic resource {other} is not simulated", name)
    try:
        return gpus_of(gres) or count_of(resource_of(configured, "gres/gpu"))
    except ValueError as error:
        raise MachineError(f"{where}: gres is {gres[:60]!r}; {error}") from None


def _add_node(records: Records, row: Mapping[str, Any], where: str) -> None:
    name = _named(row, where)
    cpus = _number(row, "effective_cpus", where) or _number(row, "cpus", where)
    if not cpus:
        raise MachineError(f"{where}: node {name} states no cpus")
    memory = _number(row, "real_memory", where) - _number(row, "specialized_memory", where)
    gpus = _gpus(records, name, _text(row, "gres"), _text(row, "tres"), where)
    partitions = tuple(filter(None, _text(row, "partitions").split(",")))
    node = NodeRecord(name, cpus, gpus, memory if memory > 1 else 0, "", partitions)
    records.add_node(node, where)
    records.note_state(f"{_text(row, 'state')},{_text(row, 'state_flags')}", name)


def _add_row(records: Records, row: Mapping[str, Any], where: str) -> None:
    """Add an entry of `sinfo`: nodes that are alike, and their partition."""
    sizes = []
    for key in ("cpus", "memory"):
        low, high = (_number(row, f"{key}.{end}", where) for end in ("minimum", "maximum"))
        if low != high:
            raise MachineError(
                f"{where}: {key} of its nodes from {low} to {high}, so those of each are not "
                "known; print them by: sinfo -N --json"
            )
        sizes.append(low)
    partition = row.get("partition")
    if isinstance(partition, Mapping) and _text(partition, "name") not in records.partitions:
        _add_partition(records, partition, f"{where}: partition")
    for listed in _listed(row, where):
        if listed in records.nodes:
            continue
        if not sizes[0]:
            raise MachineError(f"{where}: node {listed} states no cpus")
        gpus = _gpus(records, listed, _text(row, "gres.total") or _text(row, "gres"), "", where)
        memory = sizes[1] if sizes[1] > 1 else 0
        records.add_node(NodeRecord(listed, sizes[0], gpus, memory), where)
        records.note_state(_text(row, "node.state"), listed)


def _listed(row: Mapping[str, Any], where: str) -> Iterator[str]:
    """Yield the names of a row's nodes."""
    text = _text(row, "nodes.nodes")
    try:
        yield from hosts(text)
    except ValueError as error:
        raise MachineError(f"{where}: nodes.nodes is {text[:60]!r}; {error}") from None


_NOT_SIMULATED = {"minimums.nodes": 1, "maximums.cpus_per_node": 0, "maximums.cpus_per_socket": 0}
"""Limits of partitions that are not simulated, and the largest value that limits nothing."""


def _add_partition(records: Records, row: Mapping[str, Any], where: str) -> None:
    name = _named(row, where)
    for path, plain in _NOT_SIMULATED.items():
        if (limit := _number(row, path, where)) > plain:
            records.note(f"{path} {limit} of partitions is not simulated", name)
    records.add_partition(
        PartitionRecord(
            name,
            _text(row, "nodes.configured"),
            where,
            _number(row, "maximums.time", where) * 60,
            _number(row, "maximums.nodes", where),
            _number(row, "priority.tier", where),
        )
    )


def _named(row: Mapping[str, Any], where: str) -> str:
    name = _text(row, "name")
    if not name:
        raise MachineError(f"{where}: name is missing")
    return name
