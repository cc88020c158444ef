"""Tables that subcommands print, made to fit a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

_STATISTICS = ("mean", "median", "p90", "p99", "max")
_JOB_METRICS = {
    "wait_time": "wait, s",
    "turnaround_time": "turnaround, s",
    "slowdown": "slowdown",
    "bsld": "bsld",
    "pp_bsld": "pp-bsld",
}
_SHARES = {
    "share_bsld_1": "= 1",
    "share_bsld_1_10": "1 to 10",
    "share_bsld_10_100": "10 to 100",
    "share_bsld_100": "100 and more",
}


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    text_columns: int = 1,
) -> None:
    """Print a table, numbers to the right.

    Args:
        rows: Cells; numbers get separators, None is empty.
        text_columns: How many columns, from the left, are text.
    """
    table = Table(
        box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title=title, title_justify="left", title_style="bold"
    )
    for place, column in enumerate(columns):
        is_text = place < text_columns
        table.add_column(
            column,
            justify="left" if is_text else "right",
            no_wrap=place == 0,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*map(number, row))
    Console().print(table)


def show_pairs(pairs: Mapping[str, object]) -> None:
    """Print names and values below each other, without empty values."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in pairs.items():
        if value is not None and value != "":
            table.add_row(key, number(value))
    Console().print(table)


def show_metrics(metrics: Mapping[str, float], title: str) -> None:
    """Print the metrics of a whole schedule, as of `hpcgym.core.metrics.summary`."""
    rows = [
        [label, *(metrics[f"{kind}_{key}"] for kind in _STATISTICS)]
        for key, label in _JOB_METRICS.items()
    ]
    show_table(["", *_STATISTICS], rows, title=title)
    shares = [f"{metrics[key]:.1%} {label}" for key, label in _SHARES.items()]
    show_pairs(
        {
            "bsld": ", ".join(shares),
            "jobs": metrics["n_jobs"],
            "backfilled": metrics["n_backfilled"],
            "thresholded": metrics["n_thresholded"],
            "zero run time": f"{number(metrics['n_zero_run_time'])} (these have no slowdown)",
            "utilisation": f"{metrics['utilisation']:.2%}",
            "makespan": f"{number(metrics['makespan'])} s",
        }
    )


def show_groups(frame: pd.DataFrame, title: str) -> None:
    """Print the metrics of each group of jobs, one line each, as of `hpcgym.Schedule.metrics`."""
    columns = ["jobs", "mean wait, s", "max wait, s", "mean bsld", "p99 bsld", "pp-bsld"]
    rows = [
        [
            str(row.Index),
            row.n_jobs,
            row.mean_wait_time,
            int(row.max_wait_time),
            row.mean_bsld,
            row.p99_bsld,
            row.mean_pp_bsld,
            row.n_backfilled,
            f"{row.share_of_work:.1%}",
        ]
        for row in frame.itertuples()
    ]
    show_table([str(frame.index.name), *columns, "backfilled", "work"], rows, title=title)


def show_resources(frame: pd.DataFrame, title: str) -> None:
    """Print what of each resource was held, one line each, as of `hpcgym.Schedule.metrics`."""
    rows = [
        [
            row.Index,
            row.capacity,
            row.mean_held,
            "-" if row.capacity == 0 else f"{row.utilisation:.2%}",
        ]
        for row in frame.itertuples()
    ]
    show_table(["resource", "capacity", "mean held", "utilisation"], rows, title=title)


def number(value: object) -> str:
    """Format a cell: whole numbers with separators, others to some 5 digits.

    Returns:
        "-" for NaN, nothing for None.

    Example:
        >>> number(28476), number(92.5765), number(6837.226), number(0.01234), number(float("nan"))
        ('28,476', '92.58', '6,837.2', '0.0123', '-')
    """
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if value != value:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    decimals = 1 if abs(value) >= 1000 else 2 if abs(value) >= 1 or value == 0 else 4
    return f"{value:,.{decimals}f}"
