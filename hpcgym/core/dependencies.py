"""Whether jobs of a workload wait out of sight, what then cannot be, and who is cancelled.

Where they wait, each simulation has a table of its own, whose rows its kernels exchange.

The kernels, and what rows are, are in `hpcgym.core.parts.dependencies`.

Source: Specification, section 15, "Dependencies and holds".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core.kernels.types import Jobs
from hpcgym.core.parts.dependencies import Dependencies, failing, predecessors_of
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.state import State
from hpcgym.core.workload import Workload

EXCHANGED = (
    *("submit_time", "run_time", "estimate", "requested_time", "processors", "size_class"),
    *("feature", "user", "keys"),
)
"""Columns of `Jobs` by which jobs differ."""

EXCHANGED_ON_NODES = ("chunks", "shape", "request", "placed_first")

EXCHANGED_IF_GIVEN = ("requeue", "known", "reward_rate", "reward_onset", "field")
"""Columns that are empty where they mean nothing; the last three are of environments."""


def dependencies_of(
    workload: Workload, settings: SchedulerSettings, no_waits: str = ""
) -> Dependencies | None:
    """Return what makes jobs of a workload wait out of sight; None if nothing does.

    `no_waits` names what cannot have that, besides what of the settings cannot; "" = nothing.

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
    if unable := settings.no_waits or no_waits:
        why = "are held (column eligible)" if kind == "ignore" else "wait for others (column after)"
        how = "leave the column out" if kind == "ignore" else "choose dependencies 'ignore'"
        raise PolicyError(
            f"jobs of {workload.name} {why}, and {unable} cannot be beside that yet; {how}"
        )
    return Dependencies(kind, settings.kill_at_limit)


def cancelled_jobs(workload: Workload, rule: Dependencies | None) -> NDArray[np.bool_]:
    """Tell which jobs are cancelled, shape (n_jobs,), whatever the schedule is.

    Whether a job fails does not depend on when it runs.
    """
    cancelled = np.zeros(len(workload), dtype=np.bool_)
    if rule is None or not rule.cancels(workload):
        return cancelled
    after, condition = predecessors_of(workload, rule.kind), np.asarray(workload.condition)
    fails = failing(workload, rule.kills)
    conditional = (after >= 0) & (condition != s.AFTER_END)
    while True:  # each round settles the next jobs of all chains
        holds = (fails | cancelled)[after] == (condition == s.AFTER_FAILURE)
        newly = conditional & ~holds
        if (newly == cancelled).all():
            return cancelled
        cancelled = newly


def own_columns(table: Jobs) -> Jobs:
    """Return jobs of which one simulation may exchange rows."""
    columns = {name: getattr(table, name).copy() for name in exchanged(table)}
    return table._replace(**columns)


def exchanged(table: Jobs) -> tuple[str, ...]:
    """Return the columns that a simulation exchanges."""
    names = EXCHANGED + (EXCHANGED_ON_NODES if table.nodes_pass else ())
    return names + tuple(name for name in EXCHANGED_IF_GIVEN if len(getattr(table, name)))


def begin(table: Jobs, state: State, env: int, kept: Jobs) -> None:
    """Let each row be its job, as an episode begins; write a simulation's own table of `kept`."""
    n = len(table.run_time)
    state.row_of[env, :n] = state.job_of[env, :n] = np.arange(n)
    state.comes_at[env, :n] = s.NEVER  # until the clock moves
    for name in exchanged(table):
        getattr(table, name)[:] = getattr(kept, name)


def lay_out(table: Jobs, state: State, env: int, kept: Jobs, *, estimates: bool) -> None:
    """Write a simulation's own table of the jobs in `kept`, as its state numbers them.

    `estimates` tells whether to write estimates, too, which a simulation may have changed.
    """
    n, came = len(table.run_time), int(state.next_job[env])
    row = state.row_of[env, :n]
    for name in exchanged(table):
        if estimates or name not in ("estimate", "feature"):
            getattr(table, name)[:] = getattr(kept, name)[row]
    if state.has_begun[env] == 0:
        return
    coming = int(state.n_coming[env] > 0)
    comes_at = np.full(n, s.NEVER)
    comes_at[: came + coming] = state.comes_at[env, row[: came + coming]]
    if len(table.reward_onset):
        table.reward_onset[:] += comes_at - table.submit_time
    table.submit_time[:] = comes_at
    table.feature[: came + coming, s.FEATURE_SUBMIT] = comes_at[: came + coming]
