"""Accounting of Grid Engine, Sun's and later ones: a row is a line, its fields parted by colons.

Source: Specification, section 14, "Grid Engine"; manual page accounting(5) of Grid Engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hpcgym.trace.accounting.cells import MOST, Clock, seconds, whole
from hpcgym.trace.accounting.rows import UNKNOWN, Block, Ledger, Source, in_blocks
from hpcgym.trace.swf import NEVER_HELD

FIELDS = (
    *("qname", "hostname", "group", "owner", "job_name", "job_number", "account", "priority"),
    *("submission_time", "start_time", "end_time", "failed", "exit_status"),
)
"""The first fields; 18 of what the job used follow."""

AFTER_USAGE = ("project", "department", "granted_pe", "slots", "task_number", "cpu", "mem", "io")
"""Those after; the category follows, in which alone colons may be."""

AFTER_CATEGORY = ("iow", "pe_taskid", "maxvmem", "arid", "ar_submission_time")
UNIVAS = ("job_class", "qdel_info")  # what Univa adds before fields that are not read

N_USAGE = 18
CATEGORY = len(FIELDS) + N_USAGE + len(AFTER_USAGE)
NONE = "NONE"

_INTEGER = re.compile(r"\d{1,15}")
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
_TASK_OF_JOB = re.compile(r"\S*[A-Za-z]\S*")
_TIME_ASKED = re.compile(r"(?:^|[\s,])(h_rt|s_rt)=([^\s,]+)")
_MOST_SECONDS = 10**11  # times beyond this, which is in the year 5138, are in milliseconds

NO_TIME_READ = "h_rt or s_rt cannot be read: the request is unknown"
SPREAD = "several slots: on how many nodes is not stated, so each is a chunk of its own"


def recognises(head: str) -> bool:
    """Tell whether a line is a row, as far as it can be seen; the first one may be cut."""
    return any(_is_row(line.split(":")) for line in head.split("\n"))


def _is_row(parts: list[str]) -> bool:
    """Tell whether fields are enough, and numbers where a row has some."""
    numbers = [*parts[5:6], *parts[8:13]]
    return len(parts) > CATEGORY and all(map(_INTEGER.fullmatch, numbers))


def blocks(source: Source, clock: Clock, ledger: Ledger) -> Iterator[Block]:
    """Yield the runs of a file."""
    return in_blocks(_rows(source, ledger))


def _rows(source: Source, ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Yield what each line states that is no comment; lines of one character are none, too."""
    for number, line in source.lines():
        if line.startswith("#") or len(line) == 1:
            continue
        ledger.rows += 1
        try:
            row = _row(line.split(":"))
        except ValueError as error:
            of_job = int(str(error) != PART)
            ledger.leave_out(str(error), source.path, number, jobs=of_job)
            continue
        for note in row.pop("notes"):
            ledger.note(note)
        yield row | {"line": number}


PART = "part of a parallel job, which has a row of its own"


def _row(parts: list[str]) -> dict[str, Any]:
    """Read a row; a ValueError says why it is no run."""
    keys = _keys(parts)
    if keys["pe_taskid"] != NONE:
        raise ValueError(PART)
    number, task, slots = (_count(keys, key) for key in ("job_number", "task_number", "slots"))
    submit, start, end = (_moment(keys, f"{key}_time") for key in ("submission", "start", "end"))
    if start == UNKNOWN:
        raise ValueError("no start")
    if end == UNKNOWN:
        raise ValueError("no end")
    if slots == 0:
        raise ValueError(NEVER_HELD if start == end else "no processors")
    failed = _count(keys, "failed") or _count(keys, "exit_status")
    account = "" if keys["account"] == "sge" else keys["account"]
    names = (keys["project"], account, keys["group"])
    limit, notes = _asked(keys["category"])
    return {
        "job": f"{number}.{task} of {submit}",  # ids come again; attempts share their submission
        "retried": True,
        "number": UNKNOWN if task else number,
        "order": number,
        "submit": submit,
        "start": start,
        "end": end,
        "run_time": end - start,
        "requested_time": limit,
        "charged": slots,
        "chunks": slots,
        "array": number if task else UNKNOWN,
        "status": 5 if "@" in keys.get("qdel_info", "") else 0 if failed else 1,
        "user": keys["owner"],
        "group": next((name for name in names if name not in ("", NONE)), ""),
        "executable": keys["job_name"],
        "queue": keys["qname"],
        "notes": notes + [SPREAD] * (slots > 1),
    }


def _keys(parts: list[str]) -> dict[str, str]:
    """Return a row's fields by name. What follows the category tells where that ends."""
    if len(parts) < CATEGORY + 1 + AFTER_CATEGORY.index("arid"):
        raise ValueError("fewer fields than a row of Grid Engine has")
    ends = (end for end in range(CATEGORY + 1, len(parts) - 2) if _ends_at(parts, end))
    end = next(ends, 0)
    if not end:
        raise ValueError("no row of Grid Engine: what follows the category is no usage")
    keys = dict(zip(FIELDS, parts, strict=False))
    keys |= dict(zip(AFTER_USAGE, parts[len(FIELDS) + N_USAGE : CATEGORY], strict=True))
    keys |= dict(zip((*AFTER_CATEGORY, *UNIVAS), parts[end:], strict=False))
    return keys | {"category": ":".join(parts[CATEGORY:end])}


def _ends_at(parts: list[str], end: int) -> bool:
    """Tell whether what begins at a place is what follows a category."""
    wait, task, memory, *rest = parts[end : end + len(AFTER_CATEGORY)]
    numbers = _NUMBER.fullmatch(wait) and _NUMBER.fullmatch(memory)
    plain = all(_INTEGER.fullmatch(text) for text in rest)
    is_plain = end == CATEGORY + 1 and len(parts) - end in (3, len(AFTER_CATEGORY))
    named = task if is_plain else _TASK_OF_JOB.fullmatch(task)
    return bool(numbers and named and plain and len(rest) in (0, 2))


def _count(keys: dict[str, str], key: str) -> int:
    if not _INTEGER.fullmatch(keys[key]) or int(keys[key]) >= MOST:
        raise ValueError(f"{key} cannot be read")
    return int(keys[key])


def _moment(keys: dict[str, str], key: str) -> int:
    """Read a time, of seconds or milliseconds; 0 is unknown."""
    if not _INTEGER.fullmatch(keys[key]):
        raise ValueError(f"{key} cannot be read")
    moment = int(keys[key])
    return (moment if moment < _MOST_SECONDS else moment // 1000) or UNKNOWN


def _asked(category: str) -> tuple[int, list[str]]:
    """Return the time that a job asked for, the hard limit before the soft one, and notes."""
    texts: dict[str, str] = dict(_TIME_ASKED.findall(category))
    text = texts.get("h_rt", texts.get("s_rt", ""))
    if text.casefold() in ("", "infinity"):
        return UNKNOWN, []
    try:
        return (whole(text) if text.isdecimal() else seconds(text)), []
    except ValueError:
        return UNKNOWN, [NO_TIME_READ]
