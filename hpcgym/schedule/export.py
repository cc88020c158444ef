"""A schedule in the formats of other tools: Batsim's table of jobs, job sets of evalys, SWF.

Source: Batsim's documentation, "Jobs", for its columns; evalys 4.0, class JobSet.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from hpcgym.base.errors import HpcgymError, OutputError, unknown_name
from hpcgym.base.output import writing
from hpcgym.base.packages import needing
from hpcgym.base.text_table import csv_style
from hpcgym.core import node_metrics
from hpcgym.schedule.attempts import ATTEMPT_COLUMNS
from hpcgym.schedule.lost import useful_part, without_run

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.trace.swf import SwfLog

CSV_COLUMNS = (
    *("job_id", "submit_time", "start_time", "run_time", "requested_time", "processors"),
    "backfilled",
)
"""Columns of the CSV file and of the Parquet file, unless all are asked for."""

PLACEMENT_COLUMNS = ("partition", "n_nodes", "n_groups", "nodes")
"""Their further columns on a machine of nodes."""

INSTANTS = ("submit_time", "start_time", "end_time", "eligible", "eligible_time")
"""Columns that files and frames have on the log's clock."""

Columns = Literal["default", "all"]  # which columns a file gets

SUFFIXES = (".batsim.csv", ".csv", ".parquet", ".swf", ".swf.gz")
"""Endings of a file name that `Schedule.write` knows, the longest first."""

TABLES = (".csv", ".parquet")  # those of files whose columns can be chosen


def check_suffix(path: str | Path, columns: Columns = "default") -> str:
    """Return which of `SUFFIXES` a file name ends in.

    Raises:
        OutputError: The name ends otherwise, or the file has fixed columns, yet all are asked for;
            or pyarrow is needed and not installed.
        HpcgymError: `columns` is something else.

    Example:
        >>> check_suffix("run.swf.gz"), check_suffix("run.batsim.csv")
        ('.swf.gz', '.batsim.csv')
    """
    if columns not in get_args(Columns):
        raise HpcgymError(unknown_name("columns", columns, get_args(Columns)))
    suffix = next((suffix for suffix in SUFFIXES if str(path).endswith(suffix)), None)
    if suffix is None:
        raise OutputError(
            f"{path}: the name must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        )
    if columns == "all" and suffix not in TABLES:
        raise OutputError(f"{path}: columns are chosen in {' and '.join(TABLES)} files only")
    if suffix == ".parquet":
        check_pyarrow(path)
    return suffix


def node_columns(schedule: Any) -> dict[str, Any]:
    """Return the columns `PLACEMENT_COLUMNS`; none where processors are counted."""
    jobs, placement = schedule.workload, schedule.placement
    if placement is None or jobs.machine is None:
        return {}
    columns = (
        np.array(jobs.machine.partition_names)[jobs.partition],
        node_metrics.nodes_per_job(placement),
        node_metrics.groups_per_job(jobs.machine, placement),
        node_metrics.node_ranges(placement),
    )
    return dict(zip(PLACEMENT_COLUMNS, columns, strict=True))


def table_of(schedule: Any, columns: Columns = "default") -> pd.DataFrame:
    """Return the columns of the CSV file, with -1 = not yet."""
    frame = schedule.to_frame()
    eligible = () if schedule.eligible_time is None else ("eligible_time",)
    if eligible:
        frame["eligible_time"] = frame["eligible_time"].where(schedule.start_time >= 0, -1)
    if columns == "all":
        return frame
    further = () if schedule.placement is None else PLACEMENT_COLUMNS
    attempts = () if schedule.attempts is None else ATTEMPT_COLUMNS
    return frame[[*CSV_COLUMNS, *further, *attempts, *eligible]]


def write_csv(path: str | Path, frame: pd.DataFrame, *, force: bool) -> None:
    """Write a frame, truths as 0 and 1."""
    truths = frame.select_dtypes("bool").astype(np.int64)
    with writing(path, force=force) as file:
        frame.assign(**truths).to_csv(file, **csv_style(frame))


def write_parquet(path: str | Path, frame: pd.DataFrame, *, force: bool) -> None:
    """Write a frame with pyarrow.

    Raises:
        OutputError: pyarrow is not installed, the file exists and `force` is False, or it cannot be
            written.
    """
    check_pyarrow(path)
    with writing(path, force=force) as file:
        frame.to_parquet(file, engine="pyarrow", index=False)


def check_pyarrow(path: str | Path) -> None:
    """Raise an OutputError where pyarrow is not installed."""
    what, otherwise = f"{path}: writing Parquet", "name a .csv file"
    with needing(what, "pyarrow", error=OutputError, instead=otherwise):
        pass


def batsim_frame(schedule: Any) -> pd.DataFrame:
    """Return Batsim's table of jobs (`jobs.csv`), with times in the log's own base, s.

    A job that is cut at its request has not succeeded. One of 0 s holds no processor, and has no
    stretch. Its profile is its run time; no energy is consumed that we know of (-1).
    Jobs without a useful run are left out.

    Raises:
        HpcgymError: The schedule is unfinished, or its jobs took turns on processors.

    Source: Batsim's documentation, "Jobs".
    """
    import pandas as pd

    schedule.refuse_unfinished("a table of Batsim")
    schedule = useful_part(schedule)
    jobs, offset = schedule.workload, schedule.workload.time_offset
    is_cut = schedule.run_time < jobs.run_time
    submit_time = schedule.jobs.submit_time
    turnaround_time = schedule.end_time - submit_time
    with np.errstate(divide="ignore", invalid="ignore"):
        stretch = np.where(schedule.run_time > 0, turnaround_time / schedule.run_time, np.nan)
    return pd.DataFrame(
        {
            "job_id": jobs.job_id,
            "workload_name": jobs.name,
            "profile": schedule.run_time.astype(str),
            "submission_time": submit_time + offset,
            "requested_number_of_resources": jobs.processors,
            "requested_time": jobs.requested_time,
            "success": np.where(is_cut, 0, 1),
            "final_state": np.where(is_cut, "COMPLETED_WALLTIME_REACHED", "COMPLETED_SUCCESSFULLY"),
            "starting_time": schedule.start_time + offset,
            "execution_time": schedule.run_time,
            "finish_time": schedule.end_time + offset,
            "waiting_time": schedule.wait_time,
            "turnaround_time": turnaround_time,
            "stretch": stretch,
            "allocated_resources": schedule.allocation().texts(),
            "consumed_energy": -1,
        }
    )


def job_set(schedule: Any) -> Any:
    """Return an `evalys.jobset.JobSet`, whose resources are all processors of the machine.

    Raises:
        HpcgymError: evalys is not installed; or as `batsim_frame`.
    """
    with needing("a job set", "evalys", "procset"):
        from evalys.jobset import JobSet
        from procset import ProcSet
    frame = batsim_frame(schedule)
    frame["allocated_resources"] = [ProcSet.from_str(text) for text in frame["allocated_resources"]]
    return JobSet(frame, resource_bounds=(0, schedule.workload.machine_processors - 1))


def as_log(schedule: Any) -> SwfLog:
    """Return a schedule as a log, as `Schedule.to_swf` explains."""
    from hpcgym.trace.swf import SwfLog, log_of

    jobs = schedule.workload
    changed = {
        "job_id": jobs.job_id,
        "submit_time": schedule.jobs.submit_time + jobs.time_offset,
        "wait_time": schedule.wait_time,
        "run_time": np.where(without_run(schedule), -1, schedule.run_time),
    }
    if jobs.source is not None and jobs.source_row is not None:
        records = jobs.source.records.iloc[jobs.source_row].assign(**changed)
        return SwfLog(jobs.name, None, jobs.source.header, records)
    log = log_of(jobs, ("; Note: a schedule simulated by hpcgym",))
    records = log.records.assign(**changed, allocated_processors=jobs.processors)
    return replace(log, records=records)
