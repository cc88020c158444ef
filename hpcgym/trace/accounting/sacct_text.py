"""Rows that `sacct -P` or `-p` prints: a header with names of fields, a delimiter between values.

A delimiter inside a name makes a row too long. Such a row is read if one way alone to lay it over
the fields makes sense, else left out.

Source: Specification, section 14, "Reading".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from hpcgym.errors import TraceError
from hpcgym.trace.accounting import slurm, used_memory
from hpcgym.trace.accounting.cells import Clock
from hpcgym.trace.accounting.rows import BLOCK_ROWS, Block, Ledger, Source

_HEADER = re.compile(r"([A-Za-z]\w*)(\W+)(?=[A-Za-z])")
_TABLE = re.compile(r"\s*JobID\s+\w+.*\n-{3,}[\s-]+\n", re.IGNORECASE)
_MOMENT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[+-]\d\d:?\d\d|Z)?|\d+|Unknown|None|N/A|INVALID|"
_SPAN = r"(?:\d+-)?\d+(?::\d+)*(?:\.\d+)?|UNLIMITED|Partition_Limit|INVALID|"
_COUNT = r"\d*|\d+(?:\.\d+)?[KM]"
_STATE = rf"(?:{'|'.join(sorted(slurm.STATES))})(?: by \d+)?|"
_LIST = r"(?:(?:(?<=.),)?([\w/:.-]+)=[\d.]+[KMGTPE]?(?!,(?:.*,)?\1=)(?=,|$))*"  # no name twice
_USAGE = r"(?:(?:(?<=.),)?[\w/:.-]+=[\w:.-]+(?=,|$))*"
_NAME = r"[^\s|,;]*"
SHAPES = {
    **dict.fromkeys(("jobid", "jobidraw"), r"\d+(?:[_+.].*)?"),
    **dict.fromkeys(("submit", "eligible", "start", "end"), _MOMENT),
    **dict.fromkeys(("elapsed", "timelimit", "elapsedraw", "timelimitraw"), _SPAN),
    **dict.fromkeys(("nnodes", "ncpus", "reqnodes", "reqcpus"), _COUNT),
    **dict.fromkeys(("user", "group", "account", "qos"), _NAME),
    "partition": r"[^\s|;]*",  # a job that waits may name several
    **dict.fromkeys(("reqtres", "alloctres"), _LIST),
    "state": _STATE,
    "exitcode": r"\d+:\d+|",
    "reqmem": r"[\d.]+[KMGTPE]?[nc]?|",
    "ntasks": r"\d*",
    "maxrss": r"[\d.]+[KMGTPE]?|",
    **dict.fromkeys(("tresusageinmax", "tresusageintot"), _USAGE),
}
"""What values of a field look like; others may be anything."""

MAY_HOLD_IT = {"reqtres", "alloctres", "tresusageinmax", "tresusageintot"}
"""Fields with a shape that may nevertheless hold the delimiter: it may be a comma."""

_MOST_EXTRA = 100


def recognises(head: str) -> bool:
    """Tell whether a text begins with a header of sacct."""
    return _header(head) is not None or _TABLE.match(head) is not None


def _header(text: str) -> tuple[str, str] | None:
    """Return the first line of a header, and the delimiter between its names."""
    line = text.lstrip().partition("\n")[0].rstrip("\r")
    match = _HEADER.match(line)
    if match is None or (match[2].isspace() and match[2] != "\t"):
        return None
    names = {name.casefold() for name in line.split(match[2])}
    return (line, match[2]) if names & {"jobid", "jobidraw"} else None


def blocks(source: Source, clock: Clock, ledger: Ledger) -> Iterator[Block]:
    """Yield the runs of a file.

    Raises:
        TraceError: It is a table for people, or its header lacks a field.
    """
    lines = source.lines()
    number, first = next(lines)
    header = _header(first)
    if header is None:
        raise TraceError(
            f"{source.path}:{number}: a table for people, whose values are cut short and whose "
            f"submit times are missing; print what is needed by: {slurm.COMMAND}"
        )
    delimiter = header[1]
    names = [name.casefold() for name in _values(first, delimiter, first)]
    names = [slurm.ALIASES.get(name, name) for name in names]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise TraceError(f"{source.path}:{number}: two fields {', '.join(twice)} in the header")
    slurm.check_fields(f"{source.path}:{number}", names)
    used = {name: column for column, name in enumerate(names) if name in slurm.USED}
    layout = _Layout(names, delimiter, tuple(used.values()))
    for chunk in _whole_jobs(lines, layout.is_step):
        ledger.rows += len(chunk)
        kept, rows = [], []
        for number, line in chunk:
            row = _values(line, delimiter, first)
            reason = ""
            if len(row) != len(names):
                row, reason = layout.fit(row)
            elif line == first:
                reason = "header once more"
            if reason:
                ledger.leave_out(reason, source.path, number, jobs=int(reason != _STEP))
            else:
                kept.append(number)
                rows.append(row)
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        cells: Block = {name: columns[column] for name, column in used.items()}
        yield slurm.block_of(cells | {"line": kept}, source.path, clock, ledger)


def _whole_jobs(
    lines: Iterator[tuple[int, str]], is_step: Callable[[str], bool]
) -> Iterator[list[tuple[int, str]]]:
    """Yield blocks of lines; the steps that follow a job are in its block."""
    chunk = list(islice(lines, BLOCK_ROWS))
    while chunk:
        begun = []
        for line in lines:
            if not is_step(line[1]):
                begun = [line]
                break
            chunk.append(line)
        yield chunk
        chunk = begun + list(islice(lines, BLOCK_ROWS - len(begun)))


AMBIGUOUS = "delimiter in a name: the row can be read in no way, or in several"
_STEP = "step of a job"


def _values(line: str, delimiter: str, header: str) -> list[str]:
    """Split a line; where the header ends in the delimiter (`-p`), so does every row."""
    if header.endswith(delimiter) and line.endswith(delimiter):
        line = line[: -len(delimiter)]
    return line.split(delimiter)


class _Layout:
    """Which values of a row that is too long may belong to which field."""

    def __init__(self, names: Sequence[str], delimiter: str, used: tuple[int, ...]) -> None:
        self._shapes = [re.compile(SHAPES.get(name, ".*"), re.DOTALL) for name in names]
        self._holds = [name not in SHAPES or name in MAY_HOLD_IT for name in names]
        self._used = set(used)
        self._delimiter = delimiter
        self._id_first = names[0] in ("jobid", "jobidraw")
        self._id = min(names.index(name) for name in ("jobid", "jobidraw") if name in names)
        self._memory = [names.index(field) for field in used_memory.FIELDS if field in names]

    def is_step(self, line: str) -> bool:
        """Tell whether a line is of a step that may say what memory its job used."""
        if not self._memory:
            return False
        return "." in line.split(self._delimiter, self._id + 1)[: self._id + 1][-1]

    def fit(self, row: list[str]) -> tuple[list[str], str]:
        """Return a row of another length as values by field, or why it cannot be.

        A step that cannot be read is one of unknown memory where steps state that.
        """
        if not (self._id_first and "." in row[0]):
            return self._fitted(row)
        if not self._memory:
            return [], _STEP
        values, reason = self._fitted(row)
        if reason:
            values = [""] * len(self._shapes)
            values[0], values[self._memory[0]] = row[0], "?"
        return values, ""

    def _fitted(self, row: list[str]) -> tuple[list[str], str]:
        """Return a row laid over the fields, or why it cannot be."""
        extra = len(row) - len(self._shapes)
        if extra < 0:
            return [], "fewer values than the header has fields"
        if extra > _MOST_EXTRA:
            return [], "more values than the header has fields"
        ways = self._ways(row, 0, extra, {})
        if len(ways) != 1:
            return [], AMBIGUOUS
        return list(ways[0]), ""

    def _ways(
        self, row: list[str], field: int, extra: int, known: dict[tuple[int, int], list[list[str]]]
    ) -> list[list[str]]:
        """Return up to two ways to read the fields from one on, where some values are left over.

        Ways that differ in fields that are not used count as one.
        """
        if field == len(self._shapes):
            return [[]] if extra == 0 else []
        if (field, extra) in known:
            return known[field, extra]
        begin = len(row) - (len(self._shapes) - field) - extra
        ways: dict[tuple[str, ...], list[str]] = {}
        for taken in range(extra + 1 if self._holds[field] else 1):
            text = self._delimiter.join(row[begin : begin + taken + 1])
            if self._shapes[field].fullmatch(text):
                for rest in self._ways(row, field + 1, extra - taken, known):
                    way = [text if field in self._used else "", *rest]
                    ways.setdefault(tuple(way), way)
        known[field, extra] = list(ways.values())[:2]
        return known[field, extra]
