"""A snapshot as a workload: simulations begin with the jobs that run, and with those that wait.

To forecast, time 0 is now: running jobs come first in the queue and start, and the others wait.

To order, waits must be as long as they are. So time 0 is before the first submission of a waiting
job. There the running jobs start, and beside them a job that holds all idle cpus until now. One
more job is submitted now, so that a pass is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import LiveError, PolicyError
from hpcgym.core.constants import N_WEIGHTS
from hpcgym.core.features import features_of
from hpcgym.core.history import History, history_of
from hpcgym.core.policy import KEYS, Policy, as_policy
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.schedule.simulate import simulate
from hpcgym.site.live.readings import WaitingJob
from hpcgym.site.live.run_times import Past
from hpcgym.site.live.snapshot import Snapshot

IntArray = NDArray[np.int64]

_Row: TypeAlias = tuple[int, int, int, str]  # run time and limit of a job, s, its cpus and its user

BACKFILL = "conservative"
"""The mode nearest to Slurm's backfilling, which plans every job, in order, anew each time."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A snapshot, and what is known of its users' past jobs."""

    snapshot: Snapshot
    past: Past

    @cached_property
    def tasks(self) -> IntArray:
        """Return the position in `snapshot.waiting` of each task that waits, by begin and id."""
        waiting = self.snapshot.waiting
        positions = sorted(
            range(len(waiting)),
            key=lambda at: (self.snapshot.begins(waiting[at]), waiting[at].job_id),
        )
        repeats = [waiting[at].tasks for at in positions]
        return np.repeat(np.array(positions, dtype=np.int64), repeats)

    @property
    def lead(self) -> int:
        """Return what the clock of `queue_with_past` says now, s."""
        begins = (self.snapshot.begins(job) for job in self.snapshot.waiting)
        return self.snapshot.now - min((*begins, self.snapshot.now)) + 1

    @property
    def idle(self) -> int:
        """Return the cpus that no job holds now."""
        return self.snapshot.cpus - sum(cpus for _, cpus in self.snapshot.running)

    def queue(self) -> Workload:
        """Return the jobs from now on: the running ones, then the tasks."""
        now, waiting = self.snapshot.now, self.snapshot.waiting
        begins = [max(self.snapshot.begins(waiting[at]) - now, 0) for at in self.tasks]
        running = self._running(0)
        submit_time = [0] * len(running) + begins
        made, _ = self._workload(submit_time, running + self._waiting(), 0)
        after = self._after(len(running))
        return made if after is None else replace(made, after=np.array(after))

    def queue_with_past(self) -> Workload:
        """Return the jobs since before the first submission, with what is known of their users.

        Jobs whose begin time is to come are submitted now, so that they are ordered, too.
        """
        lead, now, waiting = self.lead, self.snapshot.now, self.snapshot.waiting
        begins = [min(self.snapshot.begins(waiting[at]) - now, 0) + lead for at in self.tasks]
        # Without names, so that nothing is predicted of them: they do not end before now.
        running = [(runs, left, cpus, "") for runs, left, cpus, _ in self._running(lead)]
        running += [(lead, lead, self.idle, "")] if self.idle else []
        submit_time = [*[0] * len(running), *begins, lead]
        rows = [*running, *self._waiting(), (1, 1, 1, "")]
        made, names = self._workload(submit_time, rows, lead)
        return replace(made, history=self._history(names))

    def _running(self, lead: int) -> list[_Row]:
        """Return what is left of the run time and the limit of running jobs, cpus and user."""
        rows = []
        for job, cpus in self.snapshot.running:
            left = max(job.limit_s - job.elapsed_s, 1) if job.state != "COMPLETING" else 1
            runs = min(self.past.expected_left(job.user, job.limit_s, job.elapsed_s), left)
            rows.append((lead + runs, lead + left, cpus, job.user))
        return rows

    def _waiting(self) -> list[_Row]:
        """Return expected run time, limit, cpus and user of each task."""
        waiting = (self.snapshot.waiting[at] for at in self.tasks)
        return [
            (self.past.expected(job.user, job.limit_s), job.limit_s, job.cpus, job.user)
            for job in waiting
        ]

    def _workload(
        self, submit_time: list[int], rows: list[_Row], lead: int
    ) -> tuple[Workload, list[str]]:
        """Make a job table, and return it with the names of its users."""
        run_time, requested_time, processors, users = zip(*rows, strict=True)
        names, user = np.unique(np.array(users, dtype=str), return_inverse=True)
        made = Workload.from_arrays(
            submit_time,
            run_time,
            requested_time,
            processors,
            machine_processors=self.snapshot.cpus,
            name="+".join(self.snapshot.partitions),
            unix_start=self.snapshot.now - lead,
            user=user,
        )
        return made, names.tolist()

    def _history(self, names: Sequence[str]) -> History:
        """Return what is known of users' past jobs at time 0; later ends count as there, too."""
        number = {name: at for at, name in enumerate(names)}
        past = self.past
        kept = np.array([name != "" and name in number for name in past.user], dtype=bool)
        ends = np.minimum(past.end_time[kept] - self.snapshot.now + self.lead, 0)
        return history_of(
            np.arange(len(names)),
            np.array([number[name] for name in past.user[kept]], dtype=np.int64),
            past.run_time[kept],
            past.requested_time[kept],
            past.processors[kept],
            ends,
        )

    def _after(self, first: int) -> list[int] | None:
        """Return the row each row waits for, so many tasks at once; None where none does."""
        after = [-1] * (first + len(self.tasks))
        for at, job in enumerate(self.snapshot.waiting):
            if job.at_once is None:
                continue
            running = [
                (other.limit_s - other.elapsed_s, row)
                for row, (other, _) in enumerate(self.snapshot.running)
                if other.array_id.startswith(f"{job.job_id}_")
            ]
            rows = [row for _, row in sorted(running)]
            rows += [first + int(row) for row in np.flatnonzero(self.tasks == at)]
            for earlier, row in zip(rows, rows[job.at_once :], strict=False):
                if row >= first:
                    after[row] = earlier
        return after if max(after) >= 0 else None

    def slurm_order(
        self, priority: Callable[[WaitingJob], float] = attrgetter("priority")
    ) -> list[int]:
        """Return positions in `snapshot.waiting` as Slurm takes them: tier, priority, lowest id."""
        waiting = self.snapshot.waiting
        return sorted(
            range(len(waiting)),
            key=lambda at: (
                -self.snapshot.tier(waiting[at]),
                -priority(waiting[at]),
                waiting[at].job_id,
            ),
        )

    def wanted_order(self, settings: SchedulerSettings) -> list[int]:
        """Return positions in `snapshot.waiting` as a policy orders them now, within each tier."""
        if not self.snapshot.waiting:
            return []
        score = self._scores(settings)
        best: dict[int, tuple[float, int]] = {}
        for row, at in enumerate(self.tasks):
            best.setdefault(int(at), (float(score[row]), row))
        tier = [self.snapshot.tier(job) for job in self.snapshot.waiting]
        return sorted(best, key=lambda at: (-tier[at], *best[at]))

    def _scores(self, settings: SchedulerSettings) -> NDArray[np.float64]:
        """Return the score of each task under a policy now, lowest first."""
        policy = as_policy(settings.policy)
        if policy.chooser is not None:
            raise PolicyError(
                f"{policy.name} chooses between orders as it goes; name one order, such as SAF"
            )
        workload = self.queue_with_past()
        first, lead = len(workload) - len(self.tasks) - 1, self.lead
        if policy.formula is not None:
            tasks = slice(first, -1)
            features = features_of(
                workload.processors[tasks],
                workload.requested_time[tasks],
                workload.submit_time[tasks],
                workload.user_index[tasks],
                lead,
            )
            return np.asarray(policy.formula(features), dtype=np.float64)
        simulator = Simulator(workload, settings, decide="event")
        while simulator.run() and simulator.now < lead:
            simulator.order_by_keys(simulator.waiting)
        assert simulator.now == lead
        score = np.empty(len(workload))
        score[simulator.waiting] = simulator.scores()
        return score[first:-1]

    def starts(
        self, order: Sequence[int], backfill: str = BACKFILL, *, queue: Workload | None = None
    ) -> IntArray:
        """Return when each task starts, Unix s, if the queue keeps an order and nobody comes.

        Args:
            order: Positions in `snapshot.waiting`, best first.
            backfill: As of `hpcgym.simulate`.
            queue: `queue()` with other run times.
        """
        if not len(self.tasks):
            return np.zeros(0, dtype=np.int64)
        workload = queue or self.queue()
        first = len(workload) - len(self.tasks)
        rank = np.empty(len(order))
        rank[list(order)] = np.arange(len(order))
        keys = np.concatenate([np.full(first, -1.0), rank[self.tasks]])
        policy = Policy("order", KEYS, np.zeros(N_WEIGHTS), keys=lambda _: keys)
        schedule = simulate(
            workload,
            policy,
            backfill=backfill,
            dependencies="ignore" if workload.after is None else "start",
        )
        if schedule.start_time[:first].any():
            raise LiveError(
                f"backfill {backfill!r} would not run the jobs that are running; choose easy, "
                "conservative, depth or none"
            )
        starts: IntArray = schedule.start_time[first:] + self.snapshot.now
        return starts
