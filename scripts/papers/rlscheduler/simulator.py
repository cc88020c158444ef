"""RLScheduler's simulator in plain Python: its jobs, its windows, its scores, its queue.

It is written from a description of the authors' code and shares nothing with `hpcgym`.

Source: Zhang, Dai, He, Bao and Xie 2020 (DIR-LAB/deep-batch-scheduler); rules
of reruns, "RLScheduler".
"""

from __future__ import annotations

import hashlib
import math
from bisect import insort
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hpcgym.trace.swf import SwfLog

WINDOWS, LENGTH, SLICE, SEED = 10, 1024, 10_000, 1
"""Windows, jobs of each, the first jobs of a log among which they lie, and their seed."""

NEVER_RAN_S = 10
"""Run time of jobs whose log has none, s."""


class Job(NamedTuple):
    """A job: times in s; `e` is the request, which a job without run time and request lacks."""

    job_id: int
    r: int
    p: int
    q: int
    e: int


def jobs_of(log: SwfLog) -> list[Job]:
    """Read a log as RLScheduler does: without cleaning, but for jobs of run time 0, by job id."""
    keys = "job_id", "submit_time", "run_time", "allocated_processors", "requested_processors"
    jobs = []
    for job, r, p, given, asked, e in log.records[[*keys, "requested_time"]].to_numpy().tolist():
        if p != 0:
            # A missing request becomes the run time before a missing run time becomes 10 s.
            run_time = NEVER_RAN_S if p < 0 else p
            jobs.append(Job(job, r, run_time, max(given, asked), p if e == -1 else e))
    return sorted(jobs)


def starts_of_windows(n: int = WINDOWS, length: int = LENGTH, slice_: int = SLICE) -> list[int]:
    """Return the positions of the first jobs of the windows, as the version of Gym drew them.

    Example:
        >>> starts_of_windows()
        [1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085]
    """
    digest = hashlib.sha512(str(SEED).encode()).digest()
    generator = np.random.RandomState()
    generator.seed([int.from_bytes(digest[at : at + 4], "little") for at in (0, 4)])
    return [int(generator.randint(length, slice_ - length - 1)) for _ in range(n)]


WAIT = -1
"""Start of a job that waits; its wait comes out as this minus its submit time."""

SCORES: dict[str, Callable[[Job], Any]] = {
    "FCFS": lambda job: job.r,
    "WFP3": lambda job: -(((WAIT - job.r) / job.e) ** 3) * job.q,
    "UNICEP": lambda job: -(WAIT - job.r + 1e-15) / (math.log2(job.q + 1e-15) * job.e),
    "SJF": lambda job: (job.e, job.r),
    "F1": lambda job: (
        math.log10(job.e if job.e > 0 else 0.1) * job.q
        + 870 * math.log10(job.r if job.r > 0 else 0.1)
    ),
}
"""Scores of jobs, lowest first, in the order of the table's columns. Time changes none."""


def simulate(jobs: Sequence[Job], processors: int, policy: str, *, backfill: bool) -> list[int]:
    """Schedule jobs, and return their starts, s."""
    score = [SCORES[policy](job) for job in jobs]
    starts = [0] * len(jobs)
    queue, arrived = [0], 1
    running: list[tuple[int, int, int]] = []  # (end, number of the start, job), the next one first
    now, free, started = jobs[0].r, processors, 0

    def start(j: int) -> None:
        nonlocal free, started
        queue.remove(j)
        insort(running, (now + jobs[j].p, started, j))
        starts[j], free, started = now, free - jobs[j].q, started + 1

    def handle_next_event() -> None:
        nonlocal now, free, arrived
        if arrived < len(jobs) and (not running or jobs[arrived].r <= running[0][0]):
            now = max(now, jobs[arrived].r)
            queue.append(arrived)
            arrived += 1
        else:
            now, _, j = running.pop(0)
            free += jobs[j].q

    while started < len(jobs):
        while not queue:
            handle_next_event()
        queue.sort(key=score.__getitem__)
        chosen = queue[0]
        room, shadow = free, now
        for end, q in sorted((starts[j] + jobs[j].e, jobs[j].q) for *_, j in running):
            if room < jobs[chosen].q:
                room, shadow = room + q, end
        while jobs[chosen].q > free:
            if backfill:
                queue.sort(key=lambda j: jobs[j].r)
                for j in list(queue):
                    if now + jobs[j].e < shadow and jobs[j].q <= free:
                        start(j)
            handle_next_event()
        start(chosen)
    return starts


def mean_bsld(jobs: Sequence[Job], starts: Sequence[int]) -> float:
    """Return the mean bounded slowdown."""
    waits = [start - job.r for job, start in zip(jobs, starts, strict=True)]
    bslds = [max((w + job.p) / max(job.p, 10), 1.0) for w, job in zip(waits, jobs, strict=True)]
    return sum(bslds) / len(jobs)
