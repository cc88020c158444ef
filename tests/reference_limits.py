"""EASY within limits, in plain Python from the specification: no start goes beyond one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import reference
from reference import Ranking, Start


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


class LimitedMachine(reference.Machine):
    """A machine whose passes leave jobs out that would go beyond a limit."""

    limits: Sequence[Limit] = ()
    held: dict[int, int]
    passed_over = False

    def running(self) -> list[int]:
        """Return the jobs that run."""
        return [j for _, _, j in self.ends]

    def beyond(self, j: int) -> int | None:
        """Return the last limit that a job would go beyond if it started now."""
        holding = None
        for number, limit in enumerate(self.limits):
            group = limit.groups[j]
            if group is None or (limit.spared is not None and limit.spared[j]):
                continue
            most = limit.jobs if limit.own is None else limit.own[j]
            alike = [k for k in self.running() if limit.groups[k] == group]
            cpus = sum(self.jobs[k].processors for k in alike) + self.jobs[j].processors
            too_many = most is not None and len(alike) >= most
            too_wide = limit.cpus is not None and cpus > limit.cpus
            is_outside = limit.submitted is not None and j not in self.within(limit, group)
            if too_many or too_wide or is_outside:
                holding = number
        return holding

    def within(self, limit: Limit, group: int) -> list[int]:
        """Return the first jobs of a group that have not ended, as many as may be submitted."""
        running = self.running()
        left = [
            k
            for k, each in enumerate(limit.groups)
            if each == group and (self.starts[k] is None or k in running)
        ]
        return left[: limit.submitted]

    def in_order(self, ranking: Ranking, t: int) -> Iterator[int]:
        """Yield the waiting jobs within limits in order, as long as any fits."""
        for j in list(super().in_order(ranking, t)):
            if not any(
                self.jobs[k].processors <= self.free for k in ranking.score if self.waits(k)
            ):
                return
            if (number := self.beyond(j)) is not None:
                self.held[j] = number
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
    policy: str,
    limits: Sequence[Limit],
    *,
    backfill: str = "easy",
    backfill_order: str | None = None,
    threshold: float | None = None,
) -> tuple[list[Start], dict[int, int]]:
    """Schedule every job, and say which limit held each that was held."""
    held: dict[int, int] = {}
    kind = type("Limited", (LimitedMachine,), {"limits": limits, "held": held})
    starts = reference.simulate(
        jobs,
        processors,
        policy,
        backfill=backfill,
        backfill_order=backfill_order,
        threshold=threshold,
        kind=kind,
    )
    return starts, held
