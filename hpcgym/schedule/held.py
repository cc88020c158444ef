"""Which limit held each job last, as a finished schedule tells.

A limit binds starts only. So what ran, and had come, tells at each instant who was beyond it,
whichever passes were made. Starts in vain are not seen: what ships takes no job off beside limits.

Cost: O(n log n) for a limit of n jobs.

Source: Specification, section 16, "Limits".
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import cached_property
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
    MOST_MINUTES,
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
        self.requested: IntArray = schedule.workload.requested_time
        gone = without_run(schedule)
        order: IntArray = np.argsort(jobs.submit_time, kind="stable")
        self.in_order = order[~gone[order]]
        self.since = np.where(gone, NEVER, jobs.submit_time)

    @cached_property
    def instants(self) -> IntArray:
        """When jobs come, start and end."""
        return np.unique(np.concatenate([self.since, self.start, self.end, [NEVER]]))

    def held_until(self, known: IntArray) -> IntArray:
        """Return when a level of limits held each job last, -1 = never; columns of `Jobs.known`."""
        until = np.full(len(known), -1)
        for rows in _groups(known[self.in_order, GROUP]):
            jobs = self.in_order[rows]
            waiting = jobs[self.start[jobs] > self.since[jobs]]
            if len(waiting):
                until[waiting] = self._by_runs(known, jobs, waiting)
                if (known[waiting, MOST_MINUTES] >= 0).any():
                    self._by_minutes(known, jobs, waiting, until)
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
            step = np.where(limit >= 0, _last_above(held, last, limit - need[waiting]), -1)
            instant = np.minimum(following[step + 1], self.start[waiting])
            until = np.maximum(until, np.where(step >= 0, instant, -1))
        return until

    def _by_minutes(
        self, known: IntArray, jobs: IntArray, waiting: IntArray, until: IntArray
    ) -> None:
        """Raise `until` for waiting jobs of a group that requests of others kept beyond minutes."""
        waiting, ran = waiting[known[waiting, MOST_MINUTES] >= 0], jobs[self.has_run[jobs]]
        if not len(ran):
            return
        over = self.start[ran] + self.requested[ran]
        times, at = np.unique(
            np.append(self.start[ran], np.minimum(self.end[ran], over)), return_inverse=True
        )
        cpus, ends = np.zeros((2, len(times)), dtype=np.int64)
        for held, needs in ((cpus, self.processors[ran]), (ends, self.processors[ran] * over)):
            np.add.at(held, at, np.append(needs, -needs))
            np.cumsum(held, out=held)
        asked = self.processors[waiting] * self.requested[waiting]
        room = 60 * known[waiting, MOST_MINUTES] - asked
        last = np.searchsorted(times, self.start[waiting]) - 1
        step = _last_above(ends - cpus * times, last, room)
        # Within a step it falls by the processors a second, and no instant is made when it is over.
        lasts = (ends[step] - room - 1) // np.maximum(cpus[step], 1)
        lasts = np.minimum(lasts, np.append(times, NEVER)[step + 1] - 1)
        after = self.instants[np.searchsorted(self.instants, lasts, side="right")]
        after = np.where(step >= 0, np.minimum(after, self.start[waiting]), -1)
        until[waiting] = np.maximum(until[waiting], after)

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


def _last_above(held: IntArray, last: IntArray, room: IntArray) -> IntArray:
    """Return of each the last step up to `last` that holds more than its room, -1 = none."""
    most = [held]  # of 1, 2, 4 and so on steps up to each
    while 2 ** len(most) <= len(held):
        width = 2 ** (len(most) - 1)
        most.append(np.maximum(most[-1], np.append(most[-1][:width], most[-1][:-width])))
    for power in reversed(range(len(most))):
        is_below = (last >= 0) & (np.append(most[power], 0)[last] <= room)
        last = np.where(is_below, np.maximum(last - 2**power, -1), last)
    return last


def _groups(group: IntArray) -> Iterator[IntArray]:
    """Yield the places of each group's jobs, in order; -1 = none."""
    by_group = np.argsort(group, kind="stable")
    edges = np.flatnonzero(np.diff(group[by_group])) + 1
    for places in np.split(by_group, edges):
        if len(places) and group[places[0]] >= 0:
            yield places
