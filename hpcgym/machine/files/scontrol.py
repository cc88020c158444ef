"""Text of `scontrol show node`, `show partition` and `show topology`, in any order, also by `-o`.

Source: Specification, section 14, "Machines".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpcgym.base.errors import MachineError
from hpcgym.machine.files.records import (
    NodeRecord,
    PartitionRecord,
    Records,
    count_of,
    first_known,
    gpus_of,
    memory_of,
    other_resources,
    read_field,
    resource_of,
    seconds_of,
)

COMMAND = "scontrol show node; scontrol show partition"

_BEGIN = re.compile(r"^[ \t]*(?=(?:NodeName|PartitionName|SwitchName)=\S)", re.MULTILINE)
_PAIR = re.compile(r"(?:^|\s)([A-Z]\w*)=(.*?)(?=\s+[A-Z]\w*=|\s*$)", re.DOTALL)

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
    """Tell whether a text has a record of a node, a partition or a switch."""
    return _BEGIN.search(text) is not None


def read(text: str, path: str) -> Records:
    """Read all records. MachineError: a record lacks a field, or a field cannot be read."""
    records = Records()
    for line, keys in _records(text):
        where = f"{path}:{line}"
        if "NodeName" in keys:
            node = _node(keys, where)
            records.add_node(node, where)
            records.note_state(keys.get("State", ""), node.name)
            for name in other_resources(keys.get("Gres", "")):
                records.note(f"generic resource {name} is not simulated", node.name)
        elif "SwitchName" in keys:
            above = keys.get("Switches", "") or keys.get("Level", "0").strip("0")
            records.add_switch(keys["SwitchName"], keys.get("Nodes", ""), above, where)
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
    name, configured = keys["NodeName"], keys.get("CfgTRES", "")
    keys["TRES"] = resource_of(configured, "cpu")
    cpus = first_known(keys, "CPUEfctv", "TRES", "CPUTot")
    if not cpus:
        raise MachineError(
            f"{where}: node {name} states no CPUTot, CPUEfctv or CfgTRES; print it by: {COMMAND}"
        )
    keys["CfgTRES gres/gpu"] = resource_of(configured, "gres/gpu")
    gpus = read_field(keys, "Gres", gpus_of, where) or read_field(
        keys, "CfgTRES gres/gpu", count_of, where
    )
    memory = read_field(keys, "RealMemory", count_of, where)
    memory -= read_field(keys, "MemSpecLimit", count_of, where)
    return NodeRecord(
        name,
        read_field({"CPUTot": cpus}, "CPUTot", count_of, where),
        gpus,
        memory_of(memory),
        partitions=tuple(filter(None, keys.get("Partitions", "").split(","))),
    )


def _partition(keys: dict[str, str], where: str) -> PartitionRecord:
    return PartitionRecord(
        keys["PartitionName"],
        "" if keys.get("Nodes") == "(null)" else keys.get("Nodes", ""),
        where,
        read_field(keys, "MaxTime", seconds_of, where),
        read_field(keys, "MaxNodes", count_of, where),
        read_field(keys, "PriorityTier", count_of, where),
        keys.get("Default", "").upper() == "YES",
    )
