"""Whether jobs of a workload wait out of sight, what then cannot be, and how their rows begin.

The kernels, and what rows are, are in `hpcgym.core.parts.dependencies`.

Source: Specification, section 15, "Dependencies and holds".
"""

from __future__ import annotations

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.kernels.types import Jobs
from hpcgym.core.parts.dependencies import Dependencies, earliest_of, predecessors_of
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.state import State
from hpcgym.core.workload import Workload
from hpcgym.errors import PolicyError

EXCHANGED = (
    *("submit_time", "run_time", "estimate", "requested_time", "processors", "size_class"),
    *("feature", "user", "keys"),
)
"""Columns of `Jobs` by which jobs differ, but for those that only environments have."""

EXCHANGED_ON_NODES = ("chunks", "shape", "request", "placed_first")


def dependencies_of(
    workload: Workload, settings: SchedulerSettings, unable: str
) -> Dependencies | None:
    """Return what makes jobs of a workload wait out of sight; None if nothing does.

    `unable` names what cannot have that; "" = nothing.

    Raises:
        PolicyError: Dependencies are asked for, and the workload states none. Or something cannot
            be where jobs wait.
    """
    kind = settings.dependencies
    if kind != "ignore" and workload.after is None:
        raise PolicyError(
            f"dependencies {kind!r}: {workload.name} does not say which jobs are after others; "
            "give a column after, or read fields 17 and 18 of a log by "
            "load_workload(..., dependencies=True)"
        )
    held = workload.eligible is not None and (workload.eligible > workload.submit_time).any()
    if not held and kind == "ignore":
        return None
    if unable:
        why = "are held (column eligible)" if kind == "ignore" else "wait for others (column after)"
        how = "leave the column out" if kind == "ignore" else "choose dependencies 'ignore'"
        raise PolicyError(
            f"jobs of {workload.name} {why}, and {unable} cannot be beside that yet; {how}"
        )
    return Dependencies(kind, settings.kill_at_limit)


def begin(rule: Dependencies, workload: Workload, kept: Jobs, table: Jobs, state: State) -> None:
    """Give jobs their numbers as they come; those come last that wait for another job.

    Writes the state, after its reset, and its own `table` of the jobs in `kept`.
    """
    n = len(workload)
    waits = predecessors_of(workload, rule.kind) >= 0
    earliest = earliest_of(workload, rule.kind)
    row = np.lexsort((earliest, waits))
    n_coming = n - int(waits.sum())
    state.n_coming[0] = n_coming
    state.coming[0, :n_coming] = row[:n_coming]  # in order, so a heap
    state.comes_at[0, :n] = np.where(waits, s.NEVER, earliest)
    state.row_of[0, :n] = row
    state.job_of[0, row] = np.arange(n)
    lay_out(table, state, kept, estimates=True)


def own_columns(table: Jobs) -> Jobs:
    """Return jobs of which one simulation may exchange rows."""
    own = {name: getattr(table, name).copy() for name in exchanged(table)}
    return table._replace(**own, ended_run_time=own["run_time"])


def exchanged(table: Jobs) -> tuple[str, ...]:
    """Return the columns that a simulation exchanges."""
    names = EXCHANGED + (EXCHANGED_ON_NODES if table.nodes_pass else ())
    return (*names, "requeue") if len(table.requeue) else names


def lay_out(table: Jobs, state: State, kept: Jobs, *, estimates: bool) -> None:
    """Write a simulation's own table of the jobs in `kept`, as its state numbers them.

    `estimates` tells whether to write estimates, too, which a simulation may have changed.
    """
    row = state.row_of[0, : len(table.run_time)]
    for name in exchanged(table):
        if estimates or name not in ("estimate", "feature"):
            getattr(table, name)[:] = getattr(kept, name)[row]
    table.submit_time[:] = state.comes_at[0, row]
    table.feature[:, s.FEATURE_SUBMIT] = table.submit_time
