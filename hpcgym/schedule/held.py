"""Which limit held each job last, as a finished schedule tells.

A limit binds starts only. So what ran, and had come, tells at each instant who was beyond it,
whichever passes were made. Starts in vain are not seen: what ships takes no job off beside limits.

Cost: O(n log n) for a limit of n jobs, of processors O(w n) where w of their widths differ.

Source: Specification, section 16, "Limits".
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.constants import NEVER
from hpcgym.core.parts.limits import (
    GPUS,
    GROUP,
    MOST_CPUS,
    MOST_GPUS,
    MOST_JOBS,
    MOST_SUBMITTED,
    LimitingEvent,
)
from hpcgym.schedule.lost import without_run

IntArray = NDArray[np.int64]


def limited_by(schedule: Any) -> NDArray[Any] | None:
    """Return the text of the limit that held each job last, "" = none did; None = no limits.

    In a schedule that is still being made, what has not started waits for what runs, and no more.
    """
    limits = [event for event in schedule.events if isinstance(event, LimitingEvent)]
    if not limits:
        return None
    lives = _Lives(schedule)
    until, held = lives.since.copy(), np.full(len(schedule), "", dtype=object)
    for limit in limits:
        # Of one instant the last limit counts, and of a file's the first level, as passes ask them.
        for known, texts in reversed(limit.levels_of(schedule.workload)):
            instant = lives.held_until(known)
            later = (instant > lives.since) & (instant >= until)
            until[later], held[later] = instant[later], texts[later]
    return held


class _Lives:
    """When the jobs of a schedule waited and ran."""

    def __init__(self, schedule: Any) -> None:
        jobs = schedule.jobs
        self.processors: IntArray = jobs.processors
        self.has_run = schedule.start_time >= 0
        self.start = np.where(self.has_run, schedule.start_time, NEVER)
        self.end = np.where(self.has_run, schedule.end_time, NEVER)
        gone = without_run(schedule)
        order: IntArray = np.argsort(jobs.submit_time, kind="stable")
        self.in_order = order[~gone[order]]
        self.since = np.where(gone, NEVER, jobs.submit_time)

    def held_until(self, known: IntArray) -> IntArray:
        """Return when a level of limits held each job last, -1 = never; columns of `Jobs.known`."""
        until = np.full(len(known), -1)
        for rows in _groups(known[self.in_order, GROUP]):
            jobs = self.in_order[rows]
            waiting = jobs[self.start[jobs] > self.since[jobs]]
            if len(waiting):
                until[waiting] = self._by_runs(known, jobs, waiting)
                self._by_submissions(known, jobs, until)
        return until

    def _by_runs(self, known: IntArray, jobs: IntArray, waiting: IntArray) -> IntArray:
        """Return until when runs of a group kept its waiting jobs beyond its limits, -1 = never."""
        ran = jobs[self.has_run[jobs]]
        times, at = np.unique(np.append(self.start[ran], self.end[ran]), return_inverse=True)
        last = np.searchsorted(times, self.start[waiting]) - 1  # step before the start, -1 = none
        following = np.append(times, NEVER)
        until = np.full(len(waiting), -1)
        for most, need in (
            (MOST_JOBS, np.ones(len(known), dtype=np.int64)),
            (MOST_CPUS, self.processors),
            (MOST_GPUS, known[:, GPUS]),
        ):
            limit = known[waiting, most]
            if not (limit >= 0).any():
                continue
            held: IntArray = np.zeros(len(times), dtype=np.int64)
            np.add.at(held, at, np.append(need[ran], -need[ran]))
            held = np.cumsum(held)
            room = limit - need[waiting]
            for allowed in np.unique(room[limit >= 0]):
                steps = np.where(held > allowed, np.arange(len(times)), -1)
                steps = np.append(np.maximum.accumulate(steps), -1)
                step = np.where((room == allowed) & (limit >= 0), steps[last], -1)
                instant = np.minimum(following[step + 1], self.start[waiting])
                until = np.maximum(until, np.where(step >= 0, instant, -1))
        return until

    def _by_submissions(self, known: IntArray, jobs: IntArray, until: IntArray) -> None:
        """Raise `until` for jobs of a group that were outside its limit of submitted jobs."""
        most = int(known[jobs[0], MOST_SUBMITTED])
        if most < 0:
            return
        latest: list[int] = []  # ends of those before, as many as may be there
        for job, end in zip(jobs.tolist(), self.end[jobs].tolist(), strict=True):
            if len(latest) == most:
                until[job] = max(until[job], min(latest[0], self.start[job]))
                heapq.heappushpop(latest, end)
            else:
                heapq.heappush(latest, end)


def _groups(group: IntArray) -> Iterator[IntArray]:
    """Yield the places of each group's jobs, in order; -1 = none."""
    by_group = np.argsort(group, kind="stable")
    edges = np.flatnonzero(np.diff(group[by_group])) + 1
    for places in np.split(by_group, edges):
        if len(places) and group[places[0]] >= 0:
            yield places
