"""Rows that `sacct -P` or `-p` prints: a header with names of fields, a delimiter between values.

Programs that keep tables write the same with values in quotes, an index before the id, and numbers
with decimals. A delimiter inside a name makes a row too long. Such a row is read if one way alone
to lay it over the fields makes sense, else left out.

Source: Specification, section 14, "Reading".
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, dropwhile, islice
from typing import NamedTuple

from hpcgym.base.errors import TraceError
from hpcgym.trace.accounting import slurm, used_memory
from hpcgym.trace.accounting.cells import EMPTY, Clock, whole
from hpcgym.trace.accounting.dates import Spelling, is_plain, spelling_of
from hpcgym.trace.accounting.rows import BLOCK_ROWS, TIMES, Block, Ledger, Source

_HEADER = re.compile(
    r"""(?:^|(?P<before>[^\w"]+))["]?JobID(?:Raw)?["]?(?:(?P<after>[^\w"]+)|$)""", re.I | re.ASCII
)
_BEFORE = re.compile(r"\A(?:[ \t\r]*(?:#[^\n]*|sep=.)?\r?\n)*\s*")
"""What may stand before a header: comments, and what Excel writes of its delimiter."""

_NAME_OF_FIELD = re.compile(r"|[^\W\d_][\w .:()/%-]*")
_INDEX = re.compile(r"|unnamed: \d+(\.\d+)?")
"""What tables have for a name of their index: none, or what pandas makes of that."""

_MOMENT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[+-]\d\d:?\d\d|Z)?|\d+|Unknown|None|N/A|INVALID|"
_SPAN = r"(?:\d+-)?\d+(?::\d+)*(?:\.\d+)?|UNLIMITED|Partition_Limit|INVALID|"
_COUNT = r"\d*|\d+(?:\.\d+)?[KM]"
_STATE = rf"(?:{'|'.join(sorted(slurm.STATES))})(?: by \d+)?|[A-Z_]+\+|"
_LIST = r"(?:(?:(?<=.),)?([\w/:.-]+)=[\d.]+[KMGTPE]?(?!,(?:.*,)?\1=)(?=,|$))*"  # no name twice
_USAGE = r"(?:(?:(?<=.),)?[\w/:.-]+=[\w:.-]+(?=,|$))*"
_NAME = r"[^\s|,;]*"
SHAPES = {
    **dict.fromkeys(("jobid", "jobidraw"), r"\d+(?:[_+.].*)?"),
    **dict.fromkeys(("submit", "eligible", "start", "end"), _MOMENT),
    **dict.fromkeys(("elapsed", "timelimit", "elapsedraw", "timelimitraw", "suspended"), _SPAN),
    **dict.fromkeys(("nnodes", "ncpus", "reqnodes", "reqcpus"), _COUNT),
    **dict.fromkeys(("user", "group", "account", "qos", "cluster", "reservation"), _NAME),
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

_ONE_VALUE = re.compile(
    r"(ave|min|max|tresusage|consumedenergy|cputime|planned|resv|req|alloc|qos)\w*|exitcode|flags|"
    r"(assoc|g|u|wckey|reservation|block)id|(total|user|system)cpu|group|suspended|restarts|priority"
    r"|cluster|layout|dbindex|sluid|reserved|reason|derivedexitcode|nodelist|failednode|mcslabel"
)
"""Other fields of sacct that hold one value, no text of a user's: no delimiter but a comma."""

_MOST_EXTRA = 100
_MOST_LINES = 50  # lines that a value in quotes goes over at most
_FIRST_ROWS = 1000  # rows whose times say whether those of all rows are looked at


class _Header(NamedTuple):
    """The first line: its names, and how it and all lines are split."""

    names: tuple[str, ...]
    split: _Splitter

    @property
    def has_index(self) -> bool:
        """Whether a column is the index of a table."""
        return any(_INDEX.fullmatch(name.casefold()) for name in self.names)


def recognises(head: str) -> bool:
    """Tell whether a text begins with a header of sacct, or of its table for people."""
    first, _, rest = _BEFORE.sub("", head).partition("\n")
    if _HEADER.search(first) is None:
        return False
    return rest.lstrip().startswith("--") or _header(first.rstrip("\r"), rest) is not None


def _header(line: str, below: str) -> _Header | None:
    """Return a header; None where it has other than names, or stands above columns for people."""
    match = _HEADER.search(line)
    delimiter = (match["after"] or match["before"] or "|") if match else ""
    in_columns = delimiter.isspace() and delimiter != "\t"
    if match is None or (in_columns and ("  " in line or below.startswith("--"))):
        return None
    split = _Splitter(delimiter, line)
    names = tuple(name.strip() for name in split.values(line))
    return _Header(names, split) if all(map(_NAME_OF_FIELD.fullmatch, names)) else None


class _Splitter:
    """Splits lines at a delimiter, which ends all or none (`-p`); values may be in quotes."""

    def __init__(self, delimiter: str, header: str) -> None:
        self.delimiter = delimiter.strip(" ") or " "
        self._end = self.delimiter if header.endswith(self.delimiter) else ""
        self._is_padded = self.delimiter != delimiter
        self.may_quote = len(self.delimiter) == 1 and ('"' in header or self.delimiter in ",;\t")

    def values(self, line: str) -> list[str]:
        """Return the values of a line."""
        if self._end and line.endswith(self._end):
            line = line[: -len(self._end)]
        if self._is_padded:
            return [value.strip(" ") for value in line.split(self.delimiter)]
        if self.may_quote and '"' in line:
            try:
                return next(csv.reader([line], delimiter=self.delimiter, strict=True))
            except (csv.Error, StopIteration):
                pass  # quotes of a name
        return line.split(self.delimiter)

    def whole_rows(self, lines: Iterator[tuple[int, str]], n: int) -> Iterator[tuple[int, str]]:
        """Yield lines; those that end within quotes, with what follows until these end."""
        for number, line in lines:
            if line.count('"') % 2 == 0:
                yield number, line
                continue
            held = [(number, line)]
            for further in islice(lines, _MOST_LINES):
                held.append(further)
                if further[1].count('"') % 2:
                    break
            joined = "\n".join(text for _, text in held)
            if len(self.values(joined)) == n:
                yield number, joined
            else:
                yield from held


def blocks(source: Source, clock: Clock, ledger: Ledger) -> Iterator[Block]:
    """Yield the runs of a file.

    Raises:
        TraceError: It is a table for people, or its header lacks a field. Or two fields say one
            thing and differ, or its times can be read in two ways.
    """
    lines = _lines(source)
    number, first = next(lines)
    second = next(lines, None)
    header = _header(first, second[1] if second else "")
    where = f"{source.path}:{number}"
    if header is None:
        raise TraceError(
            f"{where}: a table for people, whose values are cut short, so ids, names and times in "
            f"it may be parts of others; sacct prints whole ones with -P: {slurm.COMMAND}"
        )
    lines = chain([second] if second else [], lines)
    split = header.split
    columns = _columns(header.names)
    slurm.check_fields(where, list(columns), header.names)
    layout = _Layout(header.names, split.delimiter, columns)
    if split.may_quote and '"' in source.text:
        lines = split.whole_rows(lines, len(header.names))
    spelling = _spelling(source, split, columns, len(header.names))
    for chunk in _whole_jobs(lines, layout.is_step):
        ledger.rows += len(chunk)
        kept, rows = [], []
        for number, line in chunk:
            row = split.values(line)
            reason = ""
            if len(row) != len(header.names):
                row, reason = layout.fit(row)
            elif line == first:
                reason = "header once more"
            if reason:
                ledger.leave_out(reason, source.path, number, jobs=int(reason != _STEP))
            else:
                kept.append(number)
                rows.append(row)
        texts = list(zip(*rows, strict=True)) if rows else [()] * len(header.names)
        cells: Block = {
            name: _one_of(texts, places, header.names, source, kept)
            for name, places in columns.items()
        }
        if split.may_quote:
            cells = {name: _known(name, values) for name, values in cells.items()}
        if header.has_index and all(text.endswith(".0") for text in cells.get("jobid", ())):
            cells["jobid"] = [text.removesuffix(".0") for text in cells.get("jobid", ())]
        if spelling is not None:
            ledger.note(f"times by {spelling.order}", len(kept))
            for key in filter(cells.__contains__, TIMES):
                cells[key] = [spelling.iso.get(text, text) for text in cells[key]]
        ledger.note("delimiter in a name: which name it is of is not told", layout.unnamed)
        layout.unnamed = 0
        yield slurm.block_of(cells | {"line": kept}, source.path, clock, ledger)


def _lines(source: Source) -> Iterator[tuple[int, str]]:
    before = _BEFORE.match(source.text)
    skipped = source.text.count("\n", 0, before.end()) if before else 0
    return dropwhile(lambda line: line[0] <= skipped, source.lines())


def _canonical(name: str) -> str:
    folded = name.casefold()
    return slurm.ALIASES.get(folded, folded)


def _columns(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of each field that is used; `sacct -o ALL` prints some under two names."""
    places: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        if _canonical(name) in slurm.USED:
            places.setdefault(_canonical(name), []).append(position)
    return places


def _one_of(
    texts: Sequence[Sequence[str]],
    places: Sequence[int],
    names: Sequence[str],
    source: Source,
    lines: Sequence[int],
) -> Sequence[str]:
    """Return the values of a field, which stands in several columns that must not differ."""
    values = texts[places[0]]
    for position in places[1:]:
        if texts[position] == values:
            continue
        merged = []
        for row, (first, other) in enumerate(zip(values, texts[position], strict=True)):
            if (
                first != other
                and _amount(first)
                and _amount(other)
                and _amount(first) != _amount(other)
            ):
                raise TraceError(
                    f"{source.path}:{lines[row]}: {names[places[0]]} is {first!r} and "
                    f"{names[position]} {other!r}, which say one thing; leave one of these "
                    "fields out"
                )
            merged.append(first if _amount(first) else other)
        values = merged
    return values


def _amount(text: str) -> int | str:
    """Return what a value amounts to, 0 or "" where it says nothing, such as a count of no job."""
    try:
        return whole(text)
    except ValueError:
        return text


def _known(name: str, values: Sequence[str]) -> Sequence[str]:
    """Return values with "" where a table says that there is none; names stay as they are."""
    if name in slurm.NAMED.values() or EMPTY.isdisjoint(values):
        return values
    return ["" if text in EMPTY else text for text in values]


def _spelling(
    source: Source, split: _Splitter, columns: dict[str, list[int]], n: int
) -> Spelling | None:
    """Return how times are written, as all of them tell where the first are not plain."""
    places = [places[0] for name, places in columns.items() if name in TIMES]

    def times(lines: Iterator[tuple[int, str]]) -> set[str]:
        rows = (row for _, line in lines if len(row := split.values(line)) == n)
        return {row[position] for row in rows for position in places}

    if all(map(is_plain, times(islice(_lines(source), 1, _FIRST_ROWS)))):
        return None
    try:
        return spelling_of(times(islice(_lines(source), 1, None)))
    except ValueError as error:
        raise TraceError(
            f"{source.path}: {error}; print seconds since 1970: {slurm.COMMAND}"
        ) from None


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


class _Layout:
    """Which values of too long a row may be of which field; `unnamed` rows lack only names."""

    def __init__(
        self, header: Sequence[str], delimiter: str, columns: dict[str, list[int]]
    ) -> None:
        names = [_canonical(name) for name in header]
        shapes = [SHAPES.get(name, ".*") for name in names]
        shapes = [
            r"(?:\d+(?:\.0)?)?" if _INDEX.fullmatch(name) else shape
            for name, shape in zip(names, shapes, strict=True)
        ]
        self._shapes = [re.compile(shape, re.DOTALL) for shape in shapes]
        comma = delimiter == ","
        self._holds = [
            name in MAY_HOLD_IT
            or (name not in SHAPES and (comma or not _ONE_VALUE.fullmatch(name)))
            or (delimiter == " " and name == "state")
            for name in names
        ]
        self._used = {position for places in columns.values() for position in places}
        self._names = {
            position for name in slurm.NAMED.values() for position in columns.get(name, ())
        }
        self._delimiter = delimiter
        self._id_first = names[0] in ("jobid", "jobidraw")
        self._id = min(names.index(name) for name in ("jobid", "jobidraw") if name in names)
        self._memory = [names.index(field) for field in used_memory.FIELDS if field in names]
        self.unnamed = 0

    def is_step(self, line: str) -> bool:
        """Tell whether a line is of a step that may say what memory its job used."""
        if not self._memory:
            return False
        return slurm.is_step(line.split(self._delimiter, self._id + 1)[: self._id + 1][-1])

    def fit(self, row: list[str]) -> tuple[list[str], str]:
        """Return a row of another length as values by field, or why it cannot be.

        A step that cannot be read is one of unknown memory where steps state that.
        """
        if not (self._id_first and slurm.is_step(row[0])):
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
        ways = self._ways(row, 0, extra, {}, self._used)
        if len(ways) > 1:  # perhaps only names differ
            ways = self._ways(row, 0, extra, {}, self._used - self._names)
            self.unnamed += len(ways) == 1
        if len(ways) != 1:
            return [], AMBIGUOUS
        return list(ways[0]), ""

    def _ways(
        self,
        row: list[str],
        field: int,
        extra: int,
        known: dict[tuple[int, int], list[list[str]]],
        used: set[int],
    ) -> list[list[str]]:
        """Return up to two ways to read fields from one on, that differ in fields that are used."""
        if field == len(self._shapes):
            return [[]] if extra == 0 else []
        if (field, extra) in known:
            return known[field, extra]
        begin = len(row) - (len(self._shapes) - field) - extra
        ways: dict[tuple[str, ...], list[str]] = {}
        for taken in range(extra + 1 if self._holds[field] else 1):
            text = self._delimiter.join(row[begin : begin + taken + 1])
            if self._shapes[field].fullmatch(text):
                for rest in self._ways(row, field + 1, extra - taken, known, used):
                    way = [text if field in used else "", *rest]
                    ways.setdefault(tuple(way), way)
        known[field, extra] = list(ways.values())[:2]
        return known[field, extra]
