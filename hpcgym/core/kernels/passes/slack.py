"""Slack-based backfilling: the plan may change as long as no job starts later than promised.

Every waiting job has a reservation, kept as in `hpcgym.core.kernels.passes.conservative_kept`. It
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

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.conservative import reserve_hole
from hpcgym.core.kernels.passes.conservative_kept import plan_starts, plans_are_due, start_planned
from hpcgym.core.kernels.passes.easy_dynamic import list_in_order
from hpcgym.core.kernels.passes.profile import make_profile, take_interval
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs, Sim


@kernel(inlined=True)
def make_promises(jobs: Jobs, sim: Sim, first: int, n: int) -> None:
    """Promise a latest start to each of n listed jobs from job `first` on; write `promise`."""
    for place in range(n):
        job = sim.scratch[place]
        if job >= first:
            entry = entry_of(sim, job)
            slack = int(sim.slack * jobs.estimate[job])
            sim.promise[entry] = sim.planned_start[entry] + slack


@kernel(inlined=True)
def is_planned_now(sim: Sim, job: int) -> bool:
    """Tell whether a waiting job's reservation is now."""
    return sim.planned_start[entry_of(sim, job)] == sim.now


@kernel
def find_room(jobs: Jobs, sim: Sim, n: int) -> int:
    """Return the processors free beside those of n listed jobs whose reservation is now."""
    # It may fall below 0, where the plan counts on jobs past their estimates.
    room = sim.free
    for place in range(n):
        job = sim.scratch[place]
        if is_planned_now(sim, job):
            room -= jobs.processors[job]
    return room


@kernel
def list_by_promise(sim: Sim, n: int) -> None:
    """List n jobs in order of their promises in `trial_job`."""
    # Insertion sort: promises are mostly in order of submission.
    for place in range(n):
        job = sim.scratch[place]
        promise = sim.promise[entry_of(sim, job)]
        spot = place
        while spot > 0:
            other = sim.trial_job[spot - 1]
            others = sim.promise[entry_of(sim, other)]
            if others < promise or (others == promise and other < job):
                break
            sim.trial_job[spot] = other
            spot -= 1
        sim.trial_job[spot] = job


@kernel
def can_start_early(jobs: Jobs, sim: Sim, early: int, n: int) -> bool:
    """Tell whether a plan in which job `early` starts now keeps every promise.

    `trial_job` lists n jobs by promise. Writes the profile and `trial_start`.
    """
    make_profile(jobs, sim)
    for place in range(n):
        job = sim.trial_job[place]
        if job == early or is_planned_now(sim, job):
            sim.trial_start[place] = sim.now
            take_interval(jobs, sim, job, sim.now)
    for place in range(n):
        job = sim.trial_job[place]
        if job != early and not is_planned_now(sim, job):
            entry = entry_of(sim, job)
            start = reserve_hole(jobs, sim, job)
            # A job beyond its promise already may stay where it is.
            if start > sim.promise[entry] and start > sim.planned_start[entry]:
                return False
            sim.trial_start[place] = start
    return True


@kernel
def rearrange(jobs: Jobs, sim: Sim, n: int) -> None:
    """Let jobs start now whose early start breaks no promise (step 2).

    `scratch` lists n jobs in queue order. Writes `planned_start`, the profile and `trial_*`.
    """
    room = find_room(jobs, sim, n)
    is_listed = False
    for place in range(n):
        job = sim.scratch[place]
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
def slack_pass(jobs: Jobs, sim: Sim, contested: bool) -> None:
    """Make a pass that keeps promises.

    Writes what `plan_starts` and `rearrange` write, and `promise`.
    """
    n = list_in_order(jobs, sim, contested)
    if plans_are_due(sim):
        first = sim.first_unplanned
        plan_starts(jobs, sim, n)
        make_promises(jobs, sim, first, n)
    rearrange(jobs, sim, n)
    start_planned(jobs, sim, n)
