"""Find, read and clean a log in one call, whatever its file is."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Unpack

from hpcgym.base.errors import TraceError
from hpcgym.base.progress import steps
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine
from hpcgym.trace.accounting.as_log import as_log
from hpcgym.trace.accounting.formats import TABLE, format_of, is_log
from hpcgym.trace.accounting.rows import Source
from hpcgym.trace.accounting.runs import read_accounting
from hpcgym.trace.catalogue import find_log
from hpcgym.trace.clean import CleaningOptions, clean
from hpcgym.trace.cleaning_report import CleaningReport
from hpcgym.trace.swf import SwfLog, read_swf
from hpcgym.trace.tables import read_table


def read_log(
    path: str | Path,
    *,
    on_bad_line: str = "raise",
    machine: Machine | None = None,
    timezone: str | None = None,
) -> SwfLog:
    """Read a log: SWF, a table of jobs, or accounting; its content says which.

    Of accounting local times are those of `timezone`, by default this machine's, and jobs enter the
    queue when they are eligible; `SwfLog.reading` says so. `machine` tells limits of partitions,
    and what whole nodes are.

    Raises:
        TraceError: As `read_table`, `read_swf` and `hpcgym.trace.accounting.read_accounting`; or a
            time zone is stated for what is no accounting.
    """
    if on_bad_line not in ("raise", "drop"):
        raise TraceError(f'on_bad_line={on_bad_line!r}; allowed: "raise", "drop"')
    path = Path(path)
    source = Source(path)
    if not is_log(source):
        return as_log(read_accounting(path, machine=machine, timezone=timezone), path, machine)
    is_table = format_of(source) is TABLE
    if timezone is not None:
        what = "a table of jobs" if is_table else "a log in SWF"
        raise TraceError(
            f"{path}: {what} has no local times, so timezone={timezone!r} (--timezone) has no "
            "effect; it is for accounting"
        )
    with steps(1, f"reading {path.name}"):
        if is_table:
            return read_table(path, on_bad_line=on_bad_line)
        return read_swf(path, on_bad_line=on_bad_line)


def load_workload(
    name_or_path: str | Path,
    *,
    on_bad_line: Literal["raise", "drop"] = "raise",
    timezone: str | None = None,
    **options: Unpack[CleaningOptions],
) -> Workload:
    """Find, read and clean a log, given its name or its file: SWF, a table of jobs, or accounting.

    `on_bad_line="drop"` leaves malformed lines out, and `timezone` is that of accounting's local
    times. `options` are keywords of `hpcgym.trace.clean`.

    Raises:
        TraceError: The log cannot be found, read or cleaned, or another is under its name; see
            `hpcgym.trace.catalogue.find_log`.

    Example:
        >>> load_workload("tiny")
        Workload('tiny', 8 jobs, 4 processors)
    """
    return load_with_report(name_or_path, on_bad_line=on_bad_line, timezone=timezone, **options)[0]


def load_with_report(
    name_or_path: str | Path,
    *,
    on_bad_line: Literal["raise", "drop"] = "raise",
    timezone: str | None = None,
    **options: Unpack[CleaningOptions],
) -> tuple[Workload, CleaningReport]:
    """Do what `load_workload` does, and also report what the cleaning changed."""
    path, machine = find_log(name_or_path), options.get("machine")
    log = read_log(path, on_bad_line=on_bad_line, machine=machine, timezone=timezone)
    return clean(log, **options)
