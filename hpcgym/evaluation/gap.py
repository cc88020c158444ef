"""Gap closed: what an agent gains on the best static scheduler, over what knowing run times gains.

0 is what needs no learning, 1 is what knows the future; below 0 an agent is worse than a scheduler
that never changes. Ends of the scale are those of `hpcgym.env.scale`, week by week, so all three
are paired. Weeks count as in the ratio of sums to SAF, so it is that ratio on another scale.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.contest import contest_of
from hpcgym.agent.rule import RuleAgent
from hpcgym.base.errors import EvaluationError
from hpcgym.base.text_table import Column
from hpcgym.core.action import kind_of
from hpcgym.core.price import PRICED
from hpcgym.env.scale import Scale, scales_of
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.statistics import Estimate, pooled_mean

if TYPE_CHECKING:
    import pandas as pd

SAF = "SAF"  # the agent that a week's value is a ratio to
METRICS = ("ratio", PRICED)  # the metrics of infos that an evaluation has of each week
NO_GAP = "no gap"  # what tables show where knowing run times is not surely worth anything


def gap_between(static: ArrayLike, clairvoyant: ArrayLike, weight: ArrayLike) -> Estimate:
    """Return by how much the clairvoyant mean is below the static one, both by weight.

    Arguments as of `gap_closed`.
    """
    return pooled_mean(np.subtract(static, clairvoyant) * np.asarray(weight), weight)


def gap_closed(
    static: ArrayLike, agent: ArrayLike, clairvoyant: ArrayLike, weight: ArrayLike
) -> Estimate:
    """Return the sum over weeks of static less agent, over that of static less clairvoyant.

    Args:
        static: Value of the best static scheduler in each week, shape (n_weeks,); lower is better.
        agent: The agent's, on the same weeks.
        clairvoyant: That of a scheduler that knows run times.
        weight: What each week counts. That of a ratio is SAF's mean bounded slowdown.

    Returns:
        The share, with its t interval by the jackknife; NaN where there is no gap to close, the
        interval of `gap_between` reaching 0.

    Raises:
        EvaluationError: Shapes differ, or a value is not finite.

    Source: Specification, section 10, "Gap closed".
    """
    given = [np.asarray(each, dtype=np.float64) for each in (static, agent, clairvoyant, weight)]
    if len({values.shape for values in given}) > 1 or given[0].ndim != 1 or not given[0].size:
        shapes = ", ".join(str(values.shape) for values in given)
        raise EvaluationError(f"values and weights must be alike, (n_weeks,); {shapes}")
    if not all(np.isfinite(values).all() for values in given):
        raise EvaluationError("a gap is closed between finite values of each week")
    low = gap_between(given[0], given[2], given[3]).low
    if low is None or low <= 0:
        return Estimate(math.nan, None, len(given[0]) - 1, is_ratio=False)
    return pooled_mean((given[0] - given[1]) * given[3], (given[0] - given[2]) * given[3])


def scale_for(agent: RuleAgent | NamedAgent, log: Episodes) -> Scale | None:
    """Return the scale on which an agent stands on a log's weeks, None where there is none.

    It is that of the problem whose actions and mode the agent has. Other agents, as rules are,
    stand on the hardest scale of their contest, of those of most weeks: that with the best static
    scheduler.
    """
    known = scales_of(log.scenario.name, log.settings)
    scales = [scale for scale in known if scale.metric in METRICS]
    if isinstance(agent, NamedAgent) and (action := agent.env_keywords.get("action")) is not None:
        mode = agent.env_keywords.get("backfill")
        usual = kind_of(action).usual_mode(log.settings.backfill)
        asked = "" if mode is None or str(mode) == str(usual) else str(mode)
        for scale in scales:
            if (scale.action, scale.backfill) == (action, asked):
                return scale
    contest = contest_of(agent, log.settings)
    alike = [scale for scale in scales if scale.contest == contest and not scale.backfill]
    return min(alike, key=lambda scale: (-len(scale.weeks), scale.training), default=None)


def gaps_of(
    runs: pd.DataFrame, agents: Mapping[str, RuleAgent | NamedAgent], log: Episodes
) -> dict[str, Estimate]:
    """Return the gap that each agent closes in the weeks as they are, where a scale is known.

    Args:
        runs: A row for each run, as `Evaluation.frame`, SAF's among them. Copies do not count: the
            ends of the scale are of the weeks themselves.
        agents: The agents by name.
        log: The weeks.
    """
    originals = runs[runs["replica"] == 0]
    bsld = originals.pivot(index="week", columns="agent", values="mean_bsld")
    values = {"ratio": bsld.div(bsld[SAF], axis=0)} if SAF in bsld else {}
    if PRICED in originals:
        values[PRICED] = originals.pivot(index="week", columns="agent", values=PRICED)
    gaps = {}
    for name, agent in agents.items():
        scale = scale_for(agent, log)
        if scale is None or name not in values.get(scale.metric, ()):
            continue
        value = values[scale.metric][name]
        weeks = [
            number
            for position, number in enumerate(log.numbers)
            if number in value.index
            and np.isfinite(value[number])
            and scale.ends(number, log.workload(position)) is not None
        ]
        if weeks:
            ends = [scale.weeks[number] for number in weeks]
            weight, static, clairvoyant = zip(*(end[1:] for end in ends), strict=True)
            gaps[name] = gap_closed(static, value[weeks].to_numpy(), clairvoyant, weight)
    return gaps


def gap_text(estimate: Estimate | None) -> str:
    """Format a gap closed for a table: "" where no scale is known, or that there is no gap.

    Example:
        >>> gap_text(Estimate(0.25, None, 0, is_ratio=False)), gap_text(None)
        ('0.250 (no interval)', '')
    """
    if estimate is None:
        return ""
    return NO_GAP if math.isnan(estimate.value) else str(estimate)


def gap_columns(agents: Sequence[str], gaps: Mapping[str, Estimate]) -> list[Column]:
    """Return the column of gaps closed of a table of agents, none where no gap is known."""
    if all(math.isnan(estimate.value) for estimate in gaps.values()):
        return []
    shown = [gap_text(gaps.get(name)) for name in agents]
    return [Column("gap closed\n0 static, 1 knows", shown, rank=1)]


def gap_notes(gaps: Mapping[str, Estimate], n_weeks: int) -> list[str]:
    """Say of how many weeks gaps closed are, where they are of fewer than the ratios beside."""
    shown = {name: gap for name, gap in gaps.items() if not math.isnan(gap.value)}
    agents: dict[int, list[str]] = {}
    for name, estimate in shown.items():
        agents.setdefault(int(estimate.degrees) + 1, []).append(name)
    named = {n: f": {', '.join(names)}" * (len(agents) > 1) for n, names in agents.items()}
    few = sorted(n for n in agents if n < n_weeks)
    return [f"gap closed is of {n} of {n_weeks} weeks{named[n]}" for n in few]
