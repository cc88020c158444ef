"""A whole workload scheduled at once."""

import math
from threading import Timer
from typing import Unpack

import numpy as np

from hpcgym.base.errors import HpcgymError
from hpcgym.base.keywords import refuse_unknown, takes
from hpcgym.base.progress import steps
from hpcgym.core.backfill import OwnSimulator, as_mode
from hpcgym.core.events import as_events
from hpcgym.core.policy import AnyPolicy
from hpcgym.core.setting_list import SETTINGS, SettingKeywords, SettingList
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.schedule.attempts import attempts_of
from hpcgym.schedule.lost import kinds_of
from hpcgym.schedule.schedule import Schedule


@takes(SettingList)
def simulate(
    workload: Workload, policy: AnyPolicy = "FCFS", **settings: Unpack[SettingKeywords]
) -> Schedule:
    """Schedule a whole workload on an empty machine, from the first submission to the last end.

    Args:
        workload: The jobs and the machine.
        KEYWORDS

    Raises:
        HpcgymError: Something else than a workload, such as a log's name.
        PolicyError: An unknown policy or setting, settings that contradict each other, or a
            predictor that gives no seconds.
        WorkloadError: Estimates of a wrong length or value.

    Source: Specification, section 1; Mu'alem and Feitelson 2001 for EASY; Tsafrir, Etsion and
        Feitelson 2007 for predictions.

    Example:
        >>> import hpcgym
        >>> tiny = hpcgym.load_workload("tiny")
        >>> hpcgym.simulate(tiny, "SAF").metrics()["n_jobs"]
        8
        >>> easy_plus_plus = {"estimates": "recent", "correction": "reqtime"}
        >>> hpcgym.simulate(tiny, backfill_order="SPF", **easy_plus_plus)
        Schedule('tiny', 8 jobs, policy='FCFS')
    """
    if not isinstance(workload, Workload):
        raise HpcgymError(
            f"a Workload is needed, got {workload!r}; hpcgym.load_workload reads a log"
        )
    refuse_unknown("setting", settings, SETTINGS)
    return simulate_under(workload, SchedulerSettings(policy, **settings))


def simulate_under(
    workload: Workload, chosen: SchedulerSettings, seconds: float = math.inf
) -> Schedule:
    """Return what `simulate` does; after so many seconds it is a TimeoutError."""
    mode = as_mode(chosen.backfill)
    if isinstance(mode, OwnSimulator):
        schedule: Schedule = mode.simulate(workload, chosen)
        return schedule
    simulator = Simulator(workload, chosen)
    run_to_end(simulator, seconds)
    return Schedule(
        workload,
        simulator.start_time,
        simulator.episode.table.run_time,
        simulator.backfilled,
        simulator.thresholded,
        chosen,
        placement=simulator.placement,
        attempts=attempts_of(simulator),
        **kinds_of(simulator),
        outage=simulator.episode.table.outage,
        events=as_events(chosen.events),
        eligible_time=None if simulator.episode.dependencies is None else simulator.eligible_time,
    )


def run_to_end(simulator: Simulator, seconds: float = math.inf) -> None:
    """Run a simulation to its end, in time, and say meanwhile how many jobs have started."""

    def n_started() -> float:
        return float(np.count_nonzero(simulator.start_time >= 0))

    n_jobs = len(simulator.workload)
    with steps(n_jobs, f"scheduling {simulator.workload.name}", "jobs", count=n_started):
        timer = Timer(seconds, simulator.stop)
        if seconds < math.inf:
            timer.start()
        try:
            simulator.run()
        finally:
            timer.cancel()
    if simulator.is_stopped:
        raise TimeoutError(f"{simulator.workload.name}: no end within {seconds:g} s")
