"""Outages that a site's files state, in Unix time: reservations, states of nodes, a table.

They are in what `scontrol show reservation`, `scontrol show node` and `sinfo` print, and in a CSV
file with columns from, to, processors or nodes, and perhaps announced. Its content says which.

Source: Specification, section 15, "Outages".
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from hpcgym.base.errors import LARGEST_WHOLE, MachineError, unknown_name
from hpcgym.base.ranges import number_ranges
from hpcgym.machine.files.priorities import read_cell
from hpcgym.machine.files.records import AWAY, count_of, hosts_of, text_of

COLUMNS = ("from", "to", "processors", "nodes", "announced")
SINFO = "sinfo -N -o '%N %T %c %H %E'"
COMMAND = f"scontrol show reservation; scontrol show node; {SINFO}"

_HEADS = re.compile(r"\A(?:.*\n)?(?=.*\b(NODELIST|HOSTNAMES)\b)([A-Z_][^a-z\n]*)\n", re.ASCII)
_SHORT = re.compile(r"drng|futr|pow_dn|.*[~%]", re.I)  # how sinfo marks what no word of `AWAY` does
_RECORD = re.compile(r"^(?:Reservation|Node)Name=", re.MULTILINE)
_PAIR = re.compile(r"(?:^|\s)([A-Z]\w*)=(.*?)(?=\s+[A-Z]\w*=|\s*$)", re.DOTALL)
_SINCE = re.compile(r"\[[^\[\]@]*@([^\[\]]+)\]\s*$")


ReadTime: TypeAlias = Callable[[str], int]


class StatedOutage(NamedTuple):
    """An outage; times in Unix seconds, or as the log has them where it has no dates."""

    from_: int
    to: int
    processors: int  # 0 where nodes are named
    nodes: str  # ranges of ids; "" where processors are counted
    announced: int  # 0 = always known

    def __str__(self) -> str:
        """Return it as the text of an event."""
        taken = f"nodes={self.nodes}" if self.nodes else f"processors={self.processors}"
        return f"outage:from={self.from_},to={self.to},{taken},announced={self.announced}"


def read_outages(
    path: str | Path, node_names: tuple[str, ...], read_time: ReadTime
) -> tuple[list[StatedOutage], list[str]]:
    """Read outages, and what is to be said of them.

    Args:
        node_names: The name of each node by its id; none where processors are counted.
        read_time: Reads a time as Unix seconds, or raises a ValueError.
    """
    text = text_of(path)
    ids = {name: number for number, name in enumerate(node_names)}
    if _RECORD.search(text):
        return _records(text, str(path), ids, read_time)
    if heads := _HEADS.match(text):
        return list(_sinfo(text, heads, str(path), ids, read_time)), []
    rows = list(csv.DictReader(text.splitlines()))
    named = [name.strip() for name in rows[0]] if rows else []
    if not {"from", "to"} <= set(named) <= set(COLUMNS):
        raise MachineError(
            f"{path}: neither what these print: {COMMAND}; nor a table with columns "
            f"{', '.join(COLUMNS)}"
        )
    return [_row(row, f"{path}:{at}", ids, read_time) for at, row in enumerate(rows, start=2)], []


def _row(
    row: Mapping[str, str], where: str, ids: Mapping[str, int], read_time: ReadTime
) -> StatedOutage:
    cells = {name.strip(): (cell or "").strip() for name, cell in row.items()}
    known = ("from", "to", "announced") if cells.get("announced") else ("from", "to")
    times = [_instant(cells.get(name, ""), f"{where}: {name}", read_time) for name in known]
    times += [0] * (3 - len(times))
    processors = read_cell(count_of, cells.get("processors") or "0", f"{where}: processors")
    nodes = cells.get("nodes", "")
    hosts = hosts_of(nodes.replace("/", ","), where) if ids else []
    if not ids.keys().isdisjoint(hosts):  # else they are ids and groups of nodes
        if unknown := [host for host in hosts if host not in ids]:
            raise MachineError(f"{where}: {unknown_name('node', unknown[0], ids)}")
        nodes = _of(0, 0, ",".join(hosts), "", where, ids).nodes
    return StatedOutage(times[0], times[1], processors, nodes, times[2])


def _records(
    text: str, path: str, ids: Mapping[str, int], read_time: ReadTime
) -> tuple[list[StatedOutage], list[str]]:
    made: list[StatedOutage] = []
    for_some = 0
    for keys in _pairs(text):
        name = keys.get("ReservationName") or keys["NodeName"]
        where = f"{path}: {name}"
        if "ReservationName" in keys and "MAINT" not in keys.get("Flags", ""):
            for_some += 1
        elif "ReservationName" in keys:
            begin, end = (
                _instant(keys.get(key, ""), f"{where}: {key}", read_time)
                for key in ("StartTime", "EndTime")
            )
            made.append(_of(begin, end, keys.get("Nodes", ""), keys.get("CoreCnt", ""), where, ids))
        elif any(word in keys.get("State", "").upper() for word in AWAY):
            since = _SINCE.search(keys.get("Reason", ""))
            begin = _instant(since[1], f"{where}: Reason", read_time) if since else 0
            cpus = keys.get("CPUTot", "")
            down = _of(begin, LARGEST_WHOLE, name, cpus, where, ids)
            made.append(down._replace(announced=begin))
    said = f"reservations for some users, not simulated: {for_some}"
    return made, [said] if for_some else []


def _sinfo(
    text: str, heads: re.Match[str], path: str, ids: Mapping[str, int], read_time: ReadTime
) -> Iterator[StatedOutage]:
    """Yield an outage of what each line of `sinfo` lists as away; partitions list a node again."""
    mark = next(iter(re.findall(r"[|,;\t]", heads[2])), None)
    lines = [[cell.strip() for cell in line.split(mark)] for line in text.splitlines()]
    names = lines[(first := text.count("\n", 0, heads.end())) - 1]
    asked = {
        "TIMESTAMP": "since when nodes are down",
        "CPUS": "their cpus, nor --machine the nodes",
    }
    for name in asked if not ids else ["TIMESTAMP"]:
        if name not in names:
            raise MachineError(f"{path}: sinfo did not print {asked[name]}; print it by: {SINFO}")
    at, seen = names.index("REASON") if "REASON" in names else len(names), set[str]()
    for number, cells in enumerate(lines[first:], start=first + 1):
        where = f"{path}:{number}"
        more = len(cells) - len(names)
        if not any(cells):
            continue
        if more < 0 or (more and at == len(names)):
            raise MachineError(f"{where}: {len(cells)} values below {len(names)} names: {SINFO}")
        reason = " ".join(cells[at : at + more + 1])  # which may hold anything
        row = dict(zip(names, [*cells[:at], reason, *cells[at + more + 1 :]], strict=False))
        state = row.get("STATE", "" if reason == "none" else AWAY[0])
        hosts = [host for host in hosts_of(row[heads[1]], where) if host not in seen]
        is_away = any(word in state.upper() for word in AWAY) or _SHORT.match(state)
        if hosts and is_away:
            seen.update(hosts)
            since, each = row["TIMESTAMP"], row.get("CPUS", "0")
            begin = 0 if since == "Unknown" else _instant(since, f"{where}: TIMESTAMP", read_time)
            cpus = len(hosts) * read_cell(count_of, each, f"{where}: CPUS")
            down = _of(begin, LARGEST_WHOLE, ",".join(hosts), str(cpus), where, ids)
            yield down._replace(announced=begin)


def _of(
    begin: int, end: int, hosts: str, cpus: str, where: str, ids: Mapping[str, int]
) -> StatedOutage:
    """Return an outage of hosts, by id where nodes are known, else as so many processors."""
    if not ids:
        return StatedOutage(begin, end, read_cell(count_of, cpus, f"{where}: processors"), "", 0)
    known = sorted(ids[host] for host in hosts_of(hosts, where) if host in ids)
    if not known:
        raise MachineError(f"{where}: the machine has none of its nodes, {hosts[:60]}")
    return StatedOutage(begin, end, 0, number_ranges(known).replace(",", "/"), 0)


def _pairs(text: str) -> Iterator[dict[str, str]]:
    """Yield the fields of each record."""
    begins = [match.start() for match in _RECORD.finditer(text)]
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        yield {key: value.strip() for key, value in _PAIR.findall(text[begin:end])}


def _instant(text: str, where: str, read_time: ReadTime) -> int:
    try:
        if not text:
            raise ValueError
        return read_time(text)
    except ValueError:
        raise MachineError(
            f"{where} is {text[:60]!r}; allowed: whole seconds, or 2026-03-01T08:00:00"
        ) from None
