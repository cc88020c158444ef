"""Write a machine as TOML that `read_machine` reads again, with names and notes as comments."""

from __future__ import annotations

import json
from itertools import accumulate

from hpcgym.base.text_table import printable
from hpcgym.machine.files.formats import MachineFile


def to_toml(read: MachineFile) -> str:
    """Return the text of a file; outages and partitions of SWF come with it."""
    tables = read.machine.to_dict()
    swf = tables["partitions"][-1].pop("swf", None)
    lines = [f"# {printable(line)}" for line in str(read).split("\n")]
    ends = accumulate(node_type.count for node_type in read.machine.nodes)
    comments = [
        _names(read.node_names[end - table["count"] : end])
        for end, table in zip(ends, tables["nodes"], strict=True)
    ]
    for key, entries in tables.items():
        for number, table in enumerate(entries):
            lines += ["", f"[[{key}]]{comments[number] if key == 'nodes' else ''}"]
            lines += [f"{name} = {_value(value)}" for name, value in table.items() if value != ""]
        if key == "partitions" and swf is not None:
            lines += ["", "[partitions.swf]"]
            lines += [f"{_value(name)} = {_value(value)}" for name, value in swf.items()]
    return "\n".join([*lines, ""])


def _names(names: tuple[str, ...]) -> str:
    """Return a comment with the first and last of some nodes."""
    shown = dict.fromkeys((*names[:1], *names[-1:]))
    return f"  # {printable(' to '.join(shown))}" if names else ""


def _value(value: object) -> str:
    """Return a text, number or list as TOML writes it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
