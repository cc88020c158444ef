"""A site's question answered: the three sentences, and the whole report as one dictionary.

The dictionary is what `report.json` holds, and what the page and the Markdown file are made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import hpcgym
from hpcgym.base.text_table import duration
from hpcgym.core.settings import SchedulerSettings
from hpcgym.evaluation.store import Store
from hpcgym.site import details
from hpcgym.site.causes import misfit_text
from hpcgym.site.comparison import (
    RECORDED,
    TODAY,
    UNTOLD,
    Comparison,
    compare,
    most_helpful,
    option_rows,
)
from hpcgym.site.fidelity import JITTER_S, find_setting, trust
from hpcgym.site.groups import group_text
from hpcgym.site.log import Reading, SiteLog, read_site_log
from hpcgym.site.markup import hours
from hpcgym.site.option_table import span
from hpcgym.site.told import Told

SCHEMA = "hpcgym-report-1"


def report_on(
    files: str | Path | Sequence[str | Path],
    how: Reading | None = None,
    *,
    told: Told | None = None,
    command: str = "",
    resume: str | Path | None = None,
    fit_seconds: float | None = None,
) -> dict[str, Any]:
    """Read a site's accounting, simulate what might be, and return the report.

    Args:
        told: What the site says of its scheduler.
        command: What makes the report again.
        resume: A file that keeps each simulation when it has ended, `hpcgym.evaluation.store`; a
            second call with it goes on from there. None keeps nothing.
        fit_seconds: How long the search for today's setting may take; it, noise and options may
            take 2.3 times as long. Default 20, in proportion longer beyond 50,000 jobs. What is cut
            off may differ next time.

    Raises:
        TraceError: As of `hpcgym.site.log.read_site_log`.
        EvaluationError: `resume` is not such a file.
    """
    how, store = how or Reading(), None if resume is None else Store(resume)
    log = read_site_log(files, how)
    fidelity = find_setting(log, SchedulerSettings(kill_at_limit=False), told, store, fit_seconds)
    comparison = compare(log, fidelity, store)
    rows = option_rows(comparison)
    best, helps = comparison.best(simulated_only=False), most_helpful(rows)
    named: str | None = helps["id"] if helps else best
    shown = details.shown_options(comparison, named)
    given = [files] if isinstance(files, str | Path) else list(files)
    trusted = trust(log, fidelity)
    trusted["told"] += comparison.cut
    return {
        "schema": SCHEMA,
        "version": hpcgym.__version__,
        "title": log.workload.name,
        "made": datetime.now(UTC).strftime("%Y-%m-%d"),
        "log": _of_log(log, [str(name) for name in given], comparison),
        "answer": sentences(log, rows, trusted, named),
        "trust": trusted,
        "options": rows,
        "named": named,
        "best": best,
        "best_any": comparison.best(simulated_only=True),
        "groups": details.group_tables(comparison, shown),
        "heat": details.heat_map(comparison, shown),
        "queue": details.queues(comparison, shown),
        "days": details.days(comparison, shown),
        "requests": details.request_use(log),
        "machine_sizes": details.size_rows(comparison),
        "changed": details.changed_jobs(comparison, named) if named else [],
        "settings": _settings(trusted["setting"], how, told or Told()),
        "command": command,
    }


def _of_log(log: SiteLog, files: list[str], comparison: Comparison) -> dict[str, Any]:
    jobs, judged = log.workload, log.is_judged
    everyone = np.ones(len(jobs), dtype=np.bool_)
    used = comparison.outcomes[RECORDED].summary(everyone)["utilisation"]
    left_out = [*comparison.fidelity.fit.left_out, *comparison.left_out]
    size = f"{jobs.machine_processors:,} processors"
    if jobs.machine is not None:
        size = f"{jobs.machine.n_nodes:,} nodes, {jobs.machine_processors:,} cpus"
    return {
        "files": [Path(file).name for file in files],
        "n_jobs": len(jobs),
        "begin": log.begin,
        "end": log.begin + int(jobs.submit_time[-1]),
        "utc": log.has_dates,
        "split": log.begin + log.split,
        "n_judged": int(np.count_nonzero(judged)),
        "machine": size,
        "machine_is_guess": log.machine_is_guess,
        "users": len(set(log.names["user"]) - {""}),
        "utilisation": used,
        "read": list(log.read),
        "notes": [f"left out: {text}" for text in left_out],
    }


def _settings(today: str, how: Reading, told: Told) -> dict[str, str]:
    """Return every setting of the report as text."""
    kept = "kept" if how.keep_names else "hashed, by a key that is not kept"
    return {
        "today's scheduler": today,
        "told of the scheduler": ", ".join([*told.files, *told.notes]) or "nothing",
        "jobs": "each start is one: an id that was put back and started anew is several",
        "run times": "as recorded, also beyond the limit",
        "waits count from": how.counted_from,
        "time zone": how.timezone or "as the machine that read it",
        "missing limits": how.missing_request,
        "names": kept,
        "setting chosen on": "the first half of the time, by mean, median and 90th percentile",
        "judged on": "the second half of the time",
        "noise": f"submissions moved by up to {JITTER_S} s",
    }


def sentences(
    log: SiteLog, rows: Sequence[dict[str, Any]], trusted: Mapping[str, Any], named: str | None
) -> list[str]:
    """Return what would help most, who would lose by it, and what happened, in three sentences.

    Args:
        named: What is told to help most, or the best order.
    """
    by_id = {row["id"]: row for row in rows}
    recorded, today = by_id[RECORDED]["wait"]["mean"], by_id[TODAY]["wait"]["mean"]
    n = f"{int(np.count_nonzero(log.is_judged)):,} jobs"
    happened = (
        f"{_span(log)}, {n} waited {hours(recorded)} in the mean; the simulation nearest to it "
        f"({trusted['setting']}) says {hours(today)}."
    )
    row = by_id.get(named or "")
    if row is None:
        return ["No other order was simulated.", "", happened]
    orders = [each["told"] for each in rows if each["group"] == "order"]
    said = [_of_best(row, today, trusted)]
    if "better" not in orders:
        is_better = row["told"] == "better"
        said.insert(is_better, f"No order {'alone ' * is_better}is told to help.")
    first = " ".join(said)
    group = row["worst_group"]
    if row["told"] == UNTOLD:
        third = "Who would gain or lose by it cannot be told either."
    elif group is None:
        third = "No group of 30 jobs or more would wait longer by more than the simulation misses."
    else:
        third = (
            f"Those who lose most are jobs of {group_text(group)}: {group['n']:,} jobs, "
            f"{hours(group['change_h'])} longer in the mean; {row['losers']:.0%} of all jobs would "
            "wait over 10 minutes longer."
        )
    return [first, third, happened]


def _of_best(row: Mapping[str, Any], today_h: float, trusted: Mapping[str, Any]) -> str:
    """Say what an option would change, or why that cannot be told of the best order."""
    gain, interval = row["gain_h"], row["interval_h"]
    misfit, noise = trusted["misfit_h"], trusted["noise_h"]
    what = f"misses {misfit_text(trusted)}" if misfit >= noise else f"has a noise of {hours(noise)}"
    least = f"the simulation {what}"
    ends = () if interval is None else sorted(end if gain >= 0 else -end for end in interval)
    between = f" (60% interval {span(*ends)} for weeks like these)" if ends else ""
    less = f"{hours(abs(gain))} {'less' if gain >= 0 else 'longer'}"
    change = f"{hours(row['wait']['mean'])}, {less} than the simulated {hours(today_h)}"
    if row["told"] != UNTOLD:
        name = row["name"] if row["group"] == "order" else f"{row['name']} ({row['what']})"
        under = "On" if row["group"] == "machine" else "Under"
        return f"{under} {name} jobs would wait {change}{between}; {least}."
    if trusted["verdict"] == "far":
        why = f"but {least}, and is far from what was recorded"
    elif abs(gain) <= max(misfit, noise):
        why = f"but {least}"
    elif interval is None:
        why = "but there are fewer than four weeks to tell it from chance"
    else:
        why = f"but weeks differ too much{between}"
    return (
        f"{row['name']}, the best order on the first half, cannot be told from today's: jobs would "
        f"wait {change}, {why}."
    )


def _span(log: SiteLog) -> str:
    """Say which time the judged half is."""
    begin, end = log.begin + log.split, log.begin + int(log.workload.submit_time[-1])
    if not log.has_dates:
        return f"In the last {duration(end - begin)} of the log"
    first, last = (datetime.fromtimestamp(second, UTC) for second in (begin, end))
    days = [f"{day:%-d %B %Y}" for day in (first, last)]
    return f"On {days[0]}" if days[0] == days[1] else f"From {days[0]} to {days[1]}"
