"""The job table: one contiguous array per field, checked when it is built, then trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.core.history import History, empty_history, history_of
from hpcgym.errors import WorkloadError, refuse_unless_a
from hpcgym.machine import LARGEST_NUMBER, Machine

if TYPE_CHECKING:
    import pandas as pd

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

UNKNOWN_USER = -1
WEEK_S = 604_800
LARGEST_TIME = 2**52
"""Times (s) and areas stay below this, so that float64 holds them exactly."""

JOB_COLUMNS = (
    "job_id",
    "submit_time",
    "run_time",
    "requested_time",
    "processors",
    "user",
    "wait_time",
)
NODE_COLUMNS = ("chunks", "gpus", "memory_mb", "spread", "exclusive", "partition")
"""What jobs ask of nodes, besides their processors."""


def _to_be_indexed() -> IntArray:
    """Return the default of `user_index`, before `__post_init__` computes it."""
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs of a log, or of a part of one, in order of (submit time, position in the file).

    `Workload.from_arrays`, `Workload.from_frame` and `hpcgym.trace.load_workload` check and
    normalise; the bare constructor does not. Arrays have shape (n_jobs,), dtype int64, are
    contiguous and must not be written to. Times are s. On a machine of nodes a job asks for chunks,
    each inside one node; without one, `machine` and its six columns are None.

    Attributes:
        job_id: Id of the job in its trace.
        submit_time: Time the job enters the queue, >= 0, ascending.
        run_time: Real duration, >= 0; the scheduler must not see it before the end.
        requested_time: The user's limit, >= 1.
        processors: Processors requested, 1 to machine_processors.
        user: User id as in the trace, -1 = unknown; all unknown users count as one.
        wait_time: Wait in the log, -1 = not recorded.
        machine_processors: Processors of the machine (M).
        name: What tables and errors call it.
        time_offset: What was subtracted from the log's submit times.
        unix_start: Unix time of time 0, or None where the log does not say.
        user_index: Row of each job's user in `history`.
        history: What is known at time 0 of each user's completed jobs.
        source: The log this came from (a `hpcgym.trace.swf.SwfLog`), or None.
        source_row: Row of each job in `source`, or None.
        machine: The machine of nodes, or None.
        chunks: Chunks of each job, >= 1; they divide its processors, the cpus of all chunks.
        gpus: GPUs of each chunk.
        memory_mb: Memory of each chunk, MB.
        spread: Whether a node may have at most one chunk of the job; bool.
        exclusive: Whether the job's nodes are its own; bool.
        partition: Index of each job's partition in `machine.partitions`.

    Source: Specification, section 13, "Request".
    """

    job_id: IntArray
    submit_time: IntArray
    run_time: IntArray
    requested_time: IntArray
    processors: IntArray
    user: IntArray
    wait_time: IntArray
    machine_processors: int
    name: str = "workload"
    time_offset: int = 0
    unix_start: int | None = None
    user_index: IntArray = field(default_factory=_to_be_indexed)
    history: History = field(default_factory=lambda: empty_history(0))
    source: Any = None
    source_row: IntArray | None = None
    machine: Machine | None = None
    chunks: IntArray | None = None
    gpus: IntArray | None = None
    memory_mb: IntArray | None = None
    spread: BoolArray | None = None
    exclusive: BoolArray | None = None
    partition: IntArray | None = None

    def __post_init__(self) -> None:
        """Index the users, with an empty history, unless both are given.

        Raises:
            WorkloadError: A job needs more processors than the machine has.
        """
        if len(self.processors) and self.processors.max() > self.machine_processors:
            job = int(np.argmax(self.processors))
            raise WorkloadError(
                f"{self.name}: job {self.job_id[job]} needs {self.processors[job]} processors, the "
                f"machine has {self.machine_processors}"
            )
        if len(self.user_index) != len(self.user):
            users, index = _indexed(self.user)
            object.__setattr__(self, "user_index", index)
            object.__setattr__(self, "history", empty_history(len(users)))

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.submit_time)

    @property
    def week_start(self) -> int:
        """Seconds into the week at time 0, as Unix time counts weeks."""
        start = self.time_offset if self.unix_start is None else self.unix_start
        return start % WEEK_S

    @property
    def largest_request(self) -> int:
        """Largest requested time of any job, s."""
        return int(self.requested_time.max())

    @classmethod
    def from_arrays(
        cls,
        submit_time: ArrayLike,
        run_time: ArrayLike,
        requested_time: ArrayLike,
        processors: ArrayLike,
        *,
        machine_processors: int | None = None,
        user: ArrayLike | None = None,
        job_id: ArrayLike | None = None,
        wait_time: ArrayLike | None = None,
        name: str = "workload",
        time_offset: int = 0,
        unix_start: int | None = None,
        source: Any = None,
        source_row: ArrayLike | None = None,
        machine: Machine | None = None,
        chunks: ArrayLike | None = None,
        gpus: ArrayLike | None = None,
        memory_mb: ArrayLike | None = None,
        spread: ArrayLike | None = None,
        exclusive: ArrayLike | None = None,
        partition: ArrayLike | None = None,
    ) -> Workload:
        """Check and normalise arrays into a job table, sorted stably by submit time.

        Fields, units and ranges are those of `Workload`. By default all users are unknown, ids are
        1, 2, ... in the order given, and waits are not recorded. A machine of nodes gives
        `machine_processors`; on it a job is by default chunks of one cpu in the first partition.

        Raises:
            WorkloadError: An array has another length, is not of whole numbers, or holds a value
                out of range; the message names the field, the first bad job and the range.

        Example:
            >>> Workload.from_arrays([0, 5], [10, 10], [20, 20], [1, 4], machine_processors=4)
            Workload('workload', 2 jobs, 4 processors)
        """
        machine_processors = _size(name, machine_processors, machine)
        if not _is_whole(machine_processors):
            raise WorkloadError(
                f"{name}: machine_processors must be a whole number, got {machine_processors!r}"
            )
        if not _is_whole(time_offset):
            raise WorkloadError(f"{name}: time_offset must be whole seconds, got {time_offset!r}")
        if machine_processors < 1:
            raise WorkloadError(
                f"{name}: a machine needs at least 1 processor, got {machine_processors}"
            )
        submit = _whole_numbers(name, "submit_time", submit_time, None)
        n = len(submit)
        if n == 0:
            raise WorkloadError(f"{name}: no jobs")
        columns: dict[str, Any] = {
            "submit_time": submit,
            "run_time": _whole_numbers(name, "run_time", run_time, n),
            "requested_time": _whole_numbers(name, "requested_time", requested_time, n),
            "processors": _whole_numbers(name, "processors", processors, n),
            "user": _whole_numbers(name, "user", np.full(n, -1) if user is None else user, n),
            "job_id": _whole_numbers(
                name, "job_id", np.arange(1, n + 1) if job_id is None else job_id, n
            ),
            "wait_time": _whole_numbers(
                name, "wait_time", np.full(n, -1) if wait_time is None else wait_time, n
            ),
        }
        ranges = {
            "submit_time": (0, LARGEST_TIME),
            "run_time": (0, LARGEST_TIME),
            "requested_time": (1, LARGEST_TIME),
            "processors": (1, int(machine_processors)),
        }
        asked = dict(
            zip(NODE_COLUMNS, (chunks, gpus, memory_mb, spread, exclusive, partition), strict=True)
        )
        if machine is not None:
            columns |= _requests(name, columns["processors"], asked)
            ranges = {"partition": (0, len(machine.partitions) - 1)} | ranges
            ranges["chunks"] = (1, LARGEST_TIME)
            ranges |= dict.fromkeys(("gpus", "memory_mb"), (0, LARGEST_NUMBER))
        elif named := [key for key in NODE_COLUMNS if asked[key] is not None]:
            raise WorkloadError(f"{name}: {', '.join(named)} given without a machine of nodes")
        for key, (low, high) in ranges.items():
            values = columns[key]
            bad = np.flatnonzero((values < low) | (values > high))
            if len(bad):
                first = int(bad[0])
                inside = ""
                if machine is not None and key == "processors":
                    partition = machine.partition_names[columns["partition"][first]]
                    inside = f", in partition {partition!r}"
                raise WorkloadError(
                    f"{name}: {key} of job {int(columns['job_id'][first])} (row {first}) is "
                    f"{int(values[first])}{inside}; allowed: {low} to {high} ({len(bad)} such jobs)"
                )
        if machine is not None:
            _refuse_uneven_chunks(name, columns)
        largest_area = float(columns["requested_time"].max()) * float(machine_processors)
        if largest_area > LARGEST_TIME:
            raise WorkloadError(
                f"{name}: the largest request times the machine, {largest_area:.3g} processor-s, "
                f"is beyond {LARGEST_TIME}; cap the requests"
            )
        if source_row is not None:
            columns["source_row"] = _whole_numbers(name, "source_row", source_row, n)
        order = _order_of(submit)
        if order is not None:
            for key in columns:  # one by one: a long log is not held twice
                columns[key] = columns[key][order]
        return cls(
            **columns,
            machine_processors=int(machine_processors),
            name=name,
            time_offset=int(time_offset),
            unix_start=unix_start,
            source=source,
            machine=machine,
        )

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        machine_processors: int | None = None,
        name: str = "workload",
        machine: Machine | None = None,
    ) -> Workload:
        """Check and normalise a DataFrame with one row per job into a job table.

        Columns `submit_time`, `run_time`, `requested_time` and `processors` are needed; `user`,
        `job_id` and `wait_time` may be there, too, and with a machine the columns of requests.

        Raises:
            WorkloadError: A needed column is missing, or `from_arrays` refuses a value.
        """
        needed = ("submit_time", "run_time", "requested_time", "processors")
        missing = [column for column in needed if column not in frame.columns]
        if missing:
            raise WorkloadError(
                f"{name}: the frame lacks {', '.join(missing)}; it has "
                f"{', '.join(map(str, frame.columns))}"
            )
        known = ("user", "job_id", "wait_time", *(NODE_COLUMNS if machine else ()))
        optional: dict[str, Any] = {key: frame[key] for key in known if key in frame}
        return cls.from_arrays(
            *(frame[key] for key in needed),
            machine_processors=machine_processors,
            name=name,
            machine=machine,
            **optional,
        )

    def requests(self, jobs: ArrayLike | slice = slice(None)) -> dict[str, Any]:
        """Return machine and columns of requests of some jobs, as keywords of `from_arrays`.

        Without a machine of nodes there are none.
        """
        if self.machine is None:
            return {}
        columns = {key: getattr(self, key)[jobs] for key in NODE_COLUMNS}
        return {"machine": self.machine, **columns}

    def select(
        self,
        jobs: ArrayLike,
        *,
        start: int = 0,
        name: str | None = None,
        past: Mapping[str, ArrayLike] | None = None,
    ) -> Workload:
        """Cut jobs, by mask or indices, into another workload whose time 0 is `start`, s.

        The order is kept, users are indexed anew, `time_offset` and `unix_start` move with `start`.
        `past` holds completed jobs for the part's history, added to what this table knows of its
        users; None means an empty history. Its arrays are `user`, `run_time` (as executed),
        `requested_time`, `processors` and `end_time`. The last is on this table's clock: at most
        `start`, and at least 0 where this table has a history.

        Raises:
            WorkloadError: No job is selected, or one is submitted before `start`.
        """
        index = np.asarray(jobs)
        index = np.flatnonzero(index) if index.dtype == np.bool_ else np.sort(index)
        label = self.name if name is None else name
        if len(index) == 0:
            raise WorkloadError(f"{label}: no job selected")
        submit = np.ascontiguousarray(self.submit_time[index] - start)
        if submit[0] < 0:
            raise WorkloadError(f"{label}: a job is submitted before the start, {start} s")
        columns = self._rows(index)
        users, user_index = _indexed(columns["user"])
        history = (
            empty_history(len(users))
            if past is None
            else history_of(
                users,
                np.asarray(past["user"], dtype=np.int64),
                np.asarray(past["run_time"], dtype=np.int64),
                np.asarray(past["requested_time"], dtype=np.int64),
                np.asarray(past["processors"], dtype=np.int64),
                np.asarray(past["end_time"], dtype=np.int64) - start,
                before=self._known_of(np.unique(self.user_index[index]), start),
            )
        )
        return replace(
            self,
            **columns | {"submit_time": submit},
            name=label,
            time_offset=self.time_offset + start,
            unix_start=None if self.unix_start is None else self.unix_start + start,
            user_index=user_index,
            history=history,
        )

    def _rows(self, jobs: IntArray) -> dict[str, Any]:
        """Return every column of some jobs but `user_index`."""
        columns = (*JOB_COLUMNS, *NODE_COLUMNS, "source_row")
        given = {key: getattr(self, key) for key in columns}
        return {
            key: None if column is None else np.ascontiguousarray(column[jobs])
            for key, column in given.items()
        }

    def _known_of(self, rows: IntArray, start: int) -> History:
        """Return the history of some users on the clock of a part that begins at `start`."""
        known = History(*(column[rows] for column in self.history))
        return known._replace(last_end_time=known.last_end_time - start * (known.completed > 0))

    def resubmitted(self, submit_time: ArrayLike, *, name: str | None = None) -> Workload:
        """Return the same jobs, users and history with other submit times, sorted stably again.

        `submit_time` has shape (n_jobs,), s, >= 0, in this table's order.

        Raises:
            WorkloadError: The array has another length, or a time is out of range.
        """
        label = self.name if name is None else name
        submit = _whole_numbers(label, "submit_time", submit_time, len(self))
        if int(submit.min()) < 0 or int(submit.max()) > LARGEST_TIME:
            raise WorkloadError(f"{label}: submit_time must lie in 0 to {LARGEST_TIME}")
        order = _order_of(submit)
        if order is None:
            return replace(self, submit_time=submit, name=label)
        return replace(
            self,
            **self._rows(order) | {"submit_time": np.ascontiguousarray(submit[order])},
            user_index=np.ascontiguousarray(self.user_index[order]),
            name=label,
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the jobs as a DataFrame, one row each, in the columns that `from_frame` reads."""
        import pandas as pd

        keys = JOB_COLUMNS if self.machine is None else (*JOB_COLUMNS, *NODE_COLUMNS)
        return pd.DataFrame({key: getattr(self, key).copy() for key in keys})

    def __repr__(self) -> str:
        """Show the name and the two sizes."""
        return f"Workload({self.name!r}, {len(self)} jobs, {self.machine_processors} processors)"


def _is_whole(number: Any) -> bool:
    """Tell whether something is a whole number; True and False are none."""
    try:
        return not isinstance(number, bool) and int(number) == number
    except (TypeError, ValueError, OverflowError):
        return False


def _size(name: str, machine_processors: int | None, machine: Machine | None) -> int:
    """Return the machine's size, given as a number, as nodes or, where they agree, as both."""
    refuse_unless_a((Machine, type(None)), "machine", machine, "a Machine or None", WorkloadError)
    if machine is None:
        if machine_processors is None:
            raise WorkloadError(f"{name}: machine_processors is missing; state the machine's size")
        return machine_processors
    if machine_processors not in (None, machine.cpus):
        raise WorkloadError(
            f"{name}: machine_processors is {machine_processors}, yet the nodes of the machine "
            f"have {machine.cpus} cpus; leave machine_processors out"
        )
    return machine.cpus


def _requests(
    name: str, processors: IntArray, given: Mapping[str, ArrayLike | None]
) -> dict[str, Any]:
    """Return the columns of requests, normalised, with defaults for those that are not given."""
    n = len(processors)
    zeros = np.zeros(n, dtype=np.int64)
    defaults = dict.fromkeys(NODE_COLUMNS, zeros) | {"chunks": processors}
    columns: dict[str, Any] = {}
    for key, value in given.items():
        normalised = _flags if key in ("spread", "exclusive") else _whole_numbers
        columns[key] = normalised(name, key, defaults[key] if value is None else value, n)
    return columns


def _flags(name: str, key: str, values: ArrayLike, n: int) -> BoolArray:
    """Return values as a fresh vector of bool; refuse what is neither that nor 0 or 1."""
    array = np.asarray(values)
    if array.dtype != np.bool_:
        array = _whole_numbers(name, key, array, n)
    bad = np.flatnonzero((array != 0) & (array != 1))
    if array.shape != (n,) or len(bad):
        came = f"shape {array.shape}" if array.shape != (n,) else f"{array[bad[0]]} in row {bad[0]}"
        raise WorkloadError(f"{name}: {key} must be {n} times true or false, got {came}")
    return array.astype(np.bool_)


def _refuse_uneven_chunks(name: str, columns: Mapping[str, Any]) -> None:
    """Refuse jobs whose chunks would not all have the same cpus."""
    bad = np.flatnonzero(columns["processors"] % columns["chunks"])
    if len(bad):
        job = int(bad[0])
        raise WorkloadError(
            f"{name}: job {columns['job_id'][job]} (row {job}) asks for "
            f"{columns['processors'][job]} processors in {columns['chunks'][job]} chunks; "
            f"chunks must divide them ({len(bad)} such jobs)"
        )


def _order_of(submit_time: IntArray) -> IntArray | None:
    """Return the order by (submit time, position), or None if the jobs are already in it."""
    if (submit_time[:-1] <= submit_time[1:]).all():
        return None
    return np.argsort(submit_time, kind="stable")


def _indexed(user: IntArray) -> tuple[IntArray, IntArray]:
    """Return the user ids, ascending, and the index of each job's user among them."""
    least, span = int(user.min()), int(user.max()) - int(user.min()) + 1
    # Ids are dense in most logs, and then looked up in a table: sorting would hold a column of a
    # long log three times.
    if span > len(user) + 1_000:
        users, index = np.unique(user, return_inverse=True)
        return users, index.astype(np.int64)
    is_known = np.zeros(span, dtype=bool)
    is_known[user - least] = True
    return np.flatnonzero(is_known) + least, (np.cumsum(is_known) - 1)[user - least]


def _whole_numbers(name: str, key: str, values: ArrayLike, n: int | None) -> IntArray:
    """Return values as a fresh contiguous int64 vector; refuse what is not whole or finite."""
    array = np.asarray(values)
    if array.ndim != 1 or (n is not None and len(array) != n):
        wanted = "one-dimensional" if n is None else f"of shape ({n},)"
        raise WorkloadError(f"{name}: {key} must be {wanted}, got shape {array.shape}")
    if array.dtype.kind not in "iuf" and len(array):
        raise WorkloadError(f"{name}: {key} must be numbers, got dtype {array.dtype}")
    if array.dtype.kind == "f":
        bad = np.flatnonzero(~(np.isfinite(array) & (np.floor(array) == array)))
        if len(bad):
            first = int(bad[0])
            raise WorkloadError(
                f"{name}: {key} in row {first} is {array[first]}; whole numbers only "
                f"({len(bad)} such rows)"
            )
    return np.array(array, dtype=np.int64)
