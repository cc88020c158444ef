"""Tables that subcommands print: for a person in the width there is, or whole for programs."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from hpcgym.base.errors import HpcgymError, unknown_name
from hpcgym.base.text_table import (
    DEFAULT_WIDTH,
    FORMATS,
    Column,
    Kind,
    TextTable,
    duration,
    fixed,
    hung,
    json_text,
    machine_text,
    printable,
    wrapped,
)

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console, RenderableType

_STATISTICS = {"mean": 0, "median": 2, "p90": 3, "p99": 1, "max": 0}
"""Statistics of a metric, with how soon each is left out."""

_JOB_METRICS = {
    "wait_time": "wait",
    "turnaround_time": "turnaround",
    "slowdown": "slowdown",
    "bsld": "bsld",
    "pp_bsld": "pp-bsld",
}
_PLURAL = {"user": "users", "class": "classes", "partition": "partitions"}
_IN_SECONDS = ("wait_time", "turnaround_time")
_SHARES = {
    "share_bsld_1": "= 1",
    "share_bsld_1_10": "1 to 10",
    "share_bsld_10_100": "10 to 100",
    "share_bsld_100": "100 and more",
}


def check_format(given: str) -> str:
    """Return a format of `--format`, or refuse it."""
    if given not in FORMATS:
        raise HpcgymError(unknown_name("format", given, FORMATS))
    return given


Format: TypeAlias = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="|".join(FORMATS),
        callback=check_format,
        help="How to print tables: to the width there is, or whole and in seconds.",
    ),
]


def console() -> Console:
    """Return what prints on standard output: 80 wide unless a terminal or COLUMNS says more."""
    from rich.console import Console

    is_known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    return Console(width=None if is_known else DEFAULT_WIDTH, highlight=False)


def show(table: RenderableType) -> None:
    """Print a table for a person."""
    console().print(table)


def show_frame(frame: pd.DataFrame, how: str) -> None:
    """Print a frame for a program; on a terminal without what would steer it."""
    text = machine_text(frame, how)
    typer.echo(printable(text, "\n") if sys.stdout.isatty() else text, color=True)  # as it is


def echo(text: object, *, err: bool = False) -> None:
    """Print a line, whatever names are in it; a report that is no text has as many as it has."""
    lines = [text] if isinstance(text, str) else str(text).split("\n")
    typer.echo("\n".join(map(printable, lines)), err=err)


_QUOTED = re.compile(r"(?<!\w)(?:'[^']*'|\"[^\"]*\")")


def complain(text: object) -> None:
    """Print an error or a warning on standard error, as one line.

    A terminal gets it in lines of its width. They end between words, and not within quotes.
    """
    line = printable(f"hpcgym: {text}")
    if sys.stderr.isatty():
        from rich.console import Console

        width = Console(stderr=True).width
        kept = _QUOTED.sub(lambda quoted: quoted[0].replace(" ", "\0"), line)
        parts = textwrap.wrap(kept, width, break_long_words=False, break_on_hyphens=False)
        line = "\n".join(parts).replace("\0", " ")
    typer.echo(line, err=True)


def echo_prose(text: object, *, err: bool = False) -> None:
    """Print what `echo` prints, in lines that are not wider than there is room."""
    width = console().width
    for line in [text] if isinstance(text, str) else str(text).split("\n"):
        for part in hung(printable(line), width):
            typer.echo(part, err=err)


def say(text: object, how: str) -> None:
    """Print what is no table: beside one for a program, on standard error."""
    echo(text, err=how != "table")


def show_rows(
    rows: Sequence[Mapping[str, object]],
    how: str,
    *,
    kinds: Mapping[str, Kind],
    ranks: Mapping[str, int] | None = None,
    title: str = "",
) -> None:
    """Print rows of the same keys.

    Args:
        kinds: Of the columns that are no numbers.
        ranks: Which columns may be left out, as of `hpcgym.base.text_table.Column`.
    """
    if how != "table":
        import pandas as pd

        show_frame(pd.DataFrame(list(rows)).convert_dtypes(), how)  # counts stay whole beside None
        return
    if title:
        show("")
    columns = [
        Column(
            key.replace("_", " "),
            [number(row[key]) for row in rows],
            kinds.get(key, "number"),
            (ranks or {}).get(key, 0),
        )
        for key in rows[0]
    ]
    show(TextTable(columns, title=title))


def show_pairs(pairs: Mapping[str, object], how: str = "table") -> None:
    """Print names and values below each other, without empty values."""
    known = {key: value for key, value in pairs.items() if value is not None and value != ""}
    if how == "table":
        _show_aligned({key: number(value) for key, value in known.items()})
    elif how == "json":
        import json

        typer.echo(json_text(json.dumps(known, indent=2, ensure_ascii=False, default=str)))
    else:
        import pandas as pd

        show_frame(pd.DataFrame({"key": list(known), "value": list(map(str, known.values()))}), how)


def _show_aligned(pairs: Mapping[str, str]) -> None:
    """Print names, and beside each its value, broken at words and behind slashes."""
    from rich.text import Text

    printer, widest = console(), max(map(len, pairs), default=0)
    for key, value in pairs.items():
        lines = wrapped(printable(value, "\n"), max(printer.width - widest - 2, 24))
        for line_number, line in enumerate(lines):
            name = Text(
                (printable(key) if line_number == 0 else "").ljust(widest + 2), style="bold"
            )
            printer.print(name + Text(line, style="not bold"), no_wrap=True, overflow="ignore")


def show_metrics(metrics: Mapping[str, float], title: str) -> None:
    """Print the metrics of a whole schedule, as of `hpcgym.Schedule.metrics`."""
    from hpcgym.schedule.lost import KINDS

    names: list[str] = []
    rows: list[list[str]] = []
    for key, label in _JOB_METRICS.items():
        values = [metrics[f"{kind}_{key}"] for kind in _STATISTICS]
        names.append(f"{label}, s" if key in _IN_SECONDS else label)
        rows.append([number(value) for value in values])
        if key in _IN_SECONDS:
            names.append("")
            rows.append([duration(value) for value in values])
    columns = [
        Column(name, cells, rank=rank)
        for (name, rank), cells in zip(_STATISTICS.items(), zip(*rows, strict=True), strict=True)
    ]
    show("")
    show(TextTable([Column("", names, "word"), *columns], title=title))
    show("")
    n_zero = metrics["n_zero_run_time"]
    shares = [f"{metrics[key]:.1%} {label}" for key, label in _SHARES.items()]
    show_pairs(
        {
            "bsld": ", ".join(shares),
            "jobs": metrics["n_jobs"],
            "backfilled": metrics["n_backfilled"],
            "thresholded": metrics["n_thresholded"],
            **{kind: metrics[f"n_{kind}"] for kind in KINDS if f"n_{kind}" in metrics},
            "zero run time": f"{number(n_zero)} (these have no slowdown)" if n_zero else None,
            "utilisation": f"{metrics['utilisation']:.2%}",
            "makespan": f"{number(metrics['makespan'])} s ({duration(metrics['makespan'])})",
        }
    )


def groups_of(frame: pd.DataFrame, top: int | None) -> tuple[pd.DataFrame, str]:
    """Return the metrics of groups of jobs as they are shown, and what of them is left out.

    Users are sorted by their work; classes have the bounds of their requests.

    Args:
        frame: As of `hpcgym.Schedule.metrics`.
        top: How many groups to keep; None = all.
    """
    from hpcgym.core.metrics import CLASS_BOUNDS_S

    by = str(frame.index.name)
    groups = frame.reset_index()
    if by == "user":
        groups = groups.sort_values("share_of_work", ascending=False, kind="stable")
    if by == "class":
        first, last = (0, *(bound + 1 for bound in CLASS_BOUNDS_S)), (*CLASS_BOUNDS_S, "")
        bounds = [
            f"{first[size_class - 1]}-{last[size_class - 1]}" for size_class in groups["class"]
        ]
        groups.insert(1, "requested_time", bounds)
    kept = groups if top is None else groups.head(top)
    if len(kept) == len(groups):
        return kept, ""
    of_work = f"{kept['share_of_work'].sum():.1%} of the work"
    return kept, f"{len(kept)} of {len(groups)} {_PLURAL[by]} shown, with {of_work}"


def show_groups(groups: pd.DataFrame, left_out: str, title: str) -> None:
    """Print the metrics of groups of jobs, one line each, as of `groups_of`."""
    by = str(groups.columns[0])
    names = [Column(by, groups[by].astype(str).tolist(), "name")]
    if "requested_time" in groups:
        requests = [
            f"{text} s" if text[-1] != "-" else f"{text[:-1]} s +"
            for text in groups["requested_time"]
        ]
        names.append(Column("requested\ntime", requests))
    numbers = {key: groups[key].tolist() for key in groups.columns if key != by}
    columns = [
        Column("jobs", list(map(number, numbers["n_jobs"])), rank=1),
        Column("work", [f"{share:.1%}" for share in numbers["share_of_work"]], rank=3),
        Column("mean\nwait", list(map(duration, numbers["mean_wait_time"]))),
        Column("max\nwait", list(map(duration, numbers["max_wait_time"])), rank=4),
        Column("mean\nbsld", fixed(numbers["mean_bsld"], 2), rank=2),
        Column("p99\nbsld", fixed(numbers["p99_bsld"], 1), rank=6),
        Column("mean\npp-bsld", fixed(numbers["mean_pp_bsld"], 2), rank=5),
        Column("back-\nfilled", list(map(number, numbers["n_backfilled"])), rank=7),
        Column("mean\nwait s", fixed(numbers["mean_wait_time"], 1), rank=8),
        Column("max\nwait s", fixed(numbers["max_wait_time"], 0), rank=9),
    ]
    show("")
    show(TextTable([*names, *columns], title=title, notes=[left_out] if left_out else []))


def show_resources(frame: pd.DataFrame, title: str) -> None:
    """Print what of each resource was held, one line each, as of `hpcgym.Schedule.metrics`."""
    rows = [
        {
            "resource": row.Index,
            "capacity": row.capacity,
            "mean held": row.mean_held,
            "utilisation": "-" if row.capacity == 0 else f"{row.utilisation:.2%}",
        }
        for row in frame.itertuples()
    ]
    show_rows(rows, "table", kinds={"resource": "name"}, title=title)


def number(value: object) -> str:
    """Format a cell: whole numbers with separators, others to some 5 digits, NaN as "-".

    Example:
        >>> number(28476), number(92.5765), number(6837.226), number(0.01234), number(float("nan"))
        ('28,476', '92.58', '6,837.2', '0.0123', '-')
        >>> number(12345678.9), number(3.4e12)
        ('12,345,679', '3.40e+12')
    """
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if value != value:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= 1000:
        return fixed([value], 1)[0] if abs(value) >= 100_000 else f"{value:,.1f}"
    return f"{value:.{2 if abs(value) >= 1 or value == 0 else 4}f}"
