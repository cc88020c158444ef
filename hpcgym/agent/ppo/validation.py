"""Validation: a network's bounded slowdown on weeks it is not trained on, against SAF's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.base import Agent
from hpcgym.core.workload import Workload
from hpcgym.env.config import Keywords
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.errors import HpcgymError
from hpcgym.scenario.episodes import Episodes
from hpcgym.schedule import simulate
from hpcgym.trace.resample import jitter


class Score(NamedTuple):
    """The metrics of a validation.

    Attributes:
        ratio: Sum over the weeks of the mean bsld over SAF's; of several scenarios the geometric
            mean.
        mean_log_ratio: Mean natural logarithm of the ratio of a week and copy.
        mean_bsld: Mean over all weeks and copies.
    """

    ratio: float
    mean_log_ratio: float
    mean_bsld: float


ENOUGH = 100
"""Weeks of a scenario that say enough without copies."""


class Validation:
    """Weeks held back, and SAF's bounded slowdown on them.

    Args:
        episodes: Weeks of one or more scenarios.
        keywords: Keywords of the environment that the agent needs.
        copies: Jittered copies of each week, besides the original; none of `ENOUGH` weeks and more.

    Attributes:
        n_weeks: Weeks, without copies.

    Raises:
        HpcgymError: No weeks.

    Source: Specification, section 10, "Evaluation protocol", steps 2 and 3, on training weeks.
    """

    def __init__(
        self, episodes: Sequence[Episodes], keywords: Keywords, *, copies: int, threads: int
    ) -> None:
        if not episodes or not all(len(of_scenario) for of_scenario in episodes):
            raise HpcgymError("a validation needs at least one week of each scenario")
        self.n_weeks = sum(map(len, episodes))
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
        self._saf = [
            np.array([_bsld_of_saf(of_scenario, workload) for workload in workloads])
            for of_scenario, workloads in zip(episodes, self._workloads, strict=True)
        ]

    def score(self, agent: Agent) -> Score:
        """Let an agent schedule every week by its best actions; compare it with SAF."""
        bslds = [
            _mean_bslds(agent, envs, workloads)
            for envs, workloads in zip(self._envs, self._workloads, strict=True)
        ]
        ratios = [mine.sum() / saf.sum() for mine, saf in zip(bslds, self._saf, strict=True)]
        mine, saf = np.concatenate(bslds), np.concatenate(self._saf)
        return Score(
            float(np.exp(np.log(ratios).mean())),
            float(np.log(mine / saf).mean()),
            float(mine.mean()),
        )


def _mean_bslds(
    agent: Agent, envs: SchedulingVectorEnv, workloads: list[Workload]
) -> NDArray[np.float64]:
    """Return the mean bsld of each workload, all played in one vector environment."""
    shown, _ = envs.reset(seed=0, options={"workload": workloads})
    bslds = np.full(len(workloads), np.nan)
    while np.isnan(bslds).any():
        shown, _, terminated, _, info = envs.step(agent.predict(shown)[0])
        if terminated.any():
            ended = terminated & np.isnan(bslds)
            bslds[ended] = info["final_info"]["mean_bsld"][ended]
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


def _bsld_of_saf(episodes: Episodes, workload: Workload) -> float:
    """Return the mean bsld of SAF under a scenario's settings."""
    settings = vars(episodes.settings) | {"policy": "SAF"}
    return float(simulate(workload, **settings).metrics()["mean_bsld"])
