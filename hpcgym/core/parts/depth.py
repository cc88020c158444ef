"""Backfilling with k reservations made anew at each pass; conservative if k is infinite.

A reservation is the earliest hole in the profile of free processors
(`hpcgym.core.kernels.passes.profile`), beside the reservations made before it. A pass has three
steps:

1. Start jobs in queue order, overdue ones first, until one does not fit. That is the head.
2. Go on in queue order from the head. Start a job that fits now for its whole estimate. Reserve for
   any other, until k jobs have a reservation.
3. Try the other jobs in backfill order. Start each that fits beside all reservations.

With k = 1 this is EASY, which protects the head alone: a backfilled job may delay every other. With
k infinite it is conservative backfilling, rebuilt at each pass. Then every waiting job has a
reservation, and no start delays a job before it in queue order.

Two shortcuts leave the starts as they are. No profile is made while jobs fit in order. The walk
ends behind the last job that is narrow enough to start: a later reservation could hold nobody back,
and the next pass makes its own.

Cost, with n waiting and m running jobs and r reservations: O(m) for the profile and O(m + r) for
each job walked or tried, at worst O(n (m + n)).

Source: Mu'alem and Feitelson 2001; Specification, section 4, "Conservative" (`compress="rebuild"`),
section 8, "Reservation depth k", and section 13, "Depth k on counts".
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from hpcgym.base.errors import PolicyError
from hpcgym.core.backfill import Backfill, is_count, shortest
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import BASE_ORDER, BY_BASE, PICK_STARTED
from hpcgym.core.engine.life import start_waiting
from hpcgym.core.kernels.passes.easy_dynamic import make_backfill_order, start_front
from hpcgym.core.kernels.passes.profile import find_start, is_free_now, make_profile, take_interval
from hpcgym.core.kernels.queue.ordered_queue import list_jobs, some_job_fits
from hpcgym.core.kernels.queue.selection import take_first
from hpcgym.core.kernels.types import Jobs, Sim

HEARS = 0


@dataclass(frozen=True)
class Depth(Backfill):
    """The first k jobs that do not fit have reservations; what delays none of them may start.

    k is >= 1, or `math.inf` for all waiting jobs; 1 is EASY.

    Source: Specification, section 8, "Reservation depth k".
    """

    NAME: ClassVar[str] = "depth"
    TAKES_ORDER: ClassVar[bool] = True

    KNOWS: ClassVar[tuple[str, ...]] = ("nodes", "outages of nodes")
    guards: ClassVar[bool] = True

    k: float

    def __post_init__(self) -> None:
        if not is_count(self.k):
            raise PolicyError(
                f"backfill 'depth': k must be a whole number >= 1 or inf, got {self.k!r}; "
                "no reservation at all is backfill 'none'"
            )
        object.__setattr__(self, "k", shortest(self.k))

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels read in `Sim.backfill_parameter`."""
        return (float(self.k), math.inf)


@kernel(inlined=True)
def starts_now(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a job without a reservation may start: it fits by `free` and by the profile."""
    wanted = jobs.processors[job]
    return wanted <= sim.free and is_free_now(sim, wanted, jobs.estimate[job])


@kernel(inlined=True)
def reserve_hole(jobs: Jobs, sim: Sim, job: int) -> int:
    """Reserve the earliest hole for a waiting job, and return its start, s; write the profile."""
    start = find_start(sim, jobs.processors[job], jobs.estimate[job])
    take_interval(jobs, sim, job, start)
    return start


@kernel(inlined=True)
def start_behind(jobs: Jobs, sim: Sim, job: int) -> None:
    """Start a job for which `starts_now` holds, behind one that keeps waiting.

    Writes the profile and what `start_waiting` writes.
    """
    take_interval(jobs, sim, job, sim.now)
    # A job counts as backfilled if one before it in queue order keeps waiting at this pass.
    start_waiting(jobs, sim, job, True)


@kernel(inlined=True)
def count_narrow(jobs: Jobs, sim: Sim, first: int, n: int) -> int:
    """Count those of n jobs listed from place `first` on that are narrow enough to start."""
    narrow = 0
    for position in range(first, first + n):
        narrow += int(jobs.processors[sim.scratch[position]] <= sim.free)
    return narrow


@kernel(inlined=True)
def walk_queue(jobs: Jobs, sim: Sim, primary: int, first: int, n: int) -> int:
    """Start what fits behind the head in queue order, and reserve for others (step 2).

    The head has its reservation. The n jobs behind it are listed from place `first` on, in queue
    order unless `first` is 0. Return how many were walked. Writes the profile, `scratch` and what
    `start_waiting` writes.
    """
    most = sim.depth
    # Where the backfill order is the queue order, this walk is step 3 as well.
    is_walked_whole = sim.backfill_rule == BY_BASE
    # `narrow` was counted by the processors free now, before the walk starts jobs.
    free = sim.free
    narrow = count_narrow(jobs, sim, first, n)
    misfits = 1  # jobs that do not fit, the head among them
    walked = 0
    while narrow > 0 and some_job_fits(sim):
        if misfits >= most and not is_walked_whole:
            break
        if first > 0:
            job = sim.scratch[first + walked]
        else:
            job = take_first(sim, primary, n - walked, walked)
        walked += 1
        narrow -= int(jobs.processors[job] <= free)
        if starts_now(jobs, sim, job):
            start_behind(jobs, sim, job)
        elif misfits < most:
            reserve_hole(jobs, sim, job)
            misfits += 1
    return walked


@kernel(inlined=True)
def backfill_others(jobs: Jobs, sim: Sim, primary: int, first: int, n: int) -> None:
    """Start what fits beside all reservations, in backfill order (step 3).

    The n jobs that were not walked are listed from place `first` on. Writes the profile and
    `scratch`.
    """
    # A start lets no refused job fit, so only the others need an order.
    left = 0
    for position in range(first, first + n):
        job = sim.scratch[position]
        if starts_now(jobs, sim, job):
            sim.scratch[left] = job
            left += 1
    which = make_backfill_order(jobs, sim, primary, left)
    for taken in range(left):
        job = take_first(sim, which, left - taken, taken)
        if starts_now(jobs, sim, job):
            start_behind(jobs, sim, job)
            if not some_job_fits(sim):
                return


@kernel
def depth_pass(jobs: Jobs, sim: Sim, contested: bool) -> bool:
    """Make a pass with k reservations; return False if it stopped at the picked job."""
    primary, head = start_front(jobs, sim, contested)
    first = 0
    if not contested:
        list_jobs(sim, BASE_ORDER, sim.scratch)
        first = 1  # the head is listed before the others; it was not taken out of the list
    if head >= 0 and sim.n_waiting > 1 and sim.free > 0:
        make_profile(jobs, sim)
        reserve_hole(jobs, sim, head)
        n = sim.n_waiting - 1
        walked = walk_queue(jobs, sim, primary, first, n)
        if walked < n and sim.backfill_rule != BY_BASE:
            behind = 0 if first == 0 else first + walked
            backfill_others(jobs, sim, primary, behind, n - walked)
    return head != PICK_STARTED


def work(jobs: Jobs, sim: Sim, task: int, argument: int) -> int:
    """Make a pass, the only task."""
    return int(depth_pass(jobs, sim, argument == 1))
