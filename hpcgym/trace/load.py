"""Find, read and clean a log in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Unpack

from hpcgym.core.workload import Workload
from hpcgym.trace.catalogue import find_log
from hpcgym.trace.clean import CleaningOptions, CleaningReport, clean
from hpcgym.trace.tables import read_log


def load_workload(
    name_or_path: str | Path,
    *,
    on_bad_line: Literal["raise", "drop"] = "raise",
    **options: Unpack[CleaningOptions],
) -> Workload:
    """Find, read and clean a log, given its name or its file: SWF, or a table of jobs.

    `on_bad_line="drop"` leaves malformed lines out; `options` are keywords of `hpcgym.trace.clean`.

    Raises:
        TraceError: The log cannot be found, read or cleaned, or another is under its name; see
            `hpcgym.trace.catalogue.find_log`.

    Example:
        >>> load_workload("tiny")
        Workload('tiny', 8 jobs, 4 processors)
    """
    return load_with_report(name_or_path, on_bad_line=on_bad_line, **options)[0]


def load_with_report(
    name_or_path: str | Path,
    *,
    on_bad_line: Literal["raise", "drop"] = "raise",
    **options: Unpack[CleaningOptions],
) -> tuple[Workload, CleaningReport]:
    """Do what `load_workload` does, and also report what the cleaning changed."""
    return clean(read_log(find_log(name_or_path), on_bad_line=on_bad_line), **options)
