"""Jobs that `sacct --json` or `squeue --json` prints: scalars, lists, objects for one thing.

The text is read and decoded piece by piece, so memory is that of the rows.

Source: Specification, section 14, "Reading".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpcgym.base.errors import TraceError
from hpcgym.trace.accounting import slurm
from hpcgym.trace.accounting.cells import Clock, whole
from hpcgym.trace.accounting.lookalikes import is_batsim
from hpcgym.trace.accounting.rows import BLOCK_ROWS, Block, Ledger, Source
from hpcgym.trace.accounting.used_memory import UNREADABLE, Used, kilobytes, of_job, of_step

_JOBS = re.compile(r'"jobs"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_MISSING = object()
_DECISIVE = ("REQUEUED", slurm.RESIZING, slurm.REVOKED)
_LONGEST_TOKEN = 16  # characters of `-Infinity`, of an escaped pair of characters, and some

PATHS = {
    "jobidraw": ("job_id",),
    "cluster": ("cluster",),
    "state": ("state.current", "job_state", "state"),
    "reason": ("state.reason", "state_reason"),
    "reservation": ("reservation.name",),
    "submit": ("time.submission", "submit_time"),
    "eligible": ("time.eligible", "eligible_time"),
    "start": ("time.start", "start_time"),
    "end": ("time.end", "end_time"),
    "elapsedraw": ("time.elapsed",),
    "suspendedraw": ("time.suspended",),
    "timelimitraw": ("time.limit", "time_limit"),
    "nnodes": ("allocation_nodes", "node_count"),
    "reqcpus": ("required.CPUs", "cpus"),
    "user": ("user", "association.user", "user_name"),
    "account": ("account", "association.account"),
    "partition": ("partition",),
    "qos": ("qos",),
    "jobname": ("name",),
    "arraylimit": ("array.limits.max.running.tasks", "array_max_tasks"),
}
"""Where each field of sacct's text is found, the first that is there."""

_LISTS = {"reqtres": ("tres.requested", "tres_req_str"), "alloctres": ("tres.allocated",)}


def recognises(head: str) -> bool:
    """Tell whether a text is an object with a list of jobs that have ids, and none of Batsim's."""
    jobs = _JOBS.search(head) if head.lstrip().startswith("{") else None
    if jobs is None or is_batsim(head):
        return False
    return '"job_id"' in head or head[jobs.end() :].lstrip().startswith("]")


def blocks(source: Source, clock: Clock, ledger: Ledger) -> Iterator[Block]:
    """Yield the runs of a file.

    Raises:
        TraceError: It is no JSON, or ends early; the message names the line.
    """
    waiting: list[tuple[int, dict[str, Any]]] = []
    for number, job in _jobs(source):
        ledger.rows += 1
        if isinstance(job, Mapping) and isinstance(job.get("job_id"), int | str | Mapping):
            waiting.append((number, _cells(job)))
        else:
            ledger.leave_out("no object with a job_id", source.path, number)
        if len(waiting) == BLOCK_ROWS:
            yield _block(waiting, source, clock, ledger)
            waiting = []
    if waiting:
        yield _block(waiting, source, clock, ledger)


def _block(
    jobs: list[tuple[int, dict[str, Any]]], source: Source, clock: Clock, ledger: Ledger
) -> Block:
    """Turn texts by job into texts by field, and these into a block."""
    cells: Block = {key: [cells[key] for _, cells in jobs] for key in jobs[0][1]}
    cells["line"] = [number for number, _ in jobs]
    return slurm.block_of(cells, source.path, clock, ledger)


def _jobs(source: Source) -> Iterator[tuple[int, Any]]:
    """Yield each job with the line that it begins in; only some of the text is held at a time."""
    window, decoder = _Window(source.pieces()), json.JSONDecoder()
    while (begin := _JOBS.search(window.text)) is None:
        if not window.grow():
            raise TraceError(f"{source.path}: no JSON here: no list of jobs")
    window.move(begin.end())
    while True:
        between = _BETWEEN.match(window.text, window.at)
        window.move(window.at if between is None else between.end())
        if window.at == len(window.text) and window.grow():
            continue
        if window.text.startswith("]", window.at):
            return
        try:
            job, end = decoder.raw_decode(window.text, window.at)
        except json.JSONDecodeError as error:
            if window.may_be_cut(error) and window.grow():
                continue
            line = window.line + window.text.count("\n", window.at, error.pos)
            is_cut = window.may_be_cut(error) and not window.text[error.pos + 1 :].strip()
            said = "the file ends within its jobs" if is_cut else f"no JSON here: {error.msg}"
            raise TraceError(f"{source.path}:{line}: {said}") from None
        except RecursionError:
            raise TraceError(f"{source.path}:{window.line}: a job nested too deeply") from None
        if end == len(window.text) and window.grow():
            continue  # a number may go on
        yield window.line, job
        window.move(end)


class _Window:
    """A part of a text: `at` is the next character to read, and `line` the line that it is in."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self.text, self.at, self.line = "", 0, 1

    def move(self, at: int) -> None:
        """Go on to a character."""
        self.line += self.text.count("\n", self.at, at)
        self.at = at

    def grow(self) -> bool:
        """Add as much as is left to read, at least; False at the end of the text."""
        parts, wanted = [self.text[self.at :]], len(self.text) - self.at
        for piece in self._pieces:
            parts.append(piece)
            wanted -= len(piece)
            if wanted < 0:
                break
        self.text, self.at = "".join(parts), 0
        return len(parts) > 1

    def may_be_cut(self, error: json.JSONDecodeError) -> bool:
        """Tell whether an error may come from the end of what is held."""
        return error.msg.startswith("Unterminated") or error.pos > len(self.text) - _LONGEST_TOKEN


def _cells(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts that sacct would print of a job, and what memory it used."""
    cells: dict[str, Any] = {field: _text(_at(job, paths)) for field, paths in PATHS.items()}
    states = _at(job, PATHS["state"])
    # Slurm 24.11 says so beside "PENDING", the state that the job then had.
    if isinstance(states, list) and "RUNNING" not in states:
        cells["state"] = next(filter(_DECISIVE.__contains__, states), cells["state"])
    limit = _at(job, PATHS["timelimitraw"])
    if limit is None or cells["timelimitraw"] in ("0", "INFINITE"):
        cells["timelimitraw"] = "UNLIMITED"
    for field, paths in _LISTS.items():
        cells[field] = _resources(_at(job, paths))
    cells["jobid"] = _job_id(job, cells["jobidraw"])
    steps = job.get("steps")
    return cells | {"used": of_job(map(_used_in, steps if isinstance(steps, list) else ()))}


def _at(job: Mapping[str, Any], paths: tuple[str, ...]) -> Any:
    for path in paths:
        value: Any = job
        for key in path.split("."):
            value = value.get(key, _MISSING) if isinstance(value, Mapping) else _MISSING
        if value is not _MISSING and not (path == "state" and isinstance(value, Mapping)):
            return value
    return ""


def _text(value: Any) -> str:
    """Return a scalar, the first of a list, or the number of an object, as text."""
    if isinstance(value, list | tuple):
        return _text(value[0]) if value else ""
    if isinstance(value, Mapping):
        if value.get("infinite"):
            return "INFINITE"
        return _text(value.get("number")) if value.get("set", True) else ""
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _used_in(step: Any) -> Used:
    """Return what memory a step used; memory is in bytes, and `requested` is Slurm's word for it.

    Source: Slurm's data_parser, parsers.c: STEP_TRES_REQ_MAX is of tres_usage_in_max.
    """
    try:
        total, largest = (
            kilobytes(_memory_of(_at(step, (f"tres.requested.{which}",))))
            for which in ("total", "max")
        )
        return of_step(total, largest, whole(_text(_at(step, ("tasks.count",)))))
    except ValueError:
        return Used(how=UNREADABLE)


def _memory_of(resources: Any) -> str:
    """Return the count of memory in a list of resources, "" = none."""
    listed = resources if isinstance(resources, list | tuple) else ()
    memory = (each for each in listed if isinstance(each, Mapping) and each.get("type") == "mem")
    return _text(next(memory, {}).get("count"))


def _resources(value: Any) -> str:
    """Return trackable resources as sacct writes them; memory is in MB."""
    if not isinstance(value, list | tuple):
        return _text(value)
    parts = []
    for resource in value:
        if isinstance(resource, Mapping) and (count := _text(resource.get("count"))) not in (
            "",
            "0",
        ):
            kind, name = _text(resource.get("type")), _text(resource.get("name"))
            parts.append(f"{kind}/{name}={count}" if name else f"{kind}={count}")
    return ",".join(parts)


def _job_id(job: Mapping[str, Any], raw: str) -> str:
    """Return a job's id as sacct shows it: with its task, or its component."""
    array, task = _text(_at(job, ("array.job_id",))), _text(_at(job, ("array.task_id",)))
    if array not in ("", "0"):
        waiting = _text(_at(job, ("array.task",)))
        if task != "":
            return f"{array}_{task}"
        return f"{array}_[{waiting}]" if waiting else raw
    whole, offset = _text(_at(job, ("het.job_id",))), _text(_at(job, ("het.job_offset",)))
    return f"{whole}+{offset or 0}" if whole not in ("", "0") else raw
