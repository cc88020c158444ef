"""What the page shows first: the answer, how far to trust it, one table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hpcgym.site.causes import in_words, misfit_text
from hpcgym.site.groups import group_text
from hpcgym.site.markup import (
    Cell,
    Markup,
    Rows,
    date,
    hours,
    is_known,
    join,
    number,
    share,
    table,
    tag,
)
from hpcgym.site.option_table import FIRST_HEADS, gain, row_class, told, waits
from hpcgym.site.pictures import IntervalScale, pair

VERDICTS = {
    "near": ("Near", "Changes beyond that can be told."),
    "rough": ("Rough", "Only changes beyond that can be told."),
    "far": ("Far", "No change can be told from it."),
}

UNIT = re.compile(r"(?<=\d) (?=(?:s|min|h|d)\b)")
"""What stands between a number and its unit, and must not break."""


def first_screen(report: Mapping[str, Any]) -> Markup:
    """Return the head of the page."""
    strip = _trust_strip(report.get("trust"), report.get("log") or {})
    parts = (_masthead(report), _answer(report.get("answer") or []), strip, _first_table(report))
    return tag("header", *parts, class_="first")


def _masthead(report: Mapping[str, Any]) -> Markup:
    log = report.get("log") or {}
    facts = [
        f"Whole log: {number(log.get('n_jobs'))} jobs",
        f"{number(log['users'])} users" if log.get("users") else None,
        f"{log['machine']}{', a guess' if log.get('machine_is_guess') else ''}"
        if log.get("machine")
        else None,
        f"{share(log['utilisation'])} used" if is_known(log.get("utilisation")) else None,
        " to ".join(date(log.get(end), log.get("utc", False)) for end in ("begin", "end")),
        f"report of {report['made']}" if report.get("made") else None,
    ]
    listed = tag("ul", *[tag("li", fact) for fact in facts if fact], class_="facts")
    return tag("div", tag("h1", str(report["title"])), listed, class_="masthead")


def _answer(sentences: Sequence[str]) -> Markup:
    lines = [tag("p", UNIT.sub("\u00a0", sentence)) for sentence in sentences if sentence]
    shown = lines or [tag("p", "The report has no answer.")]
    return tag("div", *shown, id="answer", class_="answer")


def _trust_strip(trust: Mapping[str, Any] | None, log: Mapping[str, Any]) -> Markup:
    """Return how near the simulation comes to the log."""
    if not trust:
        words = "How near the simulation comes is not known: the log has no starts to compare with."
        label = "How far to trust it"
        return tag("section", tag("p", words), class_="trust none", aria_label=label)
    verdict = str(trust.get("verdict"))
    word, means = VERDICTS.get(verdict, (verdict, ""))
    recorded, simulated = trust.get("recorded") or {}, trust.get("simulated") or {}
    note = f"It misses {misfit_text(trust)}. {means}"
    meter = tag("dd", tag("b", word, class_="verdict"), _meter(verdict))
    lead = f"cell lead {verdict if verdict in VERDICTS else ''}".strip()
    near = (tag("dt", "How near the simulation comes"), meter, tag("dd", note, class_="note"))
    cells = [tag("div", *near, class_=lead)]
    titles = {"mean": "Mean wait", "median": "Median wait", "p90": "9 in 10 wait less than"}
    for key, title in titles.items():
        cells.append(_cell(title, pair(recorded.get(key), simulated.get(key))))
    correlation = trust.get("correlation")
    facts = [
        ("Correlation of queues", number(correlation, 2) if is_known(correlation) else "not known"),
        ("Same class of waits", share(trust.get("same_class"))),
        ("Noise of simulation", hours(trust.get("noise_h"))),
    ]
    fixed = trust.get("fixed_share")
    facts.append(("Waiting no order changes", share(fixed) if is_known(fixed) else "not known"))
    if is_known(trust.get("held_share")):
        facts.append(("Waiting of jobs held as recorded", share(trust["held_share"])))
    if n := trust.get("overfull_jobs"):
        facts.append(("Start on a full machine, whole log", f"{number(n)} job{'s' * (n != 1)}"))
    listed = [
        tag("span", tag("span", name), tag("b", value), class_="fact") for name, value in facts
    ]
    cells.append(_cell("Agreement", tag("span", *listed, class_="stack-facts")))
    foot = (
        f"Simulated with {trust.get('setting')}, the nearest of {trust.get('chosen_among')} "
        f"settings on the first half of the log. {_plain(trust)}{in_words(trust)}{_judged(log)} "
        + " ".join(f"{text[:1].upper()}{text[1:]}." for text in trust.get("told") or ())
    )
    return tag(
        "section",
        tag("dl", *cells),
        tag("p", foot, tag("a", "More on trust", href="#trust"), class_="foot"),
        class_="trust",
        aria_label="How far to trust it",
    )


def _plain(trust: Mapping[str, Any]) -> str:
    """Say which setting without holds is nearest, and its waits."""
    plain = trust.get("without_holds")
    if not plain:
        return ""
    waits, correlation = plain["simulated"], plain["correlation"]
    return (
        f"Without holds the nearest is {plain['setting']}: mean {hours(waits['mean'])}, median "
        f"{hours(waits['median'])}, 9 in 10 less than {hours(waits['p90'])}, correlation of queues "
        f"{'not known' if correlation is None else number(correlation, 2)}. "
    )


def _judged(log: Mapping[str, Any]) -> str:
    if not log.get("n_judged"):
        return ""
    return (
        f"All waits are of the second: {number(log['n_judged'])} jobs, "
        f"from {date(log.get('split'), log.get('utc', False))}. "
    )


def _cell(title: str, content: Markup) -> Markup:
    return tag("div", tag("dt", title), tag("dd", content), class_="cell")


def _meter(verdict: str) -> Markup:
    """Return three steps, as many filled as the verdict is worth."""
    filled = {"near": 3, "rough": 2, "far": 1}.get(verdict, 0)
    steps = [tag("i", class_="on" if i < filled else None) for i in range(3)]
    return tag("span", *steps, class_="meter", aria_hidden="true")


def _first_table(report: Mapping[str, Any]) -> Markup:
    rows = [row for row in report.get("options") or [] if row.get("first")]
    if not rows:
        return tag("p", "No option was simulated.")
    misfit = (report.get("trust") or {}).get("misfit_h")
    scale = IntervalScale(rows, misfit)
    lines = [
        [*(_name(row), *waits(row), gain(row), scale.cell(row), told(row), _loser(row))]
        for row in rows
    ]
    classes = [row_class(row, report.get("named")) for row in rows]
    within = f"within {hours(misfit)}, what the simulation misses: not distinguishable. "
    said = (within if is_known(misfit) else "", "Gains are against simulated today.")
    drawn = Rows(lines, classes=classes)
    whole = table("Options, in short", FIRST_HEADS, [drawn], class_="scroll main")
    return join([whole, tag("p", tag("span", class_="swatch band"), *said, class_="key")])


def _name(row: Mapping[str, Any]) -> Cell:
    kind = tag("em", "simulated only") if row.get("group") == "simulated only" else None
    shown = join([tag("span", row["name"], class_="option"), kind, tag("small", row.get("what"))])
    return Cell(shown, str(row["name"]), "name")


def _loser(row: Mapping[str, Any]) -> Cell:
    """Return the group that loses most."""
    group = row.get("worst_group")
    if not group:
        return Cell("nobody told" if row.get("told") else "", None, "loser")
    small = tag("small", f"{number(group['n'])} jobs, {hours(group['change_h'])} more")
    return Cell(join([tag("span", group_text(group)), small]), group["change_h"], "loser")
