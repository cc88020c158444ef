"""Machines of Alea: a cluster a line, `id name nodes cpus [speed [memory in KB ...]]`.

Source: Specification, section 14, "Machines".
"""

from __future__ import annotations

import re

from hpcgym.base.errors import MachineError
from hpcgym.machine import MOST_NODES
from hpcgym.machine.files.records import NodeRecord, Records

_LINE = re.compile(r"\d+\s+(\S+)\s+(\d{1,9})\s+(\d{1,9})(?:\s+(\S+)(?:\s+(\S+).*)?)?")
_KB_PER_MB = 1024


def recognises(text: str) -> bool:
    """Tell whether the first line that is not empty is a cluster."""
    return _LINE.fullmatch(text.strip().partition("\n")[0].strip()) is not None


def read(text: str, path: str) -> Records:
    """Read all clusters; each is a group of nodes. MachineError: a line is no cluster."""
    records = Records()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where, cluster = f"{path}:{number}", _LINE.fullmatch(line.strip())
        if cluster is None:
            allowed = "id, name, nodes, cpus, speed, memory of a node in KB"
            raise MachineError(f"{where}: {line.strip()[:60]!r} is no cluster; allowed: {allowed}")
        name, nodes, cpus = cluster[1], int(cluster[2]), int(cluster[3])
        if not cpus or not 0 < nodes <= MOST_NODES:
            raise MachineError(
                f"{where}: {nodes} nodes of {cpus} cpus; allowed: 1 to {MOST_NODES}, and 1 or more"
            )
        memory = int(cluster[5]) // _KB_PER_MB if (cluster[5] or "").isdecimal() else 0
        if cluster[4] not in (None, "1", "1.0"):
            records.note(f"speed {cluster[4]} is not simulated", name)
        for node_number in range(1, nodes + 1):
            node = NodeRecord(f"{name}{node_number}", cpus, memory_mb=memory, group=name)
            records.add_node(node, where)
    return records
