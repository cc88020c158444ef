"""Evaluate agents of the shelf for its table of results, to the digits that commands print."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from pathlib import Path
from typing import Any

from hpcgym.agent.card import Card
from hpcgym.agent.result_table import Result
from hpcgym.agent.training_weeks import open_weeks
from hpcgym.base.ranges import number_ranges
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.cross_validation import REPLICAS, evaluate
from hpcgym.evaluation.executors import AnyExecutor
from hpcgym.evaluation.looks import looks_of
from hpcgym.evaluation.results import Evaluation, Summary
from hpcgym.evaluation.runner import misfits
from hpcgym.trace.resample import JITTER_S


def shelf_results(
    cards: Mapping[str, Card],
    scenario: str,
    *,
    replicas: int = REPLICAS,
    executor: AnyExecutor = None,
    resume: str | Path | None = None,
    progress: bool = True,
) -> dict[str, Result]:
    """Evaluate agents on a scenario by the full protocol; return the result of each, by name.

    An agent that was trained on weeks of the same log is run only on the weeks that its training
    leaves open, and left out where there are none. The `command` of a result prints its metrics.

    Args:
        cards: The agents' cards, by name.
        scenario: Name of the scenario.
        replicas: Jittered copies of each week.
        executor: Whose workers share the weeks, as of `hpcgym.evaluate`.
        resume: File that keeps finished weeks, likewise.
        progress: Whether to show a progress bar, on a terminal.

    Raises:
        TraceError: The scenario's log is not at hand.

    Source: Specification, section 10, "Evaluation protocol", step 2: ten copies, jittered by 600 s.
    """
    episodes = Episodes(scenario)
    by_weeks: dict[tuple[int, ...], list[str]] = {}
    left_out = misfits([card.agent for card in cards.values()], episodes)
    for name, card in cards.items():
        if name in left_out:
            continue
        opened = episodes.numbers if card.training is None else open_weeks(card.training, episodes)
        by_weeks.setdefault(opened, []).append(name)
    found: dict[str, Result] = {}
    for opened, names in by_weeks.items():
        if not opened:
            continue
        weeks = None if opened == episodes.numbers else number_ranges(opened)
        evaluation = evaluate(
            [cards[name].agent for name in names],
            episodes,
            weeks=weeks,
            jitter=JITTER_S if replicas else 0,
            replicas=replicas,
            controls=True,
            executor=executor,
            resume=resume,
            progress=progress,
        )
        found |= {
            one.agent: _result(one, evaluation, weeks)
            for one in evaluation.summaries
            if one.agent in names
        }
    return found


def _result(one: Summary, evaluation: Evaluation, weeks: str | None) -> Result:
    """Round a summary as the table of an evaluation does, and state the command that prints it."""
    chosen = "" if weeks is None else f"--weeks {weeks} "
    low, high = one.ratio.ends() or (None, None)
    return Result(
        command=(
            f"hpcgym evaluate --agents {one.agent} --scenario {evaluation.scenario} "
            f"{chosen}--jitter {evaluation.jitter} --replicas {evaluation.replicas}"
        ),
        scenario=evaluation.scenario,
        n_weeks=len(evaluation.weeks),
        replicas=evaluation.replicas,
        mean_bsld=round(one.mean_bsld, 2),
        sum_bsld=round(one.sum_bsld, 2),
        ratio_to_saf=round(one.ratio.value, 3),
        ratio_low=None if low is None else round(low, 3),
        ratio_high=None if high is None else round(high, 3),
        mean_log_ratio=round(one.log_ratio.value, 3),
        mean_pp_bsld=round(one.mean_pp_bsld, 2),
        p99_bsld=round(one.p99_bsld, 1),
        max_wait_time=one.max_wait_time,
        utilisation=round(one.utilisation, 3),
        contest=one.contest,
        p999_wait_time=int(one.waits.values[0]),
        **_waits(one),
        **_looks(evaluation, one.agent),
    )


def _looks(evaluation: Evaluation, agent: str) -> dict[str, float]:
    """Round an agent's ratios to its controls; nothing where it has none."""
    looks = looks_of(evaluation, agent)
    ratios = {} if looks is None else vars(looks)
    rows = [ratio.columns(name) for name, ratio in ratios.items()]
    return {key: round(value, 3) for row in rows for key, value in row.items()}


def _waits(one: Summary) -> dict[str, Any]:
    """Round an agent's ratios of long waits; None where there is none."""
    found = one.waits.columns()
    del found["p999_wait_time"]
    digits = {key: 5 if key == "share_beyond_threshold" else 3 for key in found}
    return {key: None if isnan(v) else round(v, digits[key]) for key, v in found.items()}
