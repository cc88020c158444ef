"""Options as rows of a table: waits, gains, and whether they can be told from today's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from hpcgym.site.markup import (
    Cell,
    Markup,
    Rows,
    change,
    hours,
    is_known,
    join,
    number,
    share,
    table,
    tag,
)
from hpcgym.site.pictures import IntervalScale, told_class

Report: TypeAlias = Mapping[str, Any]


def names_of(report: Report) -> dict[str, str]:
    """Return the names of options by id."""
    return {row["id"]: str(row["name"]) for row in report.get("options") or []}


KINDS = {
    "today": "Today",
    "order": "Other orders, by priority",
    "mode": "Other backfilling",
    "limits": "Other time limits",
    "machine": "Other machines",
}
"""What a site can set, by group of options."""

_WAITS, _TOLD = (
    ("option", "mean wait", "median", "9 in 10\nwait less"),
    ("gain a job\n60% interval", "less wait →", "told"),
)
FIRST_HEADS = (*_WAITS, *_TOLD, "who loses most")
OPTION_HEADS = (
    *(*_WAITS, "longest", "waited\n> 1 day", *_TOLD, "wait 10 min\nless", "wait 10 min\nmore"),
    *("bounded\nslowdown", "used", "idle while\njobs waited", "wasted\nby kills", "setting"),
)

_INTERVALS = (
    "An interval speaks of weeks in a row like those that are judged, and of its row alone. Other "
    "times of the year may lie beyond it. Of such intervals from four generated weeks, 94% held "
    "the true gain where weekly gains are normal, and 79% where few weeks make most of it."
)
_ONLY = (
    "No scheduler of a site has these: caps, cost-benefit backfilling, trials. They say what more "
    "there would be to gain."
)


def all_options(report: Report) -> Markup | None:
    """Return all options: those that a site can set, and the others."""
    rows = report.get("options") or []
    if not rows:
        return None
    scale = IntervalScale(rows, (report.get("trust") or {}).get("misfit_h"))
    known = [_option_group(report, rows, kind, title, scale) for kind, title in KINDS.items()]
    others = sorted({row["group"] for row in rows} - KINDS.keys())
    only = [_option_group(report, rows, kind, "", scale) for kind in others]
    tables = [
        ("What a site can set", ": orders, modes, limits, machines", _INTERVALS, known),
        ("Simulated only", "", _ONLY, only),
    ]
    return join(
        join(
            [
                *(tag("h3", title + more), tag("p", words, class_="lede")),
                table(title, OPTION_HEADS, [g for g in groups if g.rows], class_="scroll wide"),
            ]
        )
        for title, more, words, groups in tables
        if groups
    )


def _option_group(
    report: Report, rows: Sequence[Report], kind: str, title: str, scale: IntervalScale
) -> Rows:
    shown = [row for row in rows if row["group"] == kind]
    cells = [_option_row(row, scale) for row in shown]
    return Rows(cells, title, [row_class(row, report.get("named")) for row in shown])


def _option_row(row: Report, scale: IntervalScale) -> list[Cell]:
    name = join([tag("span", row["name"], class_="option"), tag("small", row.get("what"))])
    shares = ("winners", "losers")
    return [
        Cell(name, str(row["name"]), "name"),
        *waits(row, ("mean", "median", "p90", "max")),
        _share(row, "long_share"),
        gain(row),
        scale.cell(row),
        told(row),
        *[_share(row, key) for key in shares],
        Cell(number(row.get("bsld"), 1), row.get("bsld"), "n"),
        *[_share(row, key) for key in ("utilisation", "idle_while_waiting", "wasted")],
        Cell(str(row.get("settings") or ""), None, "setting"),
    ]


def _share(row: Report, key: str) -> Cell:
    value = row.get(key)
    return Cell(share(value) if is_known(value) else "", value, "n")


def row_class(row: Mapping[str, Any], best: str | None) -> str:
    """Return how an option's row looks."""
    best_class = ["best"] if row["id"] == best else []
    dim = ["dim"] if row.get("told") == "not distinguishable" else []
    return " ".join([*best_class, *dim, *(["today"] if row.get("group") == "today" else [])])


def waits(row: Mapping[str, Any], keys: Sequence[str] = ("mean", "median", "p90")) -> list[Cell]:
    """Return cells of waits."""
    values = [(row.get("wait") or {}).get(key) for key in keys]
    return [Cell(hours(value), value, "n") for value in values]


def gain(row: Mapping[str, Any]) -> Cell:
    """Return by how much less or more a job waits, with its interval."""
    value = row.get("gain_h")
    if value is None or not is_known(value):
        return Cell("", None, "n gain")
    between = row.get("interval_h")
    small = None
    if between:  # told the way the gain is: of hours less, or of hours more
        low, high = between if value >= 0 else (-between[1], -between[0])
        small = tag("small", span(low, high))
    return Cell(join([tag("b", change(value)), small]), value, "n gain")


def span(low: float, high: float) -> str:
    """Return an interval of hours in one unit.

    Example:
        >>> span(0.4, 1.0061), span(-0.2, 0.3), span(-106.5, -46.4)
        ('0.4 to 1.0 h', '−12 to 18 min', '−4.4 to −1.9 d')
    """
    most = max(abs(low), abs(high))
    factor, digits, unit = (3600.0, 0, "s") if most * 60 < 1 else (60.0, 0, "min")
    if most >= 1:
        factor, digits, unit = (1.0, 1, "h") if most < 48 else (1 / 24, 1, "d")
    ends = [f"{end * factor:z.{digits}f}".replace("-", "−") for end in (low, high)]
    return f"{ends[0]} to {ends[1]} {unit}"


def told(row: Mapping[str, Any]) -> Cell:
    """Return whether an option can be told from today's."""
    text = row.get("told")
    if not text:
        return Cell("", None, "told")
    return Cell(tag("span", text, class_=f"pill {told_class(text)}"), text, "told")
