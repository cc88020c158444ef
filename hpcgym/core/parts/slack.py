"""Slack-based backfilling: the plan may change as long as no job starts later than promised.

Every waiting job has a reservation, kept as in `hpcgym.core.parts.conservative`. It
also has a promise, its latest start, which never changes. The promise is the job's first
reservation plus c times its estimate, rounded down. A pass has three steps:

1. Shift the kept reservations, and reserve for newcomers.
2. Try each job whose reservation is not now once, in queue order, overdue ones first. It must fit
   in the free processors beside the jobs with a reservation now. Plan it and them for now; give all
   others the earliest hole in order of their promises, ties by index. Adopt this plan if it breaks
   no promise.
3. Start the jobs whose reservation is now, in queue order, as far as processors are free.

As long as no job outlives its estimate, none starts later than promised, since the plan at hand
always keeps every promise. Where jobs do, a reservation may lie beyond its promise already; then it
must not move later. Each job of a plan takes the earliest hole beside those before it. So the
earliest reservation is the estimated end of a running job, and an event comes with it.

Cost, with n waiting and m running jobs: the shift, and O(n (m + n)) for each job tried, at most n.
A try costs less if a broken promise is found early. Sorting by promise costs O(n) if the jobs are
nearly sorted, else O(n^2).

Source: Talby and Feitelson 1999; Specification, section 8, "Slack-based".
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from hpcgym.base.errors import PolicyError
from hpcgym.core.backfill import LARGEST_FACTOR, Backfill, is_number, shortest
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.compiler.struct import Column
from hpcgym.core.constants import MAKE_PASS, ON_SUBMIT
from hpcgym.core.kernels.passes.easy_dynamic import list_in_order
from hpcgym.core.kernels.passes.profile import make_profile, take_interval
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import IntVector, Jobs, empty
from hpcgym.core.parts.conservative import BROKEN as BROKEN
from hpcgym.core.parts.conservative import HEARS as HEARS
from hpcgym.core.parts.conservative import (
    ConservativeSim,
    keep_plans,
    plan_starts,
    plans_are_due,
    start_planned,
)
from hpcgym.core.parts.depth import reserve_hole

UNPROMISED = -1  # promise of a waiting job that has none yet


@dataclass(frozen=True)
class Slack(Backfill):
    """Every job has a promise, its first reservation and some slack, which no other job may break.

    The slack is c times the job's estimate, c from 0 to 1000. `hpcgym.core.parts.slack`
    says how the plan is rearranged. Unlike the paper's, the slack is the same for all jobs, without
    priorities or costs of schedules.
    """

    NAME: ClassVar[str] = "slack"
    keeps_reservations: ClassVar[bool] = True

    c: float

    def __post_init__(self) -> None:
        if not is_number(self.c, 0) or self.c > LARGEST_FACTOR:
            raise PolicyError(
                f"backfill 'slack': c must be a number from 0 to {LARGEST_FACTOR}, got {self.c!r}"
            )
        object.__setattr__(self, "c", shortest(self.c))


class SlackSim(ConservativeSim):
    """What promises add to a simulation."""

    # How many of its estimates a promise lies behind a job's first reservation.
    slack: Annotated[float, Column("backfill_parameter", 0)]

    promise: IntVector = empty("planned")
    """Latest start of each waiting job, s; `UNPROMISED` = none yet."""
    trial_job: IntVector = empty("trial")  # waiting jobs by promise, within a pass
    trial_start: IntVector = empty("trial")  # reservations of these in the plan that is tried, s


@kernel(inlined=True)
def make_promises(jobs: Jobs, sim: SlackSim, n: int) -> None:
    """Promise a latest start to each of n listed jobs that has none; write `promise`."""
    for position in range(n):
        job = sim.scratch[position]
        entry = entry_of(sim, job)
        if sim.promise[entry] == UNPROMISED:
            slack = int(sim.slack * jobs.estimate[job])
            sim.promise[entry] = sim.planned_start[entry] + slack


@kernel(inlined=True)
def is_planned_now(sim: SlackSim, job: int) -> bool:
    """Tell whether a waiting job's reservation is now."""
    return sim.planned_start[entry_of(sim, job)] == sim.now


@kernel
def find_room(jobs: Jobs, sim: SlackSim, n: int) -> int:
    """Return the processors free beside those of n listed jobs whose reservation is now."""
    # It may fall below 0, where the plan counts on jobs past their estimates.
    room = sim.free
    for position in range(n):
        job = sim.scratch[position]
        if is_planned_now(sim, job):
            room -= jobs.processors[job]
    return room


@kernel
def list_by_promise(sim: SlackSim, n: int) -> None:
    """List n jobs in order of their promises in `trial_job`."""
    # Insertion sort: promises are mostly in order of submission.
    for position in range(n):
        job = sim.scratch[position]
        promise = sim.promise[entry_of(sim, job)]
        spot = position
        while spot > 0:
            other = sim.trial_job[spot - 1]
            others = sim.promise[entry_of(sim, other)]
            if others < promise or (others == promise and other < job):
                break
            sim.trial_job[spot] = other
            spot -= 1
        sim.trial_job[spot] = job


@kernel
def can_start_early(jobs: Jobs, sim: SlackSim, early: int, n: int) -> bool:
    """Tell whether a plan in which job `early` starts now keeps every promise.

    `trial_job` lists n jobs by promise. Writes the profile and `trial_start`.
    """
    make_profile(jobs, sim)
    for position in range(n):
        job = sim.trial_job[position]
        if job == early or is_planned_now(sim, job):
            sim.trial_start[position] = sim.now
            take_interval(jobs, sim, job, sim.now)
    for position in range(n):
        job = sim.trial_job[position]
        if job != early and not is_planned_now(sim, job):
            entry = entry_of(sim, job)
            start = reserve_hole(jobs, sim, job)
            # A job beyond its promise already may stay where it is.
            if start > sim.promise[entry] and start > sim.planned_start[entry]:
                return False
            sim.trial_start[position] = start
    return True


@kernel
def rearrange(jobs: Jobs, sim: SlackSim, n: int) -> None:
    """Let jobs start now whose early start breaks no promise (step 2).

    `scratch` lists n jobs in queue order. Writes `planned_start`, the profile and `trial_*`.
    """
    room = find_room(jobs, sim, n)
    is_listed = False
    for position in range(n):
        job = sim.scratch[position]
        if jobs.processors[job] > room or is_planned_now(sim, job):
            continue
        if not is_listed:
            list_by_promise(sim, n)
            is_listed = True
        if can_start_early(jobs, sim, job, n):
            for spot in range(n):
                sim.planned_start[entry_of(sim, sim.trial_job[spot])] = sim.trial_start[spot]
            room = find_room(jobs, sim, n)


@kernel
def slack_pass(jobs: Jobs, sim: SlackSim, contested: bool) -> None:
    """Make a pass that keeps promises.

    Writes what `plan_starts` and `rearrange` write, and `promise`.
    """
    n = list_in_order(jobs, sim, contested)
    if plans_are_due(sim):
        plan_starts(jobs, sim, n)
        make_promises(jobs, sim, n)
    rearrange(jobs, sim, n)
    start_planned(jobs, sim, n)


def work(jobs: Jobs, sim: SlackSim, task: int, argument: int) -> int:
    """Do a task for a simulation; `argument` is a job, or says of a pass what it goes by."""
    if task == ON_SUBMIT:
        sim.promise[entry_of(sim, argument)] = UNPROMISED
    if task != MAKE_PASS:
        return keep_plans(jobs, sim, task, argument)
    slack_pass(jobs, sim, argument == 1)
    return 1
