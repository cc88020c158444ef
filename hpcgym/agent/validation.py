"""Validation: an agent's bounded slowdown on weeks it is not trained on, against SAF's.

Where rewards charge a price, J counts in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.base import Agent
from hpcgym.agent.first_fit import FIRST_FITS
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.shelf import load_agent
from hpcgym.agent.weights import ConstantAction
from hpcgym.base.errors import HpcgymError
from hpcgym.base.estimate import Estimate, mean_of, pooled_mean
from hpcgym.core.price import PRICED
from hpcgym.core.workload import Workload
from hpcgym.env.config import Keywords
from hpcgym.env.scale import Scale
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.schedule.simulate import simulate
from hpcgym.trace.resample import jitter


class Score(NamedTuple):
    """The metrics of a validation."""

    # Sum over the weeks of the mean bsld over SAF's; of several scenarios the geometric mean.
    ratio: float
    mean_log_ratio: float  # mean natural logarithm of the ratio of a week and copy
    mean_bsld: float  # mean over all weeks and copies
    # Geometric mean of the ratios of weeks, all logs together, with its interval.
    by_week: Estimate | None = None
    # Gap closed on these weeks, of the ratio of sums, in units of that of the test weeks; None
    # where no scale is known.
    gap: Estimate | None = None

    def __str__(self) -> str:
        """Show the metrics that have intervals.

        Example:
            >>> print(Score(1.0, 0.0, 9.0, Estimate(0.5, 0.1, 9)))
            0.500 [0.399, 0.627] of SAF
        """
        gap = "" if self.gap is None else f", gap closed {self.gap}"
        return f"{self.by_week or f'{np.exp(self.mean_log_ratio):.3f}'} of SAF{gap}"

    def log(self, logger: Any) -> None:
        """Record the metrics in a logger of Stable-Baselines3."""
        logger.record("validation/ratio_to_saf", self.ratio)
        logger.record("validation/mean_log_ratio", self.mean_log_ratio)
        logger.record("validation/mean_bsld", self.mean_bsld)
        if self.gap is not None:
            logger.record("validation/gap_closed", self.gap.value)


ENOUGH = 100  # weeks of a scenario that say enough without copies


class Validation:
    """Weeks held back, and SAF's bounded slowdown on them.

    Args:
        episodes: Weeks of one or more scenarios.
        keywords: Keywords of the environment that the agent needs.
        copies: Jittered copies of each week, besides the original; none of `ENOUGH` weeks and more.
        metric: The key of infos that is compared: "mean_bsld", or J, "priced".

    Raises:
        HpcgymError: No weeks.

    Source: Specification, section 10, "Evaluation protocol", steps 2 and 3, on training weeks.
    """

    def __init__(
        self,
        episodes: Sequence[Episodes],
        keywords: Keywords,
        *,
        copies: int,
        threads: int,
        metric: str = "mean_bsld",
    ) -> None:
        if not episodes or not all(len(of_scenario) for of_scenario in episodes):
            raise HpcgymError("a validation needs at least one week of each scenario")
        self._n_weeks = [*map(len, episodes)]
        self.n_weeks = sum(self._n_weeks)  # weeks, without copies
        self._workloads = [_weeks_of(of_scenario, copies) for of_scenario in episodes]
        self._envs = [
            SchedulingVectorEnv(
                of_scenario,
                num_envs=len(workloads),
                autoreset_mode="SAME_STEP",
                copy=False,
                threads=threads,
                **keywords,
            )
            for of_scenario, workloads in zip(episodes, self._workloads, strict=True)
        ]
        parts = [*zip(episodes, self._workloads, strict=True)]
        self._metric = metric
        if metric == PRICED:
            self._saf = [np.full(e.num_envs, 1.0 + e.configs[0].price.weight) for e in self._envs]
        else:
            self._saf = [_of_rule(RuleAgent("SAF"), *part) for part in parts]
        of_scale = PRICED if metric == PRICED else "ratio"
        self._scale = self._envs[0].configs[0].scale if len(parts) == 1 else None
        if self._scale is not None and (self._scale.metric != of_scale or not self._scale.has_gap):
            self._scale = None
        if self._scale is not None:
            where = self._envs[0], self._workloads[0], metric
            if self._scale.static == "constant":
                static = _values(ConstantAction(self._scale.constant), *where)
            elif fit := FIRST_FITS.get(self._scale.rule):
                needs = {"num_envs": len(where[1]), "autoreset_mode": "SAME_STEP", **fit.NEEDS}
                static = _values(fit, SchedulingVectorEnv(episodes[0], **needs), *where[1:])
            elif metric == PRICED:
                static = _values(load_agent(self._scale.rule), *where)
            else:
                static = _of_rule(_static_rule(self._scale), *parts[0])
            self._static = by_week(static, self.n_weeks)

    def score(self, agent: Agent) -> Score:
        """Let an agent schedule every week by its best actions; compare it with SAF."""
        bslds = [
            _values(agent, envs, workloads, self._metric)
            for envs, workloads in zip(self._envs, self._workloads, strict=True)
        ]
        ratios = [mine.sum() / saf.sum() for mine, saf in zip(bslds, self._saf, strict=True)]
        mine, saf = np.concatenate(bslds), np.concatenate(self._saf)
        weekly = [
            by_week(np.log(bsld / base), n_weeks)
            for bsld, base, n_weeks in zip(bslds, self._saf, self._n_weeks, strict=True)
        ]
        logarithm, gap = mean_of(np.concatenate(weekly)), None
        if self._scale is not None:
            gained = self._static - by_week(mine, self.n_weeks)
            weight = by_week(np.ones(len(mine)) if self._metric == PRICED else saf, self.n_weeks)
            gap = pooled_mean(gained, self._scale.gap[0] * weight)
        return Score(
            float(np.exp(np.log(ratios).mean())),
            float(np.log(mine / saf).mean()),
            float(mine.mean()),
            Estimate(float(np.exp(logarithm.value)), logarithm.error, logarithm.degrees),
            gap,
        )


def by_week(values: NDArray[np.float64], n_weeks: int) -> NDArray[np.float64]:
    """Return the mean of each week, whose copies stand behind it."""
    return np.asarray(values.reshape(n_weeks, -1).mean(axis=1))


def _values(
    agent: Agent, envs: SchedulingVectorEnv, workloads: list[Workload], metric: str
) -> NDArray[np.float64]:
    """Return the metric of each workload, all played in one vector environment."""
    shown, _ = envs.reset(seed=0, options={"workload": workloads})
    bslds = np.full(len(workloads), np.nan)
    while np.isnan(bslds).any():
        shown, _, terminated, _, info = envs.step(agent.predict(shown)[0])
        if terminated.any():
            ended = terminated & np.isnan(bslds)
            bslds[ended] = info["final_info"][metric][ended]
    return bslds


def _weeks_of(episodes: Episodes, copies: int) -> list[Workload]:
    """Return every week and its jittered copies, the same at every call."""
    weeks = []
    copies = copies if len(episodes) < ENOUGH else 0
    for position, number in enumerate(episodes.numbers):
        week = episodes.workload(position)
        weeks.append(week)
        for copy in range(1, copies + 1):
            weeks.append(jitter(week, np.random.default_rng([number, copy])))
    return weeks


def _of_rule(rule: RuleAgent, episodes: Episodes, workloads: list[Workload]) -> NDArray[np.float64]:
    """Return the mean bsld of each workload under a rule and a scenario's settings."""
    settings: dict[str, Any] = vars(rule.settings(episodes.settings))
    return np.array([simulate(jobs, **settings).metrics()["mean_bsld"] for jobs in workloads])


def _static_rule(scale: Scale) -> RuleAgent:
    """Return the best rule of a problem, under the mode that the problem states if it does."""
    if scale.backfill:
        policy = scale.rule.removesuffix(f" {scale.backfill}")
        return RuleAgent(policy, backfill=scale.backfill)
    rule = load_agent(scale.rule)
    assert isinstance(rule, RuleAgent)
    return rule
