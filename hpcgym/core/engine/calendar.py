"""What is to come: the ends of running jobs, true and estimated, the ends of holds, submissions.

The clock follows the true ends, and the scheduler sees the estimated ones. The next instant is the
least over all sources (`next_instant`). Each list keeps the soonest entry last. An entry shifts
those that come sooner: few where jobs end near their estimates, at most the number of running jobs.

Source: Specification, section 1, "One instant" and "EASY pass".
"""

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import DECIDE_INTERVAL, NEVER, SEMANTICS_BATCH
from hpcgym.core.kernels.types import Int, Jobs, Sim


@kernel(inlined=True)
def next_submission(jobs: Jobs, sim: Sim) -> int:
    """Return the instant of the next submission, s; `NEVER` if all jobs have been submitted."""
    if sim.next_job == sim.n_jobs:
        return NEVER
    return jobs.submit_time[sim.next_job]


@kernel(inlined=True)
def next_completion(sim: Sim) -> int:
    """Return the instant at which the next running job ends, s; `NEVER` if none runs."""
    if sim.n_running == 0:
        return NEVER
    return sim.ending_time[sim.n_running - 1]


@kernel(inlined=True)
def next_release(sim: Sim) -> int:
    """Return the next estimated end of a running job, s, perhaps past; `NEVER` if there is none."""
    if sim.n_releases == 0:
        return NEVER
    return sim.release_time[sim.n_releases - 1]


@kernel(inlined=True)
def next_eligible(sim: Sim) -> int:
    """Return the instant at which the next hold ends, s; `NEVER` if no job is held."""
    if sim.n_held == 0:
        return NEVER
    return sim.held_time[sim.n_held - 1]


@kernel(inlined=True)
def next_instant(jobs: Jobs, sim: Sim) -> int:
    """Return the next instant at which something happens, s."""
    instant = min(next_submission(jobs, sim), next_completion(sim), next_eligible(sim))
    if sim.decide == DECIDE_INTERVAL:
        instant = min(instant, sim.next_decision)
    return instant


@kernel(inlined=True)
def put_in_turn(time: Int, listed: Int, position: int, instant: int, job: int) -> int:
    """Put a job into a list that ends at `position`, the soonest last; return its position."""
    while position > 0 and time[position - 1] < instant:
        time[position] = time[position - 1]
        listed[position] = listed[position - 1]
        position -= 1
    time[position] = instant
    listed[position] = job
    return position


@kernel(inlined=True)
def add_running(sim: Sim, job: int, end: int) -> None:
    """List the true end of a job that takes processors; write `ending_*` and `n_running`."""
    position = sim.n_running
    sim.n_running = position + 1
    # Ties: the earlier job ends first; event by event, the one that started first.
    in_turn = sim.semantics != SEMANTICS_BATCH
    while position > 0 and (
        sim.ending_time[position - 1] < end
        or (
            sim.ending_time[position - 1] == end and (in_turn or sim.ending_job[position - 1] < job)
        )
    ):
        sim.ending_time[position] = sim.ending_time[position - 1]
        sim.ending_job[position] = sim.ending_job[position - 1]
        position -= 1
    sim.ending_time[position] = end
    sim.ending_job[position] = job


@kernel(inlined=True)
def add_release(sim: Sim, job: int, release: int) -> None:
    """List when the processors of a job are expected to be free; write `release_*`, `n_releases`.

    Ties need no order: reservations count tied releases together.
    """
    put_in_turn(sim.release_time, sim.release_job, sim.n_releases, release, job)
    sim.n_releases += 1


@kernel
def remove_running(sim: Sim, job: int) -> None:
    """Remove a job from the true ends before it ends; write `ending_*` and `n_running`."""
    last = sim.n_running - 1
    position = last
    while sim.ending_job[position] != job:
        position -= 1
    for other in range(position, last):
        sim.ending_time[other] = sim.ending_time[other + 1]
        sim.ending_job[other] = sim.ending_job[other + 1]
    sim.n_running = last


@kernel(inlined=True)
def remove_release(sim: Sim, job: int, release: int) -> bool:
    """Remove a job from the estimated ends, of which `release` is its; False if it is not there.

    Writes `release_*` and `n_releases`.
    """
    last = sim.n_releases - 1
    position = last
    while position >= 0 and (
        sim.release_time[position] < release or sim.release_job[position] != job
    ):
        # The list descends: a job with this end would have come before this place.
        if sim.release_time[position] > release:
            return False
        position -= 1
    if position < 0:
        return False
    for other in range(position, last):
        sim.release_time[other] = sim.release_time[other + 1]
        sim.release_job[other] = sim.release_job[other + 1]
    sim.n_releases = last
    return True


@kernel
def add_held(sim: Sim, job: int, end: int) -> None:
    """List a job whose hold ends at an instant; write `held_*` and `n_held`."""
    position = sim.n_held
    sim.n_held = position + 1
    # Ties: the earlier job becomes eligible first.
    while position > 0 and sim.held_time[position - 1] <= end:
        sim.held_time[position] = sim.held_time[position - 1]
        sim.held_job[position] = sim.held_job[position - 1]
        position -= 1
    sim.held_time[position] = end
    sim.held_job[position] = job
