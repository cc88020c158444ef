"""What formats of machines hand over: nodes and partitions by name, and what Slurm's texts mean.

Functions that cannot read a text raise a ValueError that says what is allowed.

Source: Specification, section 14, "Machines".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path

from hpcgym.base.errors import MachineError, unreadable
from hpcgym.machine import MOST_NODES

NO_LIMIT = frozenset({"", "UNLIMITED", "INFINITE", "NONE", "N/A", "(null)"})

AWAY = ("DOWN", "DRAIN", "FAIL", "MAINT", "FUTURE", "POWERED_DOWN", "POWERING_DOWN")
"""Words in the state of a node that takes no job now."""

_SPAN = re.compile(r"(?:(\d{1,6})-)?(\d{1,7})(?::(\d{1,7}))?(?::(\d{1,7}))?")
_PART = re.compile(r"[^\[\],\s]*(?:\[[^\[\]]*\][^\[\],\s]*)*")
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?")
_GPU = re.compile(r"(?:gres/)?gpu(?::(?!\d+(?:\(|$))[^:(=]+)?(?:[:=](\d{1,6}))?(?:\(.*)?")


@dataclass(frozen=True)
class NodeRecord:
    """A node, as a file states it; `group` is the switch or cluster that it is on."""

    name: str
    cpus: int
    gpus: int = 0
    memory_mb: int = 0
    group: str = ""
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True)
class PartitionRecord:
    """A partition, as a file states it; `nodes` is a list of hosts, such as `c[1-2],d7`."""

    name: str
    nodes: str
    where: str
    max_time_s: int = 0
    max_nodes: int = 0
    tier: int = 0
    is_default: bool = False


@dataclass
class Records:
    """Nodes and partitions by name, in the order of the file, and what is worth saying."""

    nodes: dict[str, NodeRecord] = field(default_factory=dict)
    partitions: dict[str, PartitionRecord] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    leaves: dict[str, str] = field(default_factory=dict)  # the leaf switch of each host

    def add_switch(self, name: str, nodes: str, above: str, where: str) -> None:
        """Add a switch with its nodes, or one that has other switches below it."""
        if above:
            self.note("switches above others are not simulated", name)
            return
        for host in hosts_of(nodes, f"{where}: nodes of switch {name}"):
            if self.leaves.setdefault(host, name) != name:
                raise MachineError(
                    f"{where}: node {host} is on switch {name} and on {self.leaves[host]}"
                )

    def add_node(self, node: NodeRecord, where: str) -> None:
        """Add a node; one that came before may come again, if it is alike."""
        if len(self.nodes) >= MOST_NODES:
            raise MachineError(f"{where}: more than {MOST_NODES} nodes")
        if self.nodes.setdefault(node.name, node) != node:
            raise MachineError(f"{where}: node {node.name} came before with other values")

    def add_partition(self, partition: PartitionRecord) -> None:
        """Add a partition. MachineError: another has the name."""
        if partition.name in self.partitions:
            first = self.partitions[partition.name].where
            raise MachineError(
                f"{partition.where}: partition {partition.name} was at {first} already"
            )
        self.partitions[partition.name] = partition

    def note(self, what: str, name: str) -> None:
        """Count what is worth saying of a node or partition."""
        self.notes.setdefault(what, []).append(name)

    def note_state(self, state: str, name: str) -> None:
        """Note a node that takes no job now."""
        if any(word in state.upper() for word in AWAY):
            self.note("down or drained now, kept: jobs ran on them before", name)


def seconds_of(text: str) -> int:
    """Read a limit, [D-]HH:MM:SS or minutes, s; 0 = no limit.

    Example:
        >>> seconds_of("2-00:00:00"), seconds_of("00:30:00"), seconds_of("UNLIMITED")
        (172800, 1800, 0)
    """
    if text in NO_LIMIT:
        return 0
    span = _SPAN.fullmatch(text)
    if span is None:
        raise ValueError("allowed: [D-]HH:MM:SS, minutes or UNLIMITED")
    days, first, second, third = (int(part or 0) for part in span.groups())
    if span[1] is not None:
        return days * 86_400 + first * 3600 + second * 60 + third
    if span[4] is not None:
        return first * 3600 + second * 60 + third
    return first * 60 + second


def count_of(text: str) -> int:
    """Read a count; 0 = no limit."""
    if text in NO_LIMIT:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 13):
        raise ValueError("allowed: a whole number or UNLIMITED")
    return int(text)


def gpus_of(text: str) -> int:
    """Count the GPUs in a list of generic resources.

    Example:
        >>> gpus_of("gpu:a100:4(S:0-1),shard:8"), gpus_of("gpu:2,gpu:v100:1"), gpus_of("(null)")
        (4, 3, 0)
    """
    total = 0
    for part in re.split(r",(?![^(]*\))", text):
        if part == "gpu" or part.startswith(("gpu:", "gpu(")):
            amount = _GPU.fullmatch(part)
            if amount is None:
                raise ValueError("allowed: gpu:COUNT or gpu:TYPE:COUNT")
            total += int(amount[1] or 1)
    return total


def resource_of(text: str, name: str) -> str:
    """Return the amount of a resource in a list such as `cpu=16,mem=62.50G`; "" without it."""
    pairs = (part.partition("=") for part in text.split(","))
    return next((value for key, _, value in pairs if key.strip() == name), "")


def other_resources(text: str) -> list[str]:
    """Return the names of generic resources that are no GPUs."""
    names = (re.split(r"[:(=]", part)[0].strip() for part in re.split(r",(?![^(]*\))", text))
    return [name for name in names if name not in ("", "gpu", "(null", "N/A") and text != "(null)"]


def hosts(text: str) -> Iterator[str]:
    """Yield the hosts of a list of Slurm, such as `c[01-03,7]n[1-2],login`.

    Example:
        >>> list(hosts("c[09-10],d1"))
        ['c09', 'c10', 'd1']
    """
    begin, left = 0, MOST_NODES
    while begin < len(text):
        part = _PART.match(text, begin)
        end = begin if part is None else part.end()
        name = text[begin:end]
        if not name or (end < len(text) and text[end] != ","):
            raise ValueError("allowed: hosts such as c[1-8,10],d7")
        pieces = _BRACKET.split(name)
        ranges = [list(_ranges(piece)) for piece in pieces[1::2]]
        count = prod(sum(high - low + 1 for low, high, _ in several) for several in ranges)
        if count > left:
            raise ValueError(f"allowed: at most {MOST_NODES} hosts")
        left -= count
        numbers = [
            [
                f"{number:0{width}d}"
                for low, high, width in several
                for number in range(low, high + 1)
            ]
            for several in ranges
        ]
        for chosen in product(*numbers):
            yield "".join(map("".join, zip(pieces[::2], (*chosen, ""), strict=True)))
        begin = end + 1


def hosts_of(text: str, where: str) -> list[str]:
    """Return the hosts of a list; an error says where it is."""
    try:
        return list(hosts(text))
    except ValueError as error:
        raise MachineError(f"{where}: {error}") from None


def _ranges(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield first, last and digits of each range in a bracket."""
    for part in text.split(","):
        ends = _RANGE.fullmatch(part.strip())
        if ends is None:
            raise ValueError("allowed in brackets: numbers and ranges, such as [1-8,10]")
        low, high = int(ends[1]), int(ends[2] or ends[1])
        if high < low:
            raise ValueError(f"the range {part} runs backwards")
        yield low, high, len(ends[1])


def first_known(texts: Mapping[str, str], *keys: str) -> str:
    """Return the first text that is stated and not 0; "" where there is none."""
    return next((texts[key] for key in keys if texts.get(key, "0") not in ("", "0", "(null)")), "")


def memory_of(memory_mb: int) -> int:
    """Return the memory of a node, MB; 1 or less, which is Slurm's default, is not counted."""
    return memory_mb if memory_mb > 1 else 0


def read_field(keys: Mapping[str, str], key: str, read: Callable[[str], int], where: str) -> int:
    """Read a field; an error names it."""
    text = keys.get(key, "")
    try:
        return read(text)
    except ValueError as error:
        raise MachineError(f"{where}: {key} is {text[:60]!r}; {error}") from None


def text_of(path: str | Path) -> str:
    """Return the text of a file. MachineError: it cannot be read."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise MachineError(unreadable(path, error)) from None
    return content.decode("utf-8", errors="replace").removeprefix("\ufeff").replace("\r\n", "\n")
