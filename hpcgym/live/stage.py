"""A snapshot as a workload: the machine is full until now, and then goes on from the snapshot.

Time 0 is before the first submission of a waiting job. There the running jobs start, and beside
them a job that holds all idle cpus until now. So no waiting job starts earlier, each waits since it
was submitted, and the first pass with room for one is now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.constants import N_WEIGHTS
from hpcgym.core.history import History, history_of
from hpcgym.core.policy import KEYS, Policy, as_policy, features_of
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.errors import LiveError, PolicyError
from hpcgym.live.readings import WaitingJob
from hpcgym.live.run_times import Past
from hpcgym.live.snapshot import Snapshot
from hpcgym.schedule import simulate

IntArray = NDArray[np.int64]


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
        """Return what the workload's clock says now, s."""
        begins = (self.snapshot.begins(job) for job in self.snapshot.waiting)
        return self.snapshot.now - min((*begins, self.snapshot.now)) + 1

    @property
    def idle(self) -> int:
        """Return the cpus that no job holds now."""
        return self.snapshot.cpus - sum(cpus for _, cpus in self.snapshot.running)

    def workload(self, *, all_begun: bool = False) -> Workload:
        """Return the jobs: one for the idle cpus if there are any, the running ones, the tasks.

        Args:
            all_begun: Whether jobs that begin later are submitted by now, too.
        """
        lead, now = self.lead, self.snapshot.now
        rows: list[tuple[int, int, int, int, str]] = []
        if self.idle:
            rows.append((0, lead, lead, self.idle, ""))
        for job, cpus in self.snapshot.running:
            left = max(job.limit_s - job.elapsed_s, 1)
            if job.state == "COMPLETING":
                left = 1
            runs = min(self.past.expected_left(job.user, job.limit_s, job.elapsed_s), left)
            rows.append((0, lead + runs, lead + left, cpus, job.user))
        for at in self.tasks:
            waiting = self.snapshot.waiting[at]
            begins = self.snapshot.begins(waiting) - now + lead
            runs = self.past.expected(waiting.user, waiting.limit_s)
            submit = min(begins, lead) if all_begun else begins
            rows.append((submit, runs, waiting.limit_s, waiting.cpus, waiting.user))
        submit_time, run_time, requested_time, processors, users = zip(*rows, strict=True)
        names = sorted(set(users))
        made = Workload.from_arrays(
            submit_time,
            run_time,
            requested_time,
            processors,
            machine_processors=self.snapshot.cpus,
            name="+".join(self.snapshot.partitions),
            unix_start=now - lead,
            user=[names.index(user) for user in users],
            after=None if all_begun else self._after(len(rows) - len(self.tasks)),
        )
        return replace(made, user_index=made.user_index, history=self._history(names))

    def _history(self, names: Sequence[str]) -> History:
        """Return what is known of users' past jobs at time 0; later ends count as there, too."""
        number = {name: at for at, name in enumerate(names)}
        past = self.past
        kept = np.array([name in number for name in past.user], dtype=bool)
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
        """Return the row that each row waits for: of an array, so many tasks run at once.

        `first` is the row of the first waiting task.
        """
        after = [-1] * (first + len(self.tasks))
        for at, job in enumerate(self.snapshot.waiting):
            if job.at_once is None:
                continue
            begun = first - len(self.snapshot.running)
            running = [
                (other.limit_s - other.elapsed_s, begun + row)
                for row, (other, _) in enumerate(self.snapshot.running)
                if other.array_id.startswith(f"{job.job_id}_")
            ]
            rows = [row for _, row in sorted(running)]
            rows += [first + int(row) for row in np.flatnonzero(self.tasks == at)]
            for place_in_line, row in enumerate(rows[job.at_once :]):
                if row >= first:
                    after[row] = rows[place_in_line]
        return after if max(after) >= 0 else None

    def slurm_order(self) -> list[int]:
        """Return positions in `snapshot.waiting` as Slurm takes them: tier, priority, lowest id."""
        waiting = self.snapshot.waiting
        return sorted(
            range(len(waiting)),
            key=lambda at: (
                -self.snapshot.tier(waiting[at]),
                -waiting[at].priority,
                waiting[at].job_id,
            ),
        )

    def wanted_order(self, settings: SchedulerSettings) -> list[int]:
        """Return positions in `snapshot.waiting` as a policy orders them now, within each tier.

        Raises:
            PolicyError: The policy chooses between orders.
        """
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
        workload = self.workload(all_begun=True)
        first, lead = len(workload) - len(self.tasks), self.lead
        if policy.formula is not None:
            listed = workload.columns(slice(first, None))
            seen = (listed[key] for key in ("processors", "requested_time", "submit_time", "user"))
            return np.asarray(policy.formula(features_of(*seen, lead)), dtype=np.float64)
        simulator = Simulator(workload, settings, decide="event")
        while simulator.run() and simulator.now < lead:
            simulator.order_by_keys(simulator.waiting)
        assert simulator.now == lead
        score = np.empty(len(self.tasks))
        score[simulator.waiting - first] = simulator.scores()
        return score

    def starts(self, order: Sequence[int], backfill: str = "easy") -> IntArray:
        """Return when each task starts, Unix s, if the queue keeps an order and nobody comes.

        Args:
            order: Positions in `snapshot.waiting`, best first.
            backfill: As of `hpcgym.simulate`.

        Raises:
            LiveError: Under the mode the running jobs would not be running.
        """
        workload = self.workload()
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
        if schedule.start_time[:first].any() or (schedule.start_time[first:] < self.lead).any():
            raise LiveError(
                f"backfill {backfill!r} would not run the jobs that are running; choose easy, "
                "conservative, depth or none"
            )
        starts: IntArray = schedule.start_time[first:] - self.lead + self.snapshot.now
        return starts


def wanted_jobs(stage: Stage, settings: SchedulerSettings) -> list[WaitingJob]:
    """Return the waiting jobs that an order can help, as a policy orders them now, best first."""
    return [stage.snapshot.waiting[at] for at in stage.wanted_order(settings)]
