"""From the name of a log to its job table, in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Unpack

from hpcgym.core.workload import Workload
from hpcgym.trace.catalogue import find_trace
from hpcgym.trace.clean import CleaningOptions, CleaningReport, clean
from hpcgym.trace.swf import read_swf


def load_workload(
    name_or_path: str | Path,
    *,
    on_bad_line: Literal["raise", "drop"] = "raise",
    **options: Unpack[CleaningOptions],
) -> Workload:
    """Find, read and clean a log.

    Args:
        name_or_path: A file, or the name of a log (see `hpcgym.trace.find_trace`).
        on_bad_line: "raise", or "drop" to leave malformed lines out.
        **options: Keywords of `hpcgym.trace.clean`, such as `machine_processors`.

    Returns:
        The job table; `source` holds the log, and `source_row` each job's row in it.

    Raises:
        TraceError: The log cannot be found, read or cleaned.

    Source:
        Specification, section 1, "Reading SWF".

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
    """Find, read and clean a log, and report what the cleaning changed.

    Args:
        name_or_path: A file, or the name of a log (see `hpcgym.trace.find_trace`).
        on_bad_line: "raise", or "drop" to leave malformed lines out.
        **options: Keywords of `hpcgym.trace.clean`, such as `machine_processors`.

    Returns:
        The job table and the report, which prints.

    Raises:
        TraceError: The log cannot be found, read or cleaned.

    Source:
        House rule: cleaning is never silent.

    Example:
        >>> load_with_report("tiny")[1].jobs
        8
    """
    return clean(read_swf(find_trace(name_or_path), on_bad_line=on_bad_line), **options)
