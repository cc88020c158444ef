"""Waits that a log recorded beside those of simulations of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.parts.outages import Outage
from hpcgym.core.workload import Workload
from hpcgym.schedule.recorded import overfull
from hpcgym.schedule.schedule import Schedule
from hpcgym.schedule.simulate import simulate

HOUR = 3600
NEARLY_EMPTY = 0.05
"""Share of the processors: with less held, the machine is taken to be down."""
AHEAD = 72 * HOUR
DOWN = "FCFS, EASY, down when nearly empty"
SETTINGS: dict[str, dict[str, Any]] = {
    "FCFS, EASY": {},
    "FCFS, EASY, shortest backfilled first": {"backfill_order": "SPF"},
    "FCFS, conservative": {"backfill": "conservative"},
    "FCFS, no backfilling": {"backfill": "none"},
    "WFP3, EASY": {"policy": "WFP3"},
    "SAF, EASY": {"policy": "SAF"},
}


@dataclass(frozen=True)
class Waits:
    """The waits of one schedule, in h.

    Attributes:
        name: The setting.
        mean: Of all jobs.
        median: Likewise.
        p90: Likewise.
        likeness: Pearson's correlation of the hourly queue lengths with the recorded ones.
        room: Of the hours at which jobs wait, the share at which one fits into what is free.
    """

    name: str
    mean: float
    median: float
    p90: float
    likeness: float
    room: float


def hourly_queue(schedule: Schedule, until: int) -> NDArray[np.int64]:
    """Count the jobs that wait at each whole hour up to an instant, s."""
    hours = np.arange(0, until + 1, HOUR)
    entered = np.searchsorted(np.sort(schedule.jobs.submit_time), hours, side="right")
    left = np.searchsorted(np.sort(schedule.start_time), hours, side="right")
    return entered - left


def waits(name: str, schedule: Schedule, meant: Schedule) -> Waits:
    """Sum up the waits of a schedule, which is compared with the recorded one."""
    until = int(max(meant.start_time.max(), schedule.start_time.max()))
    queues = np.array([hourly_queue(one, until) for one in (schedule, meant)])
    likeness = float(np.corrcoef(queues)[0, 1])
    hours = schedule.wait_time / HOUR
    middle, p90 = np.percentile(hours, [50, 90])
    return Waits(name, float(hours.mean()), float(middle), float(p90), likeness, room(schedule))


def hourly_held(schedule: Schedule) -> NDArray[np.int64]:
    """Return the processors that are held at each whole hour up to the last submission."""
    jobs = schedule.workload
    hours = np.arange(0, int(jobs.submit_time.max()) + 1, HOUR)
    held = np.zeros(len(hours), dtype=np.int64)
    for times, sign in ((schedule.start_time, 1), (schedule.end_time, -1)):
        order = np.argsort(times)
        total = np.concatenate([[0], np.cumsum(jobs.processors[order])])
        held += sign * total[np.searchsorted(times[order], hours, side="right")]
    return held


def room(schedule: Schedule) -> float:
    """Return at which share of the hours with a queue the smallest job of it fits what is free."""
    jobs = schedule.workload
    fits = []
    for hour, held in enumerate(hourly_held(schedule).tolist()):
        waits = (schedule.jobs.submit_time <= hour * HOUR) & (schedule.start_time > hour * HOUR)
        if waits.any():
            fits.append(jobs.processors[waits].min() <= jobs.machine_processors - held)
    return float(np.mean(fits)) if fits else float("nan")


def beside(workload: Workload, settings: Sequence[str]) -> list[Waits]:
    """Return the recorded waits, then those of named settings."""
    meant = simulate(workload, "recorded")
    rows = [waits("recorded", meant, meant)]
    rows += [waits(one, simulate(workload, **SETTINGS[one]), meant) for one in settings]
    events = down_times(meant) if workload.machine is None else []
    if events:
        rows.append(waits(DOWN, simulate(workload, events=events), meant))
    return rows


def down_times(schedule: Schedule) -> list[Outage]:
    """Return outages of the whole machine where it is nearly empty for two whole hours or more.

    Each is known `AHEAD` before it begins, as a maintenance is.
    """
    jobs = schedule.workload
    empty = hourly_held(schedule) < NEARLY_EMPTY * jobs.machine_processors
    edges = np.flatnonzero(np.diff(np.concatenate([[0], empty.astype(np.int8), [0]])))
    spans = [(first, last) for first, last in edges.reshape(-1, 2).tolist() if last - first > 1]
    at = [(HOUR * first, HOUR * (last - 1)) for first, last in spans if first]
    return [
        Outage(
            begin + jobs.time_offset,
            end + jobs.time_offset,
            jobs.machine_processors,
            announced=max(begin - AHEAD, 0) + jobs.time_offset,
        )
        for begin, end in at
    ]


def how_held(workload: Workload) -> str:
    """Say how the recorded runs hold the machine: too much of it, or too little."""
    schedule = simulate(workload, "recorded")
    found, there = overfull(schedule), workload.machine_processors
    lasts = int(schedule.end_time.max() - schedule.start_time.min())
    held = hourly_held(schedule)
    queued = hourly_queue(schedule, int(workload.submit_time.max())) > 0
    empty = np.mean((held < NEARLY_EMPTY * there) & queued)
    return (
        f"recorded runs hold {held.mean() / there:.0%} of {there:,} processors in the mean, at "
        f"most {found.most:,}, and more than there are for {found.seconds / lasts:.1%} of the "
        f"time; for {empty:.1%} of it jobs wait while less than {NEARLY_EMPTY:.0%} are held"
    )
