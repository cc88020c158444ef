"""One pass in which the plan may be rearranged as long as no job passes its promise.

Every waiting job has a reservation, which is kept, as in conservative backfilling that shifts, and
a promise, which never changes: the reservation it gets at its submission, the earliest hole beside
those of the others, plus c times its estimate, rounded down. At each pass

1. the reservations that are kept move to earlier holes where there are any, and newcomers get
   theirs, as in `hpcgym.core.kernels.passes.conservative_kept`;
2. each job whose reservation is not now is tried once, in queue order, thresholded ones first. It
   is tried if it fits beside the jobs with a reservation now in the processors that are free. It
   and they are taken out of the profile of the running jobs from now on; then all others, in order
   of their promises, ties by index, take the earliest hole. If none of them comes to lie beyond its
   promise, these are the reservations from then on, else they stay as they were. (Where jobs
   outlive their estimates a reservation may lie beyond its promise already; it must not move later
   then.)
3. the jobs whose reservation is now start, in queue order, as far as processors are free.

So as long as no job outlives its estimate none starts later than promised: a plan that keeps every
promise is at hand at any time. Each job of a plan takes the earliest hole that the jobs put in
before it leave, so that none could move, and the earliest reservation is the estimated end of a
running job: an event comes with it.

A job counts as backfilled where it starts ahead of a job before it in queue order that keeps
waiting at that pass.

Cost of a pass, with n waiting and k running jobs: that of a pass that shifts, and O(n (k + n)) for
each job tried, at worst n of them, less where a promise is found broken early; to put the jobs in
order of their promises, if one is tried, O(n) where they stand nearly so and O(n^2) at worst.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.conservative import reserve_hole
from hpcgym.core.kernels.passes.conservative_kept import plan_starts, plans_are_due, start_planned
from hpcgym.core.kernels.passes.easy_dynamic import list_in_order
from hpcgym.core.kernels.passes.profile import make_profile, take_interval
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import FIRST_UNPLANNED, FREE, NOW, SHADOW, SLACK


@kernel(inlined=True)
def make_promises(jobs: Jobs, sim: Sim, first: int, n: int) -> None:
    """Promise each newcomer a latest start.

    Args:
        jobs: The job table.
        row: The simulation, the waiting jobs listed in `scratch`, all with a reservation.
        first: The first newcomer.
        n: Number of jobs listed.

    Writes:
        `promise`.

    Source:
        Talby and Feitelson 1999; specification, section 8, "Slack-based".
    """
    for place in range(n):
        job = sim.scratch[place]
        if job >= first:
            entry = entry_of(sim, job)
            slack = int(sim.backfill_parameter[SLACK] * jobs.estimate[job])
            sim.promise[entry] = sim.planned_start[entry] + slack


@kernel(inlined=True)
def is_planned_now(sim: Sim, job: int) -> bool:
    """Tell whether a waiting job's reservation is now.

    Args:
        row: The simulation.
        job: Index of a waiting job with a reservation.

    Returns:
        True if it is to start at this pass.

    Source:
        House rule: one word per thing.
    """
    return sim.planned_start[entry_of(sim, job)] == sim.counter[NOW]


@kernel
def find_room(jobs: Jobs, sim: Sim, n: int) -> int:
    """Return the processors that are free beside the jobs whose reservation is now.

    Args:
        jobs: The job table.
        row: The simulation, the waiting jobs listed in `scratch`, all with a reservation.
        n: Number of jobs listed.

    Returns:
        Processors; below 0 where the plan counts on jobs past their estimates.

    Source:
        Specification, section 8, "Slack-based".
    """
    room = sim.counter[FREE]
    for place in range(n):
        job = sim.scratch[place]
        if is_planned_now(sim, job):
            room -= jobs.processors[job]
    return room


@kernel
def list_by_promise(sim: Sim, n: int) -> None:
    """List the waiting jobs in order of their promises.

    Args:
        row: The simulation, the waiting jobs listed in `scratch`, all with a promise.
        n: Number of jobs listed.

    Writes:
        `trial_job`.

    Source:
        House rule: insertion sort; promises stand mostly in order of submission.
    """
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
    """Try a plan in which one more job starts now.

    Args:
        jobs: The job table.
        row: The simulation, its waiting jobs listed in `trial_job`, all with a reservation.
        early: Index of a waiting job that fits beside those whose reservation is now.
        n: Number of jobs listed.

    Returns:
        True if the plan keeps every promise.

    Writes:
        The profile; `trial_start`.

    Source:
        Talby and Feitelson 1999; specification, section 8, "Slack-based".
    """
    make_profile(jobs, sim)
    for place in range(n):
        job = sim.trial_job[place]
        if job == early or is_planned_now(sim, job):
            sim.trial_start[place] = sim.counter[NOW]
            take_interval(jobs, sim, job, sim.counter[NOW])
    for place in range(n):
        job = sim.trial_job[place]
        if job != early and not is_planned_now(sim, job):
            entry = entry_of(sim, job)
            start = reserve_hole(jobs, sim, job)
            if start > sim.promise[entry] and start > sim.planned_start[entry]:
                return False
            sim.trial_start[place] = start
    return True


@kernel
def rearrange(jobs: Jobs, sim: Sim, n: int) -> None:
    """Let jobs start now whose early start breaks no promise, tried in queue order.

    Args:
        jobs: The job table.
        row: The simulation, the waiting jobs listed in `scratch` in queue order, all with a
            reservation.
        n: Number of jobs listed.

    Writes:
        `planned_start`, the profile, `trial_job`, `trial_start`.

    Source:
        Talby and Feitelson 1999; specification, section 8, "Slack-based".
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
    """Make one scheduling pass that keeps promises.

    Args:
        jobs: The job table.
        row: The simulation.
        contested: Whether the order of this instant decides; else the kept one does, or any order
            gives the same reservations.

    Writes:
        What `plan_starts` and `start_waiting` write; `promise` of the newcomers; SHADOW = -1; the
        profile, `scratch`, `trial_job`, `trial_start`, keys of orders that are not kept.

    Source:
        Talby and Feitelson 1999; specification, section 8, "Slack-based".
    """
    sim.counter[SHADOW] = -1
    n = list_in_order(jobs, sim, contested)
    if plans_are_due(sim):
        first = sim.counter[FIRST_UNPLANNED]
        plan_starts(jobs, sim, n)
        make_promises(jobs, sim, first, n)
    rearrange(jobs, sim, n)
    start_planned(jobs, sim, n)
