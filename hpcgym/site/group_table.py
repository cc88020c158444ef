"""Who waits: by cpus and time limit, and by partition, account, user."""

from __future__ import annotations

from collections.abc import Sequence

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
from hpcgym.site.option_table import Report, names_of
from hpcgym.site.option_table import told as _told
from hpcgym.site.pictures import told_class

WAIT_CLASSES = (1 / 60, 5 / 60, 0.25, 1, 4, 12, 24, 72)
"""Upper ends, in hours, of what a heat map shows in one colour."""

WAIT_CLASS_NAMES = ("< 1 min", "5 min", "15 min", "1 h", "4 h", "12 h", "24 h", "3 d", "more")

FEW = 10  # cells of fewer jobs are hatched


def heat_maps(report: Report) -> Markup | None:
    """Return mean waits by cpus and time limit, a map for each option."""
    heat = report.get("heat")
    if not heat or not heat.get("waits"):
        return None
    names = names_of(report)
    maps = [_heat_map(names.get(key, key), key, heat, grid) for key, grid in heat["waits"].items()]
    keys = [tag("span", name, class_=f"h{i}") for i, name in enumerate(WAIT_CLASS_NAMES)]
    words = (
        "Mean wait of jobs by how many cpus they ask for (down) and for how long (across). "
        f"Cells of fewer than {FEW} jobs are hatched."
    )
    choice = tag("div", id="heat-choice", class_="controls js-only")
    drawn = tag("div", *maps, class_="maps", id="heat-maps")
    key = tag("p", "wait up to", *keys, class_="legend heat-key")
    return join([tag("p", words, class_="lede"), choice, drawn, key])


def _heat_map(name: str, key: str, heat: Report, grid: Sequence[Sequence[float | None]]) -> Markup:
    """Return the map of an option as a table, without lines that no job falls in."""
    counts = heat["n"]
    across = [j for j in range(len(heat["limit"])) if any(line[j] for line in counts)]
    rows = [
        [Cell(str(cpus), None, "n"), *[_heat_cell(line[j], n[j]) for j in across]]
        for cpus, line, n in zip(heat["cpus"], grid, counts, strict=False)
        if any(n)
    ]
    limits = [str(heat["limit"][j]) for j in across]
    whole = table(f"Mean wait: {name}", ["cpus", *limits], [Rows(rows)], sortable=False)
    return tag("figure", tag("figcaption", name), whole, data_option=key, class_="map")


def _heat_cell(value: float | None, n: int) -> Cell:
    if value is None or not is_known(value):
        return Cell("", None, "void")
    step = sum(value >= end for end in WAIT_CLASSES)
    return Cell(hours(value), value, f"h{step}{' few' if n < FEW else ''}")


GROUPS = {
    "partition": "Partitions",
    "account": "Accounts",
    "user": "Users",
    "cpus": "By cpus",
    "limit": "By time limit",
}


def groups(report: Report) -> Markup | None:
    """Return waits of groups of jobs, a tab for each kind of group."""
    tables = {by: rows for by in GROUPS if (rows := (report.get("groups") or {}).get(by))}
    if not tables:
        return None
    whole = tables.get("cpus") or next(iter(tables.values()))  # every job has a size
    total = sum(row.get("core_hours") or 0.0 for row in whole)
    panels = []
    for by, rows in tables.items():
        shown = (tag("h3", GROUPS[by]), _group_table(report, by, rows, total))
        title = f"{GROUPS[by]} ({len(rows)})"
        panels.append(tag("div", *shown, class_="panel", id=f"group-{by}", data_title=title))
    words = "Mean waits. What cannot be told from what the simulation misses is grey."
    tabs = tag("div", *panels, class_="tabs", data_label="Groups of jobs")
    return join([tag("p", words, class_="lede"), tabs])


def _group_table(report: Report, by: str, rows: Sequence[Report], total: float) -> Markup:
    """Return a table of groups, those with most cpu-hours first; all jobs have `total`."""
    names, best = names_of(report), (report.get("named"), report.get("best_any"))
    others = list(dict.fromkeys(key for key in best if key))
    heads = [by, "jobs", "cpu-hours", "of all", "recorded", names.get("today", "today")]
    for key in others:
        heads += [names.get(key, key), "gain", "told"]
    ranked = list(rows)
    if by not in ("cpus", "limit"):
        ranked.sort(key=lambda row: -(row.get("core_hours") or 0.0))
    lines = [_group_row(row, others, total) for row in ranked]
    told = [others and (row.get("told") or {}).get(others[0]) for row in ranked]
    dim = ["dim" if word == "not distinguishable" else "" for word in told]
    return table(GROUPS[by], heads, [Rows(lines, classes=dim)], class_="scroll tall filtered")


def _group_row(row: Report, others: Sequence[str], total: float) -> list[Cell]:
    spent, means = row.get("core_hours"), row.get("waits") or {}
    today = means.get("today")
    part = spent / total if spent is not None and total > 0 else None
    cells = [
        Cell(str(row["name"]) or "(no name)", str(row["name"]), "name"),
        Cell(number(row.get("n")), row.get("n"), "n"),
        Cell(number(spent), spent, "n"),
        Cell(share(part), part, "n"),
        Cell(hours(row.get("recorded")), row.get("recorded"), "n"),
        Cell(hours(today), today, "n"),
    ]
    for key in others:
        wait, word = means.get(key), (row.get("told") or {}).get(key)
        less = today - wait if today is not None and wait is not None else None
        cells += [Cell(hours(wait), wait, "n"), Cell(change(less), less, f"n {told_class(word)}")]
        cells.append(_told({"told": word}))
    return cells
