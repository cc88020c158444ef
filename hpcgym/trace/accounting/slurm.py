"""What the fields of Slurm's accounting mean, for its text and its JSON alike.

Source: Specification, section 14, "Reading".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import TraceError
from hpcgym.trace.accounting import used_memory
from hpcgym.trace.accounting.cells import (
    CPU,
    GPU,
    MEM,
    NODE,
    Clock,
    limit_of,
    limit_of_minutes,
    megabytes,
    resources,
    seconds,
    tasks_in,
    whole,
)
from hpcgym.trace.accounting.rows import (
    CAUSES,
    PUT_BACK,
    TIMES,
    UNKNOWN,
    Block,
    Ledger,
    kept_rows,
    read_distinct,
)
from hpcgym.trace.swf import NEVER_HELD

COMMAND = (
    "SLURM_TIME_FORMAT=%s sacct -a -X -P --duplicates -S 2026-01-01 -o JobID,JobIDRaw,User,Account,"
    "Partition,QOS,State,Reason,Reservation,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,"
    "NNodes,NCPUS,ReqNodes,ReqCPUS,ReqTRES,AllocTRES,JobName"
)
"""Prints all that is used."""

ALIASES = {"alloccpus": "ncpus", "allocnodes": "nnodes"}
"""Other names of fields, in lower case as all names here are."""

NAMED = {"partition": "partition", "user": "user", "group": "account"}
NAMED |= {"executable": "jobname", "queue": "qos"}
"""Where each name of a job is found."""

USED = {
    *("jobid", "jobidraw", "cluster", "state", "submit", "eligible", "start", "end", "elapsed"),
    *("timelimit", "timelimitraw", "nnodes", "ncpus", "reqnodes", "reqcpus", "reqmem", "reqtres"),
    *("alloctres", "reason", "reservation", *NAMED.values(), *used_memory.FIELDS, "ntasks"),
    *("elapsedraw", "suspended"),
}

REQUEUED = ("REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT")
FAILED = ("NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED")
BROKEN_OFF = ("PREEMPTED", *FAILED)
RESIZING, REVOKED = "RESIZING", "REVOKED"
RETRIED = {*REQUEUED, *BROKEN_OFF, RESIZING}  # states after which another row of the job may follow

RAN = {
    **dict.fromkeys(("COMPLETED", RESIZING), 1),
    **dict.fromkeys((*REQUEUED, *BROKEN_OFF, "RECONFIG_FAIL", REVOKED), 0),
    **dict.fromkeys(("FAILED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY"), 0),
    "CANCELLED": 5,
    **dict.fromkeys(("COMPLETING", "STAGE_OUT"), UNKNOWN),
}
"""States of jobs that held processors if they started, and the status that SWF has for each."""

NOT_YET = {
    **dict.fromkeys(("PENDING", "RESV_DEL_HOLD"), "still waiting"),
    **dict.fromkeys(("RUNNING", "CONFIGURING", "SIGNALING", "STOPPED"), "still running"),
    **dict.fromkeys(("EXPEDITING", "POWER_UP_NODE", "UPDATE_DB"), "still running"),
    "SUSPENDED": "still suspended",
}
STATES = {*RAN, *NOT_YET}

REASONS = {
    "reservations": "Reservation",
    "limits": r"(Assoc|QOS|Max|User)\w*(Limit|Max|Min|Per)|JobArrayTaskLimit",
    "dependencies": "Dependency",
    "holds": r"JobH[eo]ld|\w+_requeued_held",
    "begin times": "BeginTime",
    "nodes reserved or down": "ReqNodeNotAvail",
    "failures": "NodeDown|PartitionDown|PartitionInactive|FrontEndDown|DownNodes",
}
"""How reasons of waiting begin, by cause; limits are of users, accounts and arrays.

Of a job that has ended, Slurm keeps the last reason that was neither priority nor resources.
"""

_ID_DIGITS = 16
_NO_FAULT = ("", 1)
CUT_SHORT = 'array tasks that wait or never started, cut short by "...": their number is not known'
_JOB = re.compile(r"(\d+)(?:_(?:(\d+)|\[(.*)\])|\+(\d+))?")


def check_fields(position: str, names: Sequence[str], header: Sequence[str]) -> None:
    """Refuse a header that lacks what no other field can stand in for; it is quoted as it is.

    Raises:
        TraceError: One is missing; the message has the command that prints all.
    """
    needed = {
        "JobID": {"jobid", "jobidraw"},
        "Submit": {"submit"},
        "Start or Elapsed": {"start", "elapsed", "elapsedraw"},
        "ElapsedRaw or End": {"elapsed", "elapsedraw", "end"},
        "NCPUS": {"ncpus", "reqcpus", "reqtres", "alloctres"},
    }
    missing = [name for name, enough in needed.items() if not enough & set(names)]
    if missing:
        lacks, shown = ", ".join(missing), ", ".join(filter(None, header))
        raise TraceError(
            f"{position}: no field {lacks}; the header has {shown}. Print all by: {COMMAND}"
        )


def block_of(cells: Block, path: Path, clock: Clock, ledger: Ledger) -> Block:
    """Turn texts by field, and their `line`, into a block of rows that ran.

    Fields have names in lower case. Rows that are no runs are left out by reason. `used` is what
    `hpcgym.trace.accounting.used_memory` says of each row, where the cells do not.
    """
    if not cells.keys().isdisjoint(used_memory.FIELDS):
        cells = cells | {"used": used_memory.of_rows(cells)}
    ledger.clusters.update(filter(None, map(str.strip, cells.get("cluster", ()))))
    cells = _without(cells, _identify(cells), path, ledger)
    n = len(cells["line"])
    if not n:
        return {"line": []}
    fault = [""] * n
    read: Block = {"line": cells["line"], "job": cells["job"]}
    read["number"], read["order"] = cells["number"], cells["order"]
    for key in TIMES:
        moments, late, refused = clock.read_all(cells.get(key, [""] * n))
        _refuse(key, cells, refused, fault)
        read[key], read[f"{key}_late"] = moments, late
    elapsed = _first_of(cells, {"elapsedraw": _known_whole, "elapsed": seconds}, fault)
    stood = {"suspendedraw": _known_whole, "suspended": seconds}
    limits = {
        "timelimitraw": limit_of_minutes,
        "timelimit": limit_of,
        "timelimitseconds": _known_whole,
    }
    read["run_time"], read["requested_time"] = elapsed, _first_of(cells, limits, fault)
    states = read_distinct(cells.get("state", [""] * n), _state)[0]
    read["status"] = [RAN.get(state, UNKNOWN) for state in states]
    read["retried"] = [state in RETRIED for state in states]
    read["resized"] = [state == RESIZING for state in states]
    read["by_slurm"] = np.ones(n, dtype=bool)
    if not cells.keys().isdisjoint(stood):
        read["suspended"] = np.maximum(_first_of(cells, stood, fault), 0)
    read["failed"] = [state in FAILED for state in states]
    read["cause"] = read_distinct(cells.get("reason", [""] * n), _cause)[0]
    for row, name in enumerate(cells.get("reservation", ())):
        if read["cause"][row] < 1 and name.strip() not in ("", "0", "None"):
            read["cause"][row] = CAUSES.index("reservations")
    parts = (text.partition("_") for text in read["job"])
    read["array"] = [int(first) if parted else UNKNOWN for first, parted, _ in parts]
    if "arraylimit" in cells:
        read["array_limit"] = read_distinct(cells["arraylimit"], _known_whole)[0]
    given = cells.get("alloctres", ["?"] * n)
    says_given, counted = any(given), cells.get("ncpus", [""] * n)
    has_start = "start" in cells
    unfinished = {state: _not_finished(state) for state in set(states)}
    for row, (state, ran_for) in enumerate(zip(states, elapsed, strict=True)):
        if unfinished[state]:
            fault[row] = unfinished[state]
        elif state == REVOKED and given[row] in ("", "?"):
            fault[row] = "ran on another cluster (REVOKED)"
        elif ran_for <= 0 and not fault[row]:
            times = (int(read["start"][row]), int(read["end"][row]), ran_for)
            none = counted[row] == "0" or (says_given and not given[row])
            fault[row] = _never_ran(state, *times, given[row], none=none, has_start=has_start)
    read["ran"] = [text != PUT_BACK for text in fault]
    fault = ["" if text == PUT_BACK else text for text in fault]
    read |= _asked(cells, fault, ledger)
    for key, field in NAMED.items():
        if field in cells:
            read[key] = read_distinct(cells[field], str.strip)[0]  # equal names are one object
    if "used" in cells:
        read["used"] = cells["used"]
        read["used_memory_kb"] = [used.kb for used in cells["used"]]
    read = _without(read, [(text, 1) for text in fault], path, ledger)
    for how, rows in Counter(used.how for used in read.pop("used", ()) if used.how).items():
        ledger.note(how, rows)
    return read


def _without(block: Block, faults: Sequence[tuple[str, int]], path: Path, ledger: Ledger) -> Block:
    """Leave rows with a fault out, and count them."""
    for row, (reason, jobs) in enumerate(faults):
        if reason:
            ledger.leave_out(reason, path, block["line"][row], jobs)
    return kept_rows(block, [not reason for reason, _ in faults])


def _identify(cells: Block) -> list[tuple[str, int]]:
    """Add each row's job, number and order; return why rows are none, and how many jobs each is."""
    raws = cells.get("jobidraw") or cells["jobid"]
    ids = cells.get("jobid") or raws
    if _are_numbers(ids) and _are_numbers(raws):
        cells["job"], cells["order"] = ids, list(map(int, ids))
        cells["number"] = list(map(int, raws))
        return [("", 1)] * len(ids)
    faults: list[tuple[str, int]] = []
    cells["job"], cells["number"], cells["order"] = list(ids), [], []
    plain = _are_numbers(raws)
    for text, raw in zip(ids, raws, strict=True):
        if plain and text.isdecimal() and len(text) < _ID_DIGITS:
            faults.append(_NO_FAULT)
            cells["number"].append(int(raw))
            cells["order"].append(int(text))
            continue
        fault, jobs, number, order = "", 1, UNKNOWN, UNKNOWN
        match = _JOB.fullmatch(text)
        if is_step(text):
            fault, jobs = "step of a job", 0
        elif match is None or len(match[1]) >= _ID_DIGITS:
            fault = "JobID is no id of a job"
        elif match[3] is not None and "..." in match[3]:
            fault, jobs = CUT_SHORT, 0
        elif match[3] is not None:
            fault, jobs = "array tasks that never started", tasks_in(match[3])
        else:
            order = int(match[1])
            number = int(raw) if plain or _are_numbers([raw]) else UNKNOWN
            if number == UNKNOWN and _are_numbers([text]):
                number = order
        faults.append((fault, jobs))
        cells["number"].append(number)
        cells["order"].append(order)
    return faults


def is_step(job: str) -> bool:
    """Tell whether an id is a step's, such as 12_3.batch; tasks of an array may be cut by "..."."""
    return "." in job.partition("[")[0]


def _are_numbers(texts: Sequence[str]) -> bool:
    """Tell whether ids are whole numbers that an array can hold."""
    return all(map(str.isdecimal, texts)) and max(map(len, texts), default=0) < _ID_DIGITS


def _state(text: str) -> str:
    """Return a state without who cancelled the job, and whole where one alone begins so."""
    word = text.split(" ")[0].upper()
    if not word.endswith("+"):
        return word
    begin = word.rstrip("+")
    states = [state for state in STATES if state.startswith(begin)]
    return states[0] if len(states) == 1 else begin


def _cause(reason: str) -> int:
    """Return the number of what a reason says held a job back, of `CAUSES`."""
    begun = (cause for cause, begin in REASONS.items() if re.match(begin, reason.strip()))
    return CAUSES.index(next(begun, "")) if reason.strip() else UNKNOWN


def _not_finished(state: str) -> str:
    """Return why a job in a state is no run yet, or none that is known, or ""."""
    if not state or state in RAN:
        return ""
    return NOT_YET.get(state) or (f"state {state}" if state in STATES else "state is not known")


def _never_ran(
    state: str, start: int, end: int, elapsed: int, given: str, *, none: bool, has_start: bool
) -> str:
    """Return why a job that ended was no run, or "".

    `given` is what it was given, "?" unknown; `none`, whether that is said to be no processor.
    """
    if state == "CANCELLED" and elapsed <= 0 and (start in (UNKNOWN, end) or not given):
        return "cancelled before its start"  # older versions state its end as its start
    none &= elapsed == 0 or start == end != UNKNOWN
    if state in REQUEUED and elapsed <= 0 and (none or start == UNKNOWN):
        return PUT_BACK
    if none:
        return NEVER_HELD
    if start != UNKNOWN or elapsed > 0:
        return ""
    return "" if state and elapsed == 0 and not has_start else "no start"


def _read(cells: Block, field: str, read: Any, fault: list[str]) -> list[Any]:
    """Read a column; rows that cannot be read have a fault and None, rows without it "" read."""
    if field not in cells:
        return [read("")] * len(cells["line"])
    values, refused = read_distinct(cells[field], read)
    _refuse(field, cells, refused, fault)
    return values


def _refuse(field: str, cells: Block, refused: set[str], fault: list[str]) -> None:
    """Note rows whose text cannot be read."""
    for row, text in enumerate(cells[field] if refused else ()):
        if text in refused and not fault[row]:
            fault[row] = f"{field} cannot be read"


def _first_of(cells: Block, fields: dict[str, Any], fault: list[str]) -> list[int]:
    """Return for each row the first of several fields that is known, else -1."""
    first = [UNKNOWN] * len(cells["line"])
    for field, read in fields.items():
        if field in cells:
            values = _read(cells, field, read, fault)
            pairs = zip(first, values, strict=True)
            first = [new if old == UNKNOWN and new is not None else old for old, new in pairs]
    return first


def _known_whole(text: str) -> int:
    """Read a whole number; "" is unknown."""
    return UNKNOWN if text == "" else whole(text)


def _asked(cells: Block, fault: list[str], ledger: Ledger) -> Block:
    """Return what jobs asked for, in chunks, and what they were charged."""
    n = len(cells["line"])

    def column(field: str, read: Callable[[str], Any]) -> NDArray[Any]:
        """Return numbers by row, those of a row that cannot be read as of an empty text."""
        texts = cells.get(field) or [""] * n
        places = {text: index for index, text in enumerate(dict.fromkeys(texts))}
        values, refused = read_distinct(list(places), read)
        _refuse(field, cells, refused, fault)
        known = np.array([read("") if value is None else value for value in values])
        return known[np.fromiter(map(places.__getitem__, texts), np.int64, n)]

    wanted, given = column("reqtres", resources), column("alloctres", resources)
    charged = _else(column("ncpus", whole), given[:, CPU])
    stated = _else(column("reqcpus", whole), wanted[:, CPU])
    processors = _else(stated, charged)
    if cells.get("reqcpus") is None and (stated == 0).any():
        ledger.note("no requested cpus: those charged are taken", int((stated == 0).sum()))
    asked_nodes = _else(column("reqnodes", whole), wanted[:, NODE])
    nodes = _else(column("nnodes", whole), given[:, NODE])
    for row in np.flatnonzero(processors <= 0):
        fault[row] = fault[row] or "no processors"
    spread = (asked_nodes > 1) & (processors % np.maximum(asked_nodes, 1) == 0)
    gpus = wanted[:, GPU].astype(np.int64)
    chunks = np.where(gpus > 0, np.gcd(processors, gpus), processors)
    chunks = np.maximum(np.where(spread, asked_nodes, chunks), 1)
    memory = np.where(
        given[:, MEM] > 0, _memory(cells, wanted[:, MEM], processors, nodes, fault), 0
    )
    if "alloctres" not in cells:
        ledger.note("no AllocTRES: memory is not counted", n)
    return {
        "charged": _else(charged, processors).tolist(),
        "nodes": nodes.tolist(),
        "chunks": chunks.tolist(),
        "cpus": (processors // chunks).tolist(),
        "gpus": (-(-gpus // chunks)).tolist(),
        "memory_mb": np.ceil(memory / chunks).astype(np.int64).tolist(),
        "spread": spread.tolist(),
    }


def _else(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
    """Return the first number where it is known, else the second."""
    return np.where(first > 0, first, second).astype(np.int64)


def _memory(
    cells: Block,
    wanted: NDArray[np.float64],
    processors: NDArray[np.int64],
    nodes: NDArray[np.int64],
    fault: list[str],
) -> NDArray[np.float64]:
    """Return the memory of each job in MB: as ReqTRES says, else ReqMem."""
    if "reqmem" not in cells:
        return wanted
    pairs = _read(cells, "reqmem", lambda text: megabytes(text) if text else (0.0, ""), fault)
    amount = np.array([0.0 if pair is None else pair[0] for pair in pairs])
    each = np.array(["" if pair is None else pair[1].lower() for pair in pairs])
    times = np.where(each == "n", np.maximum(nodes, 1), np.where(each == "c", processors, 1))
    return np.where(wanted > 0, wanted, amount * times)
