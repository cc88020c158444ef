"""The job table: one contiguous array per field, checked once at the door, then trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.core.history import History, empty_history, history_of
from hpcgym.errors import WorkloadError

if TYPE_CHECKING:
    import pandas as pd

IntArray = NDArray[np.int64]

UNKNOWN_USER = -1
WEEK_S = 604_800
LARGEST_TIME = 2**52
"""Times (s) and areas stay below this, so that float64 holds them exactly."""


def _to_be_indexed() -> IntArray:
    """Stand in for user indices until the users are known."""
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs of one log, or of a part of one, in order of (submit time, position in the file).

    Build one with `Workload.from_arrays`, `Workload.from_frame` or `hpcgym.trace.load_workload`;
    these check and normalise, the bare constructor trusts. All arrays have shape (n_jobs,),
    dtype int64, are contiguous and must not be written to.

    Attributes:
        job_id: Id of the job in its trace.
        submit_time: Time the job enters the queue, s, >= 0, ascending.
        run_time: Real duration, s, >= 0; the scheduler must not see it before the end.
        requested_time: The user's limit, s, >= 1.
        processors: Processors requested, 1 to machine_processors.
        user: User id as in the trace, -1 = unknown (all unknown users form one profile).
        wait_time: Wait the log recorded, s, -1 = not recorded.
        machine_processors: Processors of the machine (M).
        name: What tables and errors call it.
        time_offset: What was subtracted from the log's submit times, s.
        unix_start: Unix time of time 0 here, s, or None where the log does not say.
        user_index: Dense index of each job's user into `history`, 0 to n_users - 1.
        history: What is known at time 0 of each user's completed jobs.
        source: The log this came from (a `hpcgym.trace.swf.SwfLog`), or None.
        source_row: Row of each job in `source`, or None.
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

    def __post_init__(self) -> None:
        """Index the users and start with an empty history, unless given.

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
        """Seconds into the week at time 0, as Unix time counts weeks, s."""
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
        machine_processors: int,
        user: ArrayLike | None = None,
        job_id: ArrayLike | None = None,
        wait_time: ArrayLike | None = None,
        name: str = "workload",
        time_offset: int = 0,
        unix_start: int | None = None,
        source: Any = None,
        source_row: ArrayLike | None = None,
    ) -> Workload:
        """Check and normalise arrays into a job table, sorted stably by submit time.

        Args:
            submit_time: Submit times, shape (n_jobs,), s, >= 0.
            run_time: Real durations, shape (n_jobs,), s, >= 0.
            requested_time: The users' limits, shape (n_jobs,), s, >= 1.
            processors: Processors requested, shape (n_jobs,), 1 to machine_processors.
            machine_processors: Processors of the machine, >= 1.
            user: User ids, shape (n_jobs,), -1 = unknown; default all unknown.
            job_id: Ids, shape (n_jobs,); default 1, 2, ... in the order given.
            wait_time: Logged waits, shape (n_jobs,), s, -1 = not recorded; default all -1.
            name: What tables and errors call it.
            time_offset: What was subtracted from the log's submit times, s.
            unix_start: Unix time of time 0, s, or None.
            source: The log the jobs came from, or None.
            source_row: Row of each job in `source`, shape (n_jobs,), or None.

        Returns:
            The job table, in order of (submit time, position given).

        Raises:
            WorkloadError: An array has another length, is not of whole numbers, or holds a value
                out of range; the message names the field, the first bad job and the range.

        Source:
            House rule: checked once at the door, then trusted by every kernel.

        Example:
            >>> Workload.from_arrays([0, 5], [10, 10], [20, 20], [1, 4], machine_processors=4)
            Workload('workload', 2 jobs, 4 processors)
        """
        if isinstance(machine_processors, bool) or int(machine_processors) != machine_processors:
            raise WorkloadError(
                f"{name}: machine_processors must be a whole number, got {machine_processors!r}"
            )
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
        for key, (low, high) in ranges.items():
            values = columns[key]
            bad = np.flatnonzero((values < low) | (values > high))
            if len(bad):
                first = int(bad[0])
                raise WorkloadError(
                    f"{name}: {key} of job {int(columns['job_id'][first])} (row {first}) is "
                    f"{int(values[first])}; allowed: {low} to {high} ({len(bad)} such jobs)"
                )
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
        )

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, *, machine_processors: int, name: str = "workload"
    ) -> Workload:
        """Check and normalise a DataFrame into a job table.

        Args:
            frame: One row per job, with columns submit_time, run_time, requested_time and
                processors, and optionally user, job_id and wait_time (units as `Workload`).
            machine_processors: Processors of the machine, >= 1.
            name: What tables and errors call it.

        Returns:
            The job table, in order of (submit time, position in the frame).

        Raises:
            WorkloadError: A needed column is missing, or `from_arrays` refuses a value.

        Source:
            House rule: field names follow the Standard Workload Format.
        """
        needed = ("submit_time", "run_time", "requested_time", "processors")
        missing = [column for column in needed if column not in frame.columns]
        if missing:
            raise WorkloadError(
                f"{name}: the frame lacks {', '.join(missing)}; it has "
                f"{', '.join(map(str, frame.columns))}"
            )
        optional = {key: frame[key] for key in ("user", "job_id", "wait_time") if key in frame}
        return cls.from_arrays(
            *(frame[key] for key in needed),
            machine_processors=machine_processors,
            name=name,
            **optional,
        )

    def select(
        self,
        jobs: ArrayLike,
        *,
        start: int = 0,
        name: str | None = None,
        past: Mapping[str, ArrayLike] | None = None,
    ) -> Workload:
        """Cut some jobs out into a workload of their own whose time 0 is `start`.

        Args:
            jobs: Boolean mask or indices into this table, shape (n,); order is kept.
            start: Instant that becomes time 0, s; no selected job may be submitted before it.
            name: Name of the part; default this one's.
            past: Completed jobs that make the part's warm history, besides this table's own, as
                arrays `user`, `run_time` (as executed), `requested_time`, `processors` and
                `end_time` (this table's clock, 0 to start where it has a history, else <= start),
                or None for an empty history.

        Returns:
            The part. Its users are indexed anew; `time_offset` and `unix_start` move with `start`.

        Raises:
            WorkloadError: No job is selected, or one is submitted before `start`.

        Source:
            House rule: a part is a workload like any other.
        """
        index = np.asarray(jobs)
        index = np.flatnonzero(index) if index.dtype == np.bool_ else np.sort(index)
        label = self.name if name is None else name
        if len(index) == 0:
            raise WorkloadError(f"{label}: no job selected")
        submit = np.ascontiguousarray(self.submit_time[index] - start)
        if submit[0] < 0:
            raise WorkloadError(f"{label}: a job is submitted before the start, {start} s")
        user = np.ascontiguousarray(self.user[index])
        users, user_index = _indexed(user)
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
            job_id=np.ascontiguousarray(self.job_id[index]),
            submit_time=submit,
            run_time=np.ascontiguousarray(self.run_time[index]),
            requested_time=np.ascontiguousarray(self.requested_time[index]),
            processors=np.ascontiguousarray(self.processors[index]),
            user=user,
            wait_time=np.ascontiguousarray(self.wait_time[index]),
            name=label,
            time_offset=self.time_offset + start,
            unix_start=None if self.unix_start is None else self.unix_start + start,
            user_index=user_index,
            history=history,
            source_row=None if self.source_row is None else self.source_row[index],
        )

    def _known_of(self, rows: IntArray, start: int) -> History:
        """Return the history of some users on the clock of a part that begins at `start`."""
        known = History(*(column[rows] for column in self.history))
        return known._replace(last_end_time=known.last_end_time - start * (known.completed > 0))

    def resubmitted(self, submit_time: ArrayLike, *, name: str | None = None) -> Workload:
        """Give the same jobs other submit times, and sort them stably again.

        Args:
            submit_time: New submit times, shape (n_jobs,), s, >= 0, in this table's order.
            name: Name of the result; default this one's.

        Returns:
            The re-sorted job table, with this one's users and history.

        Raises:
            WorkloadError: The array has another length, or a time is out of range.

        Source:
            House rule: jitter, load scaling and resampling move submit times and nothing else.
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
            job_id=np.ascontiguousarray(self.job_id[order]),
            submit_time=np.ascontiguousarray(submit[order]),
            run_time=np.ascontiguousarray(self.run_time[order]),
            requested_time=np.ascontiguousarray(self.requested_time[order]),
            processors=np.ascontiguousarray(self.processors[order]),
            user=np.ascontiguousarray(self.user[order]),
            wait_time=np.ascontiguousarray(self.wait_time[order]),
            user_index=np.ascontiguousarray(self.user_index[order]),
            name=label,
            source_row=None if self.source_row is None else self.source_row[order],
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the job table as a DataFrame, one row per job in this order.

        Returns:
            Columns job_id, submit_time, run_time, requested_time, processors, user, wait_time.

        Source:
            House rule: field names follow the Standard Workload Format.
        """
        import pandas as pd

        keys = [
            "job_id",
            "submit_time",
            "run_time",
            "requested_time",
            "processors",
            "user",
            "wait_time",
        ]
        return pd.DataFrame({key: getattr(self, key).copy() for key in keys})

    def __repr__(self) -> str:
        """Show the name and the two sizes."""
        return f"Workload({self.name!r}, {len(self)} jobs, {self.machine_processors} processors)"


def _order_of(submit_time: IntArray) -> IntArray | None:
    """Return the order by (submit time, position), or None where the jobs stand in it."""
    if (submit_time[:-1] <= submit_time[1:]).all():
        return None
    return np.argsort(submit_time, kind="stable")


def _indexed(user: IntArray) -> tuple[IntArray, IntArray]:
    """Return the users, ascending, and the place of each job's among them.

    Ids as dense as most logs' are looked up in a table; sorting would hold a log's columns thrice.
    """
    least, span = int(user.min()), int(user.max()) - int(user.min()) + 1
    if span > len(user) + 1_000:
        users, index = np.unique(user, return_inverse=True)
        return users, index.astype(np.int64)
    is_known = np.zeros(span, dtype=bool)
    is_known[user - least] = True
    return np.flatnonzero(is_known) + least, (np.cumsum(is_known) - 1)[user - least]


def _whole_numbers(name: str, key: str, values: ArrayLike, n: int | None) -> IntArray:
    """Return values as a fresh contiguous int64 vector, refusing what is not whole or finite."""
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
