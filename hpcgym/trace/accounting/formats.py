"""The formats of accounting that are read, and which of them a file has: its content decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from hpcgym.base.errors import TraceError
from hpcgym.trace import tables
from hpcgym.trace.accounting import (
    long_swf,
    lsf,
    pbs,
    sacct_json,
    sacct_text,
    sge,
    site_tables,
    slurm,
)
from hpcgym.trace.accounting.cells import Clock
from hpcgym.trace.accounting.lookalikes import no_log
from hpcgym.trace.accounting.rows import HEAD, Block, Ledger, Source
from hpcgym.trace.swf import NAMED_BY, begins_with, may_be_swf


class Format(NamedTuple):
    """A format: its name, what recognises the beginning of a text, and what yields its runs."""

    name: str
    recognises: Callable[[str], bool]
    blocks: Callable[[Source, Clock, Ledger], Iterator[Block]]


def _refuse_table(source: Source, clock: Clock, ledger: Ledger) -> Iterator[Block]:
    """Refuse a table of jobs where accounting is needed, and what its name alone says is one."""
    if not tables.recognises(source.head):
        tables.read_table(source.path)  # says what is wrong
    raise TraceError(
        f"{source.path}: a table of jobs, no accounting; commands that take a log take it as it is"
    )


TABLE = Format("table of jobs", tables.recognises, _refuse_table)
SWF = Format("SWF", long_swf.recognises, long_swf.blocks)
FORMATS = (
    Format("text of sacct", sacct_text.recognises, sacct_text.blocks),
    Format("JSON of Slurm", sacct_json.recognises, sacct_json.blocks),
    Format("accounting of PBS", pbs.recognises, pbs.blocks),
    Format("accounting of LSF", lsf.recognises, lsf.blocks),
    Format("accounting of Grid Engine", sge.recognises, sge.blocks),
    Format("table of a site", site_tables.recognises, site_tables.blocks),
    TABLE,
    SWF,
)
"""The first that recognises a file reads it."""


def format_of(source: Source) -> Format:
    """Return the format of a file: every command that takes a log asks here.

    What no format recognises may be a damaged log in SWF or, by the ending of its name, a table of
    jobs whose columns have other names; their readers say what is wrong.

    Raises:
        TraceError: No format recognises it; the message says what it looks like.
    """
    head = source.head or source.text[:HEAD]  # a file that cannot be read says so
    named_table = str(source.path).endswith(tables.SUFFIXES)
    if known := next((known for known in FORMATS if known.recognises(head)), None):
        return known
    if named_table and source.is_parquet:
        return TABLE
    if said := no_log(head):
        raise TraceError(f"{source.path}: {said}")
    if may_be_swf(head):
        return SWF
    if named_table:
        return TABLE
    names = ", ".join(known.name for known in FORMATS)
    raise TraceError(
        f"{source.path}: it begins with {begins_with(head)}, as no format does that is known: "
        f"{names}. Text of sacct begins with names of fields, JobID among them; print it by: "
        f"{slurm.COMMAND}"
    )


def is_log(source: Source) -> bool:
    """Tell whether a file is a log that is read as it is: a table of jobs, or SWF without names.

    Raises:
        TraceError: As `format_of`.
    """
    known = format_of(source)
    return known is TABLE or (known is SWF and not long_swf.has_names(source.head))


def _named(head: str) -> str:
    """Return what a text is, and what reads it; "" = not known."""
    known = next((known.name for known in FORMATS if known.recognises(head)), None)
    return f"{known}, no log in SWF; hpcgym.trace.read_log reads it" if known else no_log(head)


NAMED_BY.append(_named)
