"""Which site factors put waiting jobs in a wanted order, with few changes and within bounds.

Slurm's priority of a job is a sum. Its site factor is a term of it that nothing else uses, so a job
is put in line by that term alone, and 0 takes it back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

GAP = 2  # points between neighbours: priorities are rounded, and equal ones go by job id
FLOOR = 2  # no priority is put below; Slurm shows 1 for all that is less, so that 1 is not a sum


_FAR = 2**62


@dataclass(frozen=True)
class MovableJob:
    """A waiting job that may be moved."""

    job_id: int
    user: str
    priority: int  # as Slurm has it now; below `FLOOR` the sum of its terms
    site: int  # its site factor now, which is part of that

    @property
    def base(self) -> int:
        """Its priority without the site factor."""
        return self.priority - self.site


@dataclass(frozen=True)
class Bounds:
    """Points of priority by which jobs may be moved, up and down alike."""

    job: int  # the most that the site factor of a job may be
    user: int  # the most that the site factors of a user's jobs may be together, up and down apart
    cycle: int  # the most that one cycle may add to all site factors together, likewise


def planned(lines: Sequence[Sequence[MovableJob]], bounds: Bounds) -> dict[int, int]:
    """Return the site factor by job id of each job whose own is to change.

    Jobs that stand in order already keep theirs: of all ways to get the order, the fewest jobs
    change. The others are put near the priority that a job of this rank had without site factors,
    between those that keep theirs. Where bounds forbid the order, jobs go as far as they may.

    Args:
        lines: Jobs, best first, of each line: those that compete by priority.
    """
    wanted = [job for line in lines for job in line]
    sites = [site for line in lines for site in _sites(line, bounds.job)]
    _bound(wanted, sites, bounds)
    return {job.job_id: site for job, site in zip(wanted, sites, strict=True) if site != job.site}


def _sites(line: Sequence[MovableJob], most: int) -> list[int]:
    """Return the site factor of each job of a line, `most` up or down."""
    low = [max(job.base - most, min(job.base, FLOOR)) for job in line]
    high = [job.base + most for job in line]
    highest = list(accumulate(high, lambda before, own_high: min(before - GAP, own_high)))
    lowest = list(accumulate(reversed(low), lambda after, own_low: max(after + GAP, own_low)))[::-1]
    priority = [job.priority for job in line]
    ranked = sorted((job.base for job in line), reverse=True)
    if all(least <= best for least, best in zip(lowest, highest, strict=True)):
        kept = _longest_in_order(priority, lowest, highest)
        values = _between(priority, kept, lowest, highest, ranked)
    else:  # bounds are left to the end, so that a job that cannot rise does not press all others
        kept = _longest_in_order(priority, low, high)
        far = [_FAR] * len(line)
        values = _between(priority, kept, [-end for end in far], far, ranked)
    return [
        min(max(value, least), best) - job.base
        for job, value, least, best in zip(line, values, low, high, strict=True)
    ]


def _longest_in_order(
    priority: Sequence[int], lowest: Sequence[int], highest: Sequence[int]
) -> list[int]:
    """Return positions, as many as can be, that stand in order with room for those between them."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for at, value in enumerate(priority):
        before.append(-1)
        if lowest[at] <= value <= highest[at]:
            end = -(value + GAP * at)
            length = bisect_right(ends, end)
            before[at] = last[length - 1] if length else -1
            ends[length : length + 1] = [end]
            last[length : length + 1] = [at]
    kept = []
    at = last[-1] if last else -1
    while at >= 0:
        kept.append(at)
        at = before[at]
    return kept[::-1]


def _between(
    priority: Sequence[int],
    kept: Sequence[int],
    lowest: Sequence[int],
    highest: Sequence[int],
    ranked: Sequence[int],
) -> list[int]:
    """Return a priority for each position: those kept as they are, the others between them."""
    n_jobs = len(priority)
    values = list(priority)
    stops = [-1, *kept, n_jobs]
    for above, below in pairwise(stops):
        for at in range(above + 1, below):
            value = max(ranked[at], lowest[at])
            if below < n_jobs:
                value = max(value, values[below] + GAP * (below - at))
            value = min(value, highest[at])
            values[at] = min(value, values[at - 1] - GAP) if at else value
    return values


def _bound(wanted: Sequence[MovableJob], sites: list[int], bounds: Bounds) -> None:
    """Hold `sites`, in place, within what users and the cycle may have, the best of jobs first."""
    for sign, positions in ((1, range(len(sites))), (-1, range(len(sites))[::-1])):
        of_user: dict[str, int] = defaultdict(lambda: bounds.user)
        left = bounds.cycle
        for at in positions:
            job, wants, has = wanted[at], sign * sites[at], max(sign * wanted[at].site, 0)
            if wants > 0:
                wants = min(wants, of_user[job.user])
                wants = min(wants, has + left)
                left -= max(wants - has, 0)
                of_user[job.user] -= wants
                sites[at] = sign * wants
