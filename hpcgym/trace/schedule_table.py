"""A schedule that `Schedule.to_csv` or `to_parquet` wrote, read back as the table of its jobs.

Its starts are then what was recorded, and its run times those that were executed.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.base.errors import TraceError

if TYPE_CHECKING:
    import pandas as pd

NAMES = {"job_id", "submit_time", "start_time", "run_time", "processors", "backfilled"}
"""Columns that make a table a schedule."""

_BATSIM = {"job_id", "submission_time", "requested_number_of_resources"}
_READ = "a schedule of hpcgym: starts are taken as recorded, run times as executed"
_MORE = "users, and for what jobs waited, are not in it: simulate --columns all writes them"


def jobs_of(path: Path, frame: pd.DataFrame, columns: Collection[str]) -> tuple[pd.DataFrame, str]:
    """Return the jobs of a schedule and what to say of it; any other table as it is, and "".

    Args:
        path: The file, for messages.
        frame: The table.
        columns: Columns of a table of jobs; a schedule's further ones are results.

    Raises:
        TraceError: It does not say what jobs asked of nodes, or is a table for Batsim.
    """
    import pandas as pd

    given = set(frame)
    if given >= _BATSIM:
        raise TraceError(
            f"{path}: a table of Batsim, which evalys reads; hpcgym reads schedules that it wrote "
            "as .csv, .parquet or .swf"
        )
    if not given >= NAMES:
        return frame, ""
    if "n_nodes" in given and "chunks" not in given:
        raise TraceError(
            f"{path}: a schedule on nodes that does not say what jobs asked of them; write it by "
            "simulate --columns all"
        )
    numbers: dict[str, Any] = {
        key: pd.to_numeric(frame[key], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        for key in ("processors", "chunks", "start_time")
        if key in given
    }
    jobs = frame[[key for key in frame if key in columns and key != "wait_time"]].copy()
    if "chunks" in given:
        jobs["cpus"] = _cpus(path, numbers["processors"], numbers["chunks"])
    else:
        jobs["chunks"] = frame["processors"]
    has_run = ~(numbers["start_time"] < 0)
    jobs["run_time"] = jobs["run_time"].where(has_run, -1)
    return jobs, _READ if "end_time" in given else f"{_READ}; {_MORE}"


def _cpus(path: Path, processors: Any, chunks: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        cpus = processors / chunks
    wrong = ~np.isnan(processors) & (cpus != np.floor(cpus))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TraceError(
            f"{path}: {processors[row]:g} processors in {chunks[row]:g} chunks; allowed: as many "
            "in each"
        )
    return np.where(np.isnan(cpus), 1, cpus).astype(np.int64)
