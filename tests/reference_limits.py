"""EASY within limits, in plain Python from the specification: no start goes beyond one."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
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
    minutes: int | None = None


def left_of(jobs: Sequence[Any], starts: Mapping[int, int], t: int) -> dict[int, int]:
    """Return the seconds that the request of each job that runs, by its start, has left."""
    return {k: max(start + jobs[k].requested_time - t, 0) for k, start in starts.items()}


def is_beyond(
    limit: Limit, jobs: Sequence[Any], j: int, running: Mapping[int, int], done: Collection[int]
) -> bool:
    """Tell whether a job would go beyond a limit beside jobs that run, where others are done.

    `running` has the seconds left of each.
    """
    group = limit.groups[j]
    if group is None or (limit.spared is not None and limit.spared[j]):
        return False
    most = limit.jobs if limit.own is None else limit.own[j]
    alike = [k for k in running if limit.groups[k] == group]
    cpus = sum(jobs[k].processors for k in alike) + jobs[j].processors
    too_many = most is not None and len(alike) >= most
    too_wide = limit.cpus is not None and cpus > limit.cpus
    needed = sum(jobs[k].processors * running[k] for k in alike)
    needed += jobs[j].processors * jobs[j].requested_time
    too_long = limit.minutes is not None and needed > 60 * limit.minutes
    if too_many or too_wide or too_long or limit.submitted is None:
        return too_many or too_wide or too_long
    left = [k for k, each in enumerate(limit.groups) if each == group and k not in done]
    return j not in left[: limit.submitted]


def is_left_out(
    limits: Sequence[Limit],
    jobs: Sequence[Any],
    j: int,
    starts: Sequence[int | None],
    running: Collection[int],
    lost: Collection[int],
    t: int,
) -> bool:
    """Tell whether a job would go beyond a limit at t; lost jobs are done, as those that ended."""
    left = left_of(jobs, {k: start for k in running if (start := starts[k]) is not None}, t)
    done = [k for k, start in enumerate(starts) if start is not None and k not in left]
    return any(is_beyond(limit, jobs, j, left, [*done, *lost]) for limit in limits)


def let_in_after(
    limit: Limit, jobs: Sequence[Any], waiting: Collection[int], running: Mapping[int, int]
) -> float:
    """Return after how many seconds minutes first let a waiting job in that they hold."""
    if limit.minutes is None:
        return math.inf
    alone = limit._replace(jobs=None, cpus=None, own=None, submitted=None)
    held = [j for j in waiting if is_beyond(alone, jobs, j, running, [])]

    def is_in(j: int, after: int) -> bool:
        left = {k: max(each - after, 0) for k, each in running.items()}
        return not is_beyond(alone, jobs, j, left, [])

    spans = range(max(running.values(), default=0) + 1)
    after = (bisect_left(spans, True, key=lambda d, j=j: is_in(j, d)) for j in held)
    return min(after, default=math.inf)


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
                left_of(
                    jobs, {k: starts[k] for k in range(len(jobs)) if starts[k] <= t < ends[k]}, t
                ),
                [k for k in range(len(jobs)) if ends[k] <= t],
            )
        )
        held.append(next(beyond, None))
    return held


class LimitedMachine(reference.Machine):
    """A machine whose passes leave jobs out that would go beyond a limit."""

    limits: Sequence[Limit] = ()
    passed_over = False
    now = 0

    def come_to(self, t: int) -> None:
        """Note the time."""
        self.now = t

    def next_let_in(self) -> float:
        """Return when minutes let a waiting job in, while any fits."""
        if all(self.jobs[j].processors > self.free for j in self.primary.score):
            return math.inf
        starts = {k: self.starts[k].start_time for _, _, k in self.ends}
        left, waiting = left_of(self.jobs, starts, self.now), self.primary.score
        after = (let_in_after(limit, self.jobs, waiting, left) for limit in self.limits)
        return self.now + min(after, default=math.inf)

    def run_batch(self) -> None:
        """Handle the events of an instant, then make one pass; minutes have instants, too."""
        while (event := min(self.next_submission(), self.next_end())) < math.inf:
            t = int(min(event, self.next_let_in()))
            self.handle(t)

    def beyond(self, j: int) -> bool:
        """Tell whether a job would go beyond a limit if it started now."""
        running = [k for _, _, k in self.ends]
        done = []
        if any(limit.submitted is not None for limit in self.limits):
            done = [k for k, start in enumerate(self.starts) if start and k not in running]
        left = left_of(self.jobs, {k: self.starts[k].start_time for k in running}, self.now)
        return any(is_beyond(limit, self.jobs, j, left, done) for limit in self.limits)

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
