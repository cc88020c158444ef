"""The report as Markdown: the answer, how far to trust it, and one table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hpcgym.site.causes import HEADS, beyond, cells, misfit_text
from hpcgym.site.markup import hours


def markdown_of(report: Mapping[str, Any]) -> str:
    """Return the first screen of a report, what was read, and the command that makes it again."""
    trusted, log = report["trust"], report["log"]
    guess = ", a guess" if log["machine_is_guess"] else ""
    lines = [f"# {_plain(report['title'])}", "", *map(_plain, report["answer"]), ""]
    lines += ["| wait | recorded | simulated |", "|---|---:|---:|"]
    for key in ("mean", "median", "p90"):
        pair = (trusted[side][key] for side in ("recorded", "simulated"))
        lines.append(f"| {key} | {' | '.join(map(hours, pair))} |")
    correlation = trusted["correlation"]
    told = "not told" if correlation is None else f"{correlation:.2f}"
    lines += [
        "",
        f"The simulation is {trusted['verdict']}: its waits miss the recorded ones by "
        f"{misfit_text(trusted)}, the correlation of hourly queue lengths is {told}, and "
        f"{trusted['same_class']:.0%} of jobs are in the same class of waits. Its noise is "
        f"{hours(trusted['noise_h'])}. Its setting is the nearest of {trusted['chosen_among']}. "
        f"Jobs of the whole log that start on a full machine: {trusted['overfull_jobs']:,}.",
        *(f"{text[:1].upper()}{text[1:]}." for text in trusted["told"]),
        "",
        *_causes(trusted),
        "| option | kind | mean wait | median | p90 | less wait | told |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for row in report["options"]:
        gain = "" if row["gain_h"] is None else _signed(row["gain_h"])
        waits = (hours(row["wait"][key]) for key in ("mean", "median", "p90"))
        cells = [_plain(row["name"]), row["group"], *waits, gain, row["told"] or ""]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"Machine: {log['machine']}{guess}.", "", "```text"]
    lines += [*log["read"], *log["notes"], "```", "", "```bash", report["command"], "```", ""]
    return "\n".join(lines)


def _causes(trusted: Mapping[str, Any]) -> list[str]:
    """Return what is beyond the aim, and the waiting by cause; nothing where all is within it."""
    if not trusted["missed"]:
        return []
    rows = [HEADS, ["---", *["---:"] * (len(HEADS) - 1)], *cells(trusted["causes"])]
    return [beyond(trusted).strip(), "", *(f"| {' | '.join(row)} |" for row in rows), ""]


def _signed(gain_h: float) -> str:
    return f"{'-' if gain_h < 0 else '+'}{hours(abs(gain_h))}"


def _plain(text: str) -> str:
    """Return a text without what Markdown takes for marks."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text)
