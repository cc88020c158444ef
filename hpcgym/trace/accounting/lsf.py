"""Accounting of LSF: records JOB_FINISH of `lsb.acct`, fields parted by blanks, texts in quotes.

Fields that later versions added are at the end, behind lists of any length. They are read where all
up to them is what the manual says, and are unknown otherwise.

Source: Specification, section 14, "LSF"; the manual's page lsb.acct, versions 6.2 to 10.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hpcgym.trace.accounting.cells import MOST, Clock
from hpcgym.trace.accounting.rows import (
    SUSPENDED_S,
    UNKNOWN,
    Block,
    Ledger,
    Source,
    in_blocks,
    stated_kb,
)
from hpcgym.trace.swf import NEVER_HELD

_TOKEN = r'(?:"[^"]*(?:""[^"]*)*"|[^\s"]+)(?=\s|$)'
_TOKENS = re.compile(_TOKEN)
_RECORD = re.compile(rf"(?:\s*{_TOKEN})+\s*")
_BEGIN = re.compile(r'"([A-Z][A-Z0-9_]*)" "\d+(?:\.\d+)*" \d+ ')
_INTEGER = re.compile(r"-?\d{1,15}")
_SPAN = re.compile(r"span\[\s*([^\]]*?)\s*\]")
_PER_HOST = re.compile(r"ptile=(\d{1,6})")
_SLOTS = re.compile(r"(\d{1,9})\*.+")
_ARRAY = re.compile(r"\[[^\]]*\](?:%(\d{1,9}))?$")
_HELD_BACK = re.compile(r"\b(?:mem|ngpus\w*)\s*=")

TEXT, NUMBER, EITHER = "s", "d", "."
HEAD = "ss" + "d" * 9 + "s" * 11
"""Kinds of the fields up to jobFile; lists of hosts follow, those asked for and those given."""

EVENT, JOB, OPTIONS, ASKED, SUBMIT, BEGIN, START = 2, 3, 5, 6, 7, 8, 10
USER, QUEUE, REQUIREMENT, CONDITION = 11, 12, 13, 14

OUTCOME = "ddss" + "d" * 19 + "ssdd"
"""Those from jStatus over the job's name and usage to its largest number of processors."""

JOB_NAME, PROJECT, MOST_ASKED = 2, 24, 26

MEMORY = "ssddd"
"""Those from loginShell on: the index in its array, and its largest memory and swap, KB."""

INDEX, MAX_MEMORY = 2, 3
EXIT = "ssssdsd"  # those up to exitInfo, why LSF ended the job

OPTIONS_LATER = "sdssssdssdsdss"
"""Those up to jobDescription; pairs for LSF's own use follow, and what each host was used for."""

LIMITS = "dddssdsdd.ddsdsd"
"""Those from the run limit and flags, in this order or the manual's, to the number of networks."""

EFFECTIVE, TO_CLUSTER, RUN_TIME = 3, 6, 13
HOST_USAGE = (6, 5)  # how many fields each host has: what files have, and what the manual says

ENERGY = "sddddd"
"""Affinity, energy and rates of instructions; the slots that the job was given follow."""

EXCLUSIVE = 0x40
EXITED, DONE = 32, 64
KILLED = (8, 9, 14, 15, 23)  # reasons of ends: killed by the owner or an administrator

NO_REQUEST = "asked memory and GPUs are not counted: the record does not say of what they are"
OTHER_VERSION = "run limits and slots are not read: the end of the record is of another version"
ODD_LIMIT = "run limit that is no number of minutes: the request is unknown"
DEPENDS = "depends on jobs, and since when it was eligible is not stated: its submission is taken"
INELIGIBLE = "ineligible for a time: it is taken to be the first of the wait"
WHOLE_HOSTS = "exclusive, and the rest of its hosts is not stated: the processors given are taken"


def recognises(head: str) -> bool:
    """Tell whether a line is a record of LSF; the first one may be cut."""
    return any(map(_BEGIN.match, head.split("\n")))


def blocks(source: Source, clock: Clock, ledger: Ledger) -> Iterator[Block]:
    """Yield the runs of a file."""
    return in_blocks(_rows(source, ledger))


def _rows(source: Source, ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Yield what each record of a job states."""
    for number, record in _records(source):
        ledger.rows += 1
        try:
            row = _row(record)
        except ValueError as error:
            other = str(error).startswith("record of type")
            ledger.leave_out(str(error), source.path, number, jobs=int(not other))
            continue
        for note in row.pop("notes"):
            ledger.note(note)
        yield row | {"line": number}


def _records(source: Source) -> Iterator[tuple[int, str]]:
    """Yield each record with its first line; one whose quote is open goes on in the next line."""
    begin, lines, is_open = 0, list[str](), False
    for number, line in source.lines():
        if lines and (not is_open or _BEGIN.match(line)):
            yield begin, "\n".join(lines)
            lines, is_open = [], False
        if not lines:
            if line.startswith("#"):
                continue
            begin = number
        lines.append(line)
        is_open ^= line.count('"') % 2 == 1
    if lines:
        yield begin, "\n".join(lines)


class _Fields:
    """The fields of a record as they are written, read from first to last."""

    def __init__(self, record: str) -> None:
        self.texts: list[str] = _TOKENS.findall(record)
        self.kinds = "".join([TEXT if text[0] == '"' else NUMBER for text in self.texts])
        self.at = 0

    def has(self, kinds: str, at: int) -> bool:
        """Tell whether the fields from a place on are of these kinds."""
        here = self.kinds[at : at + len(kinds)]
        return here == kinds or (
            len(here) == len(kinds)
            and all(kind in (EITHER, got) for kind, got in zip(kinds, here, strict=True))
        )

    def take(self, kinds: str) -> list[str]:
        """Return the next fields, which are of these kinds."""
        if not self.has(kinds, self.at):
            raise ValueError("fields are not those of JOB_FINISH")
        begin, self.at = self.at, self.at + len(kinds)
        return self.texts[begin : self.at]

    def take_list(self, kinds: str) -> list[str]:
        """Return a list that follows the number of its entries, each of these kinds."""
        count = _number(self.take(NUMBER)[0], "number of hosts or pairs")
        if count > len(self.texts):
            raise ValueError("fields are not those of JOB_FINISH")
        return self.take(kinds * max(count, 0))


def _row(record: str) -> dict[str, Any]:
    """Read a record; a ValueError says why it is no run."""
    begin = _BEGIN.match(record)
    if begin is None:
        raise ValueError("no record of LSF")
    if begin[1] != "JOB_FINISH":
        raise ValueError(f"record of type {begin[1]}")
    if not _RECORD.fullmatch(record):
        raise ValueError("quotes that do not close")
    fields = _Fields(record)
    head = fields.take(HEAD)
    fields.take_list(TEXT)
    hosts = [_plain(host) for host in fields.take_list(TEXT)]
    outcome = fields.take(OUTCOME)
    memory = fields.take(MEMORY) if fields.has(MEMORY, fields.at) else ["", "", "0", "0", "0"]
    end, job, options, asked, submit, not_before, start = (
        _number(head[at], key)
        for at, key in (
            (EVENT, "event time"),
            (JOB, "jobId"),
            (OPTIONS, "options"),
            (ASKED, "numProcessors"),
            (SUBMIT, "submitTime"),
            (BEGIN, "beginTime"),
            (START, "startTime"),
        )
    )
    if start <= 0:
        raise ValueError("no start")
    status = _number(outcome[0], "jStatus")
    if not status & (DONE | EXITED):
        raise ValueError(f"job status {status}, neither EXIT nor DONE")
    later, notes = _later(fields)
    if later.get("to_cluster"):
        raise ValueError("forwarded to another cluster")
    index = _number(memory[INDEX], "idx")
    exclusive = bool(options & EXCLUSIVE)
    given = later.get("slots") or _slots(hosts)
    if given == 0 and start == end:
        raise ValueError(NEVER_HELD)
    if exclusive and "slots" not in later:
        notes.append(WHOLE_HOSTS)
    most = max(asked, _number(outcome[MOST_ASKED], "maxNumProcessors"))
    processors = min(max(given, asked), most) or given
    if processors <= 0:
        raise ValueError("no processors")
    if max(processors, given) >= MOST:
        raise ValueError("number too large")
    eligible = max(submit + max(later.get("ineligible", 0), 0), not_before)
    if later.get("ineligible", 0) > 0:
        notes.append(INELIGIBLE)
    elif _plain(head[CONDITION]) and later.get("ineligible", UNKNOWN) == UNKNOWN:
        notes.append(DEPENDS)
    if _HELD_BACK.search(head[REQUIREMENT]):
        notes.append(NO_REQUEST)
    run_time = later.get("run_time", 0)
    if not 0 < run_time < end - start - SUSPENDED_S:
        run_time = end - start
    name = _plain(outcome[JOB_NAME])
    array = _ARRAY.search(name) if index else None
    used_kb = stated_kb(_number(memory[MAX_MEMORY], "maxRMem"))
    if used_kb != UNKNOWN:
        notes.append("used memory: maxRMem, of all processes of the job")
    return {
        "job": f"{job}[{index}] of {submit}",  # ids come again; attempts share their submission
        "retried": True,
        "number": UNKNOWN if index else job,
        "order": job,
        "submit": submit if submit > 0 else UNKNOWN,
        "eligible": eligible,
        "start": start,
        "end": end,
        "run_time": run_time,
        "requested_time": later.get("limit", UNKNOWN),
        "charged": max(given, processors),
        "nodes": len({host.rpartition("*")[2] for host in hosts}),
        "exclusive": exclusive,
        "array": job if index else UNKNOWN,
        "array_limit": int(array[1]) if array and array[1] else UNKNOWN,
        "status": 1 if status & DONE else 5 if later.get("exit") in KILLED else 0,
        "used_memory_kb": used_kb,
        "user": _plain(head[USER]),
        "group": _plain(outcome[PROJECT]),
        "executable": name[: array.start()] if array else name,
        "queue": _plain(head[QUEUE]),
        "notes": notes,
        **_chunks(processors, later.get("requirement") or _plain(head[REQUIREMENT])),
    }


def _later(fields: _Fields) -> tuple[dict[str, Any], list[str]]:
    """Return what later versions say, as far as the record has their fields, and notes."""
    later: dict[str, Any] = {}
    notes: list[str] = []
    try:
        later["exit"] = _number(fields.take(EXIT)[-1], "exitInfo")
        fields.take(OPTIONS_LATER)
        fields.take_list(EITHER + TEXT)
        hosts = _number(fields.take(NUMBER)[0], "numHostRusage")
        ends = (fields.at + hosts * each for each in HOST_USAGE)
        fields.at = next((end for end in ends if fields.has(LIMITS, end)), fields.at)
        limits = fields.take(LIMITS)
        later["requirement"], later["to_cluster"] = (
            _plain(limits[at]) for at in (EFFECTIVE, TO_CLUSTER)
        )
        later["run_time"] = _number(limits[RUN_TIME], "runTime")
        later["limit"], odd = _limit(*(_number(text, "runLimit") for text in limits[:2]))
        notes += [ODD_LIMIT] * odd
        fields.at -= 1  # the number of networks is that of a list
        fields.take_list(TEXT + NUMBER)
        if fields.at + 1 < len(fields.texts):
            fields.take(ENERGY)
            later["slots"] = _slots([_plain(host) for host in fields.take_list(TEXT)])
        if fields.has(NUMBER, fields.at):
            later["ineligible"] = _number(fields.take(NUMBER)[0], "ineligiblePendTime")
    except ValueError:
        notes.append(OTHER_VERSION)
    return later, notes


def _limit(first: int, second: int) -> tuple[int, bool]:
    """Return the run limit of it and flags, and whether it cannot be told.

    Files have the limit first, the manual has it second. Limits are whole minutes, which no flag is
    and hardly any flags are together.
    """
    limits = [number for number in (first, second) if number > 0 and number % 60 == 0]
    if len(limits) == 1:
        return limits[0], False
    return UNKNOWN, len(limits) > 1 or (first > 0 and second >= 0)


def _chunks(processors: int, requirement: str) -> dict[str, Any]:
    """Return what a job asked of hosts: slots on one, as many on each, or anywhere."""
    spans = _SPAN.findall(requirement)
    per_host = _PER_HOST.fullmatch(spans[0]) if len(spans) == 1 else None
    each = min(int(per_host[1]), processors) if per_host else 1
    if spans == ["hosts=1"]:
        each = processors
    if each == 0 or processors % each:
        each = 1
    chunks = processors // each
    return {"chunks": chunks, "cpus": each, "spread": each > 1 and chunks > 1}


def _slots(hosts: list[str]) -> int:
    """Count slots in a list of hosts, each named once for each slot, or shortened as 16*host."""
    return sum(int(short[1]) if (short := _SLOTS.fullmatch(host)) else 1 for host in hosts)


def _plain(text: str) -> str:
    """Return a field without its quotes."""
    return text[1:-1].replace('""', '"') if text[0] == '"' else text


def _number(text: str, key: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{key} cannot be read")
    return int(text)
