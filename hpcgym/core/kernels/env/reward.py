"""What waiting costs: a rate per waiting job from its onset on, summed as the clock moves.

A job costs `reward_rate` per second from `reward_onset` until it starts (specification, section 10,
"Reward identity"). Jobs whose onset is still to come stand in a heap, the others in one sum of
rates; so a step of the clock costs no more than the onsets it passes. A job that starts before its
onset stays in the heap until that passes, or until such jobs are more than those that wait.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import ACCRUED, N_ONSETS, N_WAITING, NOW, RATE, STARTED_COST

STARTED_KEPT = 32
"""Jobs that have started and may stay in the heap however few wait."""


@kernel
def push_onset(jobs: Jobs, sim: Sim, job: int) -> None:
    """Put a job into the heap of onsets to come.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a job that has just been submitted.

    Writes:
        `onset`, N_ONSETS.

    Source:
        House rule: binary heap, O(log n).
    """
    place = sim.counter[N_ONSETS]
    sim.counter[N_ONSETS] = place + 1
    while place > 0:
        parent = (place - 1) // 2
        if jobs.reward_onset[sim.onset[parent]] <= jobs.reward_onset[job]:
            break
        sim.onset[place] = sim.onset[parent]
        place = parent
    sim.onset[place] = job


@kernel
def drop_started(jobs: Jobs, sim: Sim) -> None:
    """Make the heap of onsets to come anew of the jobs that have not started.

    Args:
        jobs: The job table.
        row: The simulation.

    Writes:
        `onset`, N_ONSETS.

    Source:
        House rule: state grows with the jobs that wait, not with the log.
    """
    n = sim.counter[N_ONSETS]
    sim.counter[N_ONSETS] = 0
    for place in range(n):  # at least as many places are read as written
        if sim.start_time[sim.onset[place]] < 0:
            push_onset(jobs, sim, sim.onset[place])


@kernel
def pop_onset(jobs: Jobs, sim: Sim) -> int:
    """Take the job with the earliest onset out of the heap.

    Args:
        jobs: The job table.
        row: The simulation, its heap not empty.

    Returns:
        Index of the job.

    Writes:
        `onset`, N_ONSETS.

    Source:
        House rule: binary heap, O(log n).
    """
    first = sim.onset[0]
    size = sim.counter[N_ONSETS] - 1
    sim.counter[N_ONSETS] = size
    moved = sim.onset[size]
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if (
            child + 1 < size
            and jobs.reward_onset[sim.onset[child + 1]] < jobs.reward_onset[sim.onset[child]]
        ):
            child += 1
        if jobs.reward_onset[moved] <= jobs.reward_onset[sim.onset[child]]:
            break
        sim.onset[place] = sim.onset[child]
        place = child
    sim.onset[place] = moved
    return first


@kernel(inlined=True)
def begin_cost(jobs: Jobs, sim: Sim, job: int) -> None:
    """Let a newcomer's wait cost from its onset on.

    Args:
        jobs: The job table.
        row: The simulation, its clock at the submission.
        job: Index of the newcomer.

    Writes:
        RATE, or the heap of onsets.

    Source:
        Specification, section 10, "Reward identity".
    """
    if jobs.reward_onset[job] <= sim.counter[NOW]:
        sim.gauge[RATE] += jobs.reward_rate[job]
        return
    if sim.counter[N_ONSETS] > 2 * sim.counter[N_WAITING] + STARTED_KEPT:
        drop_started(jobs, sim)
    push_onset(jobs, sim, job)


@kernel(inlined=True)
def end_cost(jobs: Jobs, sim: Sim, job: int) -> None:
    """Let a job that starts cost no more.

    Args:
        jobs: The job table.
        row: The simulation, the job no longer counted as waiting.
        job: Index of the job.

    Writes:
        RATE, STARTED_COST. A job whose onset has not come stays in the heap for now and is passed
        over when it comes.

    Source:
        Specification, section 10, "Reward identity".
    """
    waited = sim.counter[NOW] - jobs.reward_onset[job]
    if waited >= 0:
        sim.gauge[RATE] -= jobs.reward_rate[job]
        sim.gauge[STARTED_COST] += jobs.reward_rate[job] * waited
    if sim.counter[N_WAITING] == 0:
        sim.gauge[RATE] = 0.0  # no rounding is carried from one busy period to the next


@kernel
def accrue(jobs: Jobs, sim: Sim, until: int) -> None:
    """Add up what the waiting jobs cost while the clock moves on.

    Args:
        jobs: The job table.
        row: The simulation, its clock not yet moved.
        until: The instant the clock moves to, s.

    Writes:
        ACCRUED, RATE and the heap of onsets, for onsets up to `until`.

    Source:
        Specification, section 10, "Reward identity".
    """
    since = sim.counter[NOW]
    while sim.counter[N_ONSETS] > 0 and jobs.reward_onset[sim.onset[0]] <= until:
        job = pop_onset(jobs, sim)
        if sim.start_time[job] < 0:
            onset = jobs.reward_onset[job]
            sim.gauge[ACCRUED] += sim.gauge[RATE] * (onset - since)
            sim.gauge[RATE] += jobs.reward_rate[job]
            since = onset
    sim.gauge[ACCRUED] += sim.gauge[RATE] * (until - since)
