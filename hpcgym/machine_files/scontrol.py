"""Text of `scontrol show node` and `scontrol show partition`, in any order, also by `-o`.

Source: Specification, section 14, "Machines".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hpcgym.errors import MachineError
from hpcgym.machine_files.records import (
    NodeRecord,
    PartitionRecord,
    Records,
    count_of,
    first_known,
    gpus_of,
    other_resources,
    resource_of,
    seconds_of,
)

COMMAND = "scontrol show node; scontrol show partition"

_BEGIN = re.compile(r"^[ \t]*(?=(?:NodeName|PartitionName)=\S)", re.MULTILINE)
_PAIR = re.compile(r"(?:^|\s)([A-Z]\w*)=(.*?)(?=\s+[A-Z]\w*=|\s*$)", re.DOTALL)
_UNCONFIGURED_MB = 1

SIMULATED_AS = {
    "MinNodes": ("0", "1"),
    "MaxCPUsPerNode": ("UNLIMITED", "0"),
    "MaxCPUsPerSocket": ("UNLIMITED", "0"),
    "MaxMemPerNode": ("UNLIMITED",),
    "MaxMemPerCPU": ("UNLIMITED",),
    "OverSubscribe": ("NO",),
    "ExclusiveUser": ("NO",),
    "QoS": ("N/A",),
    "OverTimeLimit": ("NONE", "0"),
    "State": ("UP",),
}
"""Values of a partition's fields that change nothing here; others are named as not simulated."""


def recognises(text: str) -> bool:
    """Tell whether a text has a record of a node or a partition."""
    return _BEGIN.search(text) is not None


def read(text: str, path: str) -> Records:
    """Read all records.

    Raises:
        MachineError: A record lacks a field, or a field cannot be read.
    """
    records = Records()
    for line, keys in _records(text):
        where = f"{path}:{line}"
        if "NodeName" in keys:
            node = _node(keys, where)
            records.add_node(node, where)
            records.note_state(keys.get("State", ""), node.name)
            for name in other_resources(keys.get("Gres", "")):
                records.note(f"generic resource {name} is not simulated", node.name)
        else:
            records.add_partition(_partition(keys, where))
            for key, plain in SIMULATED_AS.items():
                if key in keys and keys[key] not in plain:
                    what = f"{key}={keys[key]} of partitions is not simulated"
                    records.note(what, keys["PartitionName"])
    return records


def _records(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the fields of each record; of fields that come twice the first counts."""
    begins = [begin.end() for begin in _BEGIN.finditer(text)]
    line, counted = 1, 0
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        line += text.count("\n", counted, begin)
        counted = begin
        record = re.split(r"\n\s*\n", text[begin:end], maxsplit=1)[0]
        yield line, {key: value.strip() for key, value in reversed(_PAIR.findall(record))}


def _node(keys: dict[str, str], where: str) -> NodeRecord:
    """Read a node."""
    name, configured = keys["NodeName"], keys.get("CfgTRES", "")
    keys["TRES"] = resource_of(configured, "cpu")
    cpus = first_known(keys, "CPUEfctv", "TRES", "CPUTot")
    if not cpus:
        raise MachineError(
            f"{where}: node {name} states no CPUTot, CPUEfctv or CfgTRES; print it by: {COMMAND}"
        )
    keys["CfgTRES gres/gpu"] = resource_of(configured, "gres/gpu")
    gpus = _read(keys, "Gres", gpus_of, where) or _read(keys, "CfgTRES gres/gpu", count_of, where)
    memory = _read(keys, "RealMemory", count_of, where)
    memory -= _read(keys, "MemSpecLimit", count_of, where)
    return NodeRecord(
        name,
        _read({"CPUTot": cpus}, "CPUTot", count_of, where),
        gpus,
        0 if memory <= _UNCONFIGURED_MB else memory,
        partitions=tuple(filter(None, keys.get("Partitions", "").split(","))),
    )


def _partition(keys: dict[str, str], where: str) -> PartitionRecord:
    """Read a partition."""
    return PartitionRecord(
        keys["PartitionName"],
        "" if keys.get("Nodes") == "(null)" else keys.get("Nodes", ""),
        where,
        _read(keys, "MaxTime", seconds_of, where),
        _read(keys, "MaxNodes", count_of, where),
        _read(keys, "PriorityTier", count_of, where),
        keys.get("Default", "").upper() == "YES",
    )


def _read(keys: dict[str, str], key: str, read: Callable[[str], int], where: str) -> int:
    """Read a field; an error names it."""
    text = keys.get(key, "")
    try:
        return read(text)
    except ValueError as error:
        raise MachineError(f"{where}: {key} is {text[:60]!r}; {error}") from None
