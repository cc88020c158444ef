"""Stateful policies: your own orders, told of what happens in a simulation as it goes on."""

from __future__ import annotations

from abc import abstractmethod
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core.policy import Chooser, ChooserRun

if TYPE_CHECKING:
    from hpcgym.core.simulator import Simulator


class JobEvent(NamedTuple):
    """A job that was submitted, started or ended at `time`, s.

    `free_processors` are idle after the event. `start_time` is -1 before the start.
    """

    time: int
    job_id: int
    user: int
    processors: int
    requested_time: int
    submit_time: int
    start_time: int
    free_processors: int


@dataclass(frozen=True)
class Queue:
    """The waiting jobs at a pass: arrays of shape (n_waiting,). Times are s.

    `user` is the id in the log, -1 = unknown; `estimate` is what the scheduler takes the run time
    to be.
    """

    now: int
    free_processors: int
    job_id: NDArray[np.int64]
    user: NDArray[np.int64]
    processors: NDArray[np.int64]
    estimate: NDArray[np.int64]
    submit_time: NDArray[np.int64]

    @property
    def wait_time(self) -> NDArray[np.int64]:
        """Return how long each has waited, s."""
        return self.now - self.submit_time


class StatefulPolicy(Chooser):
    """A policy of your own that remembers: a subclass with `scores`.

    `policy=` takes an object of it, or the class if it needs no arguments. Each simulation works on
    a copy of the object as you made it, so what it remembers is of that run alone.

    Before each order it is told what has happened since the last one, in order of time; at one
    instant ends come before submissions, and submissions before starts. It is asked for an order at
    every pass at which jobs wait. Jobs beyond the threshold go first whatever the scores are.

    Example:
        >>> import hpcgym
        >>> class LastServedLast(StatefulPolicy):
        ...     def __init__(self):
        ...         self.served = {}
        ...     def started(self, job):
        ...         self.served[job.user] = job.time
        ...     def scores(self, queue):
        ...         return [self.served.get(user, -1) for user in queue.user]
        >>> hpcgym.simulate(hpcgym.load_workload("tiny"), LastServedLast)
        Schedule('tiny', 8 jobs, policy=Policy('LastServedLast'))
    """

    decide = "event"

    @property
    def name(self) -> str:
        """Return the name that tables show; that of the class unless it says another."""
        return type(self).__name__

    def submitted(self, job: JobEvent) -> None:
        """Take note of a submission."""

    def started(self, job: JobEvent) -> None:
        """Take note of a start."""

    def ended(self, job: JobEvent) -> None:
        """Take note of an end; the run time is `job.time - job.start_time`.

        A job that is taken off the machine ends, too. If it waits again, `job.start_time` is -1.
        """

    @abstractmethod
    def scores(self, queue: Queue) -> ArrayLike:
        """Return one score per waiting job, lowest first, none NaN; ties go by submission."""

    def begin(self) -> _StatefulRun:
        """Return a run of a copy that has been told nothing."""
        return _StatefulRun(deepcopy(self))


class _StatefulRun(ChooserRun):
    """A stateful policy in one simulation, and how much it has been told."""

    def __init__(self, policy: StatefulPolicy) -> None:
        self.policy = policy
        self.n_submitted = 0
        self.n_busy = 0
        self.waiting: set[int] = set()
        self.running: set[int] = set()

    def choose(self, simulator: Simulator) -> NDArray[np.float64]:
        """Tell the policy what has happened, and ask it for the order of this pass."""
        self._tell(simulator)
        jobs, table, rows = simulator.workload, simulator.table, simulator.waiting
        queue = Queue(
            simulator.now,
            simulator.free_processors,
            jobs.job_id[rows],
            jobs.user[rows],
            table.processors[rows],
            table.estimate[rows],
            table.submit_time[rows],
        )
        given = self.policy.scores(queue)
        try:
            return np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise PolicyError(
                f"{self.policy.name}: scores must be numbers, got {given!r:.80}"
            ) from None

    def _tell(self, simulator: Simulator) -> None:
        """Tell the policy of the starts of the last pass, of ends since, and of submissions."""
        state, table = simulator.state, simulator.table
        waiting = set(simulator.waiting.tolist())
        running = set(state.ending_job[0, : int(state.n_running[0])].tolist())
        submitted = range(self.n_submitted, int(state.next_job[0]))
        started = self.waiting - waiting
        ended = (self.running | started) - running
        self.n_submitted, self.waiting, self.running = submitted.stop, waiting, running
        start_time = state.start_time[0]
        end_time = {job: int(start_time[job] + table.run_time[job]) for job in ended}
        for job in ended:
            if start_time[job] < 0 or state.flag[0, job] & s.FLAG_NO_RUN:  # taken off the machine
                end_time[job] = int(state.killed_at[0, job])
        for job in sorted(started):
            self.n_busy += int(table.processors[job])
            self.policy.started(self._event(simulator, job, int(start_time[job])))
        for job in sorted(ended, key=lambda each: (end_time[each], each)):
            self.n_busy -= int(table.processors[job])
            self.policy.ended(self._event(simulator, job, end_time[job]))
        for job in submitted:
            self.policy.submitted(self._event(simulator, job, simulator.now))

    def _event(self, simulator: Simulator, job: int, time: int) -> JobEvent:
        jobs, table = simulator.workload, simulator.table
        return JobEvent(
            time,
            int(jobs.job_id[job]),
            int(jobs.user[job]),
            int(table.processors[job]),
            int(table.requested_time[job]),
            int(table.submit_time[job]),
            max(int(simulator.state.start_time[0, job]), -1),
            # With `pyss` semantics a job may start before one that ends at this instant is gone.
            max(jobs.machine_processors - self.n_busy, 0),
        )
