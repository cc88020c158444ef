"""Jobs that are done without a useful run, which metrics leave out: lost ones and cancelled ones.

An event that takes jobs off the machine, such as an outage, *loses* those that must not be started
again. A job is *cancelled* where what it waits for can no longer be. A schedule tells which they
are; all else is said of the others.

Source: Specification, section 15, "Lost jobs" and "Conditions".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import EvaluationError, HpcgymError
from hpcgym.core.events import may_lose

if TYPE_CHECKING:
    from hpcgym.core.simulator import Simulator

BoolArray = NDArray[np.bool_]

OF_JOBS = (
    *("start_time", "run_time", "backfilled", "thresholded"),
    *("suspended_time", "eligible_time"),
)
"""Attributes of a `Schedule` that have an element for each job, or are None."""

KINDS = ("lost", "cancelled")
"""Attributes of a `Schedule` that tell which jobs have no useful run, and why; None = none can."""


def kinds_of(simulator: Simulator) -> dict[str, Any]:
    """Return which jobs a simulation lost and cancelled, as a `Schedule` has them."""
    jobs, settings = simulator.workload, simulator.settings
    loses = may_lose(settings.events, jobs)
    rule, cancelled = simulator.episode.dependencies, simulator.cancelled
    return {
        "lost": simulator.without_run & ~cancelled if loses else None,
        "cancelled": cancelled if rule is not None and rule.cancels(jobs) else None,
    }


def without_run(schedule: Any) -> BoolArray:
    """Tell which jobs of a schedule are done without a useful run, shape (n_jobs,)."""
    lost = np.zeros(len(schedule), dtype=np.bool_)
    for kind in KINDS:
        if getattr(schedule, kind) is not None:
            lost |= getattr(schedule, kind)
    return lost


def counts(schedule: Any, jobs: BoolArray | slice = slice(None)) -> dict[str, float]:
    """Count the jobs, of some, that are lost and cancelled, as far as any can be."""
    given = {f"n_{kind}": getattr(schedule, kind) for kind in KINDS}
    return {key: int(flags[jobs].sum()) for key, flags in given.items() if flags is not None}


def how_started(schedule: Any) -> NDArray[np.str_]:
    """Say how each job started, or why it did not; "" = it has not yet."""
    how = np.where(schedule.backfilled, "backfilled", "in_order")
    how[schedule.start_time < 0] = ""
    for kind in KINDS:
        if getattr(schedule, kind) is not None:
            how[getattr(schedule, kind)] = kind
    return how


def refuse_lost(schedule: Any) -> None:
    """Raise an EvaluationError where jobs can be lost: means over other jobs are not compared."""
    if schedule.lost is not None:
        raise EvaluationError(
            f"{schedule.workload.name}: outages lose other jobs under each agent (column requeue), "
            "so that agents cannot be compared by the rest; leave the column out"
        )


def useful_part(schedule: Any) -> Any:
    """Return the schedule of the jobs that run usefully, without attempts in vain.

    Raises:
        HpcgymError: No job does.
    """
    kept = ~without_run(schedule)
    if kept.all():
        return schedule
    if not kept.any():
        raise HpcgymError(f"{schedule.workload.name}: no job has a useful run")
    stated = {name: getattr(schedule, name) for name in OF_JOBS}
    columns: dict[str, Any] = {
        name: None if column is None else column[kept] for name, column in stated.items()
    }
    if schedule.placement is not None:  # which has no nodes of the others
        n_nodes = np.diff(schedule.placement.first)[kept]
        first = np.concatenate([[0], np.cumsum(n_nodes)])
        columns["placement"] = schedule.placement._replace(first=first)
    none: dict[str, Any] = dict.fromkeys(KINDS)
    workload = schedule.workload.select(kept)
    return replace(schedule, workload=workload, attempts=None, **columns, **none)
