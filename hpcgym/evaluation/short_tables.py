"""What a person reads first of a comparison: five columns, and a sentence that says who wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from hpcgym.base.text_table import Column, TextTable, duration, fixed
from hpcgym.evaluation.aggregate import Aggregate
from hpcgym.evaluation.gap import gap_columns, gap_notes
from hpcgym.evaluation.looks import looks_notes
from hpcgym.evaluation.priced import priced_columns
from hpcgym.evaluation.results import Evaluation, Summary
from hpcgym.evaluation.statistics import ends_text, mean_over_logs, ratio_of_sums
from hpcgym.evaluation.waits import RATIOS, ratio_text

ELSEWHERE = "--all shows more of each agent, --format csv has all"

LONGEST = RATIOS.index("max_wait_ratio")  # which ratio of long waits is that of the longest

_PRICES = {"open": "May delay jobs beyond the threshold", "requeue": "Kills jobs that run"}
"""What agents of a contest do that others do not."""

Row: TypeAlias = Summary | Aggregate  # what is known of an agent, on one log or over several


def overview(
    evaluation: Evaluation, kinds: Mapping[str, str] | None = None, notes: Sequence[str] = ()
) -> TextTable:
    """Return the table of one log: waits in hours, and the ratio to the baseline, best first.

    Args:
        kinds: Kind of each agent, where some could not be schedulers.
        notes: Lines to add below.
    """
    ranked = evaluation.ranked()
    names = [row.agent for row in ranked]
    means = [float(evaluation.values(name, "mean_wait_time").mean()) for name in names]
    of_j = priced_columns(names, evaluation.priced, evaluation.baseline)
    columns = [
        *_names(ranked, kinds),
        Column("mean\nwait", list(map(duration, means)), rank=2),
        Column("longest\nwait", [duration(row.max_wait_time) for row in ranked], rank=3),
        *of_j,
        *_ratios(ranked, evaluation.baseline)[: 1 if of_j else None],
        *gap_columns(names, evaluation.gaps),
    ]
    without = [f"left out {agent}: {why}" for agent, why in evaluation.left_out.items()]
    gaps = gap_notes(evaluation.gaps, len(evaluation.weeks))
    further = [*gaps, *notes, *looks_notes(evaluation), *without]
    return _table(columns, ranked, [evaluation], kinds, evaluation.conditions, further)


def overview_of_logs(
    evaluations: Sequence[Evaluation],
    aggregates: Sequence[Aggregate],
    kinds: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> TextTable:
    """Return the table of several logs: geometric means of ratios to the baseline, best first.

    Other arguments as of `overview`.
    """
    ranked = sorted(aggregates, key=lambda row: row.ratio.value)
    columns = [
        *_names(ranked, kinds),
        *_ratios(ranked, evaluations[0].baseline),
        Column("longest\nwait", [ratio_text(row.waits[LONGEST]) for row in ranked], rank=2),
    ]
    title = f"{len(evaluations)} logs: {', '.join(log.scenario for log in evaluations)}"
    return _table(
        columns, ranked, evaluations, kinds, title, ["geometric means of the ratios", *notes]
    )


def verdict(
    evaluations: Sequence[Evaluation], ranked: Sequence[Row], kinds: Mapping[str, str] | None = None
) -> str:
    """Say in one sentence which agent is best, and whether that is sure.

    Agents that know run times, or the very weeks, cannot win. Sure is what holds at both ends of an
    interval that allows for the choice among all others.

    Source: Specification, section 10, "Intervals".

    Example:
        >>> from hpcgym.evaluation import evaluate
        >>> found = evaluate(["FCFS"], "tiny", progress=False)
        >>> verdict([found], found.ranked())
        'SAF has the least bounded slowdown, but one episode tells nothing of others.'
    """
    baseline = evaluations[0].baseline
    real = [row for row in ranked if (kinds or {}).get(row.agent, "achievable") == "achievable"]
    if len(evaluations) == 1 and evaluations[0].priced:
        return _priced_verdict(evaluations[0], [row.agent for row in real])
    best, k = real[0], max(len(real) - 1, 1)
    others = [row.agent for row in real[1:] if row.agent != baseline]
    alike = [agent for agent in others if not _is_told_apart(evaluations, best.agent, agent, k)]
    text = f"{best.agent} has the least bounded slowdown"
    if all(row.ratio.ends() is None for row in real):
        return f"{text}, but one {evaluations[0].unit} tells nothing of others."
    less = _less(best, baseline, k)
    if less:
        text = f"{text}, {less}" if alike else f"{best.agent} is best: {less} in bounded slowdown"
    elif best.agent != baseline:
        alike.insert(0, baseline)
    if alike:
        text = f"{text}, but may be no better than {_listed(alike)}"
    safe = next((row for row in real if row.contest == "guarded"), best)
    if safe.agent not in (best.agent, baseline) and (less := _less(safe, baseline, k)):
        text += f"; of those that kill nothing and keep the threshold it is {safe.agent}, {less}"
    return f"{text}."


def _priced_verdict(evaluation: Evaluation, agents: Sequence[str]) -> str:
    """Say in one sentence which agent has the least J, and whether that is sure.

    Intervals allow for the choice among all others. `agents` come best first.

    Source: Specification, section 10, "Intervals".
    """
    best, *others = agents
    baseline, k = evaluation.baseline, max(len(others), 1)
    text = f"{best} has the least J"
    mean = evaluation.priced[best]
    low, high = mean.ends(among=k) or (mean.value, 0.0)
    if high < 0:
        text += f", {-mean.value:.3f} below {baseline}'s ({-high:.3f} to {-low:.3f})"
    beside = replace(evaluation, baseline=best).priced
    alike = [other for other in others if (beside[other].ends(among=k) or (0.0,))[0] <= 0]
    return f"{text}, but may be no better than {_listed(alike)}." if alike else f"{text}."


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _less(row: Row, baseline: str, k: int) -> str:
    """Say how much less slowdown an agent has than the baseline; "" where that is unsure."""
    low, high = row.ratio.ends(among=k) or (1.0, 1.0)
    if high >= 1:
        return ""
    ends = f"{100 * (1 - high):.0f} to {100 * (1 - low):.0f} %"
    chosen = f", as one of {k}" if k > 1 else ""
    return f"{100 * (1 - row.ratio.value):.0f} % below {baseline} ({ends}{chosen})"


def _is_told_apart(evaluations: Sequence[Evaluation], best: str, other: str, k: int) -> bool:
    """Tell whether two agents differ on the weeks that both have run."""
    logs = []
    for evaluation in evaluations:
        against_best = replace(evaluation, baseline=best)
        of_other, of_best = against_best.values(other), against_best.baseline_values(other)
        if np.isnan(of_best).any():
            return True  # they ran other weeks: nothing is said of them
        logs.append(ratio_of_sums(of_other, of_best))
    ends = mean_over_logs(logs).ends(among=k)
    return ends is not None and ends[0] > 1


def _names(ranked: Sequence[Row], kinds: Mapping[str, str] | None) -> list[Column]:
    """Return the column of agents, and of kinds where they differ."""
    columns = [Column("agent", [row.agent for row in ranked], "name")]
    if kinds and len({kinds[row.agent] for row in ranked}) > 1:
        columns.append(Column("kind", [kinds[row.agent] for row in ranked], "word", rank=4))
    return columns


def _ratios(ranked: Sequence[Row], baseline: str) -> list[Column]:
    return [
        Column(f"bsld to\n{baseline}", fixed([row.ratio.value for row in ranked], 3)),
        Column("95\u00a0%\ninterval", [ends_text(row.ratio, ".3f") for row in ranked], rank=1),
    ]


def _table(
    columns: Sequence[Column],
    ranked: Sequence[Row],
    evaluations: Sequence[Evaluation],
    kinds: Mapping[str, str] | None,
    title: str,
    further: Sequence[str],
) -> TextTable:
    baseline = evaluations[0].baseline
    prices = []
    for contest, price in _PRICES.items():
        agents = [row.agent for row in ranked if row.contest == contest]
        prices += [f"{price}: {', '.join(agents)}."] if agents else []
    return TextTable(
        columns,
        title=title,
        notes=(verdict(evaluations, ranked, kinds), *prices, *further, ELSEWHERE),
        bold=[number for number, row in enumerate(ranked) if row.agent == baseline],
    )
