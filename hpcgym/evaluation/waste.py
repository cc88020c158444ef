"""What agents of the contest requeue waste, and whom they kill: means over their runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpcgym.base.text_table import Column, TextTable, fixed

if TYPE_CHECKING:
    import pandas as pd

_TITLES = {
    "waste": ("machine\nwasted %", 100, 3),
    "share_killed": ("jobs\nkilled %", 100, 2),
    "kills_per_job": ("kills\nper job", 1, 3),
}
"""Head, factor and digits of each column."""


def means_of_waste(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the means of runs, as `Evaluation.frame`, by agent; no column where none killed.

    Agents that kill no job have 0.

    Source: Specification, section 15, "Attempts".
    """
    shown = [name for name in _TITLES if name in runs]
    return runs.groupby("agent")[shown].mean().fillna(0.0)


def tables_of_waste(runs: pd.DataFrame, agents: Sequence[str], title: str) -> list[TextTable]:
    """Return a table of these means, rows in the order of `agents`; none where no agent killed."""
    means = means_of_waste(runs).loc[list(agents)]
    if means.empty or not means.shape[1]:
        return []
    columns = [Column("agent", list(means.index), "name")]
    for rank, (name, (head, factor, digits)) in enumerate(_TITLES.items(), 1):
        cells = fixed((means[name] * factor).tolist(), digits)
        columns.append(Column(head, cells, rank=rank))
    note = "wasted: held by attempts in vain; killed: at least once"
    return [TextTable(columns, title=title, notes=[note])]
