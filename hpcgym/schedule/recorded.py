"""The starts that a log recorded, as a schedule beside those that are simulated.

What a site's own scheduler did is a row like any other: `simulate(jobs, "recorded")`, and the agent
RECORDED in comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from hpcgym.base.errors import WorkloadError
from hpcgym.core.backfill import OwnSimulator
from hpcgym.core.prepare import executed_run_time
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.schedule.schedule import Schedule


@dataclass(frozen=True)
class Recorded(OwnSimulator):
    """Jobs start when the log says that they did; order, estimates and threshold have no effect.

    Source: Specification, section 4, "Recorded starts".
    """

    NAME: ClassVar[str] = "recorded"
    REASON: ClassVar[str] = "starts jobs when the log says that they did"

    KNOWS: ClassVar[tuple[str, ...]] = ("nodes",)  # starts are taken as they are, wherever jobs ran

    def simulate(self, workload: Workload, settings: SchedulerSettings) -> Schedule:
        """Return the recorded schedule for `hpcgym.simulate`.

        On a machine of nodes it has no placement: a log does not say on which nodes jobs ran.

        Raises:
            WorkloadError: A job has no recorded wait.
        """
        lacking = np.flatnonzero(workload.wait_time < 0)
        if len(lacking):
            raise WorkloadError(
                f"{workload.name}: {len(lacking):,} of {len(workload):,} jobs have no recorded "
                f"wait, job {workload.job_id[lacking[0]]} first; leave them out, or simulate"
            )
        never = np.zeros(len(workload), dtype=np.bool_)
        start_time = workload.submit_time + workload.wait_time
        run_time = executed_run_time(workload, settings.kill_at_limit)
        return Schedule(workload, start_time, run_time, never, never, settings)


class Overfull(NamedTuple):
    """How far a schedule holds more processors than the machine has."""

    seconds: int  # how long it does
    most: int  # most processors held at once
    n_jobs: int  # jobs that start while more are held than there are, their own among them


def overfull(schedule: Schedule) -> Overfull:
    """Compare what a schedule holds with the machine; at one instant ends come before starts.

    On a machine of nodes all cpus are compared, and an exclusive job counts those it asked for.
    """
    jobs = schedule.workload
    runs = schedule.run_time > 0
    start, end = schedule.start_time[runs], schedule.end_time[runs]
    processors = jobs.processors[runs]
    times = np.concatenate([start, end])
    changes = np.concatenate([processors, -processors])
    order = np.lexsort((changes, times))
    times, held = times[order], np.cumsum(changes[order])
    spans = np.diff(times, append=times[-1:])
    over = held > jobs.machine_processors
    n_jobs = np.count_nonzero(over & (changes[order] > 0))
    return Overfull(int(spans[over].sum()), int(held.max(initial=0)), int(n_jobs))
