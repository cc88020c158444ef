"""Turn a log into a job table by named steps; each reports what it dropped or changed.

Source: Specification, section 1, "Reading SWF".
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import TraceError, refuse_unless_a, refuse_unless_whole, unknown_name
from hpcgym.core.columns import COLUMNS, NODE_COLUMNS, referring
from hpcgym.core.predecessors import find_cycle, find_ids, text_of_cycle, why_unknown
from hpcgym.core.requests import Requests, refused
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine
from hpcgym.trace.cleaning_report import OVER_REQUEST, CleaningReport, CleaningStep, StepAction
from hpcgym.trace.swf import CANCELLED, GUESSED_SIZE, NEVER_HELD, SwfLog, place_of

MissingRequest = Literal["run", "max", "tsafrir", "drop"]

MISSING_REQUEST = get_args(MissingRequest)
"""The ways to replace a requested time that the log lacks."""

SENTINEL_REQUEST_S = 2147483647
"""Requests from here on mean "no limit" (the largest 32-bit integer)."""

CANNOT_RUN = "cannot run on the machine"
"""The step that drops jobs without a placement on their empty partition, or too long for it."""

CANCELLED_AT_ONCE = "cancelled at 0 s"
"""The step that drops cancelled rows of 0 s where the log names the processors requested."""

FEWEST_AT_ONCE = 30  # cancelled rows of 0 s from which on they tell what a log names
SOON_S = 60  # cancelled jobs that held processors run up to this long more often than 0 s

_WHOLE = (
    *(column.swf for column in COLUMNS.values() if column.swf),
    "allocated_processors",
    "status",
)


class CleaningOptions(TypedDict, total=False):
    """The keywords of `clean`, for functions that pass them on."""

    machine_processors: int | None
    missing_request: MissingRequest
    max_request: int | None
    minimum_run_time: int
    seed: int
    machine: Machine | None
    placement: str
    requested_memory: bool
    dependencies: bool


def clean(
    log: SwfLog,
    *,
    machine_processors: int | None = None,
    missing_request: MissingRequest = "run",
    max_request: int | None = None,
    minimum_run_time: int = 0,
    seed: int = 0,
    machine: Machine | None = None,
    placement: str = "lowest",
    requested_memory: bool = False,
    dependencies: bool = False,
) -> tuple[Workload, CleaningReport]:
    """Turn a log into a job table, and report every job dropped or changed.

    A job with several faults counts at the first step that drops it. Jobs of 0 s that held
    processors are kept. The smallest kept submit time becomes 0.

    Args:
        machine_processors: Processors of the machine; default the header's MaxProcs, else MaxNodes.
        missing_request: What replaces a missing requested time: "run", the run time (at least 1 s);
            "max", the largest request of the log; "tsafrir", synthetic estimates drawn with `seed`.
            "drop" drops the job.
        max_request: Longest request allowed, s; longer ones are cut to it. Default no cap.
        minimum_run_time: Jobs with a shorter run time are dropped, s.
        seed: Seed of the synthetic estimates.
        machine: A machine of nodes, in place of `machine_processors`. A record of an SWF log asks
            for chunks of one cpu on it. Jobs that it can never run are dropped.
        placement: The rule by which such jobs are found.
        requested_memory: Whether a record of an SWF log asks for the memory of its field 10.
        dependencies: Whether fields 17 and 18 of an SWF log are read. Tables say so by columns.

    Raises:
        TraceError: The machine's size is stated nowhere, no job remains, an option is not allowed,
            or "max" finds no request at all. Or a job asks for a partition that the machine does
            not have. Or jobs wait for a job that is not there, or for each other.

    Example:
        >>> from hpcgym.trace import find_trace, read_swf
        >>> workload, report = clean(read_swf(find_trace("tiny")))
        >>> workload
        Workload('tiny', 8 jobs, 4 processors)
        >>> print(report)
        tiny: 8 of 8 jobs kept
          machine    4 processors (MaxProcs in the header)
          time 0     0 s on the log's clock
    """
    if not (isinstance(missing_request, str) and missing_request in MISSING_REQUEST):
        raise TraceError(unknown_name("missing_request", missing_request, MISSING_REQUEST))
    if max_request is not None:
        refuse_unless_whole("max_request", max_request, 1, error=TraceError)
    refuse_unless_whole("minimum_run_time", minimum_run_time, error=TraceError)
    refuse_unless_whole("a seed", seed, most=inf, error=TraceError)
    refuse_unless_a((Machine, type(None)), "machine", machine, "a Machine or None", TraceError)
    size, size_source = _machine_size(log, machine_processors, machine)
    table = _Table(log)
    if dependencies and log.requests is None:
        table.take_dependencies()
    if requested_memory and (machine is None or log.requests is not None):
        raise TraceError(
            f"{log.name}: requested_memory is for logs in SWF on a machine of nodes; tables of "
            "jobs have a column memory_mb"
        )
    table.note(
        "malformed line", "dropped", len(log.bad_lines), "fields missing, touching or not numbers"
    )
    table.drop("no run time", table["run_time"] < 0, "run time below 0: cancelled before the start")
    table.drop_never_held()
    table.drop("no submit time", table["submit_time"] < 0, "submit time below 0")
    too_short = table["run_time"] < minimum_run_time
    table.drop("short run time", too_short, f"run time below {minimum_run_time} s")
    table.take_allocated_processors()
    table.drop("no processors", table["processors"] <= 0, "neither requested nor allocated")
    widest = int(table["processors"].max(initial=0))
    too_large = table["processors"] > size
    table.drop("larger than the machine", too_large, f"more than {size} processors")
    table.replace_sentinel_requests()
    table.fill_missing_requests(missing_request, seed)
    if max_request is not None:
        long = table["requested_time"] > max_request
        table.columns["requested_time"][long] = max_request
        table.note("request capped", "changed", int(long.sum()), f"cut to {max_request} s")
    if machine is not None:
        table.take_requests(machine, requested_memory=requested_memory)
        table.drop_unplaceable(machine, placement)
    if len(table) == 0:
        dropped = ", ".join(
            f"{step.name} {step.jobs}" for step in table.steps if step.action == "dropped"
        )
        raise TraceError(f"{log.name}: no job remains after cleaning; dropped: {dropped}")
    table.note_oddities()
    table.note_ignored(machine, requested_memory=requested_memory)
    table.find_predecessors()
    offset = int(table["submit_time"].min())
    unix_start = log.header_number("UnixStartTime")
    columns: dict[str, Any] = {
        key: table[key]
        for key in COLUMNS
        if key in table.columns and (machine is not None or key not in NODE_COLUMNS)
    }
    columns["submit_time"] = table["submit_time"] - offset
    columns |= {key: np.maximum(table[key], -1) for key in ("user", "wait_time")}  # -1 = unknown
    if "eligible" in columns:
        columns["eligible"] = np.maximum(columns["eligible"] - offset, -1)
    workload = Workload.from_arrays(
        **columns,
        machine_processors=size,
        name=log.name,
        time_offset=offset,
        unix_start=None if unix_start is None or unix_start <= 0 else unix_start + offset,
        source=log,
        source_row=table["source_row"],
        machine=machine,
    )
    report = CleaningReport(
        name=log.name,
        records=len(log) + len(log.bad_lines),
        jobs=len(workload),
        widest=widest,
        machine_processors=size,
        machine_source=size_source,
        time_offset=offset,
        cut_work=table.cut_work(),
        steps=tuple(table.steps),
        reading=log.reading,
    )
    return workload, report


def _machine_size(log: SwfLog, stated: int | None, machine: Machine | None) -> tuple[int, str]:
    """Return the machine's processors, and where that number comes from."""
    if machine is not None:
        if stated not in (None, machine.cpus):
            raise TraceError(
                f"{log.name}: {stated} processors are stated, yet the nodes of the machine have "
                f"{machine.cpus} cpus; state the machine only"
            )
        return machine.cpus, f"the cpus of {machine.n_nodes} nodes"
    if stated is not None:
        refuse_unless_whole(f"{log.name}: processors", stated, 1, error=TraceError)
        return int(stated), "stated by the caller"
    unfit: list[str] = []
    for key in ("MaxProcs", "MaxNodes"):
        size, text = log.header_number(key), log.header_value(key)
        if size is not None and size > 0:
            if any(GUESSED_SIZE in note for note in log.header_values("Note")):
                return size, f"a guess: {GUESSED_SIZE}"
            return size, ", whose ".join([f"{key} in the header", *unfit])
        unfit += [] if text is None else [f"{key} is {text!r}"]
    raise TraceError(
        f"{log.path or log.name}: the header states neither MaxProcs nor MaxNodes"
        + (f" as a number above 0 ({', '.join(unfit)})" if unfit else "")
        + "; say how many processors there are (machine_processors=N, simulate --processors N)"
        + ("" if log.requests is None else ", or its nodes (machine=..., simulate --machine FILE)")
    )


class _Table:
    """The columns of a log during its cleaning, and the steps taken so far."""

    def __init__(self, log: SwfLog) -> None:
        self.log = log
        self.steps: list[CleaningStep] = []
        self.columns: dict[str, NDArray[Any]] = {}
        fractional = np.zeros(len(log), dtype=bool)
        for key in _WHOLE:
            values = log.records[key].to_numpy()
            if values.dtype.kind == "f":
                whole = np.floor(values)
                whole += values - whole >= 0.5  # values + 0.5 is rounded, where they are large
                fractional |= whole != values
                values = whole
            self.columns[key] = np.array(values, dtype=np.int64)
        self.columns["source_row"] = np.arange(len(log))
        if log.requests is not None:
            self.columns |= {key: log.requests[key].to_numpy() for key in log.requests}
        self.note("decimals", "changed", int(fractional.sum()), "rounded to whole numbers")

    def __len__(self) -> int:
        return len(self.columns["job_id"])

    def __getitem__(self, key: str) -> NDArray[Any]:
        return self.columns[key]

    def note(self, name: str, action: StepAction, jobs: int, detail: str) -> None:
        """Record a step."""
        self.steps.append(CleaningStep(name, action, jobs, detail))

    def drop(self, name: str, unwanted: NDArray[np.bool_], detail: str) -> None:
        """Leave the unwanted jobs out, and record the step."""
        self.note(name, "dropped", int(unwanted.sum()), detail)
        if unwanted.any():
            self.columns = {key: values[~unwanted] for key, values in self.columns.items()}

    def drop_never_held(self) -> None:
        """Leave out rows of 0 s that never held a processor, whatever the log writes for it."""
        cancelled, given = self["status"] == CANCELLED, self["allocated_processors"]
        says_given = bool((given > 0).any())  # else the log has no such field
        never = (self["run_time"] == 0) & (given <= 0) & (cancelled | says_given)
        self.drop(NEVER_HELD, never, "run time 0, and no allocated processors")
        run = self["run_time"]
        named = (self["status"] == CANCELLED) & (self["allocated_processors"] > 0)
        at_once = named & (run == 0)
        n_at_once, n_soon = int(at_once.sum()), int((named & (run > 0) & (run <= SOON_S)).sum())
        is_request = n_at_once >= FEWEST_AT_ONCE and n_at_once > n_soon
        detail = f"{n_soon} ran up to {SOON_S} s, so the processors are those requested"
        self.drop(CANCELLED_AT_ONCE, at_once & is_request, detail)

    def take_allocated_processors(self) -> None:
        """Take the requested processors of a job, or else the allocated ones."""
        asked, given = self["requested_processors"], self["allocated_processors"]
        self.columns["processors"] = np.where(asked > 0, asked, given)
        instead = int(((asked <= 0) & (given > 0)).sum())
        self.note("no requested processors", "changed", instead, "allocated processors taken")

    def replace_sentinel_requests(self) -> None:
        """Replace requests that mean "no limit" by the longest limit the log knows of."""
        request = self["requested_time"]
        sentinel = request >= SENTINEL_REQUEST_S
        longest = self.log.header_number("MaxRuntime") or -1
        source = "MaxRuntime in the header"
        if longest <= 0:
            longest = int(request[~sentinel].max(initial=-1))
            source = "the largest other request"
        request[sentinel] = longest
        detail = f"replaced by {longest} s, {source}" if longest > 0 else "taken as missing"
        self.note("unlimited request", "changed", int(sentinel.sum()), detail)

    def fill_missing_requests(self, missing_request: MissingRequest, seed: int) -> None:
        """Replace missing requests as the caller chose, or drop their jobs."""
        request = self["requested_time"]
        missing = request <= 0
        n_missing = int(missing.sum())
        if missing_request == "drop":
            self.drop("no requested time", missing, "dropped by choice")
            return
        if missing_request == "run":
            request[missing] = np.maximum(self["run_time"][missing], 1)
            detail = "replaced by the run time; a scheduler then knows it"
        elif missing_request == "max":
            longest = int(request.max(initial=-1))
            if n_missing and longest <= 0:
                raise TraceError(
                    f'{self.log.name}: missing_request="max" (--missing-request) needs a job with '
                    'a requested time, and this log has none; "tsafrir" makes synthetic ones'
                )
            request[missing] = longest
            detail = f"replaced by the largest request, {longest} s"
        else:
            from hpcgym.trace.estimates import tsafrir_estimates

            if n_missing:
                longest = max(int(request.max()), self.log.header_number("MaxRuntime") or -1)
                request[missing] = tsafrir_estimates(
                    self["run_time"][missing],
                    np.random.default_rng(seed),
                    maximum=longest if longest > 0 else None,
                )
            detail = f"replaced by synthetic estimates (Tsafrir 2005, seed {seed})"
        self.note("no requested time", "changed", n_missing, detail)

    def take_dependencies(self) -> None:
        """Take the job before each, and the time between them, as fields 17 and 18 say."""
        for key, field in (("after", "preceding_job"), ("think_time", "think_time")):
            self.columns[key] = self.log.records[field].to_numpy().astype(np.int64)
        self.columns["after"] = np.where(self["after"] > 0, self["after"], -1)
        self.columns["think_time"] = np.maximum(self["think_time"], 0)
        if (self["after"] < 0).all():
            raise TraceError(
                f"{self.log.path or self.log.name}: field 17 names no job before another, so "
                "dependencies have no effect; leave them out"
            )

    def find_predecessors(self) -> None:
        """Replace ids of jobs before others by positions; those of dropped jobs, by none."""
        if "eligible" in self.columns:
            early = (self["eligible"] != -1) & (self["eligible"] < self["submit_time"])
            said = "eligible is before the submission; allowed: later, or -1"
            self._refuse_rows(early, lambda row: said)
        named = {key: self[key] != -1 for key in referring(self.columns)}
        self.columns |= {key: self._positions_of(key) for key in named}
        if "after" not in named:
            return
        after, rows = self["after"], self["source_row"]
        if len(circle := find_cycle(after)):
            where = place_of(self.log, int(rows[circle[0]]))
            raise TraceError(f"{where}: {text_of_cycle(circle, self['job_id'])}")
        said = "stated; simulate --dependencies start makes them wait for it"
        self.note("job before it", "kept", int((after >= 0).sum()), said)
        gone = int((named["after"] & (after < 0)).sum())
        self.note("job before it dropped", "changed", gone, "taken to have ended")

    def _positions_of(self, key: str) -> NDArray[np.int64]:
        """Return the positions of the jobs whose ids a column holds, -1 = none or dropped."""
        ids, wanted, rows = self["job_id"], self[key], self["source_row"]
        all_ids = self.log.records["job_id"].to_numpy().astype(np.int64)
        named = wanted != -1
        row, n_alike = find_ids(wanted, all_ids)
        unread = named & (n_alike == 0) & bool(self.log.bad_lines)  # perhaps on a line left out
        self._refuse_rows(
            named & (n_alike != 1) & ~unread,
            lambda row: (
                f"job {ids[row]} is {key} job {wanted[row]}, {why_unknown(int(n_alike[row]))}"
            ),
        )
        position = np.full(len(all_ids), -1)
        position[rows] = np.arange(len(rows))
        return np.where(named & ~unread, position[row], -1)

    def _refuse_rows(self, wrong: NDArray[np.bool_], why: Callable[[int], str]) -> None:
        """Raise a TraceError about the first wrong row, if there is one."""
        if wrong.any():
            row = int(np.argmax(wrong))
            where = place_of(self.log, int(self["source_row"][row]))
            raise TraceError(f"{where}: {why(row)} ({int(wrong.sum())} such jobs)")

    def take_requests(self, machine: Machine, *, requested_memory: bool) -> None:
        """Take what jobs ask of nodes: as a table says, or chunks of one cpu."""
        rows, n = self["source_row"], len(self)
        if self.log.requests is not None:
            self.columns["partition"] = self._partitions(machine, self["partition"])
            return
        self.columns |= {key: np.full(n, COLUMNS[key].default or 0) for key in NODE_COLUMNS}
        self.columns["chunks"] = self["processors"]
        if requested_memory:
            asked_kb = self.log.records["requested_memory"].to_numpy()[rows]
            self.columns["memory_mb"] = np.ceil(np.maximum(asked_kb, 0) / 1024).astype(np.int64)
            unknown = int((asked_kb < 0).sum())
            self.note("no requested memory", "kept", unknown, "taken to need none")
        if machine.swf_partitions is not None:
            field = machine.swf_partitions.field
            names = dict(machine.swf_partitions.names)
            numbers = self.log.records[field].to_numpy()[rows]
            named = np.array([names.get(number) for number in numbers.tolist()], dtype=object)
            unmapped = np.flatnonzero([name is None for name in named])
            if len(unmapped):
                first = int(unmapped[0])
                raise TraceError(
                    f"{place_of(self.log, int(rows[first]))}: {field} {numbers[first]} has no "
                    f"partition of the machine; [partitions.swf] maps "
                    f"{', '.join(map(str, sorted(names)))} ({len(unmapped)} such jobs)"
                )
            self.columns["partition"] = self._partitions(machine, named)

    def _partitions(self, machine: Machine, named: NDArray[Any]) -> NDArray[np.int64]:
        """Return the index of each job's partition; refuse a name that the machine lacks."""
        known = machine.partition_names
        index = {"": 0} | {name: number for number, name in enumerate(known)}
        partition = np.array([index.get(name, -1) for name in named], dtype=np.int64)
        unknown = np.flatnonzero(partition < 0)
        if len(unknown):
            first = int(unknown[0])
            raise TraceError(
                f"{place_of(self.log, int(self['source_row'][first]))}: "
                f"{unknown_name('partition', named[first], known)} ({len(unknown)} such jobs)"
            )
        return partition

    def drop_unplaceable(self, machine: Machine, placement: str) -> None:
        """Leave out jobs that the machine can never run, and say of the first what it asks for."""
        columns = Requests(**{key: self[key] for key in Requests._fields})
        reasons = dict(refused(machine, columns, placement))
        unwanted = np.zeros(len(self), dtype=bool)
        unwanted[list(reasons)] = True
        first = min(reasons, default=-1)
        detail = f"job {self['job_id'][first]} {reasons[first]}" if reasons else ""
        self.drop(CANNOT_RUN, unwanted, detail)

    def note_ignored(self, machine: Machine | None, *, requested_memory: bool) -> None:
        """Record what the log states of jobs that no simulation on this machine takes into account.

        One partition for all jobs is no statement.
        """
        ignored = self._stated_of_nodes() if machine is None else {}
        if self.log.requests is None:
            rows = self.log.records.iloc[self["source_row"]]
            taken = None if machine is None else machine.swf_partitions
            partition = rows["partition"].to_numpy()
            if len(np.unique(partition[partition >= 0])) > 1 and (
                taken is None or taken.field != "partition"
            ):
                ignored["partitions"] = partition >= 0
            if not requested_memory:
                ignored["requested memory"] = rows["requested_memory"].to_numpy() > 0
            if "after" not in self.columns:
                ignored["dependencies"] = rows["preceding_job"].to_numpy() > 0
        stated = {what: jobs for what, jobs in ignored.items() if jobs.any()}
        counts = ", ".join(f"{what} ({int(jobs.sum())})" for what, jobs in stated.items())
        if machine is None and set(stated) - {"dependencies"}:
            counts += "; a machine of nodes (machine=...; simulate --machine FILE) takes all but "
            counts += "dependencies"
        if "dependencies" in stated:
            counts += "; simulate --dependencies start, in Python dependencies=True, reads them"
        jobs = int(np.any(list(stated.values()), axis=0).sum()) if stated else 0
        self.note("stated in the log", "ignored", jobs, counts)

    def _stated_of_nodes(self) -> dict[str, NDArray[np.bool_]]:
        """Return which jobs of a table ask for what a machine without nodes has no place for."""
        if self.log.requests is None:
            return {}
        return {
            "GPUs": self["gpus"] > 0,
            "memory": self["memory_mb"] > 0,
            "nodes apart": self["spread"] > 0,
            "whole nodes": self["exclusive"] > 0,
            "partitions": self["partition"] != "",
        }

    def cut_work(self) -> float:
        """Return which share of the work runs beyond the requests."""
        run, processors = self["run_time"].astype(np.float64), self["processors"]
        beyond = np.maximum(run - self["requested_time"], 0)
        return float(beyond @ processors / max(run @ processors, 1.0))

    def note_oddities(self) -> None:
        """Record what a person should know of the jobs that remain."""
        submit, run, request = self["submit_time"], self["run_time"], self["requested_time"]
        backwards = int((np.diff(submit) < 0).sum())
        self.note("submit goes backwards", "changed", backwards, "sorted by submit time")
        self.note("run time 0", "kept", int((run == 0).sum()), "start and end at one instant")
        over = int((run > request).sum())
        self.note(OVER_REQUEST, "kept", over, "end at the request when killed")
        no_wait = self["wait_time"] < 0
        detail = "the log has none: its submit time is the start" if no_wait.all() else "unknown"
        self.note("no wait time", "kept", int(no_wait.sum()), detail)
        unknown = int((self["user"] < 0).sum())
        self.note("no user", "kept", unknown, "all unknown users form one profile")
        repeated = len(self) - len(np.unique(self["job_id"]))
        self.note("repeated job id", "kept", repeated, "told apart by their position")
