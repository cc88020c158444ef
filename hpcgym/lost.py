"""Lost jobs: those that are done without a useful run, which metrics leave out.

An event that takes jobs off the machine, such as an outage, loses those that must not be started
again. A schedule tells which they are; all else is said of the others.

Source: Specification, section 15, "Lost jobs".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.events import may_lose
from hpcgym.errors import EvaluationError, HpcgymError

if TYPE_CHECKING:
    from hpcgym.core.simulator import Simulator

OF_JOBS = (
    *("start_time", "run_time", "backfilled", "thresholded"),
    *("suspended_time", "eligible_time"),
)
"""Attributes of a `Schedule` that have an element for each job, or are None."""


def lost_of(simulator: Simulator) -> NDArray[np.bool_] | None:
    """Return which jobs a simulation has lost, shape (n_jobs,); None where none can be."""
    if not may_lose(simulator.settings.events, simulator.workload):
        return None
    return simulator.lost


def refuse_lost(schedule: Any) -> None:
    """Raise an EvaluationError where jobs can be lost: means over other jobs are not compared."""
    if schedule.lost is not None:
        raise EvaluationError(
            f"{schedule.workload.name}: outages lose other jobs under each agent (column requeue), "
            "so that agents cannot be compared by the rest; leave the column out"
        )


def without_lost(schedule: Any) -> Any:
    """Return the schedule of the jobs that are not lost, without attempts in vain.

    Raises:
        HpcgymError: All are.
    """
    if schedule.lost is None or not schedule.lost.any():
        return schedule
    kept = ~schedule.lost
    if not kept.any():
        raise HpcgymError(f"{schedule.workload.name}: all {len(kept)} jobs were lost")
    stated = {name: getattr(schedule, name) for name in OF_JOBS}
    columns: dict[str, Any] = {
        name: None if column is None else column[kept] for name, column in stated.items()
    }
    workload = schedule.workload.select(kept)
    return replace(schedule, workload=workload, lost=None, attempts=None, **columns)
