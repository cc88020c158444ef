"""Logs in SWF whose lines go on after field 18, or state users, groups and queues by name.

With 21 fields, as logs of CERIT-SC have them, field 20 is the queue where it is a name, and field
21 what was asked of nodes, such as `8:ppn=8`. Other further fields are not read. A job before a
job and the time between (fields 17 and 18) stay.

Source: Specification, section 14, "Reading".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hpcgym.trace.accounting.cells import Clock
from hpcgym.trace.accounting.rows import UNKNOWN, Block, Ledger, Source, in_blocks, stated_kb
from hpcgym.trace.swf import CANCELLED, GWF_FIELDS, NEVER_HELD, most_fields, wrong_length
from hpcgym.trace.swf import FIELDS as SWF_FIELDS

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?")
_PER_NODE = re.compile(r"(\d+):ppn=(\d+)(?:[:#].*)?")
_N_CERIT = 21
_HELD = SWF_FIELDS.index("allocated_processors")
NAMED = ("user", "group", "executable", "queue", "partition")


def recognises(head: str) -> bool:
    """Tell whether the first line that is no comment begins with four numbers, and is long."""
    fields = _first(head)
    if len(fields) == GWF_FIELDS or len(fields) < len(SWF_FIELDS):
        return False
    return all(map(_NUMBER.fullmatch, fields[:4]))


def has_names(head: str) -> bool:
    """Tell whether a text of this format names users or queues, which a log in SWF does not."""
    fields = _first(head)
    texts = dict(zip(SWF_FIELDS, fields, strict=False))
    odd = {key for key, text in texts.items() if not _NUMBER.fullmatch(text)}
    is_named = bool(odd) or _is_of_cerit(fields)
    return len(fields) >= len(SWF_FIELDS) and odd <= set(NAMED) and is_named


def _is_of_cerit(fields: list[str]) -> bool:
    """Tell whether a line has a queue by name, and behind it what was asked of nodes."""
    return len(fields) == _N_CERIT and not _NUMBER.fullmatch(fields[19])


def _first(head: str) -> list[str]:
    """Return the fields of the first line that is no comment."""
    lines = head.split("\n")
    return next(filter(None, (line.partition(";")[0].split() for line in lines)), [])


def blocks(source: Source, clock: Clock, ledger: Ledger) -> Iterator[Block]:
    """Yield the runs of a file."""
    return in_blocks(_rows(source, ledger))


def _rows(source: Source, ledger: Ledger) -> Iterator[dict[str, Any]]:
    for key in ("MaxNodes", "MaxProcs"):
        ledger.machine_processors = _header_number(source, key) or ledger.machine_processors
    begin = _header_number(source, "UnixStartTime")
    is_first, says_held = True, any(map(_says_held, source.lines()))
    # What simulate reads line by line has the same malformed lines here.
    lengths = {len(line.partition(";")[0].split()) for _, line in source.lines()}
    most = most_fields({each for each in lengths if each >= len(SWF_FIELDS)})
    if has_names(source.head):
        most = max(lengths, default=0)
    for number, line in source.lines():
        if fields := line.partition(";")[0].split():
            ledger.rows += 1
            try:
                row = _row(fields, most, says_held=says_held)
            except ValueError as error:
                ledger.leave_out(str(error), source.path, number)
                continue
            if is_first and 0 < begin <= row["submit"]:
                ledger.note("submit times since 1970, though the header has a UnixStartTime")
                begin = 0
            is_first = False
            if len(fields) > len(SWF_FIELDS) and not _is_of_cerit(fields):
                ledger.note("longer than 18 fields: those after are not read")
            if row["used_memory_kb"] != UNKNOWN:
                ledger.note("used memory: field 7, KB for each allocated processor")
            for key in ("submit", "start"):
                row[key] += 0 if row[key] == UNKNOWN else begin
            yield row | {"line": number}


def _header_number(source: Source, key: str) -> int:
    """Return the number that a comment states, 0 where there is none."""
    match = re.search(rf"^\s*;+\s*{key}\s*:\s*(\d{{1,12}})\s*$", source.text, re.M | re.I)
    return int(match[1]) if match else 0


def _says_held(line: tuple[int, str]) -> bool:
    """Tell whether a line states processors that a job held."""
    fields = line[1].partition(";")[0].split()
    held = fields[_HELD] if len(fields) >= len(SWF_FIELDS) else ""
    return _NUMBER.fullmatch(held) is not None and float(held) > 0


def _row(fields: list[str], most: int, *, says_held: bool) -> dict[str, Any]:
    """Read a line of 18 fields, or up to so many; a ValueError says why it is no run."""
    if len(fields) < len(SWF_FIELDS):
        raise ValueError("fewer than 18 fields")
    if len(fields) > most:
        raise ValueError(wrong_length(len(fields)))
    texts = dict(zip(SWF_FIELDS, fields, strict=False))
    numbers = {key: _number(key, text) for key, text in texts.items() if key not in NAMED}
    submit, wait, run_time = (numbers[key] for key in ("submit_time", "wait_time", "run_time"))
    if run_time < 0:
        raise ValueError("run time below 0")
    asked, held = numbers["requested_processors"], numbers["allocated_processors"]
    if run_time == 0 and held <= 0 and (says_held or numbers["status"] == CANCELLED):
        raise ValueError(NEVER_HELD)
    chunks, cpus, spread = (asked if asked > 0 else held), 1, False
    names = {key: "" if texts[key] == "-1" else texts[key] for key in NAMED}
    if _is_of_cerit(fields):
        names["queue"] = fields[19]
        each = _PER_NODE.fullmatch(fields[20])
        if each and int(each[1]) * int(each[2]) == chunks:
            chunks, cpus, spread = int(each[1]), int(each[2]), int(each[1]) > 1
    if chunks <= 0:
        raise ValueError("no processors")
    start = submit + wait if wait >= 0 and submit >= 0 else UNKNOWN
    charged = held if held > 0 else chunks * cpus
    return {
        "job": texts["job_id"],
        "number": numbers["job_id"],
        "order": numbers["job_id"],
        "submit": submit if submit >= 0 else UNKNOWN,
        "start": start,
        "run_time": run_time,
        "requested_time": numbers["requested_time"] if numbers["requested_time"] > 0 else UNKNOWN,
        "charged": charged,
        "used_memory_kb": stated_kb(numbers["used_memory"] * charged),
        "asked_memory_kb": stated_kb(numbers["requested_memory"] * chunks * cpus),
        "chunks": chunks,
        "cpus": cpus,
        "spread": spread,
        "status": numbers["status"],
        "after": numbers["preceding_job"] if numbers["preceding_job"] > 0 else UNKNOWN,
        "think_time": max(numbers["think_time"], 0),
        **names,
    }


def _number(key: str, text: str) -> int:
    """Read a number, rounded to a whole one."""
    if not _NUMBER.fullmatch(text) or len(text) > 15:
        raise ValueError(f"{key} is no number")
    return int(float(text) + 0.5) if "." in text else int(text)
