"""A site's accounting as jobs to simulate, with what was recorded of each and the site's names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import TraceError
from hpcgym.core.columns import NODE_COLUMNS
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine
from hpcgym.trace.accounting import Accounting, anonymise, read_accounting
from hpcgym.trace.accounting.as_log import as_log
from hpcgym.trace.accounting.formats import SWF, TABLE, format_of, is_log
from hpcgym.trace.accounting.rows import UNKNOWN, Source
from hpcgym.trace.catalogue import find_log
from hpcgym.trace.clean import MissingRequest, clean
from hpcgym.trace.swf import GUESSED_SIZE, SwfLog, read_swf
from hpcgym.trace.tables import read_table

IntArray = NDArray[np.int64]
NameArray = NDArray[np.object_]

FEWEST_JOBS = 20  # fewer jobs than this in either half of a log say nothing about a scheduler


@dataclass(frozen=True, eq=False)
class SiteLog:
    """What a site recorded; arrays have shape (n_jobs,), in the workload's order."""

    workload: Workload  # the jobs that have a recorded start
    # By "user", "account" and "partition": the name of each job's, "" = unknown.
    names: dict[str, NameArray]
    begin: int  # Unix time of the workload's time 0; where the log states no date, 0
    has_dates: bool  # whether it does
    read: tuple[str, ...]  # lines that say what was read, left out and changed
    told: tuple[str, ...]  # what of it bears on how far a simulation is to be trusted
    # Whether the machine's size is the fewest processors on which the log fits.
    machine_is_guess: bool
    cause: IntArray  # what held each back, a number of `CAUSES`, below 1 = none of these
    ineligible: IntArray  # seconds before each was eligible, as far as stated
    # Share that each used of the memory it asked for, at most 1; NaN = not stated.
    memory_use: NDArray[np.float64]
    elsewhere: Workload | None = None  # the jobs on the machine of `Reading.machine2`
    causes: tuple[str, ...] = ()  # as of `Accounting`
    is_from_submit: bool = False  # whether recorded waits count the time of `ineligible`, too

    @property
    def split(self) -> int:
        """Time at which the judged half begins, s: half of the log's time, as `half_of` says."""
        return half_of(self.workload.submit_time)

    @property
    def is_judged(self) -> NDArray[np.bool_]:
        """Tell which jobs comparisons are about: those submitted in the second half."""
        return np.asarray(self.workload.submit_time >= self.split, dtype=np.bool_)


def half_of(submit_time: IntArray) -> int:
    """Return half of the time between submissions, so far moved that `FEWEST_JOBS` are in each."""
    half = (int(submit_time[0]) + int(submit_time[-1])) // 2
    return int(np.clip(half, submit_time[FEWEST_JOBS - 1] + 1, submit_time[-FEWEST_JOBS]))


@dataclass(frozen=True)
class Reading:
    """How a site's accounting is read.

    Attributes:
        machine: A machine of nodes; default one that counts processors.
        processors: Its size; default as a header says, else the fewest on which the log fits.
        timezone: Zone of local times; default this machine's.
        counted_from: "eligible" or "submit": what waits count from.
        missing_request: What replaces limits that are not recorded, as of `hpcgym.trace.clean`.
        keep_names: Whether users, accounts and job names stay; else hashes replace them, by a key
            that is not kept.
        machine2: Another machine or layout of partitions, to be tried beside today's.
    """

    machine: Machine | None = None
    processors: int | None = None
    timezone: str | None = None
    counted_from: str = "eligible"
    missing_request: str = "max"
    keep_names: bool = False
    machine2: Machine | None = None


def read_site_log(files: str | Path | Sequence[str | Path], how: Reading | None = None) -> SiteLog:
    """Read accounting, a table of jobs or a log; keep the jobs whose start is recorded.

    Several files are accounting, and are read as one log.

    Raises:
        TraceError: A file cannot be read, states no starts, or holds too few jobs.
    """
    how = how or Reading()
    named = [files] if isinstance(files, str | Path) else files
    paths = [find_log(file) for file in named]
    log, lines, told, accounting = _read(paths, how)
    workload, report = clean(
        log,
        missing_request=cast(MissingRequest, how.missing_request),
        machine=how.machine,
        machine_processors=how.processors,
    )
    known = workload.wait_time >= 0
    if np.count_nonzero(known) < 2 * FEWEST_JOBS:
        raise TraceError(
            f"{paths[0]}: {np.count_nonzero(known)} jobs have a recorded start; a report compares "
            f"recorded waits with simulated ones, and needs {2 * FEWEST_JOBS} at least"
        )
    jobs = workload.select(known)
    in_first_half = np.count_nonzero(jobs.submit_time < half_of(jobs.submit_time))
    if in_first_half < FEWEST_JOBS:
        raise TraceError(
            f"{paths[0]}: {in_first_half} jobs are submitted before the others, which come at one "
            f"instant; a report needs {FEWEST_JOBS} before those that it judges"
        )
    memory_use, why_none = _memory_use(log)
    causes = np.full((2, len(jobs)), UNKNOWN, dtype=np.int64)
    if accounting is not None:
        causes = accounting.runs[["cause", "ineligible"]].to_numpy()[jobs.source_row].T
    cleaned = str(report).replace("machine=...; simulate --machine", "--machine").splitlines()
    read = [*lines, *(line.strip() for line in cleaned[1:]), *why_none]
    if not known.all():
        read.append(f"without a recorded start, left out: {np.count_nonzero(~known)}")
    return SiteLog(
        jobs,
        _names(log, jobs, how),
        jobs.unix_start or 0,
        jobs.unix_start is not None,
        tuple(read),
        told,
        GUESSED_SIZE in report.machine_source,
        causes[0],
        causes[1],
        memory_use[jobs.source_row],
        None if how.machine2 is None else _elsewhere(paths, how, jobs),
        () if accounting is None else accounting.causes,
        how.counted_from == "submit",
    )


_OF_MACHINES = ("processors", "machine", "machine_processors", *NODE_COLUMNS)


def _elsewhere(paths: Sequence[Path], how: Reading, jobs: Workload) -> Workload:
    """Return jobs on the other machine, which must have room for all of them."""
    log, lines, *_ = _read(paths, replace(how, machine=how.machine2))
    kind = cast(MissingRequest, how.missing_request)
    there, report = clean(log, missing_request=kind, machine=how.machine2)
    rows: dict[tuple[int, int], list[int]] = {}
    for row, key in enumerate(_keys(there)):
        rows.setdefault(key, []).append(row)
    at = [rows[key].pop(0) if rows.get(key) else -1 for key in _keys(jobs)]
    if lacks := at.count(-1):
        said = (line.strip() for line in (*lines, *str(report).splitlines()))
        whys = [line for line in said if re.search("not of the machine|cannot run|larger", line)]
        raise TraceError(
            f"{paths[0]}: {lacks} of {len(jobs)} jobs cannot run on {how.machine2}, the first job "
            f"{jobs.job_id[at.index(-1)]}: {'; '.join(whys)}"
        )
    told = {key: getattr(there, key) for key in _OF_MACHINES}
    arrays = {key: value[at] for key, value in told.items() if isinstance(value, np.ndarray)}
    return replace(jobs, **told | arrays)


def _keys(jobs: Workload) -> list[tuple[int, int]]:
    """Return each job's id and its submission, by which two readings of a log share it."""
    begin = jobs.time_offset if jobs.unix_start is None else jobs.unix_start
    return list(zip(jobs.job_id.tolist(), (begin + jobs.submit_time).tolist(), strict=True))


def _memory_use(log: SwfLog) -> tuple[NDArray[np.float64], list[str]]:
    """Return the share of its memory that each record used, NaN = unknown, and why it is."""
    records, requests = log.records, log.requests
    asked_for, held = records["requested_processors"], records["allocated_processors"]
    used_kb, asked_kb = records["used_memory"], records["requested_memory"]
    none = np.full(len(records), np.nan)
    if (n_stated := int((used_kb > 0).sum())) == 0:
        return none, []
    if used_kb[used_kb > 0].nunique() == 1:
        return none, [f"used memory, not taken: the same for each processor of {n_stated} jobs"]
    q = asked_for.where(asked_for > 0, held)
    asked = asked_kb * q
    if requests is not None:
        in_chunks = (1024 * requests["chunks"] * requests["memory_mb"]).set_axis(records.index)
        asked = in_chunks.where(in_chunks > 0, asked)
    used = used_kb * held.where(held > 0, q)
    both = (used > 0) & (asked > 0)
    if 2 * (n_equal := int((both & (used == asked)).sum())) > (n_both := int(both.sum())):
        said = (
            f"used memory, not taken: what was asked for once more, in {n_equal} of {n_both} jobs"
        )
        return none, [said]
    return np.asarray((used / asked).clip(upper=1).where(both), dtype=float), []


_GROUPS = {"user": "user", "group": "account", "partition": "partition"}
"""Kinds of groups, by the column of a log that names them."""


def _read(
    paths: Sequence[Path], how: Reading
) -> tuple[SwfLog, list[str], tuple[str, ...], Accounting | None]:
    """Return a log, what was read, what of it is told, and the accounting that it was made of."""
    if len(paths) == 1 and format_of(Source(paths[0])) is TABLE:
        return read_table(paths[0]), [f"{paths[0].name}: a table of jobs"], (), None
    for path in paths:
        source = Source(path)
        if format_of(source) is SWF and is_log(source):
            read_swf(path)  # refuses malformed lines, as every command does
    accounting = read_accounting(
        paths, machine=how.machine, timezone=how.timezone, counted_from=how.counted_from
    )
    log = as_log(accounting, paths[0], how.machine)
    text = str(accounting)
    for path in paths:  # folders may tell who somebody is
        text = text.replace(str(path), path.name)
    told = tuple(map(_of_jobs, accounting.ledger.important))
    return log, [_of_jobs(line) for line in text.splitlines()], told, accounting


def _of_jobs(line: str) -> str:
    """Return what is said of attempts and their jobs as the report says it: of jobs and ids."""
    line = re.sub(r"(further attempts of) jobs", r"\1 ids", line)
    line = re.sub(
        r"^(waits +\d+ jobs)(.* to their) last start", r"\1, the last of each id,\2 start", line
    )
    return line.replace("is an attempt", "is a job").replace("attempts", "jobs")


def _names(log: SwfLog, jobs: Workload, how: Reading) -> dict[str, NameArray]:
    """Return the name of each job's group, by kind; hashed unless names are kept."""
    import pandas as pd

    assert jobs.source_row is not None  # `clean` states it
    names = pd.DataFrame({column: log.named(column)[jobs.source_row] for column in _GROUPS})
    shown = names if how.keep_names else anonymise(names)
    return {kind: shown[column].to_numpy(dtype=object) for column, kind in _GROUPS.items()}
