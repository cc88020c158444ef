"""The network shared over rows, trained under RLScheduler's rules: on its windows, or on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from hpcgym.agent.sb3 import HPCBatchVecEnv
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.spec import (
    EpisodeSpec,
    MachineSpec,
    RandomWindowEpisodes,
    Scenario,
    SchedulerSpec,
    TraceSpec,
    WholeEpisode,
)
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.trace import SwfLog, as_found, clean
from papers.common.playing import Chooses, Floats, played_once
from papers.rlscheduler import simulator as theirs
from papers.rlscheduler.run import BARE, FILLED

ENVS = 120
"""Environments, a multiple of the paper's windows."""

KEYWORDS: Any = {"action": "job", "expectations": "regression", "observation": "flat"}
"""What environments are besides their episodes; 32 jobs are shown."""

DRAWN = 100
"""Fixed windows apart, of which the first choose a network."""


def stretch_apart(starts: Sequence[int], length: int, n_jobs: int) -> range:
    """Return the longest run of positions that is in none of the windows at `starts`.

    Example:
        >>> stretch_apart([10, 30], 5, 40)
        range(15, 30)
    """
    begins = [0, *(start + length for start in sorted(starts))]
    ends = [*sorted(starts), n_jobs]
    begins = np.maximum.accumulate(begins).tolist()
    return max(map(range, begins, ends), key=len)


@dataclass(frozen=True)
class Windows:
    """The windows of one log under one half of the paper's rules.

    Attributes:
        judging: The paper's windows, an episode each.
        apart: Random windows of as many jobs, none of whose jobs is in one of the paper's.
    """

    judging: list[Episodes]
    apart: Episodes

    @classmethod
    def of(
        cls, log: SwfLog, backfill: bool, starts: Sequence[int], length: int = theirs.LENGTH
    ) -> Windows:
        """Cut a log, read as RLScheduler reads it."""
        raw, _ = clean(as_found(log))
        jobs = np.array([job.job_id for job in theirs.jobs_of(log)])

        def cut(positions: range) -> Workload:
            chosen = np.flatnonzero(np.isin(raw.job_id, jobs[positions]))
            return raw.select(chosen, start=int(raw.submit_time[chosen[0]]))

        def episodes(workload: Workload, kind: EpisodeSpec) -> Episodes:
            scenario = Scenario(
                name=log.name,
                description="RLScheduler's rules.",
                trace=TraceSpec(name=log.name, missing_request="drop"),
                machine=MachineSpec(raw.machine_processors, raw.largest_request),
                episode=kind,
                scheduler=SchedulerSpec(
                    backfill=FILLED if backfill else BARE,
                    event_semantics="one-by-one",
                    kill_at_limit=False,
                ),
            )
            return Episodes(scenario, workload=workload)

        drawn = RandomWindowEpisodes(length, DRAWN, 0, warm_history=False)
        return cls(
            [episodes(cut(range(at, at + length)), WholeEpisode()) for at in starts],
            episodes(cut(stretch_apart(starts, length, len(jobs))), drawn),
        )

    def envs_of(self, on_theirs: bool) -> HPCBatchVecEnv:
        """Return the environments that a training plays, paid by the ratio to SAF-REG."""
        played = self.judging if on_theirs else self.apart
        return HPCBatchVecEnv(played, num_envs=ENVS, threads=1, baseline="SAF-REG", **KEYWORDS)

    def bsld(self, chooses: Chooses, on_theirs: bool) -> Floats:
        """Return the mean bsld of an agent on each of the paper's windows, or on some apart."""
        n = len(self.judging)
        jobs = [each.workload(0) for each in self.judging]
        if not on_theirs:
            jobs = [self.apart.workload(place) for place in range(n)]
        envs = SchedulingVectorEnv(
            self.apart, num_envs=n, autoreset_mode=AutoresetMode.SAME_STEP, threads=1, **KEYWORDS
        )
        return played_once(chooses, envs, jobs).bsld
