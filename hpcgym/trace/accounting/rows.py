"""What formats of accounting hand over: rows in blocks of columns, and counts of those left out.

Source: Specification, section 14, "Reading".
"""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.trace.packing import read_bytes, read_head, read_pieces
from hpcgym.trace.parquet import MAGIC, column_names, read_parquet

Block = dict[str, Any]
"""Columns of `FIELDS`, a value for each row; `line` is needed, others have a default."""

UNKNOWN = -1  # a time or a count that the row does not state
MOST_KB = 2**50  # memory of a job stays below this, KB

SUSPENDED_S = 60
"""What lies between start and end beyond the run time, and is no more than clocks that differ."""

PARTITION_LIMIT = -2  # a requested time that is the partition's limit, whatever that is

PUT_BACK = "put back before its start"
"""Why a row was left out that still says when its job was first submitted."""

UNTIL_ELIGIBLE = ("dependencies", "holds", "begin times")
CAUSES = ("", "reservations", "limits", *UNTIL_ELIGIBLE, "nodes reserved or down", "failures")
"""What may hold a job back beside priority and resources; the first says that none did."""
UNSAID = "ineligible without a stated reason"

FIELDS: dict[str, Any] = {
    "line": 0,
    "job": "",  # as the site writes it, such as 92_4: rows of one job are its attempts
    "number": UNKNOWN,  # a whole number that is the job's alone
    "order": UNKNOWN,  # ascends with the time of submission
    "submit": UNKNOWN,
    "eligible": UNKNOWN,
    "start": UNKNOWN,
    "end": UNKNOWN,
    "submit_late": 0,  # further seconds, if it was after the clock was put back
    "eligible_late": 0,
    "start_late": 0,
    "end_late": 0,
    "run_time": UNKNOWN,  # in which it ran, so without the time that it stood suspended
    "suspended": 0,  # seconds that it stood suspended; UNKNOWN: it did, and not how long
    "requested_time": UNKNOWN,
    "charged": 0,  # processors that the job held
    "by_slurm": False,  # `charged` is what Slurm allocated, and `start` may be cut by sacct -T
    "nodes": 0,  # nodes that it held
    "chunks": 0,
    "cpus": 1,
    "gpus": 0,
    "memory_mb": 0,
    "asked_memory_kb": UNKNOWN,  # of the whole job, where it is no request of nodes
    "used_memory_kb": UNKNOWN,  # of the whole job at its peak
    "spread": False,
    "exclusive": False,
    "array": UNKNOWN,  # number of the array that the job is a task of
    "array_limit": UNKNOWN,  # tasks of it that may run at once, below 1 = any number
    "after": UNKNOWN,  # number of the job before it
    "think_time": 0,  # seconds between the end of that one and it
    "cause": UNKNOWN,  # what held the job back, a number of `CAUSES`; 0: none of these
    "failed": False,  # a node failed while it ran
    "status": UNKNOWN,  # as SWF has it: 1 completed, 0 failed, 5 cancelled
    "retried": False,  # the job was put back, so another row of it may follow
    "resized": False,  # it went on with other processors, so the next row of it is no new attempt
    "run_count": UNKNOWN,  # how often it had been started, this time included
    "ran": True,  # False: put back before it started
    "partition": "",
    "user": "",
    "group": "",
    "executable": "",
    "queue": "",
}
NAMES = ("partition", "user", "group", "executable", "queue")
TIMES = ("submit", "eligible", "start", "end")

HEAD = 65_536  # bytes of a file that its format is recognised by

BLOCK_ROWS = 10_000
SHOWN_PLACES = 3


class Source:
    """A file of accounting, packed or not, in UTF-8 or else Latin-1; of Parquet as CSV.

    Reading raises what `trace.packing.read_bytes` and `trace.parquet.read_parquet` do.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @cached_property
    def head(self) -> str:
        """The beginning of the text; "" where the file cannot be read."""
        if self.is_parquet:
            return ",".join(column_names(self.path))
        begin = read_head(self.path, HEAD)
        try:
            return codecs.getincrementaldecoder("utf-8-sig")().decode(
                begin
            )  # it may end in between
        except UnicodeDecodeError:
            return begin.decode("latin-1")

    @cached_property
    def is_parquet(self) -> bool:
        """Whether it is a Parquet file."""
        return read_head(self.path, len(MAGIC)) == MAGIC

    @cached_property
    def text(self) -> str:
        """The whole text."""
        content = read_bytes(self.path)
        if content.startswith(MAGIC):
            return str(read_parquet(self.path, drop_nested=True).to_csv(index=False))
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return content.decode("latin-1")

    def pieces(self) -> Iterator[str]:
        """Yield the text piece by piece, as UTF-8."""
        decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        yield from map(decoder.decode, read_pieces(self.path))

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines that are not blank, without line end, with their numbers from 1."""
        begin, number, text = 0, 0, self.text
        while begin < len(text):
            end = text.find("\n", begin)
            end = len(text) if end < 0 else end
            number += 1
            line = text[begin:end].rstrip("\r")
            if line.strip():
                yield number, line
            begin = end + 1


@dataclass
class Reason:
    """Why rows were left out: how many, for how many jobs, file and line of the first."""

    rows: int = 0
    jobs: int = 0
    places: list[tuple[Path, int]] = field(default_factory=list)

    def where(self, *, several_files: bool) -> str:
        """Return the first places."""
        known = [f"{path}:{line}" if several_files else str(line) for path, line in self.places]
        more = ", ..." if self.rows > len(known) else ""
        return ("" if several_files else "line ") + ", ".join(known) + more


@dataclass
class Ledger:
    """Every row read, those left out by reason, and what is worth saying once."""

    rows: int = 0
    machine_processors: int | None = None  # what a header says
    left_out: dict[str, Reason] = field(default_factory=dict)
    # How many rows there is something to say of that do become jobs.
    notes: dict[str, int] = field(default_factory=dict)
    # The same of what waits and loads depend on, so that every command says it.
    told: dict[str, int] = field(default_factory=dict)
    warnings: dict[str, int] = field(default_factory=dict)  # the same of what makes them wrong
    clusters: Counter[str] = field(default_factory=Counter)  # rows of each cluster that rows name
    # What a format knows of jobs whose end is still to come, perhaps in the next file.
    begun: dict[str, Any] = field(default_factory=dict)

    def leave_out(self, reason: str, path: Path, line: int, jobs: int = 1) -> None:
        """Count a row that becomes no job."""
        entry = self.left_out.setdefault(reason, Reason())
        entry.rows += 1
        entry.jobs += jobs
        if len(entry.places) < SHOWN_PLACES:
            entry.places.append((path, line))

    def note(self, what: str, rows: int = 1, among: dict[str, int] | None = None) -> None:
        """Count what is worth saying of rows that do become jobs, by default in `notes`."""
        counts = self.notes if among is None else among
        if rows:
            counts[what] = counts.get(what, 0) + int(rows)

    @property
    def important(self) -> list[str]:
        """What every command says: what is told, and warnings."""
        told = [f"{rows} attempts {what}" for what, rows in self.told.items()]
        return told + [f"warning: {rows} attempts {what}" for what, rows in self.warnings.items()]


def read_distinct(texts: Sequence[str], read: Callable[[str], Any]) -> tuple[list[Any], set[str]]:
    """Read each distinct text once; return a value for each row, and the texts refused.

    `read` refuses by a ValueError; such rows have None.
    """
    known: dict[str, Any] = {}
    refused = set()
    for text in set(texts):
        try:
            known[text] = read(text)
        except ValueError:
            known[text] = None
            refused.add(text)
    return [known[text] for text in texts], refused


def kept_rows(block: Mapping[str, Sequence[Any]], keep: Sequence[bool]) -> Block:
    """Return the rows of a block that are kept."""
    if all(keep):
        return dict(block)
    return {
        key: values[np.array(keep)]
        if isinstance(values, np.ndarray)
        else [value for value, stays in zip(values, keep, strict=True) if stays]
        for key, values in block.items()
    }


def in_blocks(rows: Iterable[Mapping[str, Any]]) -> Iterator[Block]:
    """Gather rows, each a mapping of columns, into blocks."""
    waiting: list[Mapping[str, Any]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == BLOCK_ROWS:
            yield _gathered(waiting)
            waiting = []
    if waiting:
        yield _gathered(waiting)


def _gathered(rows: Sequence[Mapping[str, Any]]) -> Block:
    return {key: [row.get(key, default) for row in rows] for key, default in FIELDS.items()}


def stated_kb(amount: int) -> int:
    """Return a job's memory in KB; UNKNOWN where it is 0, as where nobody measured, or no number.

    Example:
        >>> stated_kb(20), stated_kb(0), stated_kb(2**60)
        (20, -1, -1)
    """
    return amount if 0 < amount < MOST_KB else UNKNOWN


def as_arrays(block: Block) -> Block:
    """Return a block with every column of `FIELDS`, as arrays."""
    n = len(block["line"])
    arrays = {}
    for key, default in FIELDS.items():
        kind: Any = object if key in NAMES or key == "job" else type(default)
        kind = np.int64 if kind is int else kind
        arrays[key] = np.array(block[key], dtype=kind) if key in block else np.full(n, default)
        if arrays[key].dtype != kind:
            arrays[key] = arrays[key].astype(kind)
    return arrays
