"""A whole workload scheduled: when each job started and how, as metrics, frames and files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import HpcgymError, unknown_name
from hpcgym.base.registry import PICTURES
from hpcgym.core import metrics, node_metrics
from hpcgym.core.events import Event, measured
from hpcgym.core.nodes import Placement
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.schedule import busy, export, held
from hpcgym.schedule.allocation import Allocation, allocate_on_nodes, allocate_processors
from hpcgym.schedule.attempts import Attempts, frame_of
from hpcgym.schedule.lost import counts, how_started, useful_part, without_run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Group = Literal["class", "user", "partition", "resource"]  # what `Schedule.metrics` can be asked by


@dataclass(frozen=True, eq=False)
class Schedule:
    """The start of each job of a workload, and how it was started.

    Arrays have shape (n_jobs,), in the workload's order, and its clock. A schedule cut short has
    jobs that have not started: their start, end and wait are -1.

    Attributes:
        workload: The jobs.
        start_time: When each started, s, -1 = not yet.
        run_time: Its run time as executed, s: cut at the request where jobs are killed at it.
        backfilled: Whether it started ahead of a job before it in queue order that kept waiting;
            the others started in order.
        thresholded: Whether it had waited beyond the threshold when it started.
        settings: The scheduler that made this, or None where an agent's decisions did.
        suspended_time: How long gang scheduling suspended each after its start, s; None = never.
        placement: On which nodes each job ran; None where that is not simulated.
        attempts: Starts that were in vain; None where nothing takes a job off the machine.
        outage: What the machine lacked, as `hpcgym.core.kernels.types.Jobs.outage`; None = nothing.
        eligible_time: Since when each could be scheduled, and waits, s; None = its submission.
        lost: Which jobs an outage took off for good; None = none can. Metrics leave them out.
        cancelled: Which jobs wait for what can no longer be, likewise.
        events: What happened beside them.
    """

    workload: Workload
    start_time: IntArray
    run_time: IntArray
    backfilled: BoolArray
    thresholded: BoolArray
    settings: SchedulerSettings | None = None
    suspended_time: IntArray | None = None
    placement: Placement | None = None
    attempts: Attempts | None = None
    outage: IntArray | None = None
    eligible_time: IntArray | None = None
    lost: BoolArray | None = None
    cancelled: BoolArray | None = None
    events: tuple[Event, ...] = ()

    def __len__(self) -> int:
        return len(self.workload)

    def __repr__(self) -> str:
        policy = "" if self.settings is None else f", policy={self.settings.policy!r}"
        return f"Schedule({self.workload.name!r}, {len(self)} jobs{policy})"

    @property
    def complete(self) -> bool:
        """Tell whether every job has started, or is lost or cancelled."""
        return not self._waits.any()

    @property
    def _waits(self) -> BoolArray:
        """Tell which jobs have not started, and are neither lost nor cancelled."""
        waits: BoolArray = (self.start_time < 0) & ~without_run(self)
        return waits

    @property
    def wait_time(self) -> IntArray:
        """Wait of each job for its start, start - submit, or since it was eligible, s."""
        return np.where(self.start_time >= 0, self.start_time - self.jobs.submit_time, -1)

    @property
    def jobs(self) -> Workload:
        """Return the jobs, submitted when they could be scheduled, as metrics count."""
        if self.eligible_time is None:
            return self.workload
        return replace(self.workload, submit_time=self.eligible_time)

    @property
    def end_time(self) -> IntArray:
        """End of each job, start + run time as executed + time suspended, s."""
        return np.where(self.start_time >= 0, self._unbroken_start + self.run_time, -1)

    @property
    def _unbroken_start(self) -> IntArray:
        """When each job would have started, had it run without a break up to its end, s."""
        if self.suspended_time is None:
            return self.start_time
        return np.where(self.start_time >= 0, self.start_time + self.suspended_time, -1)

    limited_by = cached_property(held.limited_by)
    _repr_html_ = busy.shown_in_notebooks

    def bsld(self) -> NDArray[np.float64]:
        """Return the bounded slowdown of each job, shape (n_jobs,); NaN for one not started.

        Source: Carastan-Santos et al. 2019, equation 2.
        """
        return self.per_job()["bsld"]

    def pp_bsld(self) -> NDArray[np.float64]:
        """Return the same per processor, shape (n_jobs,); NaN for a job that has not started.

        Source: Carastan-Santos et al. 2019, equation 3.
        """
        return self.per_job()["pp_bsld"]

    def per_job(self) -> dict[str, NDArray[np.float64]]:
        """Return every metric of each job, see `metrics.per_job`; NaN for one not started.

        The wait here is all time that a job does not run, also while it is suspended.
        """
        values = metrics.per_job(self.jobs, self._unbroken_start, self.run_time)
        started = self.start_time >= 0
        return {key: np.where(started, column, np.nan) for key, column in values.items()}

    @overload
    def metrics(self, by: None = None) -> dict[str, float]: ...

    @overload
    def metrics(self, by: Group) -> pd.DataFrame: ...

    def metrics(self, by: Group | None = None) -> dict[str, float] | pd.DataFrame:
        """Summarise the schedule, as a whole, by group of jobs or by resource.

        Args:
            by: "class" for the four classes of requested time (up to 100 s, 1000 s, 10,000 s,
                longer), or "user"; on a machine of nodes also "partition" or "resource".

        Returns:
            The record of `hpcgym.core.metrics.summary`; or a frame of one row per class, user or
            partition, with the columns of `hpcgym.core.metrics.summary_by`; or a frame of one row
            per resource, with the columns of `hpcgym.core.node_metrics.by_resource`.

        Raises:
            HpcgymError: Another group, groups of an unfinished schedule, or partitions or resources
                where processors are counted.

        Source: Specification, section 1, "Metrics", section 7 for the classes, and section 13 for
            partitions and resources.
        """
        if by is None:
            summary = metrics.summary(self.jobs, *self._columns, outage=self.outage)
            if self.attempts is not None:
                summary |= self.attempts.summary(self.jobs, int(summary["makespan"]))
            return summary | {"complete": self.complete} | counts(self) | measured(self)
        if by not in get_args(Group):
            raise HpcgymError(unknown_name("group", by, get_args(Group)))
        import pandas as pd

        if by == "resource":
            rows: dict[Any, dict[str, float]] = node_metrics.by_resource(*self.on_nodes())
        else:
            labels, names = self._labels(by)
            self.refuse_unfinished("metrics by group")
            made: Schedule = useful_part(self)
            groups = metrics.summary_by(made._labels(by)[0], made.jobs, *made._columns)
            for label, record in groups.items():
                if self.attempts is not None:
                    kills = self.attempts.kills[labels == label]
                    record["share_killed"] = float((kills > 0).mean())
                    record["kills_per_job"] = float(kills.mean())
                record |= counts(self, labels == label)
            rows = {names.get(label, label): record for label, record in groups.items()}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis(by)

    @property
    def _columns(self) -> tuple[IntArray, IntArray, BoolArray, BoolArray]:
        """Return starts, run times and flags as `hpcgym.core.metrics` takes them."""
        return self._unbroken_start, self.run_time, self.backfilled, self.thresholded

    def _labels(self, by: Group) -> tuple[IntArray, dict[int, str]]:
        """Return the group of each job as a number, and the names of groups that have one."""
        jobs = self.workload
        if by == "class":
            return metrics.requested_time_class(jobs.requested_time), {}
        if by == "user":
            return jobs.user, {}
        if jobs.machine is None or jobs.partition is None:
            raise self._needs_nodes("partitions")
        return jobs.partition, dict(enumerate(jobs.machine.partition_names))

    def placement_metrics(self) -> dict[str, float]:
        """Return the mean nodes and groups of a job, and the share of jobs in one group.

        Raises:
            HpcgymError: There is no placement, or the schedule is unfinished.

        Source: Specification, section 13, "Metrics".
        """
        jobs, _, _, placement, _ = self.on_nodes()
        assert jobs.machine is not None
        return node_metrics.placement_summary(jobs.machine, placement)

    def fragmentation(self) -> float:
        """Return the share of free cpu-seconds that no waiting job could use, while any waited.

        NaN where nothing was free then. A schedule of 100,000 jobs on 1,000 nodes takes seconds to
        a minute, the longer its queue the longer.

        Raises:
            HpcgymError: There is no placement, or the schedule is unfinished.

        Source: Specification, section 13, "Metrics".
        """
        return node_metrics.fragmentation(self.on_nodes()[0], self._usage())

    def usage(self) -> pd.DataFrame:
        """Return what is held, and who waits, from each instant of a change to the next one.

        The columns are those of `hpcgym.core.node_metrics.usage`, `time` on the log's clock. It
        costs as much as `fragmentation`.

        Raises:
            HpcgymError: There is no placement, or the schedule is unfinished.
        """
        import pandas as pd

        usage = self._usage()
        return pd.DataFrame(usage | {"time": self.in_log(usage["time"])})

    def _usage(self) -> dict[str, IntArray]:
        return node_metrics.usage(*self.on_nodes())

    def on_nodes(self) -> tuple[Workload, IntArray, IntArray, Placement, IntArray | None]:
        """Return what `node_metrics` computes from: jobs, starts, run times, nodes, `outage`.

        Raises:
            HpcgymError: There is no placement, or the schedule is unfinished.
        """
        if self.placement is None:
            raise self._needs_nodes("resources and placements")
        self.refuse_unfinished("a metric of nodes")
        made: Schedule = useful_part(self)
        assert made.placement is not None
        return made.jobs, made.start_time, made.run_time, made.placement, made.outage

    def _needs_nodes(self, what: str) -> HpcgymError:
        """Return the error about what only a placement on nodes has."""
        why = "to know on which nodes jobs ran; recorded starts name none"
        if self.workload.machine is None:
            why = "a machine of nodes (machine=, --machine); this schedule counts processors"
        return HpcgymError(f"{self.workload.name}: {what} need {why}")

    def series(
        self,
        metric: str = "bsld",
        *,
        time: Literal["submit_time", "start_time", "end_time"] = "end_time",
    ) -> pd.DataFrame:
        """Average a metric week by week, see `metrics.weekly`; `time` puts a job into a week.

        Raises:
            HpcgymError: A metric that is not of `JOB_METRICS`, or an unfinished schedule.

        Source: Carastan-Santos et al. 2019, figure 1.
        """
        self.refuse_unfinished("a weekly series")
        made: Schedule = useful_part(self)
        if metric not in metrics.JOB_METRICS:
            raise HpcgymError(unknown_name("metric", metric, metrics.JOB_METRICS))
        instants = {
            "submit_time": made.jobs.submit_time,
            "start_time": made.start_time,
            "end_time": made.end_time,
        }
        if time not in instants:
            raise HpcgymError(unknown_name("time", time, instants))
        import pandas as pd

        return pd.DataFrame(metrics.weekly(made.per_job()[metric], instants[time]))

    def allocation(self) -> Allocation:
        """Return the processors that each job holds, chosen where the simulator counts them.

        On a machine of nodes these are cpus, which count on from node to node.

        Raises:
            HpcgymError: Jobs took turns on the processors, as gang scheduling has them do.
        """
        if self.suspended_time is not None:
            raise HpcgymError(
                f"{self.workload.name}: jobs took turns on processors, so none has them to itself "
                "from its start to its end"
            )
        jobs, times = self.workload, (self.start_time, self.end_time)
        if self.placement is not None:
            return allocate_on_nodes(jobs, *times, self.placement)
        return allocate_processors(*times, jobs.processors, jobs.machine_processors)

    def allocation_of_all(self) -> Allocation:
        """Return the same of each job's last attempt, then of each attempt in vain, in turn."""
        vain, jobs = self.attempts, self.workload
        if vain is None:
            return self.allocation()
        return allocate_processors(
            np.concatenate([vain.last_taken, vain.taken]),
            np.concatenate([self.end_time, vain.end]),
            np.concatenate([jobs.processors, jobs.processors[vain.job]]),
            jobs.machine_processors,
        )

    def plot(self, kind: str = "gantt", path: str | Path | None = None, **options: Any) -> Figure:
        """Draw this schedule, and others with it, as `evaluation.pictures.plot_schedules` does.

        Args:
            kind: "gantt", "usage", "distribution", "hours" or "sizes".
            path: A file ending in .png, .pdf or .svg; without it the figure is only returned.
            options: `against`, other schedules by label; and those of `plot_schedules`.

        Raises:
            HpcgymError: What cannot be drawn, or matplotlib is not installed.
            OutputError: The file exists and `force` is False, or it cannot be written.

        Example:
            >>> import hpcgym
            >>> jobs = hpcgym.load_workload("tiny")
            >>> saf = hpcgym.simulate(jobs, "SAF")
            >>> figure = hpcgym.simulate(jobs).plot("distribution", against={"SAF": saf})
        """
        figure: Figure = PICTURES["schedule"]()(self, kind, path, **options)
        return figure

    def to_frame(self) -> pd.DataFrame:
        """Return one row per job, with every metric and how the job was started.

        Times are on the log's clock; arrays count from `workload.time_offset` on it. `run_time` is
        the executed one. `started` is "in_order", "backfilled", "lost", "cancelled" or "" (not
        yet). On a machine of nodes the columns `PLACEMENT_COLUMNS` follow, with ids of nodes as
        "0-3,7", then what jobs ask of them. `eligible_time` is there where jobs waited for others
        or were held.
        """
        import pandas as pd

        jobs = self.workload
        columns = {
            "job_id": jobs.job_id,
            "submit_time": jobs.submit_time,
            "start_time": self.start_time,
            "end_time": self.end_time,
            "run_time": self.run_time,
            **{key: getattr(jobs, key) for key in ("requested_time", "processors", "user")},
            **self.per_job(),
            "wait_time": self.wait_time,
            "backfilled": self.backfilled,
            "thresholded": self.thresholded,
            "started": how_started(self),
            **export.node_columns(self),
            **({} if self.attempts is None else self.attempts.columns(self.start_time >= 0)),
        }
        further = {"eligible_time": self.eligible_time, "limited_by": self.limited_by}
        columns |= {key: values for key, values in further.items() if values is not None}
        columns |= jobs.stated_columns() | columns
        instants = {key: self.in_log(columns[key]) for key in export.INSTANTS if key in columns}
        return pd.DataFrame(columns | instants)

    def in_log(self, instants: IntArray) -> IntArray:
        """Return instants of the workload's clock on the log's, s; -1 stays."""
        return np.where(instants >= 0, instants + self.workload.time_offset, -1)

    def attempts_frame(self) -> pd.DataFrame:
        """Return one row per attempt of a job, by job and time, on the log's clock.

        The columns are `job_id`, `attempt` from 1 on, `taken_time`, when it took processors,
        `start_time`, since when it ran usefully, `end_time`, `processors` and `reason`.

        Raises:
            HpcgymError: Nothing takes a job off the machine, so that each has one attempt.
        """
        vain = self.attempts
        if vain is None:
            raise HpcgymError(
                f"{self.workload.name}: each job has one attempt; with trials, such as "
                "backfill 'easy+trial', and with outages it may have more"
            )
        return frame_of(self, vain)

    def write(
        self, path: str | Path, *, columns: export.Columns = "default", force: bool = False
    ) -> None:
        """Write a file in the format that its name's ending says.

        | ending | written as by |
        |---|---|
        | `.csv` | `to_csv` |
        | `.parquet` | `to_parquet` |
        | `.batsim.csv` | `to_batsim` |
        | `.swf`, `.swf.gz` | `to_swf` |

        Raises:
            OutputError: The name ends otherwise, the file exists and `force` is False, it cannot be
                written, or has fixed columns where all are asked for.
        """
        suffix = export.check_suffix(path, columns)
        if suffix == ".csv":
            self.to_csv(path, columns=columns, force=force)
        elif suffix == ".parquet":
            self.to_parquet(path, columns=columns, force=force)
        elif suffix == ".batsim.csv":
            self.to_batsim(path, force=force)
        else:
            self.to_swf(path, force=force)

    def to_csv(
        self, path: str | Path, *, columns: export.Columns = "default", force: bool = False
    ) -> None:
        """Write one row per job, by submit time, then position, with the columns `CSV_COLUMNS`.

        On a machine of nodes the columns `PLACEMENT_COLUMNS` follow. `columns="all"` writes those
        of `to_frame`. Times are on the log's clock, the run time is the executed one, and
        `backfilled` and `thresholded` are 0 or 1.

        Raises:
            OutputError: The file exists and `force` is False, or it cannot be written.
        """
        export.write_csv(path, export.table_of(self, columns), force=force)

    def to_parquet(
        self, path: str | Path, *, columns: export.Columns = "default", force: bool = False
    ) -> None:
        """Write the table of `to_csv` as a Parquet file, where truths stay truths.

        Raises:
            OutputError: pyarrow is not installed, the file exists and `force` is False, or it
                cannot be written.
        """
        export.write_parquet(path, export.table_of(self, columns), force=force)

    def to_batsim(self, path: str | Path, *, force: bool = False) -> None:
        """Write Batsim's table of jobs as CSV, see `schedule.export.batsim_frame`; evalys reads it.

        Raises:
            HpcgymError: The schedule is unfinished, or its jobs took turns on processors.
            OutputError: The file exists and `force` is False, or it cannot be written.
        """
        export.write_csv(path, export.batsim_frame(self), force=force)

    def to_evalys(self) -> Any:
        """Return the schedule as an `evalys.jobset.JobSet`, which draws a Gantt chart of it.

        Raises:
            HpcgymError: evalys is not installed, the schedule is unfinished, or its jobs took turns
                on processors.
        """
        return export.job_set(self)

    def to_swf(self, path: str | Path, *, force: bool = False) -> None:
        """Write the simulated jobs as a log in the Standard Workload Format, gzipped as .gz.

        Field 2 is the submit time in the log's own base, field 3 the simulated wait, field 4 the
        executed run time, both -1 of a job without a useful run. A job that waited for others, or
        was held, was submitted when it was eligible. Header and other fields are those of the log
        the workload came from. A workload that came from none gets a header of its own, and -1 for
        what is unknown.

        Raises:
            OutputError: The file exists and `force` is False, or it cannot be written.

        Source: The Standard Workload Format, version 2.2.
        """
        from hpcgym.trace.swf import write_swf

        write_swf(path, export.as_log(self), force=force)

    def refuse_unfinished(self, what: str) -> None:
        """Raise an HpcgymError unless every job has started, or is lost or cancelled."""
        if not self.complete:
            waiting = int(self._waits.sum())
            raise HpcgymError(
                f"{self.workload.name}: {what} needs a finished schedule; "
                f"{waiting} of {len(self)} jobs have not started"
            )
