"""Records side by side: ratios to SAF by part of the suite, in Markdown, CSV and HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.agent.contest import UNKNOWN
from hpcgym.base.errors import EvaluationError
from hpcgym.evaluation.runner import RATIO_BASELINE
from hpcgym.evaluation.statistics import Estimate, mean_over_logs, ratio_of_sums
from hpcgym.evaluation.suite.record_file import Record

if TYPE_CHECKING:
    import pandas as pd

COSTS = {"mean wait": "mean_wait_time", "longest wait": "max_wait_time"}
"""Columns of what a gain costs, as ratios to SAF's, and their metrics."""

SHARES = {"wasted, %": "waste", "killed, %": "share_killed"}


def suite_frame(records: Sequence[Record], *, by_log: bool = False) -> pd.DataFrame:
    """Return a row for each record: ratios to SAF with intervals, and what they cost.

    Ratios are by part of the suite, or by log. That of a part is the geometric mean over its logs;
    a record without all of them has none there, and where SAF's record has not all of them there is
    no column. Ratios are of weeks that both have.

    Raises:
        EvaluationError: No record of SAF, records of two suites, or two agents of one name.

    Source: Specification, section 10, "Evaluation protocol", steps 3 and 4.
    """
    import pandas as pd

    saf = _baseline(records)
    groups = (
        {name.removesuffix("-weeks"): [name] for name in saf.weeks}
        if by_log
        else {part: [log.scenario for log in saf.suite.of([part])] for part in saf.suite.parts}
    )
    groups = {group: names for group, names in groups.items() if set(names) <= set(saf.weeks)}
    rows = []
    for record in records:
        ratios = {group: _ratio_on(record, saf, names) for group, names in groups.items()}
        logs = [name for name in record.weeks if name in saf.weeks]
        if not logs:
            raise EvaluationError(f"{record.name} has no log in common with {saf.name}")
        known = sorted({contest for contest in record.contests.values() if contest != UNKNOWN})
        row: dict[str, object] = {"agent": record.name, "contest": ", ".join(known) or UNKNOWN}
        row |= {group: "" if ratio is None else str(ratio) for group, ratio in ratios.items()}
        row |= {name: f"{_ratio(record, saf, logs, key):.3f}" for name, key in COSTS.items()}
        row |= {
            name: f"{np.mean([100 * record.values(log, key).mean() for log in logs]):.2f}"
            for name, key in SHARES.items()
        }
        first = next((ratio.value for ratio in ratios.values() if ratio is not None), float("inf"))
        rows.append((first, row))
    return pd.DataFrame([row for _, row in sorted(rows, key=lambda pair: pair[0])])


def _baseline(records: Sequence[Record]) -> Record:
    """Return the record of SAF among others, and refuse a set that no table can be of."""
    by_name: dict[str, Record] = {}
    for record in records:
        other = by_name.setdefault(record.name.casefold(), record)
        if other is not record:
            kind = "one record" if other.identity == record.identity else "two agents"
            raise EvaluationError(f"{kind} of the name {record.name} stand twice; leave one out")
        if record.suite.name != records[0].suite.name:
            raise EvaluationError(
                f"{record.name} is of {record.suite.name}, and others of {records[0].suite.name}"
            )
    if RATIO_BASELINE.casefold() not in by_name:
        raise EvaluationError(
            f"ratios are to {RATIO_BASELINE}, and its record is missing: hpcgym suite run "
            f"{RATIO_BASELINE}"
        )
    return by_name[RATIO_BASELINE.casefold()]


def _pair(record: Record, saf: Record, log: str, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a metric of an agent and of SAF on the weeks that both have."""
    weeks = sorted(set(record.weeks[log]) & set(saf.weeks[log]))
    if not weeks:
        raise EvaluationError(f"{record.name} and {saf.name} have no week of {log} in common")
    of_agent, of_saf = (
        np.array([record.weeks[log][week].metrics[metric] for week in weeks])
        for record in (record, saf)
    )
    return of_agent, of_saf


def _ratio_on(record: Record, saf: Record, names: Sequence[str]) -> Estimate | None:
    """Return the ratio to SAF on some logs, None where one is missing."""
    if not all(name in record.weeks and name in saf.weeks for name in names):
        return None
    return mean_over_logs([ratio_of_sums(*_pair(record, saf, name, "mean_bsld")) for name in names])


def _ratio(record: Record, saf: Record, logs: Sequence[str], metric: str) -> float:
    """Return the geometric mean over logs of a ratio of means."""
    pairs = [_pair(record, saf, name, metric) for name in logs]
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(
            np.exp(np.mean([np.log(of_agent.mean() / of_saf.mean()) for of_agent, of_saf in pairs]))
        )


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
body {{ margin: 1rem; }} div {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .3rem .6rem; text-align: left; }}
tr:nth-child(even) {{ background: #8881; }} th {{ cursor: pointer; }}
</style></head><body>
<h1>{title}</h1><p>{text}</p>
<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>
<script>
document.querySelectorAll("th").forEach((head, column) => head.onclick = () => {{
  const body = document.querySelector("tbody"), rows = [...body.rows];
  const of = row => row.cells[column].textContent, up = head.dataset.up !== "1";
  const number = row => parseFloat(of(row));
  rows.sort((a, b) => isNaN(number(a)) && isNaN(number(b)) ? of(a).localeCompare(of(b))
    : isNaN(number(a)) ? 1 : isNaN(number(b)) ? -1 : number(a) - number(b));
  if (!up) rows.reverse();
  head.dataset.up = up ? "1" : "0"; body.append(...rows);
}});
</script></body></html>
"""


def html_page(frame: pd.DataFrame, title: str, text: str) -> str:
    """Return a table as a page of its own, whose columns sort by a click."""
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in frame)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)}</tr>"
        for row in frame.itertuples(index=False)
    )
    return PAGE.format(title=html.escape(title), text=html.escape(text), head=head, body=body)
