"""Accounting of PBS Pro, OpenPBS and Torque: records `time;type;job;key=value ...`, a line each.

Records of type E are jobs that ended. Their times are in seconds since 1970.

Source: Specification, section 14, "Reading".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import gcd
from typing import Any

from hpcgym.trace.accounting.cells import MOST, Clock, seconds, tasks_in, whole
from hpcgym.trace.accounting.rows import (
    PARTITION_LIMIT,
    UNKNOWN,
    Block,
    Ledger,
    Source,
    in_blocks,
    stated_kb,
)

_RECORD = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]+);([^;]*);(.*)", re.DOTALL)
_PAIR = re.compile(r"(?:^| )([A-Za-z_][\w.-]*)=(.*?)(?= [A-Za-z_][\w.-]*=|$)", re.DOTALL)
_JOB = re.compile(r"(\d{1,15})(?:\[(\d*)\]|-(\d+))?(?:\..*)?")
_SUSPENSION = re.compile(r"^[^;\n]*;z;([^;\n]*);", re.MULTILINE)
_VNODE = re.compile(r"ncpus=(\d+)")
_SHARING = re.compile(r"#(\w+)")
_SIZE = re.compile(r"(\d+)([kmgtp]?)(b|w)?", re.IGNORECASE)
_IN_KB = {"": 1 / 1024, "k": 1, "m": 1024, "g": 1024**2, "t": 1024**3, "p": 1024**4}
_WORD_BYTES = 8
NO_LIMIT = ("UNLIMITED", "INFINITE", "INFINITY")
_DIGITS = 11  # most digits of a count


def recognises(head: str) -> bool:
    """Tell whether a text begins with a record."""
    return _RECORD.match(head.lstrip().partition("\n")[0]) is not None


def blocks(source: Source, clock: Clock, ledger: Ledger) -> Iterator[Block]:
    """Yield the runs of a file."""
    return in_blocks(_rows(source, clock, ledger))


def _rows(source: Source, clock: Clock, ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Yield what records E and R state, R of runs before others; a bare R's S says the rest."""
    suspended = set(_SUSPENSION.findall(source.text))
    for number, line in source.lines():
        ledger.rows += 1
        try:
            row = _row(line, clock, ledger.begun)
        except ValueError as error:
            ledger.leave_out(str(error), source.path, number, jobs=int(" type " not in str(error)))
        else:
            if row["used_memory_kb"] != UNKNOWN:
                ledger.note("used memory: resources_used.mem, of the whole job")
            if row.pop("by_exec_host"):
                ledger.note("no request that can be read: the processors of exec_host are taken")
            row["suspended"] = UNKNOWN if row["job"] in suspended else 0
            yield row | {"line": number}


def _row(line: str, clock: Clock, begun: dict[str, Any]) -> dict[str, Any]:
    """Read a record; a ValueError says why it is no run.

    Writes `begun`: by job, how often it was rerun since which submission, and what its last record
    S states.
    """
    record = _RECORD.fullmatch(line)
    if record is None:
        raise ValueError("no record of PBS")
    moment, kind, name, text = record.groups()
    job = _JOB.fullmatch(name)
    reruns, since, stated = begun.get(name, (0, "", ""))
    if kind == "S":
        begun[name] = reruns, since, text
    if kind not in ("E", "R"):
        raise ValueError(f"record of type {kind}")
    if job is None:
        raise ValueError("no id of a job")
    if job[2] == "":
        raise ValueError("array as a whole: its tasks are rows of their own")
    keys = {key: value.strip('"') for key, value in _PAIR.findall(text)}
    if kind == "R" and "start" not in keys:
        keys = {key: value.strip('"') for key, value in _PAIR.findall(stated)} | keys
        keys.setdefault("end", str(clock.read(_iso(moment))[0]))
    if since and keys.get("ctime", since) != since:  # another job, whose id this one has anew
        reruns = 0
    if kind == "R":
        begun[name] = reruns + 1, keys.get("ctime", ""), ""
    else:
        begun.pop(name, None)
    submit, start, end = (_moment(keys, key) for key in ("ctime", "start", "end"))
    submit = _moment(keys, "qtime") if submit == UNKNOWN else submit
    if start == UNKNOWN:
        raise ValueError("no start")
    if end == UNKNOWN:
        raise ValueError("no end")
    status = keys.get("Exit_status", "")
    return {
        "job": name,
        "number": int(job[1]) if job[2] is job[3] is None else UNKNOWN,
        "order": int(job[1]),
        "submit": submit,
        "eligible": _moment(keys, "etime"),
        "start": start,
        "end": end,
        "run_time": _run_time(keys, end - start),
        "requested_time": _limit(keys.get("Resource_List.walltime", "")),
        "status": {"": UNKNOWN, "0": 1}.get(status, 0),
        "retried": kind == "R",
        "run_count": max(_count(keys.get("run_count", "0"), "run_count"), reruns + 1),
        "user": keys.get("user", ""),
        "group": keys.get("account") or keys.get("project") or keys.get("group", ""),
        "executable": keys.get("jobname", ""),
        "queue": keys.get("queue", ""),
        "used_memory_kb": _used(keys.get("resources_used.mem", "0")),
        **_request(keys),
    }


def _iso(moment: str) -> str:
    """Return when a record was written, "MM/DD/YYYY HH:MM:SS", as ISO 8601 has it."""
    date, _, time = moment.partition(" ")
    month, day, year = date.split("/")
    return f"{year}-{month}-{day}T{time}"


def _run_time(keys: dict[str, str], held: int) -> int:
    """Return how long a job ran: its used walltime, which leaves out when it stood suspended."""
    try:
        used = _span(keys.get("resources_used.walltime", "0"))
    except ValueError:
        return held
    return min(used, held) if used > 0 else held


def _moment(keys: dict[str, str], key: str) -> int:
    """Return a time, -1 where it is not stated."""
    text = keys.get(key, "0")
    if not text.isdecimal() or len(text) > 15:
        raise ValueError(f"{key} cannot be read")
    return int(text) or UNKNOWN


def _limit(text: str) -> int:
    if text.upper() in NO_LIMIT:
        return PARTITION_LIMIT
    try:
        return _span(text)
    except ValueError:
        raise ValueError("Resource_List.walltime cannot be read") from None


def _span(text: str) -> int:
    """Read seconds, MM:SS, HH:MM:SS, or D:HH:MM:SS as Torque has it."""
    if text.isdecimal():
        return whole(text)
    has_days = text.count(":") > 2
    return seconds(text.replace(":", "-", 1) if has_days else text)


def _request(keys: dict[str, str]) -> dict[str, Any]:
    """Return what a job asked for, in chunks; where that cannot be read, on which cpus it ran."""
    asked = {
        key.removeprefix("Resource_List."): value
        for key, value in keys.items()
        if key.startswith("Resource_List.")
    }
    flags = _placement(asked)
    by_exec_host = False
    try:
        request = _asked(asked)
    except ValueError:
        held = _of_exec_host(keys)
        if held is None:
            raise
        request, by_exec_host = held, True
    request |= {key: request.get(key, False) or flag for key, flag in flags.items()}
    nodes = _count(asked.get("nodect", "0"), "nodect") or request.get("nodes", 0)
    return request | {"nodes": nodes, "by_exec_host": by_exec_host}


def _placement(asked: dict[str, str]) -> dict[str, bool]:
    """Return whether a job's chunks are on different nodes, and whether it has these alone."""
    words = asked.get("place", "").split(":") + _SHARING.findall(asked.get("nodes", ""))
    return {"exclusive": not {"excl", "exclhost"}.isdisjoint(words), "spread": "scatter" in words}


def _asked(asked: dict[str, str]) -> dict[str, Any]:
    """Return the chunks asked for: by `select`, else by what Torque and Cray have, else `ncpus`."""
    if asked.get("select"):
        return _as_chunks([_chunk(text, "ncpus", "ngpus") for text in asked["select"].split("+")])
    memory = _megabytes(asked.get("mem", "0"))
    anywhere = _count(asked.get("procs", "0"), "procs") or _count(asked.get("size", "0"), "size")
    if asked.get("nodes"):
        parts = _SHARING.sub("", asked["nodes"]).split("+")
        groups = [_chunk(text, "ppn", "gpus") for text in parts]
        request = _as_chunks(groups + [(anywhere, 1, 0, 0)] * (anywhere > 0))
        n_nodes = sum(group[0] for group in groups)
        request["spread"] = request["chunks"] == n_nodes > 1
        if memory:
            request["memory_mb"] = -(-memory // request["chunks"])
        return request | {"nodes": n_nodes}
    if asked.get("mppwidth"):
        width, depth, on_node = (
            _count(asked.get(f"mpp{key}", "1"), f"mpp{key}") for key in ("width", "depth", "nppn")
        )
        on_node = on_node if "mppnppn" in asked and width % max(on_node, 1) == 0 else 1
        request = _as_chunks([(width // on_node, on_node * depth, 0, 0)])
        return request | {"spread": on_node > 1 and request["chunks"] > 1}
    if anywhere:
        return _as_chunks([(anywhere, 1, 0, -(-memory // anywhere))])
    ncpus = _count(asked.get("ncpus", "0"), "ncpus")
    if ncpus == 0:
        raise ValueError("no processors")
    gpus = _count(asked.get("ngpus", "0"), "ngpus")
    return _as_chunks([(1, ncpus, gpus, memory)])


def _of_exec_host(keys: dict[str, str]) -> dict[str, Any] | None:
    """Return the cpus on which a job ran, in a chunk for each node; None where nothing says it."""
    cpus: Counter[str] = Counter()
    if _VNODE.search(vnodes := keys.get("exec_vnode", "")):
        for part in vnodes.strip("()").replace(")+(", "+").split("+"):
            cpus[part.partition(":")[0]] += sum(map(int, _VNODE.findall(part)))
    elif hosts := keys.get("exec_host"):
        for part in hosts.split("+"):
            host, _, slots = part.partition("/")
            index, star, times = slots.partition("*")
            cpus[host] += _count(times, "exec_host") if star else tasks_in(index)
    elif "total_execution_slots" in keys:
        cpus[""] = _count(keys["total_execution_slots"], "total_execution_slots")
    counts = list(cpus.values())
    if not any(counts):
        return None
    request = _as_chunks([(1, count, 0, 0) for count in counts if count])
    return request | {"nodes": len(counts), "spread": request["chunks"] == len(counts) > 1}


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
