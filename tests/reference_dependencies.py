"""The reference of dependencies and holds: section 15 of the specification, in plain Python.

It shares no code with `hpcgym`, nor with the other references. Every pass looks at the whole queue,
and every instant at all jobs that are still to come.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

SCORES = {  # lowest first, by the eligible instant, estimate and processors
    "FCFS": lambda g, e, q: g,
    "LCFS": lambda g, e, q: -g,
    "SAF": lambda g, e, q: e * q,
    "SPF": lambda g, e, q: e,
    "LQF": lambda g, e, q: -q,
}


class Job(NamedTuple):
    """One row: times in s; `after` is the row of the job before it, -1 = none."""

    submit_time: int
    run_time: int
    requested_time: int
    processors: int
    after: int = -1
    think_time: int = 0
    eligible: int = -1
    condition: int = 0  # of the job before it: 0 = any end, 1 = success, 2 = failure
    fails: bool = False  # even if it ends by itself


class Outage(NamedTuple):
    """Processors that are down from an instant until another, and since when that is known."""

    begin: int
    end: int
    processors: int
    announced: int = 0


class Life(NamedTuple):
    """When a job became eligible and started, and whether it was beyond the threshold then.

    A cancelled job has the instant of that, and no start, -1; a lost one has no start either.
    """

    eligible_time: int
    start_time: int
    thresholded: bool


def simulate(
    jobs: Sequence[Job],
    processors: int,
    policy: str = "FCFS",
    *,
    backfill: str = "easy",
    threshold: int | None = None,
    dependencies: str = "ignore",
    outages: Sequence[Outage] = (),
    lose: Collection[int] = (),
) -> list[Life]:
    """Schedule jobs that are killed at their requests, in rows by submission; one `Life` each.

    `lose` are the rows that do not wait again where an outage takes them off.
    """
    theta = math.inf if threshold is None else threshold
    n = len(jobs)
    begins: dict[int, int] = {}  # when a job is eligible, once that is known
    came: dict[int, int] = {}  # those that came, and how many had come before each
    waiting: list[int] = []
    running: dict[int, int] = {}  # the starts
    lives: dict[int, Life] = {}

    def others(j: int) -> list[int]:
        return [k for k in range(n) if dependencies != "ignore" and jobs[k].after == j]

    def earliest(j: int) -> int:
        asks = dependencies == "feedback" and jobs[j].after >= 0
        return max(jobs[j].eligible, 0 if asks else jobs[j].submit_time)

    def end(j: int) -> int:
        return running[j] + min(jobs[j].run_time, jobs[j].requested_time)

    def down(t: int) -> int:
        return sum(o.processors for o in outages if o.begin <= t < o.end)

    def free(t: int) -> int:
        return processors - down(t) - sum(jobs[j].processors for j in running)

    def fits(j: int, u: int, t: int, kept: Sequence[Outage] = ()) -> bool:
        known = [o for o in outages if o.announced <= t < o.end]
        until = u + jobs[j].requested_time
        ends = [(running[k] + jobs[k].requested_time, jobs[k].processors) for k in running]
        for v in [u, *(o.begin for o in (*known, *kept) if u < o.begin < until)]:
            held = sum(q for end, q in ends if end > v)
            taken = sum(o.processors for o in (*known, *kept) if o.begin <= v < o.end)
            if processors - held - taken < jobs[j].processors:
                return False
        return True

    def pass_ahead(t: int) -> None:
        """Make a pass while an outage is known."""
        kept: list[Outage] = []
        for j in sorted(waiting, key=lambda j: rank(j, t)):
            if jobs[j].processors <= free(t) and fits(j, t, t, kept):
                start(j, t)
            elif backfill == "none":
                return
            elif not kept:
                ends = [running[k] + jobs[k].requested_time for k in running]
                instants = sorted({t, *ends, *(o.end for o in outages if o.announced <= t)})
                u = next(u for u in instants if u >= t and fits(j, u, t))
                kept = [Outage(u, u + jobs[j].requested_time, jobs[j].processors)]

    def take_off(t: int) -> None:
        while free(t) < 0:
            j = max(running, key=lambda j: (running[j], came[j]))
            del running[j], lives[j]
            if j in lose:
                lives[j] = Life(begins[j], -1, False)
                settle(j, t, failed=True)
            else:
                waiting.append(j)

    def overdue(j: int, t: int) -> bool:
        return t - begins[j] > theta

    def rank(j: int, t: int) -> tuple[float, ...]:
        if overdue(j, t):
            return (0, 0, came[j])
        job = jobs[j]
        score = SCORES[policy](begins[j], job.requested_time, job.processors)
        return (1, score, came[j])

    def start(j: int, t: int) -> None:
        waiting.remove(j)
        running[j] = t
        lives[j] = Life(begins[j], t, overdue(j, t))

    def one_pass(t: int) -> None:
        if any(o.announced <= t < o.end for o in outages):
            pass_ahead(t)
            return
        while waiting:
            head = min(waiting, key=lambda j: rank(j, t))
            if jobs[head].processors > free(t):
                break
            start(head, t)
        else:
            return
        if backfill == "none":
            return
        needed = jobs[head].processors
        releases = [(max(running[j] + jobs[j].requested_time, t), j) for j in running]
        instants = sorted({at for at, _ in releases})
        for shadow in instants:
            there = free(t) + sum(jobs[j].processors for at, j in releases if at <= shadow)
            if there >= needed:
                break
        extra = there - needed
        for j in sorted(waiting, key=lambda j: rank(j, t)):
            q = jobs[j].processors
            if j == head or q > free(t):
                continue
            if t + jobs[j].requested_time > shadow:
                if q > extra:
                    continue
                extra -= q
            start(j, t)

    def settle(j: int, t: int, failed: bool) -> None:
        for k in others(j):
            if jobs[k].condition == 0 or failed == (jobs[k].condition == 2):
                begins[k] = max(earliest(k), t + jobs[k].think_time)
            else:
                lives[k] = Life(t, -1, False)
                settle(k, t, failed=True)

    for j in range(n):
        if dependencies == "ignore" or jobs[j].after < 0:
            begins[j] = earliest(j)
    changes = sorted({max(at, 0) for o in outages for at in (o.begin, o.end, o.announced)})
    while len(lives) < n or (running and changes):
        comes = [g for j, g in begins.items() if j not in came]
        t = min([end(j) for j in running] + comes + changes[:1])
        for j in sorted(j for j in running if end(j) == t):
            del running[j]
            settle(j, t, jobs[j].fails or jobs[j].run_time > jobs[j].requested_time)
        if changes[:1] == [t]:
            del changes[0]
            take_off(t)
        for j in sorted(j for j, g in begins.items() if j not in came and g == t):
            came[j] = len(came)
            waiting.append(j)
        one_pass(t)
    return [lives[j] for j in range(n)]
