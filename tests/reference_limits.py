"""EASY within limits, in plain Python from the specification: no start goes beyond one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import reference
from reference import Job, Ranking, Start


class Limit(NamedTuple):
    """What each group may run, and have submitted; a group for each job, None = none.

    `own` has each job's own limit of running jobs, and `spared` says who is counted and never held.
    """

    groups: Sequence[int | None]
    jobs: int | None = None
    cpus: int | None = None
    submitted: int | None = None
    own: Sequence[int | None] | None = None
    spared: Sequence[bool] | None = None


def is_beyond(
    limit: Limit, jobs: Sequence[Job], j: int, running: Collection[int], done: Collection[int]
) -> bool:
    """Tell whether a job would go beyond a limit beside jobs that run, where others are done."""
    group = limit.groups[j]
    if group is None or (limit.spared is not None and limit.spared[j]):
        return False
    most = limit.jobs if limit.own is None else limit.own[j]
    alike = [k for k in running if limit.groups[k] == group]
    cpus = sum(jobs[k].processors for k in alike) + jobs[j].processors
    too_many = most is not None and len(alike) >= most
    too_wide = limit.cpus is not None and cpus > limit.cpus
    left = [k for k, each in enumerate(limit.groups) if each == group and k not in done]
    is_outside = limit.submitted is not None and j not in left[: limit.submitted]
    return too_many or too_wide or is_outside


def held_last(
    jobs: Sequence[Job], starts: Sequence[int], ends: Sequence[int], limits: Sequence[Limit]
) -> list[int | None]:
    """Say of each job which limit it was beyond last before it started, of two the later one."""
    instants = sorted({job.submit_time for job in jobs} | {*starts, *ends}, reverse=True)
    held: list[int | None] = []
    for j, job in enumerate(jobs):
        beyond = (
            number
            for t in instants
            if job.submit_time <= t < starts[j]
            for number in reversed(range(len(limits)))
            if is_beyond(
                limits[number],
                jobs,
                j,
                [k for k in range(len(jobs)) if starts[k] <= t < ends[k]],
                [k for k in range(len(jobs)) if ends[k] <= t],
            )
        )
        held.append(next(beyond, None))
    return held


class LimitedMachine(reference.Machine):
    """A machine whose passes leave jobs out that would go beyond a limit."""

    limits: Sequence[Limit] = ()
    passed_over = False

    def beyond(self, j: int) -> bool:
        """Tell whether a job would go beyond a limit if it started now."""
        running = [k for _, _, k in self.ends]
        done = [k for k, start in enumerate(self.starts) if start and k not in running]
        return any(is_beyond(limit, self.jobs, j, running, done) for limit in self.limits)

    def in_order(self, ranking: Ranking, t: int) -> Iterator[int]:
        """Yield the waiting jobs within limits in order, as long as any fits."""
        for j in list(super().in_order(ranking, t)):
            if not any(
                self.jobs[k].processors <= self.free for k in ranking.score if self.waits(k)
            ):
                return
            if self.beyond(j):
                self.passed_over = True
            else:
                yield j

    def schedule(self, t: int) -> None:
        """Make one pass."""
        self.passed_over = False
        super().schedule(t)

    def start(self, j: int, t: int, *, backfilled: bool) -> None:
        """Start a job, which is backfilled if one before it in the queue was held."""
        super().start(j, t, backfilled=backfilled or self.passed_over)

    def waits(self, j: int) -> bool:
        """Tell whether a job of the queue has not started within this pass."""
        return self.starts[j] is None


def simulate(
    jobs: Sequence[Sequence[int]],
    processors: int,
    policy: Any,
    limits: Sequence[Limit],
    *,
    kind: type[reference.Machine] = LimitedMachine,
    **settings: Any,
) -> list[Start]:
    """Schedule every job; settings are those of `reference.simulate`."""
    within = type("Within", (kind,), {"limits": limits})
    return reference.simulate(jobs, processors, policy, kind=within, **settings)
