"""The job table: one contiguous array per field, checked when it is built, then trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.base.errors import WorkloadError, refuse_unless_a, unknown_name
from hpcgym.base.notebook import card
from hpcgym.core.columns import COLUMNS, LARGEST_TIME, NODE_COLUMNS, JobColumns, referring
from hpcgym.core.history import History, empty_history, history_of
from hpcgym.core.predecessors import (
    held_as_long,
    ids_before,
    positions_of,
    refuse_impossible,
    renumbered,
)
from hpcgym.machine import Machine

if TYPE_CHECKING:
    import pandas as pd

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

WEEK_S = 604_800

_LOG_NAMES = {"account": "group", "qos": "queue"}
"""What logs call columns that have another name here."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Workload(JobColumns):
    """Jobs of a log, or of a part of one, in order of (submit time, position in the file).

    `Workload.from_arrays`, `Workload.from_frame` and `hpcgym.trace.load_workload` check and
    normalise; the bare constructor does not. Arrays have shape (n_jobs,), dtype int64, are
    contiguous and must not be written to. Times are s. On a machine of nodes a job asks for chunks,
    each inside one node; without one, `machine` and its six columns are None.

    Attributes:
        machine_processors: Processors of the machine (M).
        name: What tables and errors call it.
        time_offset: What was subtracted from the log's submit times.
        unix_start: Unix time of time 0, or None where the log does not say.
        user_index: Row of each job's user in `history`.
        history: What is known at time 0 of each user's completed jobs.
        source: The log this came from (a `hpcgym.trace.swf.SwfLog`), or None.
        source_row: Row of each job in `source`, or None.
        machine: The machine of nodes, or None.

    The columns are those of `hpcgym.core.columns.JobColumns`.

    Source: Specification, section 13, "Request".
    """

    machine_processors: int
    name: str = "workload"
    time_offset: int = 0
    unix_start: int | None = None
    user_index: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    history: History = field(default_factory=lambda: empty_history(0))
    source: Any = None
    source_row: IntArray | None = None
    machine: Machine | None = None

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
        return len(self.submit_time)

    @property
    def week_start(self) -> int:
        """Seconds into the week at time 0, as Unix time counts weeks."""
        start = self.time_offset if self.unix_start is None else self.unix_start
        return start % WEEK_S

    def named(self, column: str) -> NDArray[Any]:
        """Return each job's user, account, qos, partition or array by name, shape (n_jobs,).

        "" = unknown. Where the job table does not have it, the log may: accounts are its groups,
        and qos its queues. A number without a name is its own.
        """
        numbers = getattr(self, column)
        if column == "partition" and self.machine is not None:
            names: NDArray[Any] = np.array(self.machine.partition_names, dtype=object)
            return np.asarray(names[numbers])
        in_log = column == "user" or (numbers is None and column != "array")
        if self.source_row is not None and in_log:
            return np.asarray(self.source.named(_LOG_NAMES.get(column, column))[self.source_row])
        if numbers is None:
            return np.full(len(self), "", dtype=object)
        distinct, places = np.unique(numbers, return_inverse=True)
        texts = [str(number) if number >= 0 else "" for number in distinct]
        return np.array(texts, dtype=object)[places]

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
        name: str = "workload",
        time_offset: int = 0,
        unix_start: int | None = None,
        source: Any = None,
        source_row: ArrayLike | None = None,
        machine: Machine | None = None,
        **further: ArrayLike | None,
    ) -> Workload:
        """Check and normalise arrays into a job table, sorted stably by submit time.

        Fields, units and ranges are those of `Workload`; `further` are columns by name. By default
        all users are unknown, ids are 1, 2, ... in the order given, and waits are not recorded. A
        machine of nodes gives `machine_processors`; on it a job is by default chunks of one cpu in
        the first partition.

        Raises:
            WorkloadError: An array has another length, is not of whole numbers, or holds a value
                out of range; the message names the field, the first bad job and the range. Or there
                is no such column.

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
        given = {key: values for key, values in further.items() if values is not None}
        given |= {"submit_time": submit, "run_time": run_time}
        given |= {"requested_time": requested_time, "processors": processors}
        if unknown := [key for key in given if key not in COLUMNS]:
            raise WorkloadError(f"{name}: {unknown_name('column', unknown[0], COLUMNS)}")
        if machine is None and (named := [key for key in NODE_COLUMNS if key in given]):
            raise WorkloadError(f"{name}: {', '.join(named)} given without a machine of nodes")
        given = {"job_id": np.arange(1, n + 1), "chunks": processors} | given
        columns: dict[str, Any] = {}
        for key, column in COLUMNS.items():
            if machine is not None or not column.on_nodes:
                if column.optional and key not in given:
                    continue
                values = given[key] if key in given else np.full(n, column.default)
                if column.names:
                    values = _places(name, key, values)
                columns[key] = (_flags if column.is_flag else _whole_numbers)(name, key, values, n)
        most = {"processors": int(machine_processors)} | dict.fromkeys(referring(columns), n - 1)
        if machine is not None:
            most["partition"] = len(machine.partitions) - 1
        for key in sorted(columns, key=lambda key: key != "partition"):  # named in refusals
            low, high, values = COLUMNS[key].least, most.get(key, COLUMNS[key].most), columns[key]
            if low is None:
                continue
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
        refuse_impossible(name, columns)
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
            for key in referring(columns):
                columns[key] = renumbered(columns[key], np.argsort(order))
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

        Columns `submit_time`, `run_time`, `requested_time` and `processors` are needed; others of
        `hpcgym.core.columns` may be there, too, with a machine also those of requests. One
        that refers to jobs, as `after` does, holds ids.

        Raises:
            WorkloadError: A needed column is missing, or `from_arrays` refuses a value. Or `after`
                names a job that is not there, or one of several with the same id.
        """
        needed = ("submit_time", "run_time", "requested_time", "processors")
        missing = [column for column in needed if column not in frame.columns]
        if missing:
            raise WorkloadError(
                f"{name}: the frame lacks {', '.join(missing)}; it has "
                f"{', '.join(map(str, frame.columns))}"
            )
        columns: dict[str, Any] = {
            key: frame[key]
            for key in COLUMNS
            if key in frame and (machine is not None or key not in NODE_COLUMNS)
        }
        for refers in referring(columns):
            ids = columns.get("job_id", np.arange(1, len(frame) + 1))
            named = (("job_id", ids), (refers, frame[refers].fillna(-1).infer_objects()))
            ids, wanted = (_whole_numbers(name, key, column, len(frame)) for key, column in named)
            columns[refers] = positions_of(name, refers, wanted, ids)
        return cls.from_arrays(
            **columns, machine_processors=machine_processors, name=name, machine=machine
        )

    def columns(self, jobs: ArrayLike | slice = slice(None)) -> dict[str, Any]:
        """Return the columns of some jobs by name; those of requests on a machine of nodes only.

        `after` counts among these jobs: one before that is not among them is none.
        """
        given = [(key, getattr(self, key)) for key in COLUMNS]
        columns = {key: np.ascontiguousarray(a[jobs]) for key, a in given if a is not None}
        for key in referring(columns):
            rows: Any = np.arange(len(self))
            kept = rows[jobs]
            position = np.full(len(self), -1)
            position[kept] = np.arange(len(kept))
            columns[key] = renumbered(columns[key], position)
        return columns

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
        if "eligible" in columns:
            columns["eligible"] = np.maximum(columns["eligible"] - start, -1)
        users, user_index = _indexed(columns["user"])
        history = empty_history(len(users))
        if past is not None:
            keys = "user", "run_time", "requested_time", "processors", "end_time"
            user, *ran, end_time = (np.asarray(past[key], dtype=np.int64) for key in keys)
            known = self._known_of(np.unique(self.user_index[index]), start)
            history = history_of(users, user, ran[0], ran[1], ran[2], end_time - start, known)
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
        """Return every array of some jobs but `user_index`."""
        source_row = None if self.source_row is None else self.source_row[jobs]
        return {**self.columns(jobs), "source_row": source_row}

    def _known_of(self, rows: IntArray, start: int) -> History:
        """Return the history of some users on the clock of a part that begins at `start`."""
        known = History(*(column[rows] for column in self.history))
        return known._replace(last_end_time=known.last_end_time - start * (known.completed > 0))

    def resubmitted(self, submit_time: ArrayLike, *, name: str | None = None) -> Workload:
        """Return the same jobs, users and history with other submit times, sorted stably again.

        A hold lasts as long from the submission on as it did. `submit_time` has shape (n_jobs,), s,
        >= 0, in this table's order.

        Raises:
            WorkloadError: The array has another length, or a time is out of range.
        """
        label = self.name if name is None else name
        submit = _whole_numbers(label, "submit_time", submit_time, len(self))
        if int(submit.min()) < 0 or int(submit.max()) > LARGEST_TIME:
            raise WorkloadError(f"{label}: submit_time must lie in 0 to {LARGEST_TIME}")
        order = _order_of(submit)
        moved: dict[str, Any] = {"submit_time": submit, "user_index": self.user_index}
        if self.eligible is not None:
            moved["eligible"] = held_as_long(self.eligible, submit - self.submit_time)
        if order is not None:
            moved = {key: np.ascontiguousarray(values[order]) for key, values in moved.items()}
            moved = self._rows(order) | moved
        return replace(self, **moved, name=label)

    def to_frame(self) -> pd.DataFrame:
        """Return the jobs as a DataFrame, one row each, in the columns that `from_frame` reads."""
        import pandas as pd

        return pd.DataFrame({key: values.copy() for key, values in self.stated_columns().items()})

    def stated_columns(self) -> dict[str, Any]:
        """Return the columns as frames and files state them: ids in `after`, -1 = none; names."""
        columns = self.columns()
        for key in referring(columns):
            columns[key] = ids_before(columns[key], self.job_id)
        for key in filter(lambda key: COLUMNS[key].names, columns):
            columns[key] = np.array(COLUMNS[key].names)[columns[key]]
        return columns

    def __repr__(self) -> str:
        return f"Workload({self.name!r}, {len(self)} jobs, {self.machine_processors} processors)"

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        lasts = int(self.submit_time[-1] - self.submit_time[0])
        work = int((self.processors * self.run_time).sum())
        nodes = "" if self.machine is None else f" on {self.machine.n_nodes:,} nodes"
        rows = {
            "jobs": f"{len(self):,}",
            "users": f"{np.count_nonzero(np.unique(self.user) >= 0):,}",
            "processors": f"{self.machine_processors:,}{nodes}",
            "days": f"{lasts / 86_400:,.1f}",
            "load": f"{work / max(lasts * self.machine_processors, 1):.2f}",
        }
        return card(self.name, rows)


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


def _places(name: str, key: str, values: ArrayLike) -> ArrayLike:
    """Return the places of names; what is no text stays as it is. Refuse an unknown name."""
    array, names = np.asarray(values), COLUMNS[key].names
    if array.dtype.kind not in "OUT":
        return values
    texts = array.tolist()
    for row, text in enumerate(texts):
        if text not in names:
            raise WorkloadError(f"{name}: row {row}: {unknown_name(key, str(text), names)}")
    return np.array([names.index(text) for text in texts], dtype=np.int64)


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
