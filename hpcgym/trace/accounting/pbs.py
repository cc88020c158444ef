"""Accounting of PBS Pro, OpenPBS and Torque: records `time;type;job;key=value ...`, a line each.

Records of type E are jobs that ended. Their times are in seconds since 1970.

Source: Specification, section 14, "Reading".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import gcd
from typing import Any

from hpcgym.trace.accounting.cells import MOST, Clock, seconds, whole
from hpcgym.trace.accounting.rows import UNKNOWN, Block, Ledger, Source, in_blocks, stated_kb

_RECORD = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;([A-Za-z]+);([^;]*);(.*)", re.DOTALL)
_PAIR = re.compile(r"(?:^| )([A-Za-z_][\w.-]*)=(.*?)(?= [A-Za-z_][\w.-]*=|$)", re.DOTALL)
_JOB = re.compile(r"(\d{1,15})(?:\[(\d*)\])?(?:\..*)?")
_SIZE = re.compile(r"(\d+)([kmgtp]?)(b|w)?", re.IGNORECASE)
_IN_KB = {"": 1 / 1024, "k": 1, "m": 1024, "g": 1024**2, "t": 1024**3, "p": 1024**4}
_WORD_BYTES = 8
_DIGITS = 11
"""Most digits of a count."""


def recognises(head: str) -> bool:
    """Tell whether a text begins with a record."""
    return _RECORD.match(head.lstrip().partition("\n")[0]) is not None


def blocks(source: Source, clock: Clock, ledger: Ledger) -> Iterator[Block]:
    """Yield the runs of a file."""
    return in_blocks(_rows(source, ledger))


def _rows(source: Source, ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Yield what each record of type E states."""
    for number, line in source.lines():
        ledger.rows += 1
        try:
            row = _row(line)
        except ValueError as error:
            ledger.leave_out(str(error), source.path, number, jobs=int(" type " not in str(error)))
        else:
            if row["used_memory_kb"] != UNKNOWN:
                ledger.note("used memory: resources_used.mem, of the whole job")
            yield row | {"line": number}


def _row(line: str) -> dict[str, Any]:
    """Read a record; a ValueError says why it is no run."""
    record = _RECORD.fullmatch(line)
    if record is None:
        raise ValueError("no record of PBS")
    if record[1] != "E":
        raise ValueError(f"record of type {record[1]}")
    job = _JOB.fullmatch(record[2])
    if job is None:
        raise ValueError("no id of a job")
    if job[2] == "":
        raise ValueError("array as a whole: its tasks are rows of their own")
    keys = {key: value.strip('"') for key, value in _PAIR.findall(record[3])}
    submit, start, end = (_moment(keys, key) for key in ("ctime", "start", "end"))
    submit = _moment(keys, "qtime") if submit == UNKNOWN else submit
    if start == UNKNOWN:
        raise ValueError("no start")
    if end == UNKNOWN:
        raise ValueError("no end")
    limit = keys.get("Resource_List.walltime", "")
    status = keys.get("Exit_status", "")
    return {
        "job": record[2],
        "number": int(job[1]) if job[2] is None else UNKNOWN,
        "order": int(job[1]),
        "submit": submit,
        "eligible": _moment(keys, "etime"),
        "start": start,
        "end": end,
        "run_time": end - start,
        "requested_time": _limit(limit),
        "status": {"": UNKNOWN, "0": 1}.get(status, 0),
        "user": keys.get("user", ""),
        "group": keys.get("account") or keys.get("project") or keys.get("group", ""),
        "executable": keys.get("jobname", ""),
        "queue": keys.get("queue", ""),
        "used_memory_kb": _used(keys.get("resources_used.mem", "0")),
        **_request(keys),
    }


def _moment(keys: dict[str, str], key: str) -> int:
    """Return a time, -1 where it is not stated."""
    text = keys.get(key, "0")
    if not text.isdecimal() or len(text) > 15:
        raise ValueError(f"{key} cannot be read")
    return int(text) or UNKNOWN


def _limit(text: str) -> int:
    """Read a limit on the run time."""
    try:
        return whole(text) if text.isdecimal() else seconds(text)
    except ValueError:
        raise ValueError("Resource_List.walltime cannot be read") from None


def _request(keys: dict[str, str]) -> dict[str, Any]:
    """Return what a job asked for, in chunks: by `select`, else `nodes` (Torque), else `ncpus`."""
    asked = {key.removeprefix("Resource_List."): value for key, value in keys.items()}
    placement = asked.get("place", "").split(":")
    flags = {
        "exclusive": any(word in ("excl", "exclhost") for word in placement),
        "spread": "scatter" in placement,
    }
    nodes = _count(asked.get("nodect", "0"), "nodect")
    if asked.get("select"):
        groups = [_chunk(text, "ncpus", "ngpus") for text in asked["select"].split("+")]
        return _as_chunks(groups) | flags | {"nodes": nodes}
    whole = _count(asked.get("ncpus", "0"), "ncpus")
    memory = _megabytes(asked.get("mem", "0"))
    if re.match(r"\d+(:|\+|$)", asked.get("nodes", "")):
        groups = [_chunk(text, "ppn", "gpus") for text in asked["nodes"].split("+")]
        request = _as_chunks(groups) | flags
        request["spread"] = request["chunks"] > 1 and len(groups) == 1
        request["memory_mb"] = -(-memory // request["chunks"])
        return request | {"nodes": nodes or request["chunks"]}
    if whole == 0:
        raise ValueError("no processors")
    gpus = _count(asked.get("ngpus", "0"), "ngpus")
    return _as_chunks([(1, whole, gpus, memory)]) | flags | {"nodes": nodes}


def _chunk(text: str, cpus: str, gpus: str) -> tuple[int, int, int, int]:
    """Read "2:ncpus=16:ngpus=1:mem=64gb": how many, and cpus, GPUs and MB of each."""
    first, *parts = text.split(":")
    if not first.isdecimal():
        first, parts = "1", [first, *parts]
    keys = dict(part.partition("=")[::2] for part in parts)
    return (
        _count(first, "number of chunks"),
        max(_count(keys.get(cpus, "1"), cpus), 1),
        _count(keys.get(gpus, "0"), gpus),
        _megabytes(keys.get("mem", "0")),
    )


def _as_chunks(groups: list[tuple[int, int, int, int]]) -> dict[str, Any]:
    """Return alike chunks: as asked, or for chunks of several kinds as many cpus, GPUs and MB."""
    if len({group[1:] for group in groups}) == 1:
        chunks, (cpus, gpus, memory) = sum(group[0] for group in groups), groups[0][1:]
    else:
        cpus, gpus, memory = (sum(group[0] * group[key] for group in groups) for key in (1, 2, 3))
        chunks = gcd(cpus, gpus) if gpus else cpus
        cpus, gpus, memory = cpus // chunks, gpus // chunks, -(-memory // chunks)
    if chunks == 0:
        raise ValueError("no processors")
    if chunks * cpus >= MOST:
        raise ValueError("number too large")
    return {
        "chunks": chunks,
        "cpus": cpus,
        "gpus": gpus,
        "memory_mb": memory,
        "charged": chunks * cpus,
    }


def _count(text: str, key: str) -> int:
    """Read a count."""
    if not text.isdecimal() or len(text) > _DIGITS:
        raise ValueError(f"{key} cannot be read")
    return int(text)


def _used(text: str) -> int:
    """Read what memory a job used, KB; what cannot be read is not known, and the job ran."""
    try:
        return stated_kb(_kilobytes(text))
    except ValueError:
        return UNKNOWN


def _megabytes(text: str) -> int:
    """Read a size such as 64gb, rounded up to MB."""
    return -(-_kilobytes(text) // 1024)


def _kilobytes(text: str) -> int:
    """Read a size such as 64gb, rounded up to KB."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError("mem cannot be read")
    if len(match[1]) > _DIGITS:
        raise ValueError("mem cannot be read")
    words = _WORD_BYTES if (match[3] or "").lower() == "w" else 1
    return int(-(-int(match[1]) * words * _IN_KB[match[2].lower()] // 1))
