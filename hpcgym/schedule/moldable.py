"""Moldable jobs: each can run in several shapes, one of which is chosen when it is submitted."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.base.errors import PolicyError, WorkloadError, unreadable
from hpcgym.core import constants as s
from hpcgym.core.backfill import as_backfill
from hpcgym.core.columns import LARGEST_TIME
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.dependencies import dependencies_of
from hpcgym.core.kernels import entry_points
from hpcgym.core.own_backfill import refuse_own
from hpcgym.core.policy import as_policy, refuse_as_choice
from hpcgym.core.predictor import PREDICTORS, Predictor
from hpcgym.core.prepare import size_classes
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.schedule.attempts import attempts_of
from hpcgym.schedule.schedule import Schedule
from hpcgym.schedule.simulate import run_to_end

COLUMNS = ("job_id", "processors", "requested_time", "run_time")  # columns of a file of shapes


class Shape(NamedTuple):
    """A way to run a job: processors, the longest run time allowed and the actual one, s."""

    processors: int
    requested_time: int
    run_time: int


class Molded(NamedTuple):
    """A schedule of moldable jobs in the shapes chosen.

    `chosen` says which of its shapes each job got, `predicted_wait` the wait that the choice
    counted with, s; both have shape (n_jobs,).
    """

    schedule: Schedule
    chosen: NDArray[np.int64]
    predicted_wait: NDArray[np.int64]


def choose_shape(
    processors: ArrayLike, duration: ArrayLike, wait: ArrayLike, alpha: float = 0.0
) -> int:
    """Return which shape has the least cost^alpha * turnaround, the first of equal ones.

    Args:
        processors: Processors of each shape, shape (n_shapes,).
        duration: How long it runs, shape (n_shapes,), s.
        wait: How long it would wait, shape (n_shapes,), s.
        alpha: Exponent of the cost in processor-seconds; 0 = only the turnaround counts.

    Source: Lecture on batch scheduling, "Rigid/Moldable jobs"; specification, section 4,
    "Moldable".
    """
    q, t, w = (np.asarray(array, dtype=np.float64) for array in (processors, duration, wait))
    return int(np.argmin((q * t) ** alpha * (w + t)))


def read_shapes(path: str | Path, workload: Workload) -> list[list[Shape]]:
    """Read the shapes of each job from a CSV file; no log holds any.

    Args:
        path: The file: columns job_id, processors, requested_time (s) and run_time (s), whole
            numbers, a row per shape, the shapes of a job in the order of their rows.
        workload: The jobs; one that the file does not name keeps the shape it has.

    Raises:
        WorkloadError: The file cannot be read, lacks a column, has a value that is no whole number,
            or names an unknown job; the message names file and line.
    """
    shapes: dict[int, list[Shape]] = {int(job): [] for job in workload.job_id}
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
            if missing:
                raise WorkloadError(
                    f"{path}:1: no column {', '.join(missing)}; needed are {', '.join(COLUMNS)}"
                )
            for row in rows:
                job, *shape = (_whole(row[name], name, path, rows.line_num) for name in COLUMNS)
                if job not in shapes:
                    raise WorkloadError(
                        f"{path}:{rows.line_num}: {workload.name} has no job {job}, or it was left "
                        "out when the log was cleaned"
                    )
                shapes[job].append(Shape(*shape))
    except OSError as error:
        raise WorkloadError(unreadable(path, error)) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise WorkloadError(f"{path}: not a CSV file in UTF-8: {error}") from None
    logged = zip(workload.processors, workload.requested_time, workload.run_time, strict=True)
    return [
        shapes[int(job)] or [Shape(*map(int, shape))]
        for job, shape in zip(workload.job_id, logged, strict=True)
    ]


def _whole(text: str | None, name: str, path: str | Path, line: int) -> int:
    try:
        return int(text or "")
    except ValueError:
        raise WorkloadError(
            f"{path}:{line}: {name} must be a whole number, got {text or ''!r}"
        ) from None


def simulate_moldable(
    workload: Workload,
    shapes: Sequence[Sequence[Shape | tuple[int, int, int]]],
    *,
    alpha: float = 0.0,
    settings: SchedulerSettings | None = None,
) -> Molded:
    """Schedule jobs of several shapes: each gets one when it is submitted, and keeps it.

    A wait is predicted by a plan that reserves for every waiting job in queue order. Jobs of one
    instant choose in turn, and none is in the plan of the next.

    Args:
        workload: The jobs; shapes replace their processors, run times and requests.
        shapes: The shapes of each job, one sequence per job.
        alpha: As in `choose_shape`.
        settings: How the scheduler works; its estimates are the requests of the shapes chosen.

    Raises:
        WorkloadError: A job without shapes, or a shape that does not fit the machine or has a
            request below 1 s.
        PolicyError: Estimates other than the requests, events, or an alpha that is no number >= 0.

    Source: Lecture on batch scheduling, "Rigid/Moldable jobs"; specification, section 4,
    "Moldable".

    Example:
        >>> jobs = Workload.from_arrays([0, 0], [1, 1], [1, 1], [1, 1], machine_processors=16)
        >>> slides = [(1, 3600, 3600), (2, 2400, 2400), (8, 1500, 1500), (16, 1200, 1200)]
        >>> simulate_moldable(jobs, [slides, slides]).chosen
        array([3, 3])
    """
    settings = settings or SchedulerSettings()
    if settings.predictor != PREDICTORS["requested"]:
        raise PolicyError(
            "moldable jobs are planned with the requests of their shapes, so that estimates must "
            f"be 'requested', got {settings.estimates!r}"
        )
    orders = settings.policy, settings.backfill_order
    refuse_as_choice(as_policy(order) for order in orders if order is not None)
    if settings.events:
        raise PolicyError(f"shapes are planned without events; got '{settings.events[0]}'")
    if not 0 <= alpha < np.inf:
        raise PolicyError(f"alpha must be a number >= 0, got {alpha!r}")
    refuse_own(as_backfill(settings.backfill), "the planning of shapes", "choose a compiled mode")
    if workload.machine is not None:
        raise WorkloadError(
            f"{workload.name}: jobs with shapes need a machine of counted processors, not of nodes"
        )
    dependencies_of(workload, settings, "a choice of shapes")
    given = [[Shape(*shape) for shape in options] for options in shapes]
    _refuse_shapes(workload, given)
    simulator = _MoldingSimulator(workload, given, alpha, settings)
    run_to_end(simulator)
    return Molded(simulator.schedule_of(workload), simulator.chosen, simulator.predicted_wait)


def _refuse_shapes(workload: Workload, shapes: Sequence[Sequence[Shape]]) -> None:
    if len(shapes) != len(workload):
        raise WorkloadError(
            f"{workload.name}: shapes must be given for each of {len(workload)} jobs, got "
            f"{len(shapes)}"
        )
    machine = workload.machine_processors
    longest = LARGEST_TIME // machine
    for job, options in enumerate(shapes):
        if not options:
            raise WorkloadError(f"{workload.name}: job {workload.job_id[job]} has no shape")
        for shape in options:
            fits = 1 <= shape.processors <= machine and 1 <= shape.requested_time <= longest
            if not (fits and 0 <= shape.run_time <= longest):
                raise WorkloadError(
                    f"{workload.name}: job {workload.job_id[job]} cannot have {shape}: processors "
                    f"must be 1 to {machine}, the request 1 to {longest} s, the run time 0 to "
                    f"{longest} s"
                )


class _MoldingSimulator(Simulator):
    """A simulator that stops at each submission to choose a shape."""

    def __init__(
        self,
        workload: Workload,
        shapes: Sequence[Sequence[Shape]],
        alpha: float,
        settings: SchedulerSettings,
    ) -> None:
        self.shapes, self.alpha = shapes, alpha
        self.chosen = np.zeros(len(workload), dtype=np.int64)
        self.predicted_wait = np.zeros(len(workload), dtype=np.int64)
        self.real_run_time = np.zeros(len(workload), dtype=np.int64)
        asked = Predictor("asked", ask=lambda submission: submission.requested_time)
        super().__init__(workload, replace(settings, estimates=asked))

    def _open(self) -> None:
        """Copy the sizes and times of the job table, which choices change."""
        super()._open()
        changed = ("processors", "run_time", "requested_time", "size_class")
        copied = {key: getattr(self._table, key).copy() for key in changed}
        self._table = self._table._replace(**copied)
        self._jobs = Struct(self._table)

    def schedule_of(self, workload: Workload) -> Schedule:
        """Return the schedule of the finished simulation, with each job in its chosen shape."""
        table = self._table
        jobs = replace(
            workload,
            processors=table.processors,
            run_time=self.real_run_time,
            requested_time=table.requested_time,
        )
        columns = (self.start_time, table.run_time, self.backfilled, self.thresholded)
        return Schedule(jobs, *columns, attempts=attempts_of(self))

    def _take_predictions(self) -> None:
        """Choose the shape of each job submitted now."""
        first = int(self.state.next_job[0])
        end = int(np.searchsorted(self.workload.submit_time, self.now, side="right"))
        for job in range(first, end):
            self._mold(job)
        requests = self._table.requested_time[first:end]
        entry_points.give_predictions(self._jobs.address, self._sim.address, requests)

    def _mold(self, job: int) -> None:
        """Choose the shape of a job and write it into the table."""
        processors, requests, run_times = np.array(self.shapes[job], dtype=np.int64).T.copy()
        wait = np.zeros(len(processors), dtype=np.int64)
        entry_points.plan_newcomer(
            self._jobs.address, self._sim.address, processors, requests, wait
        )
        which = choose_shape(processors, requests, wait, self.alpha)
        self.chosen[job], self.predicted_wait[job] = which, wait[which]
        self.real_run_time[job] = run_times[which]
        table, kills = self._table, self.settings.kill_at_limit
        table.processors[job], table.requested_time[job] = processors[which], requests[which]
        table.run_time[job] = min(run_times[which], requests[which]) if kills else run_times[which]
        table.feature[job, s.FEATURE_PROCESSORS] = processors[which]
        table.size_class[job] = size_classes(processors[which : which + 1])[0]
