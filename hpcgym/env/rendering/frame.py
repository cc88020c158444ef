"""The data of a snapshot at one instant, and the processors on which each job is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.machine import Machine
from hpcgym.schedule.allocation import FreeProcessors, Interval

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

RECENT_JOBS = 64  # number of jobs, the last to start, whose lengths set the scale of time


class StartedJobs(NamedTuple):
    """Jobs that have started in this episode, in any order; arrays of shape (n_started,)."""

    job: IntArray  # rows in the episode's job table, unique where job ids may not be
    start_time: IntArray  # start, s
    end_time: IntArray  # end, s; the estimated end of a running job
    processors: IntArray  # processors held
    running: BoolArray  # whether the job still runs


class WaitingJobs(NamedTuple):
    """Waiting jobs in the order they are shown; arrays of shape (n_waiting,)."""

    job: IntArray  # rows in the episode's job table
    job_id: IntArray  # ids
    wait_time: IntArray  # wait so far, s
    estimate: IntArray  # estimate, s
    processors: IntArray  # processors requested
    thresholded: BoolArray  # whether the job goes first because of its wait


class Reservation(NamedTuple):
    """The reservation of the head."""

    job: int  # row of the head in the episode's job table
    job_id: int
    shadow_time: int  # its reserved start, s
    extra_processors: int  # processors left over then
    estimate: int  # its estimate, s
    processors: int  # processors it requests


class HeldNodes(NamedTuple):
    """Nodes of the started jobs, one entry for each node of each job; arrays of one length."""

    job: IntArray  # rows in the episode's job table
    node: IntArray  # node ids
    cpus: IntArray  # cpus that the job has of the node; an exclusive job has all


class Head(NamedTuple):
    """The first waiting job of a component that has no placement now."""

    job: int  # its row in the episode's job table
    job_id: int
    partition: int  # number of its partition
    shadow_time: int  # when it could start at the earliest, by estimates, s


class NodesFrame(NamedTuple):
    """What a frame shows of a machine of nodes."""

    machine: Machine
    free: IntArray  # free cpus, GPUs and memory of each node, MB, shape (n_nodes, 3)
    held: HeldNodes  # nodes of each started job
    heads: tuple[Head, ...]  # head of each component where a job is held back
    partition: IntArray  # partition of each waiting job, shape (n_waiting,)
    chunks: IntArray  # chunks of each waiting job, shape (n_waiting,)


@dataclass(frozen=True)
class Frame:
    """An episode at one instant, with no more of a running job than the scheduler knows."""

    title: str  # scenario and episode
    machine_processors: int  # size of the machine
    now: int  # the instant, s from the episode's start
    started: StartedJobs  # every job that has started in this episode
    waiting: WaitingJobs  # the queue
    # Reservation of the head; None where every job fits, and on nodes.
    reservation: Reservation | None = None
    nodes: NodesFrame | None = None  # nodes of the machine; None where processors are counted

    @property
    def shadow_times(self) -> dict[int, int]:
        """Shadow time of each head, s, by its row in the episode's job table."""
        times = {head.job: head.shadow_time for head in self.nodes.heads} if self.nodes else {}
        if self.reservation is not None:
            times[self.reservation.job] = self.reservation.shadow_time
        return times

    @property
    def busy_processors(self) -> int:
        """Processors that running jobs hold."""
        return int(self.started.processors[self.started.running].sum())


class TimeAxis(NamedTuple):
    """The stretch of time shown, as much past as future."""

    first: int  # left edge, s
    last: int  # right edge, s
    tick: int  # distance of the marks, s

    def ticks(self) -> range:
        """Return the marked instants, s."""
        return range(-(-max(self.first, 0) // self.tick) * self.tick, self.last + 1, self.tick)


_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_SPANS = [
    *(span * _MINUTE for span in (1, 2, 5, 10, 20, 40)),
    *(span * _HOUR for span in (1, 2, 4, 8, 16)),
    *(span * _DAY for span in (1, 2, 4, 8, 16, 32, 64, 128)),
]
_TICKS = [
    *(10, 20, 30, _MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 20 * _MINUTE, 30 * _MINUTE),
    *(_HOUR, 2 * _HOUR, 4 * _HOUR, 8 * _HOUR, 12 * _HOUR),
    *(_DAY, 2 * _DAY, 5 * _DAY, 10 * _DAY, 20 * _DAY, 50 * _DAY),
]


def time_axis(frame: Frame) -> TimeAxis:
    """Return the stretch of time to show, with the present in its middle.

    The future holds nine in ten of the running jobs' estimated ends and of the recent jobs'
    lengths, and the reserved starts. Spans come in steps, so that a film of frames seldom zooms.
    """
    started = frame.started
    recent = np.argsort(started.start_time, kind="stable")[-RECENT_JOBS:]
    lengths = (started.end_time - started.start_time)[recent]
    ahead = (started.end_time - frame.now)[started.running]
    need = [float(np.quantile(values, 0.9)) for values in (lengths, ahead) if len(values)]
    need += [1.1 * (shadow_time - frame.now) for shadow_time in frame.shadow_times.values()]
    wanted = max(need, default=0.0)
    span = next((span for span in _SPANS if span >= wanted), _SPANS[-1])
    tick = next((tick for tick in _TICKS if tick >= span / 4), _TICKS[-1])
    return TimeAxis(frame.now - span, frame.now + span, tick)


class Placement:
    """The processors on which each job is drawn; the simulator only counts processors.

    A job takes the smallest hole that holds it whole, else holes from the lowest processor up.
    The frames of one episode in order keep every job where it was first drawn; the last frame
    alone leads to the same placement.
    """

    def __init__(self, machine_processors: int) -> None:
        self.intervals: dict[int, list[Interval]] = {}
        self._free = FreeProcessors(machine_processors)
        self._holding: set[int] = set()

    def update(self, started: StartedJobs) -> None:
        """Place new jobs and free the processors of ended ones, given every job started by now.

        At one instant ends come before starts, and jobs of zero seconds hold nothing.
        """
        events: list[tuple[int, int, int, int]] = []
        columns = (column.tolist() for column in started)
        for job, start, end, processors, running in zip(*columns, strict=True):
            is_new = job not in self.intervals
            if is_new and (running or end > start):
                events.append((start, 1, job, processors))
            if not running and (job in self._holding or (is_new and end > start)):
                events.append((end, 0, job, processors))
        for _, starts, job, processors in sorted(events):
            if starts:
                self.intervals[job] = self._free.take(processors)
                self._holding.add(job)
            else:
                self._free.give_back(self.intervals[job])
                self._holding.remove(job)

    def free_at(self, started: StartedJobs, instant: int) -> list[Interval]:
        """Return the processors that are free at a later instant, by the estimated ends.

        `started` is what `update` got last; the intervals are ascending.
        """
        free = FreeProcessors(0)
        free.intervals = list(self._free.intervals)
        ending = started.running & (started.end_time <= instant)
        for job in started.job[ending].tolist():
            free.give_back(self.intervals[job])
        return free.intervals


def placed(frame: Frame, placement: Placement | None) -> Placement:
    """Return a placement of the frame's jobs: that of earlier frames, updated, or a new one."""
    placement = Placement(frame.machine_processors) if placement is None else placement
    placement.update(frame.started)
    return placement


def jobs_in_view(frame: Frame, axis: TimeAxis) -> list[tuple[int, int, int]]:
    """Return row, start and end, s, of each job of which something is seen.

    A running job that is past its estimate ends now.
    """
    jobs = frame.started
    end = np.where(jobs.running, np.maximum(jobs.end_time, frame.now), jobs.end_time)
    seen = (end > axis.first) & (jobs.start_time < axis.last)
    columns = (jobs.job, jobs.start_time, end)
    return list(zip(*(column[seen].tolist() for column in columns), strict=True))
