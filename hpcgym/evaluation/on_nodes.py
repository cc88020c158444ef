"""Metrics of runs on a machine of nodes, and the tables that an evaluation shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.schedule import Schedule

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

BY_PARTITION = "mean_bsld_in_"
"""What a partition's name follows in the column of its mean bounded slowdown."""

_TITLES = {
    "utilisation_cpus": "cpus\nheld",
    "utilisation_gpus": "gpus\nheld",
    "utilisation_memory_mb": "memory\nheld",
    "fragmentation": "fragmen-\ntation",
    "share_one_group": "in one\ngroup",
}

_MOST_COLUMNS = 8
"""Metrics that a table shows whole in 80 columns."""


def metrics_on_nodes(schedule: Schedule) -> dict[str, float]:
    """Return the metrics of a run that only a machine of nodes has; none on another.

    They are the utilisation of each resource that the machine has, such as `utilisation_cpus`;
    `fragmentation`; `share_one_group`; and, where there are several partitions, the mean bounded
    slowdown of each, such as `mean_bsld_in_gpu`, NaN where none of its jobs has one.

    Source: Specification, section 13, "Metrics".
    """
    machine = schedule.workload.machine
    if machine is None:
        return {}
    utilisation = schedule.metrics(by="resource")["utilisation"].dropna()
    found = {f"utilisation_{name}": float(share) for name, share in utilisation.items()}
    found["fragmentation"] = schedule.fragmentation()
    found["share_one_group"] = schedule.placement_metrics()["share_one_group"]
    if len(machine.partitions) > 1:
        bsld = schedule.metrics(by="partition")["mean_bsld"].reindex(machine.partition_names)
        found |= {f"{BY_PARTITION}{name}": float(mean) for name, mean in bsld.items()}
    return found


def tables_on_nodes(runs: pd.DataFrame, agents: Sequence[str], title: str) -> list[Table]:
    """Return tables of the means over each agent's runs; none where no run was on nodes.

    There is one table, or several where there are many partitions.

    Args:
        runs: As `Evaluation.frame`.
        agents: In the order of the rows.
    """
    shown = [name for name in runs if name in _TITLES or name.startswith(BY_PARTITION)]
    means = runs.groupby("agent")[shown].mean().loc[list(agents)]
    parts = [shown[first : first + _MOST_COLUMNS] for first in range(0, len(shown), _MOST_COLUMNS)]
    return [_table(means[part], title) for part in parts]


def _table(means: pd.DataFrame, title: str) -> Table:
    """Return a table with a row per agent."""
    from rich.table import Table

    caption = (
        "held: share of all there is; fragmentation: of free cpus, those no waiting job can use"
    )
    table = Table(
        title=title,
        caption=caption if "fragmentation" in means else None,
        box=None,
        padding=(0, 1, 0, 0),
    )
    table.add_column("\nagent", overflow="fold")
    for name in means:
        table.add_column(_title_of(name), justify="right", overflow="fold")
    for agent, row in means.iterrows():
        table.add_row(agent, *(_cell(name, mean) for name, mean in row.items()))
    return table


def _title_of(column: str) -> str:
    """Return what a table calls a column."""
    from rich.markup import escape

    return _TITLES.get(column) or escape("bsld in\n" + column.removeprefix(BY_PARTITION))


def _cell(column: str, mean: float) -> str:
    """Format a mean; empty where no run has the metric."""
    if np.isnan(mean):
        return ""
    return f"{mean:.3f}" if column in _TITLES else f"{mean:.2f}"
