"""Aggregates over several logs: one ratio per agent, in which all logs count alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpcgym.agent.contest import UNKNOWN
from hpcgym.base.text_table import Column, TextTable, fixed
from hpcgym.evaluation.results import Evaluation, Summary
from hpcgym.evaluation.statistics import Estimate, ends_text, mean_over_logs
from hpcgym.evaluation.waits import mean_ratios, notes_on, row_of, table_columns

if TYPE_CHECKING:
    import pandas as pd

ALL_LOGS = "all logs"  # the scenario's name in rows that are over all logs


@dataclass(frozen=True)
class Aggregate:
    """Metrics of one agent over several logs."""

    agent: str
    n_weeks: int  # its weeks, of all logs together
    # Geometric mean over the logs of the ratio of sums to the baseline, with its interval.
    ratio: Estimate
    log_ratio: Estimate  # mean over the logs of the mean log ratio, with its interval
    contest: str  # its contest on every log, or "-"
    # Geometric means over the logs of the ratios of `hpcgym.evaluation.waits.RATIOS`.
    waits: tuple[float, ...]


def aggregate_logs(evaluations: Sequence[Evaluation]) -> tuple[Aggregate, ...]:
    """Return the aggregate of every agent over several logs, all with the same agents.

    Source: Specification, section 10, "Evaluation protocol", steps 3 and 4, log by log.
    """
    by_log = [{row.agent: row for row in evaluation.summaries} for evaluation in evaluations]
    return tuple(_aggregate([of[agent] for of in by_log]) for agent in evaluations[0].agents)


def _aggregate(logs: Sequence[Summary]) -> Aggregate:
    contests = {log.contest for log in logs}
    return Aggregate(
        agent=logs[0].agent,
        n_weeks=sum(log.n_weeks for log in logs),
        ratio=mean_over_logs([log.ratio for log in logs]),
        log_ratio=mean_over_logs([log.log_ratio for log in logs]),
        contest=contests.pop() if len(contests) == 1 else UNKNOWN,
        waits=mean_ratios([log.waits for log in logs]),
    )


def aggregate_frame(aggregates: Sequence[Aggregate]) -> pd.DataFrame:
    """Return one row per agent, with these columns of `Evaluation.summary`.

    They are scenario ("all logs"), agent, n_weeks, ratio, log_ratio and the ends of their
    intervals, contest, and the ratios of long waits.
    """
    import pandas as pd

    return pd.DataFrame([{"scenario": ALL_LOGS} | row_of(aggregate) for aggregate in aggregates])


def aggregate_tables(
    evaluations: Sequence[Evaluation],
    aggregates: Sequence[Aggregate],
    kinds: Mapping[str, str],
    notes: Sequence[str],
) -> list[TextTable]:
    """Return two tables for a person, best ratio first: of slowdowns, and of long waits.

    `notes` are lines to add below the first.

    Source: Specification, section 10, "Evaluation protocol", step 5.
    """
    baseline = evaluations[0].baseline
    what = (
        f"ratio: geometric mean over the logs of the ratio to {baseline}, lower is better; log "
        "ratio: its mean over the logs; 95 % intervals over each log's weeks, of each agent alone"
    )
    ranked = sorted(aggregates, key=lambda row: row.ratio.value)
    log_intervals = [ends_text(row.log_ratio, "+.3f", " to ") for row in ranked]
    columns = [
        Column("agent", [row.agent for row in ranked], "name"),
        Column("kind", [kinds[row.agent] for row in ranked], "word", rank=2),
        Column(f"ratio\nto {baseline}", fixed([row.ratio.value for row in ranked], 3)),
        Column("95\u00a0%\ninterval", [ends_text(row.ratio, ".3f") for row in ranked], rank=1),
        Column("log\nratio", fixed([row.log_ratio.value for row in ranked], 3, sign="+"), rank=3),
        Column("95\u00a0%\ninterval", log_intervals, rank=4),
    ]
    bold = [position for position, row in enumerate(ranked) if row.agent == baseline]
    title = f"{len(evaluations)} logs: {', '.join(log.scenario for log in evaluations)}"
    contests = [row.contest for row in ranked]
    of_waits = [
        columns[0],
        Column("contest", contests, "word"),
        *table_columns([row.waits for row in ranked]),
    ]
    waits = f"{len(evaluations)} logs: long waits, geometric means of the ratios to {baseline}'s"
    return [
        TextTable(columns, title=title, notes=(what, *notes), bold=bold),
        TextTable(of_waits, title=waits, notes=notes_on(contests), bold=bold),
    ]
