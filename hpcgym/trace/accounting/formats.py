"""The formats of accounting that are read, and which of them a file has: its content decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from hpcgym.errors import TraceError
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
from hpcgym.trace.accounting.rows import HEAD, Block, Ledger, Source


class Format(NamedTuple):
    """A format: its name, what recognises the beginning of a text, and what yields its runs."""

    name: str
    recognises: Callable[[str], bool]
    blocks: Callable[[Source, Clock, Ledger], Iterator[Block]]


FORMATS = (
    Format("text of sacct", sacct_text.recognises, sacct_text.blocks),
    Format("JSON of Slurm", sacct_json.recognises, sacct_json.blocks),
    Format("accounting of PBS", pbs.recognises, pbs.blocks),
    Format("accounting of LSF", lsf.recognises, lsf.blocks),
    Format("accounting of Grid Engine", sge.recognises, sge.blocks),
    Format("table of a site", site_tables.recognises, site_tables.blocks),
    Format("SWF", long_swf.recognises, long_swf.blocks),
)
"""The first that recognises a file reads it."""


def recognised(head: str) -> Format | None:
    """Return the format of a text by its beginning, or None."""
    return next((known for known in FORMATS if "\0" not in head and known.recognises(head)), None)


def format_of(source: Source) -> Format:
    """Return the format of a file.

    Raises:
        TraceError: No format recognises it.
    """
    if known_format := recognised(source.head):
        return known_format
    text = source.text  # a file that cannot be read says so here
    known = ", ".join(known_format.name for known_format in FORMATS)
    first = text[:HEAD].strip().partition("\n")[0][:60]
    raise TraceError(
        f"{source.path}: it begins with {first!r}, as no format does that is known: {known}. Text "
        f"of sacct begins with names of fields, JobID among them; print it by: {slurm.COMMAND}"
    )
