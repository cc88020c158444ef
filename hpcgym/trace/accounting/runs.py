"""Rows of accounting as runs: clocks put back, attempts of one job, limits, and what was recorded.

Source: Specification, section 14, "Reading".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import TraceError
from hpcgym.base.progress import steps
from hpcgym.base.text_table import printable
from hpcgym.machine import Machine
from hpcgym.trace.accounting.attempts import OWNERS, codes, find_attempts, job_waits, repeats
from hpcgym.trace.accounting.cells import Clock
from hpcgym.trace.accounting.charged import fewest_processors, find_exclusive, hold_charges
from hpcgym.trace.accounting.formats import format_of
from hpcgym.trace.accounting.rows import (
    CAUSES,
    FIELDS,
    NAMES,
    PARTITION_LIMIT,
    PUT_BACK,
    SUSPENDED_S,
    TIMES,
    UNKNOWN,
    UNSAID,
    UNTIL_ELIGIBLE,
    Block,
    Ledger,
    Source,
    as_arrays,
)
from hpcgym.trace.swf import GUESSED_SIZE, LARGEST_NUMBER

if TYPE_CHECKING:
    import pandas as pd

_DAY_S = 86_400
_HOUR_S = 3600


@dataclass(frozen=True, eq=False)
class Accounting:
    """Runs of jobs as a site recorded them, and what became of every row; it prints."""

    # A row for each run, by `submit_time`, with the columns of a table of jobs, `wait_time` among
    # them, `status` as in SWF, `charged`, the processors that were allocated to it,
    # `asked_memory_kb` of the whole job, where that is no request of nodes, whether it was
    # `suspended`, its `cause`, of `CAUSES`, and how many seconds it was `ineligible` before
    # its start, as far as stated. Times are seconds since 1970; names are the site's.
    runs: pd.DataFrame
    lines: NDArray[np.int64]  # the line of each run in its file, from 1
    formats: tuple[tuple[str, str], ...]  # each file with the name of its format
    ledger: Ledger  # how many rows there were, and how many were left out, by reason
    # Those of the machine or of a header, or the fewest on which the runs fit as recorded; None
    # where no start is recorded.
    machine_processors: int | None
    is_guess: bool  # whether it is the latter
    # Hours each job waited that has a recorded start: from its first entry into the queue to the
    # start of its last attempt.
    job_waits: NDArray[np.float64]
    zone: str  # where local times were, or "" if there were none
    counted_from: str  # what waits count from, "eligible" or "submit"
    causes: tuple[str, ...] = ()  # those of `CAUSES`, and `UNSAID`, that the rows can show

    @property
    def in_short(self) -> str:
        """Say in one line what was read, left out and taken for granted."""
        formats = ", ".join(dict.fromkeys(name for _, name in self.formats))
        left = sorted(self.ledger.left_out.items(), key=lambda item: -item[1].rows)
        parts = [f"{formats}: {len(self.runs)} attempts in {self.ledger.rows} rows"]
        if left:
            parts.append("left out " + ", ".join(f"{reason.rows} {why}" for why, reason in left))
        parts.append(f"times {f'local, of {self.zone}' if self.zone else 'since 1970, UTC'}")
        return "; ".join([*parts, f"waits from {self.counted_from} time", *self.ledger.important])

    def __str__(self) -> str:
        n_jobs = len(self.job_waits)
        lines = [f"{printable(path)}: {name}" for path, name in self.formats]
        lines.append(f"rows       {self.ledger.rows}, of which {len(self.runs)} are attempts")
        for reason, left_out in sorted(
            self.ledger.left_out.items(), key=lambda item: -item[1].rows
        ):
            of_jobs = f", {left_out.jobs} jobs" if left_out.jobs not in (0, left_out.rows) else ""
            where = left_out.where(several_files=len(self.formats) > 1)
            lines.append(f"left out   {left_out.rows}  {reason}{of_jobs}: {printable(where)}")
        for what, rows in (self.ledger.notes | self.ledger.told).items():
            lines.append(f"noted      {rows}  {what}")
        for what, rows in self.ledger.warnings.items():
            lines.append(f"warning    {rows}  {what}")
        lines.append(f"times      {f'local, of {self.zone}' if self.zone else 'since 1970, UTC'}")
        guess = f"a guess: {GUESSED_SIZE}" if self.is_guess else ""
        size = self.machine_processors
        said = f"{size} processors" if size else "unknown: simulate --processors N states it"
        lines.append(f"machine    {said}{f' ({guess})' if guess else ''}")
        if n_jobs:
            mean, median = self.job_waits.mean(), np.median(self.job_waits)
            lines.append(
                f"waits      {n_jobs} jobs from {self.counted_from} time to their last start: mean "
                f"{mean:.2f} h, median {median:.2f} h, longest {self.job_waits.max():.2f} h"
            )
        else:
            lines.append("waits      none: no start is recorded")
        return "\n".join(lines)


def read_accounting(
    paths: str | Path | Sequence[str | Path],
    *,
    machine: Machine | None = None,
    timezone: str | None = None,
    counted_from: str = "eligible",
    rename: Callable[[str, str], str] | None = None,
) -> Accounting:
    """Read accounting of a site: every row is a run of a job, or counted with a reason.

    A job enters the queue at its eligible time, or where `counted_from` is "submit", at its
    submission. An attempt of a job that was put back enters when the one before it ended.

    Args:
        paths: Files, packed or not; their content says which format each has.
        machine: States limits of partitions, and cpus of nodes; rows of other partitions are left
            out. Without it a limit of a partition is the largest request, and whole nodes are known
            by the largest charge for a node.
        timezone: Zone of local times, such as "Europe/Berlin"; default this machine's.
        rename: Given a column and a name in it, returns the name to keep.

    Raises:
        TraceError: A file cannot be read, has no format that is known or lacks a field. Or no row
            is a run.
    """
    import pandas as pd

    if counted_from not in ("eligible", "submit"):
        raise TraceError(f'counted_from={counted_from!r}; allowed: "eligible", "submit"')
    clock, ledger = Clock(timezone), Ledger()
    formats, blocks = [], []
    files = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    with steps(len(files), "reading accounting", "files") as progress:
        for number, path in enumerate(files):
            source = Source(path)
            known = format_of(source)
            formats.append((str(path), known.name))
            for block in known.blocks(source, clock, ledger):
                arrays = as_arrays(block)
                if rename is not None:
                    arrays |= {key: _renamed(key, arrays[key], rename) for key in NAMES}
                arrays["file"] = np.full(len(arrays["line"]), number)
                blocks.append(arrays)
            progress.advance()
    _refuse_clusters(files, ledger)
    table = {key: np.concatenate([block[key] for block in blocks] or [[]]) for key in _KEYS}
    if not len(table["line"]):
        raise TraceError(f"{files[0]}: no row is an attempt: {_reasons(ledger)}")
    says_eligible = bool((table["eligible"] != UNKNOWN).any())
    stated = {*table["cause"].tolist()} - {UNKNOWN}  # alone, the first is of names of reservations
    causes = CAUSES[1:-1] if stated - {1} else CAUSES[1 : 1 + len(stated)]
    table = _settle(table, files, ledger)
    is_failure = table["cause"] == CAUSES.index("failures")
    tells = is_failure | table["failed"] | (table["by_slurm"] & (table["attempt"] > 0))
    causes += CAUSES[-1:] if tells.any() else ()  # others do not say why an attempt follows
    hidden = () if says_eligible else (*UNTIL_ELIGIBLE, UNSAID)
    causes = tuple(name for name in (*causes, UNSAID) if name not in hidden)
    if machine is not None and machine.has_partitions:
        table = _in_partitions(table, machine, files, ledger)
    if not len(table["line"]):
        raise TraceError(f"{files[0]}: no row is an attempt: {_reasons(ledger)}")
    waits = job_waits(table, counted_from)
    eligible = np.minimum(table["eligible"], table["start"])
    table["ineligible"] = np.maximum(eligible - table["submit"], 0)
    _find_predecessors(table, ledger)
    _fill_limits(table, machine, ledger)
    find_exclusive(table, machine, ledger)
    hold_charges(table, machine, ledger)
    _warn_of_cuts(table, ledger)
    late = (table["start"] != UNKNOWN) & (table["eligible"] > table["start"])
    ledger.note("eligible after its start: the start is taken", int(late.sum()))
    runs, lines = _runs(pd.DataFrame(table), counted_from)
    size, is_guess = ledger.machine_processors if machine is None else machine.cpus, False
    if size is None and (runs["wait_time"] >= 0).any():
        size, is_guess = fewest_processors(runs), True
    zone = clock.name if clock.used else ""
    return Accounting(
        runs, lines, tuple(formats), ledger, size, is_guess, waits, zone, counted_from, causes
    )


_KEYS = (*FIELDS, "file")


def _refuse_clusters(files: Sequence[Path], ledger: Ledger) -> None:
    """Refuse rows of several clusters: each is a machine of its own, with ids of its own."""
    if len(ledger.clusters) > 1:
        named = ", ".join(f"{name} ({rows} rows)" for name, rows in sorted(ledger.clusters.items()))
        raise TraceError(
            f"{files[0]}: rows of {len(ledger.clusters)} clusters in the column Cluster: "
            f"{printable(named)}. Each is a machine of its own; print one by: sacct --clusters "
            f"{printable(min(ledger.clusters))} ..."
        )


def _in_partitions(table: Block, machine: Machine, files: Sequence[Path], ledger: Ledger) -> Block:
    """Leave rows out whose partition the machine does not have; "" is its first."""
    known, keep = {"", *machine.partition_names}, np.ones(len(table["line"]), dtype=bool)
    for name in sorted(set(table["partition"]) - known):
        wrong = table["partition"] == name
        _leave_out(table, wrong, f"partition {name!r} is not of the machine", files, ledger)
        keep &= ~wrong
    return {key: values[keep] for key, values in table.items()}


def _renamed(key: str, names: NDArray[Any], rename: Callable[[str, str], str]) -> NDArray[Any]:
    """Return a column with its names replaced; "" stays."""
    known = {name: rename(key, name) if name else "" for name in set(names)}
    return np.array([known[name] for name in names], dtype=object)


def _reasons(ledger: Ledger) -> str:
    """Say why rows were left out."""
    reasons = ledger.left_out.items()
    said = "; ".join(
        f"{left_out.rows} {why} ({left_out.where(several_files=True)})" for why, left_out in reasons
    )
    return said or "there is none"


def _settle(table: Block, files: Sequence[Path], ledger: Ledger) -> Block:
    """Decide times that were ambiguous, and leave out what is repeated or contradicts itself."""
    _set_clock(table)
    unknown = (table["start"] == UNKNOWN) & (table["end"] > 0) & (table["run_time"] >= 0)
    table["start"] = np.where(unknown, table["end"] - table["run_time"], table["start"])
    both = (table["start"] != UNKNOWN) & (table["end"] != UNKNOWN)
    derived = both & (table["run_time"] == UNKNOWN)
    held = table["end"] - table["start"]
    active = np.where(held > 0, np.maximum(held - np.maximum(table["suspended"], 0), 0), held)
    table["run_time"] = np.where(derived, active, table["run_time"])
    longer = both & (table["run_time"] >= 0) & (held - table["run_time"] > SUSPENDED_S)
    table["stood"] = (table["suspended"] == UNKNOWN) & (table["run_time"] >= held)
    table["suspended"] = (table["suspended"] != 0) | longer
    table["eligible"] = np.maximum(table["eligible"], table["submit"])  # unknown ones too
    ran, started = table["ran"], table["start"] != UNKNOWN
    largest = np.max([table[key] for key in (*TIMES, "run_time", "requested_time")], axis=0)
    faults = {
        "number too large": (largest >= LARGEST_NUMBER) | (table["number"] >= LARGEST_NUMBER),
        "no submit time": table["submit"] == UNKNOWN,
        "no run time": ran & (table["run_time"] == UNKNOWN),
        "end before start": ran
        & ((table["run_time"] < 0) | (both & (table["end"] < table["start"]))),
        "start before submission": ran & started & (table["start"] < table["submit"]),
        "row once more": repeats(table),
    }
    keep = np.ones(len(ran), dtype=bool)
    for reason, wrong in faults.items():
        _leave_out(table, wrong & keep, reason, files, ledger)
        keep &= ~wrong
    table = {key: values[keep] for key, values in table.items()}
    find_attempts(table, ledger)
    _leave_out(table, ~table["ran"], PUT_BACK, files, ledger)
    table = {key: values[table["ran"]] for key, values in table.items()}
    ledger.note(
        "suspended for a time: the run time is that in which they ran",
        int((table["suspended"] & ~table["stood"]).sum()),
        ledger.told,
    )
    ledger.note(
        "suspended for a time that is not stated: the run time has it too",
        int(table["stood"].sum()),
        ledger.told,
    )
    return table


def _leave_out(
    table: Block, wrong: NDArray[np.bool_], reason: str, files: Sequence[Path], ledger: Ledger
) -> None:
    """Count rows that are left out."""
    for row in np.flatnonzero(wrong):
        ledger.leave_out(reason, files[table["file"][row]], int(table["line"][row]))


def _set_clock(table: Block) -> None:
    """Decide which times of an hour that came twice were in the second one.

    Ids ascend with submissions: from where they go back, they are in the second hour. A job is not
    eligible before its submission, and does not start before it is eligible. Start and end are
    those whose difference is nearest to the elapsed time, the earlier ones where two are.
    """
    late = np.max([table[f"{key}_late"] for key in TIMES], axis=0) if len(table["line"]) else []
    rows = np.flatnonzero(late)
    ambiguous = rows[table["submit_late"][rows] > 0]
    latest, in_second = UNKNOWN, False
    for row in sorted(ambiguous, key=lambda row: (table["order"][row], row)):
        submit = table["submit"][row]
        in_second &= abs(submit - latest) < _DAY_S
        in_second |= submit < latest and latest - submit < _DAY_S
        latest = submit
        table["submit"][row] += table["submit_late"][row] if in_second else 0
    for row in rows:
        submit, elapsed = table["submit"][row], table["run_time"][row]
        eligible, start, end = (
            [table[key][row] + extra for extra in sorted({0, table[f"{key}_late"][row]})]
            for key in ("eligible", "start", "end")
        )
        table["eligible"][row] = next((time for time in eligible if time >= submit), eligible[-1])
        least = max(submit, table["eligible"][row])
        pairs = [
            (begin, other) for begin in start if begin >= least for other in end if other >= begin
        ]

        def misfit(pair: tuple[int, int], elapsed: int = elapsed) -> tuple[int, tuple[int, int]]:
            return (abs(pair[1] - pair[0] - elapsed) if elapsed != UNKNOWN else 0, pair)

        if pairs:
            table["start"][row], table["end"][row] = min(pairs, key=misfit)


def _warn_of_cuts(table: Block, ledger: Ledger) -> None:
    """Warn of starts and ends that look as if `sacct -T` had put them to the edges of its window.

    Nothing starts before such starts, and the jobs waited; they came at different times, or the
    start is on the hour. Nothing ends after such ends, and the jobs started at different times.
    """
    started = table["by_slurm"] & (table["start"] != UNKNOWN)
    if not started.any():
        return
    first = int(table["start"][started].min())
    cut = started & (table["start"] == first) & (table["eligible"] < first)
    if len(np.unique(table["submit"][cut])) > 1 or (cut.any() and first % _HOUR_S == 0):
        ledger.note(
            "start in the first second of all, as where sacct -T cuts starts at its window: then "
            "they started before, and waited less; leave -T out",
            int(cut.sum()),
            ledger.warnings,
        )
    last = int(table["end"][started].max())
    cut = started & (table["end"] == last) & (table["start"] < last)
    if len(np.unique(table["start"][cut])) > 1:
        ledger.note(
            "end in the last second of all, as where sacct -T cuts ends at its window: then they "
            "ran longer; leave -T out",
            int(cut.sum()),
            ledger.warnings,
        )


def _find_predecessors(table: Block, ledger: Ledger) -> None:
    """Let jobs be after none where the one before them is not a single row that is kept."""
    after = table["after"]
    same = (after == after[:1]) & (after != UNKNOWN)
    if same.all() and (table["number"] == after).any():  # which no job can be after
        ledger.note("the job before it is the same in all rows: taken to be none", len(after))
        table["after"] = np.full_like(after, UNKNOWN)
    ids, counts = np.unique(table["number"], return_counts=True)
    lost = (table["after"] != UNKNOWN) & ~np.isin(table["after"], ids[counts == 1])
    table["after"] = np.where(lost, UNKNOWN, table["after"])
    table["think_time"] = np.where(table["after"] == UNKNOWN, 0, table["think_time"])
    ledger.note("the job before it is not here once: taken to have ended", int(lost.sum()))


def _fill_limits(table: Block, machine: Machine | None, ledger: Ledger) -> None:
    """Replace limits that are the partition's."""
    requested = table["requested_time"]
    by_partition = requested == PARTITION_LIMIT
    if not by_partition.any():
        return
    known = (
        {}
        if machine is None
        else {partition.name: partition.max_time_s for partition in machine.partitions}
    )
    stated = np.array([known.get(name, 0) for name in table["partition"]], dtype=np.int64)
    largest = int(requested.max(initial=UNKNOWN))
    table["requested_time"] = np.where(
        by_partition, np.where(stated > 0, stated, largest), requested
    )
    n_stated = int((by_partition & (stated > 0)).sum())
    ledger.note("no limit of their own: the partition's is taken", n_stated)
    what = "the largest request is taken" if largest > 0 else "requests stay unknown"
    ledger.note(
        f"no limit, and the partition's is not known: {what}", by_partition.sum() - n_stated
    )


def _runs(table: pd.DataFrame, counted_from: str) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Lay rows out as a table of jobs, in order of their submit times; return their lines too."""
    entered = table[counted_from]
    started = table["start"] != UNKNOWN
    entered = entered.where(~started | (entered <= table["start"]), table["start"])
    table["submit_time"] = entered
    is_known = started & ~table["is_unknown"]
    table["wait_time"] = (table["start"] - entered).where(is_known, UNKNOWN)
    missing = table["number"] == UNKNOWN
    if missing.any():
        first = int(table["number"].max()) + 1
        table.loc[missing, "number"] = first + codes(table.loc[missing, "job"].to_numpy())
    table["job_id"] = table["number"]
    table = table.sort_values(["submit_time", "job_id", "file", "line"], ignore_index=True)
    shown = ["job_id", "submit_time", "wait_time", "run_time", "requested_time", "chunks", "cpus"]
    shown += ["gpus", "memory_mb", "spread", "exclusive", *NAMES, "used_memory_kb"]
    shown += ["status", "charged", "asked_memory_kb", "suspended", "cause", "ineligible"]
    if (table["array"] != UNKNOWN).any():  # Slurm states the limit at one task, and 0 at the others
        arrays = table.groupby(["array", *OWNERS])["array_limit"]
        table["array_limit"] = arrays.transform("max")
        table.loc[table["array"] == UNKNOWN, "array_limit"] = UNKNOWN
        shown += ["array"] + ["array_limit"] * bool((table["array_limit"] > 0).any())
    shown += ["after", "think_time"] * bool((table["after"] != UNKNOWN).any())
    return table[shown], table["line"].to_numpy()
