"""Tables of jobs that sites publish with columns of their own, as CSV or Parquet.

Source: Specification, section 14, "Tables of sites".
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from hpcgym.base.errors import TraceError
from hpcgym.trace.accounting import slurm
from hpcgym.trace.accounting.cells import Clock
from hpcgym.trace.accounting.rows import BLOCK_ROWS, Block, Ledger, Source

SECONDS = "timelimitseconds"
_NUMBERS = ("reqnodes", "reqcpus", "reqgpus", "elapsedraw", SECONDS, "jobid", "submit", "waited")


class Layout(NamedTuple):
    """Whose columns they are, and the column of each field."""

    name: str
    columns: Mapping[str, str]
    optional: frozenset[str] = frozenset()  # columns that may be missing
    # Whether tasks of an array share one id, so that each row is a job of its own.
    shared_ids: bool = False
    note: str = ""  # what is worth saying of every row
    states: Mapping[str, str] = {}  # Slurm's state for each of theirs, where they have other words


LAYOUTS = (
    Layout(
        "jobs of Eagle",
        {
            "jobid": "job_id",
            "user": "user",
            "account": "account",
            "partition": "partition",
            "qos": "qos",
            SECONDS: "wallclock_req",
            "reqnodes": "nodes_req",
            "reqcpus": "processors_req",
            "reqgpus": "gpus_req",
            "submit": "submit_time",
            "start": "start_time",
            "end": "end_time",
            "elapsedraw": "run_time",
            "state": "state",
            "jobname": "name",
        },
        frozenset({"gpus_req", "name", "qos"}),
        shared_ids=True,
    ),
    Layout(
        "jobs of Frontier for RAPS",
        {
            "jobid": "job_id",
            "user": "user",
            "account": "account",
            SECONDS: "time_limit",
            "reqnodes": "node_count",
            "reqcpus": "node_count",
            "submit": "time_submission",
            "start": "time_start",
            "end": "time_end",
            "state": "state_current",
            "jobname": "name",
        },
        frozenset({"user", "account", "name"}),
        note="no cpus: processors are nodes",
    ),
    Layout(
        "jobs of Lumos",
        {
            "jobid": "job",
            "user": "user",
            "account": "project",
            SECONDS: "wall_time",
            "reqnodes": "node_num",
            "reqcpus": "node_num",
            "submit": "submit_time",
            "waited": "wait_time",
            "elapsedraw": "run_time",
            "state": "new_status",
        },
        note="processors are nodes",
        states={"Pass": "COMPLETED", "Failed": "FAILED", "Killed": "CANCELLED"},
    ),
)
"""Of NREL's eagle-jobs, of what the loader of ExaDigiT's RAPS reads, and of DIR-LAB's Lumos."""


def recognises(head: str) -> bool:
    """Tell whether the first line has the columns of a layout."""
    return _layout(_names(head)) is not None


def _names(head: str) -> list[str]:
    """Return the names of columns in the first line; none where it is no CSV."""
    try:
        return [name.strip() for name in next(csv.reader([head.partition("\n")[0]]), [])]
    except csv.Error:
        return []


def _layout(names: list[str]) -> Layout | None:
    """Return the layout that all of its needed columns are of."""
    given = set(names)
    needed = ((layout, set(layout.columns.values()) - layout.optional) for layout in LAYOUTS)
    return next((layout for layout, columns in needed if columns <= given), None)


def blocks(source: Source, clock: Clock, ledger: Ledger) -> Iterator[Block]:
    """Yield the runs of a file. TraceError: it is no CSV."""
    names = _names(source.text)
    layout = _layout(names)
    assert layout is not None
    at = {field: names.index(name) for field, name in layout.columns.items() if name in names}
    rows = _numbered(source)
    while chunk := list(islice(rows, BLOCK_ROWS)):
        ledger.rows += len(chunk)
        kept = []
        for number, row in chunk:
            if len(row) == len(names):
                kept.append((number, row))
            else:
                ledger.leave_out("another number of values than names", source.path, number)
        cells: Block = {key: [row[column] for _, row in kept] for key, column in at.items()}
        cells |= {key: list(map(_whole, cells[key])) for key in _NUMBERS if key in cells}
        if "reqgpus" in cells:
            cells["reqtres"] = [f"gres/gpu={count}" if count else "" for count in cells["reqgpus"]]
        if "waited" in cells:
            cells["start"] = list(map(_start, cells["submit"], cells.pop("waited")))
        cells["state"] = [layout.states.get(state, state) for state in cells["state"]]
        cells["line"] = [number for number, _ in kept]
        block = slurm.block_of(cells, source.path, clock, ledger)
        if layout.note:
            ledger.note(layout.note, len(block["line"]))
        if layout.shared_ids:
            pairs = zip(block.get("job", ()), block["line"], strict=True)
            block["job"] = [f"{job}:{line}" for job, line in pairs]
        yield block


def _numbered(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with their lines."""
    rows = csv.reader(source.text.splitlines(keepends=True))
    try:
        next(rows)
        yield from ((rows.line_num, row) for row in rows if row)
    except csv.Error as error:
        raise TraceError(f"{source.path}:{rows.line_num}: no CSV: {error}") from None


def _whole(text: str) -> str:
    """Return a number that a table may show as a decimal, without its zeros."""
    return text.strip().removesuffix(".0")


def _start(submit: str, waited: str) -> str:
    """Return when a job started that waited so long, as a text; "" where that is not known."""
    return str(int(submit) + int(waited)) if submit.isdecimal() and waited.isdecimal() else ""
