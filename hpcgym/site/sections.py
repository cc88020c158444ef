"""The sections below the first screen; one that the report has nothing for is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hpcgym.site.causes import HEADS, cells
from hpcgym.site.group_table import groups, heat_maps
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
from hpcgym.site.option_table import (
    FIRST_HEADS,
    Report,
    all_options,
    gain,
    names_of,
    row_class,
    told,
    waits,
)
from hpcgym.site.pictures import bar_table, histogram, stacked


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    id: str
    title: str
    html: Markup


def sections(report: Report) -> list[Section]:
    """Return the sections that the report has something for."""
    shown = []
    for name, title, heading, make in SECTIONS:
        if html := make(report):
            head, label = tag("h2", heading, id=f"{name}-title"), f"{name}-title"
            whole = tag("section", head, html, id=name, aria_labelledby=label)
            shown.append(Section(name, title, whole))
    return shown


def _queue(report: Report) -> Markup | None:
    """Return the queue and the busy processors over time."""
    queue = report.get("queue")
    if not queue or not queue.get("series"):
        return None
    words = (
        "Jobs that wait, and processors that are busy, over the whole log. Drag to look closer; "
        "arrow keys move, plus and minus zoom."
    )
    means = tag("details", tag("summary", "The same as a table"), _queue_table(report, queue))
    return join([*_chart("queue-chart", words, "; the table has its means"), means])


def _chart(id_: str, words: str, without: str = "") -> list[Markup]:
    """Return what a script draws a chart in, and what stands there without scripts."""
    return [
        tag("p", words, class_="lede js-only"),
        tag("p", f"The chart needs scripts{without}.", class_="lede no-js"),
        tag("div", id=id_, class_="js-only"),
    ]


def _queue_table(report: Report, queue: Report) -> Markup:
    """Return means of the queue by month, or by week where there is no calendar."""
    names, utc = names_of(report), bool((report.get("log") or {}).get("utc"))
    series, busy, sizes = queue["series"], queue.get("cpus") or {}, queue.get("capacities") or {}
    n_steps = max(len(values) for values in series.values())
    spans: dict[str, list[int]] = {}
    for step in range(n_steps):
        instant = queue["begin"] + step * queue["step_s"]
        label = (
            f"{datetime.fromtimestamp(instant, UTC):%Y-%m}"
            if utc
            else f"week {int(instant // 604_800) + 1}"
        )
        spans.setdefault(label, []).append(step)
    heads = [
        ("month" if utc else "week"),
        *[f"{names.get(key, key)}\njobs waiting" for key in series],
    ]
    heads += [f"{names.get(key, key)}\nbusy" for key in busy]
    rows = []
    for label, steps in spans.items():
        cells = [Cell(label, label, "name")]
        cells += [_mean_cell(values, steps) for values in series.values()]
        cells += [_mean_cell(busy[key], steps, sizes.get(key, 0)) for key in busy]
        rows.append(cells)
    return table("Means of the queue", heads, [Rows(rows)], class_="scroll tall")


def _mean_cell(values: Sequence[float | None], steps: Sequence[int], capacity: float = 0) -> Cell:
    """Return a mean over steps, or the share of a capacity that it is."""
    known = [value for step in steps if step < len(values) and (value := values[step]) is not None]
    if not known:
        return Cell("", None, "n")
    mean = sum(known) / len(known)
    return Cell(share(mean / capacity) if capacity else number(mean, 1), mean, "n")


def _days(report: Report) -> Markup | None:
    """Return a day's chart of who held which processors."""
    if not report.get("days"):
        return None
    words = (
        "Who held which processors, a box for each job. Point at a job, and both schedules "
        "show it; click to keep it. Arrow keys go from job to job."
    )
    return join(_chart("day-chart", words))


def _idle(report: Report) -> Markup | None:
    """Return the share of capacity that idled while jobs waited."""
    rows = [row for row in report.get("options") or [] if is_known(row.get("idle_while_waiting"))]
    if not rows:
        return None
    kinds = ("recorded" if row["id"] == "recorded" else "simulated" for row in rows)
    shares = [row["idle_while_waiting"] for row in rows]
    bars = [
        (str(row["name"]), idle, share(idle), kind)
        for row, idle, kind in zip(rows, shares, kinds, strict=True)
    ]
    words = (
        "Share of the capacity that was idle while a job waited: no waiting job fitted it, "
        "or it was kept for one."
    )
    drawn = bar_table("Idle while jobs waited", ["option", "idle"], bars)
    return join([tag("p", words, class_="lede"), drawn])


def _requests(report: Report) -> Markup | None:
    """Return how much of what they asked for jobs used."""
    asked = report.get("requests")
    if not asked:
        return None
    used, median = asked.get("used_share"), asked.get("median_used")
    said = []
    if is_known(used):
        said.append(f"Over the whole log jobs used {share(used)} of the cpu-hours they asked for.")
    if is_known(median):
        said.append(f"Half of them used less than {share(median)} of their time limit.")
    parts: list[Markup] = [tag("p", " ".join(said), class_="lede")] if said else []
    if drawn := asked.get("histogram"):
        words = "Share of jobs of the whole log by per cent of the time limit used"
        parts.append(histogram(words, drawn["edges"], drawn["shares"]))
    limits = [row for row in report.get("options") or [] if row.get("group") == "limits"]
    if limits:
        heads = (*FIRST_HEADS[:5], "told")
        rows = [
            [
                Cell(join([row["name"], tag("small", row.get("what"))]), None, "name"),
                *(*waits(row), gain(row), told(row)),
            ]
            for row in limits
        ]
        lines = Rows(rows, classes=[row_class(row, None) for row in limits])
        parts.append(tag("p", "With other limits, jobs of the second half:", class_="lede"))
        parts.append(table("With other limits", heads, [lines], sortable=False))
    parts += [tag("h3", "Memory"), tag("p", _memory(report), class_="lede")]
    return join(parts)


def _memory(report: Report) -> str:
    """Say how much of the memory that they asked for jobs used."""
    use = report["requests"].get("memory")
    if not use:
        return "Not told: no job states what memory it asked for and, as measured, what it used."
    n_jobs, n_known = (report.get("log") or {}).get("n_jobs"), use["n_jobs"]
    return (
        f"Of {number(n_jobs)} jobs of the whole log, {number(n_known)} state both what memory they "
        f"asked for and what they used. These used {share(use['mean_used'])} of it in the mean, "
        f"and half of them at most {share(use['median_used'])}; {share(use['below_quarter'])} of "
        "them used less than a quarter."
    )


def _machine(report: Report) -> Markup | None:
    """Return waits on more and on fewer processors."""
    sizes = sorted(report.get("machine_sizes") or [], key=lambda size: size["processors"])
    if len(sizes) < 2:
        return None
    which = {"today": ", today", "machine2": ", the other machine"}
    bars = [
        (
            f"{number(size['processors'])}{which.get(size['id'], '')}",
            size["wait_mean"],
            hours(size["wait_mean"]),
            "recorded" if size["id"] == "today" else "simulated",
        )
        for size in sizes
    ]
    words = "Mean wait of the same jobs, by processors of the machine."
    drawn = bar_table("Waits by processors of the machine", ["processors", "mean wait"], bars)
    return join([tag("p", words, class_="lede"), drawn])


def _changed(report: Report) -> Markup | None:
    """Return the jobs whose waits changed most."""
    rows = report.get("changed") or []
    if not rows:
        return None
    best = names_of(report).get(report.get("named") or "", "the best option")
    heads = ("job", "user", "cpus", "limit", "run time", "before", "after", "gain", "why")
    lines = [
        [
            Cell(str(row["job"]), str(row["job"]), "name"),
            Cell(str(row.get("user") or ""), str(row.get("user") or ""), "name"),
            Cell(number(row.get("cpus")), row.get("cpus"), "n"),
            *[
                Cell(hours(row.get(key)), row.get(key), "n")
                for key in ("limit_h", "run_h", "before_h", "after_h")
            ],
            _less(row.get("change_h")),
            Cell(str(row.get("why") or ""), None, "why"),
        ]
        for row in rows
    ]
    words = f"From simulated today to {best}."
    drawn = table("The jobs that changed most", heads, [Rows(lines)])
    return join([tag("p", words, class_="lede"), drawn])


def _less(more: float | None) -> Cell:
    """Return a wait that grows by so much as one that gets less."""
    less = -more if more is not None and is_known(more) else None
    return Cell(change(less), less, f"n {'better' if (less or 0) > 0 else 'worse'}")


def _trust(report: Report) -> Markup | None:
    """Return how near the simulation comes, in detail."""
    trust = report.get("trust")
    if not trust:
        return None
    parts: list[Markup] = []
    if classes := trust.get("classes"):
        labels = classes["labels"]
        keys = [tag("span", label, class_=f"k{i}") for i, label in enumerate(labels)]
        parts += [
            tag("h3", "Jobs by class of wait"),
            *[
                stacked(side, labels, classes[side])
                for side in ("recorded", "simulated")
                if classes.get(side)
            ],
            tag("p", "waited", *keys, class_="legend"),
        ]
    if trust.get("partitions"):
        parts += [tag("h3", "By partition"), _partitions(trust["partitions"])]
    if trust.get("missed") and trust.get("causes"):
        lines = [
            [Cell(text, text, "n" if i else "name") for i, text in enumerate(row)]
            for row in cells(trust["causes"])
        ]
        parts += [tag("h3", "Waiting by cause"), table("Waiting by cause", HEADS, [Rows(lines)])]
    if trust.get("candidates"):
        tried = _candidates(trust["candidates"])
        parts += [tag("h3", "The nearest settings that were tried"), tried]
    if said := trust.get("forecasts"):
        parts += [tag("h3", "Starts, as hpcgym advise tells them"), tag("p", said, class_="aside")]
    return join(parts) if parts else None


def _partitions(rows: Sequence[Report]) -> Markup:
    """Return recorded and simulated waits by partition."""
    heads = ["partition", "jobs", "misses"]
    heads += [
        f"{name}\n{side}"
        for name in ("mean", "median", "9 in 10")
        for side in ("recorded", "simulated")
    ]
    lines = [
        [
            Cell(str(row["name"]) or "all", str(row["name"]), "name"),
            Cell(number(row.get("n")), row.get("n"), "n"),
            Cell(hours(row.get("misfit_h")), row.get("misfit_h"), "n"),
            *[
                cell
                for key in ("mean", "median", "p90")
                for side in ("recorded", "simulated")
                for cell in waits({"wait": row.get(side)}, (key,))
            ],
        ]
        for row in rows
    ]
    return table("Recorded and simulated waits by partition", heads, [Rows(lines)])


def _candidates(rows: Sequence[Report]) -> Markup:
    """Return the settings that were tried, and how far each is from the log."""
    n_jobs = max((row.get("n_jobs") or 0 for row in rows), default=0)
    bars = [
        (
            f"{row['setting']}{' (chosen)' if row.get('chosen') else ''}"
            + (" (told)" if row.get("told") else "")
            + (f" (first {number(n)} jobs)" if (n := row.get("n_jobs") or n_jobs) < n_jobs else ""),
            row.get("apart"),
            share(row.get("apart")),
            "recorded" if row.get("chosen") else "simulated",
        )
        for row in rows
    ]
    return bar_table(
        "Mean, median and 90th percentile apart from the recorded, on the first half",
        ["setting", "apart"],
        bars,
    )


def _read(report: Report) -> Markup | None:
    """Return what was read and what was left out."""
    log = report.get("log") or {}
    lines = [*(log.get("read") or []), *(log.get("notes") or [])]
    if not lines:
        return None
    return tag("pre", "\n".join(map(str, lines)), class_="scroll", tabindex="0")


def _settings(report: Report) -> Markup | None:
    rows = [
        [Cell(str(key), None, "name"), Cell(str(value), None, "prose")]
        for key, value in (report.get("settings") or {}).items()
    ]
    parts: list[Markup] = []
    if rows:
        parts.append(table("Every setting", ("setting", "value"), [Rows(rows)], sortable=False))
    if report.get("command"):
        parts += [
            tag("h3", "The command that makes it again"),
            tag("pre", tag("code", str(report["command"])), class_="scroll command", tabindex="0"),
        ]
    made = (report.get("version") or "", report.get("made") or "", report.get("schema"))
    parts.append(tag("p", "Made by hpcgym {} on {}; schema {}.".format(*made), class_="aside"))
    return join(parts)


SECTIONS: tuple[tuple[str, str, str, Callable[[Report], Markup | None]], ...] = (
    ("options", "Options", "All options", all_options),
    ("heat", "Size and limit", "Waits by cpus and time limit", heat_maps),
    ("groups", "Who", "Who waits", groups),
    ("queue", "Queue", "The queue, on the calendar", _queue),
    ("day", "A day", "A day on the machine", _days),
    ("idle", "Idle", "Idle while jobs waited", _idle),
    ("requests", "Requests", "Time and memory that were asked for and not used", _requests),
    ("machine", "Machine", "Other machines", _machine),
    ("changed", "Jobs", "The jobs that changed most", _changed),
    ("trust", "Trust", "How near the simulation comes", _trust),
    ("read", "Read", "What was read, and what was left out", _read),
    ("settings", "Settings", "Every setting", _settings),
)
"""Id, title in the list of sections, heading, and what makes it."""
