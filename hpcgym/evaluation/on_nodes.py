"""Metrics of runs on a machine of nodes, and the tables that an evaluation shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpcgym.base.text_table import Column, TextTable, fixed, printable, shortened
from hpcgym.schedule.schedule import Schedule

if TYPE_CHECKING:
    import pandas as pd

BY_PARTITION = "mean_bsld_in_"
"""What a partition's name follows in the column of its mean bounded slowdown."""

_TITLES = {
    "utilisation_cpus": "cpus\nheld",
    "utilisation_gpus": "gpus\nheld",
    "utilisation_memory_mb": "memory\nheld",
    "fragmentation": "fragmen-\ntation",
    "share_one_group": "in one\ngroup",
}

_MOST_COLUMNS = 8  # metrics of one table
_LONGEST_PARTITION = 16  # longer names of partitions are shortened in heads of columns


def metrics_on_nodes(schedule: Schedule) -> dict[str, float]:
    """Return the metrics of a run that only a machine of nodes has; none on another.

    They are the utilisation of each resource that the machine has, such as `utilisation_cpus`;
    `fragmentation`; `share_one_group`; and, where there are several partitions, the mean bounded
    slowdown of each, such as `mean_bsld_in_gpu`, NaN where none of its jobs has one. Recorded
    starts name no nodes, so only the last are there.

    Source: Specification, section 13, "Metrics".
    """
    machine = schedule.workload.machine
    if machine is None:
        return {}
    metrics = {}
    if schedule.placement is not None:
        utilisation = schedule.metrics(by="resource")["utilisation"].dropna()
        metrics = {f"utilisation_{name}": float(share) for name, share in utilisation.items()}
        metrics["fragmentation"] = schedule.fragmentation()
        metrics["share_one_group"] = schedule.placement_metrics()["share_one_group"]
    if len(machine.partitions) > 1:
        bsld = schedule.metrics(by="partition")["mean_bsld"].reindex(machine.partition_names)
        metrics |= {f"{BY_PARTITION}{name}": float(mean) for name, mean in bsld.items()}
    return metrics


def means_on_nodes(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the means of runs, as `Evaluation.frame`, by agent; no column where none had nodes."""
    shown = [name for name in runs if name in _TITLES or name.startswith(BY_PARTITION)]
    return runs.groupby("agent")[shown].mean()


def tables_on_nodes(runs: pd.DataFrame, agents: Sequence[str], title: str) -> list[TextTable]:
    """Return tables of the means over each agent's runs; none where no run was on nodes.

    There is one table, or several where there are many partitions. `runs` are as of
    `Evaluation.frame`; the rows are in the order of `agents`.
    """
    means = means_on_nodes(runs).loc[list(agents)]
    parts = [
        means.iloc[:, at : at + _MOST_COLUMNS] for at in range(0, means.shape[1], _MOST_COLUMNS)
    ]
    return [_table(part, title) for part in parts]


def _table(means: pd.DataFrame, title: str) -> TextTable:
    """Return a table with a row per agent."""
    note = "held: share of all there is; fragmentation: of free cpus, those no waiting job can use"
    columns = []
    for rank, name in enumerate(means, 1):
        partition = shortened(printable(name.removeprefix(BY_PARTITION)), _LONGEST_PARTITION)
        head = _TITLES.get(name) or f"bsld in\n{partition}"
        cells = fixed(means[name].tolist(), 3 if name in _TITLES else 2)
        columns.append(Column(head, cells, rank=rank))
    return TextTable(
        [Column("agent", list(means.index), "name"), *columns],
        title=title,
        notes=[note] if "fragmentation" in means else [],
    )
