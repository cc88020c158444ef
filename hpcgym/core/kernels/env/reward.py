"""What waiting costs: a rate per waiting job from its onset on, summed as the clock moves.

A job costs `reward_rate` per second from `reward_onset` until it starts (specification, section 10,
"Reward identity"). Jobs whose onset is still to come stand in a heap, the others in one sum of
rates; so a step of the clock costs no more than the onsets it passes. A job that starts before its
onset stays in the heap until that passes, or until such jobs are more than those that wait.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Jobs, Row
from hpcgym.core.state import ACCRUED, N_ONSETS, N_WAITING, NOW, RATE, STARTED_COST

STARTED_KEPT = 32
"""Jobs that have started and may stay in the heap however few wait."""


@kernel
def push_onset(jobs: Jobs, row: Row, job: int) -> None:
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
    place = row.counter[N_ONSETS]
    row.counter[N_ONSETS] = place + 1
    while place > 0:
        parent = (place - 1) // 2
        if jobs.reward_onset[row.onset[parent]] <= jobs.reward_onset[job]:
            break
        row.onset[place] = row.onset[parent]
        place = parent
    row.onset[place] = job


@kernel
def drop_started(jobs: Jobs, row: Row) -> None:
    """Make the heap of onsets to come anew of the jobs that have not started.

    Args:
        jobs: The job table.
        row: The simulation.

    Writes:
        `onset`, N_ONSETS.

    Source:
        House rule: state grows with the jobs that wait, not with the log.
    """
    n = row.counter[N_ONSETS]
    row.counter[N_ONSETS] = 0
    for place in range(n):  # at least as many places are read as written
        if row.start_time[row.onset[place]] < 0:
            push_onset(jobs, row, row.onset[place])


@kernel
def pop_onset(jobs: Jobs, row: Row) -> int:
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
    first = row.onset[0]
    size = row.counter[N_ONSETS] - 1
    row.counter[N_ONSETS] = size
    moved = row.onset[size]
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if (
            child + 1 < size
            and jobs.reward_onset[row.onset[child + 1]] < jobs.reward_onset[row.onset[child]]
        ):
            child += 1
        if jobs.reward_onset[moved] <= jobs.reward_onset[row.onset[child]]:
            break
        row.onset[place] = row.onset[child]
        place = child
    row.onset[place] = moved
    return first


@kernel(inlined=True)
def begin_cost(jobs: Jobs, row: Row, job: int) -> None:
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
    if jobs.reward_onset[job] <= row.counter[NOW]:
        row.gauge[RATE] += jobs.reward_rate[job]
        return
    if row.counter[N_ONSETS] > 2 * row.counter[N_WAITING] + STARTED_KEPT:
        drop_started(jobs, row)
    push_onset(jobs, row, job)


@kernel(inlined=True)
def end_cost(jobs: Jobs, row: Row, job: int) -> None:
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
    waited = row.counter[NOW] - jobs.reward_onset[job]
    if waited >= 0:
        row.gauge[RATE] -= jobs.reward_rate[job]
        row.gauge[STARTED_COST] += jobs.reward_rate[job] * waited
    if row.counter[N_WAITING] == 0:
        row.gauge[RATE] = 0.0  # no rounding is carried from one busy period to the next


@kernel
def accrue(jobs: Jobs, row: Row, until: int) -> None:
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
    since = row.counter[NOW]
    while row.counter[N_ONSETS] > 0 and jobs.reward_onset[row.onset[0]] <= until:
        job = pop_onset(jobs, row)
        if row.start_time[job] < 0:
            onset = jobs.reward_onset[job]
            row.gauge[ACCRUED] += row.gauge[RATE] * (onset - since)
            row.gauge[RATE] += jobs.reward_rate[job]
            since = onset
    row.gauge[ACCRUED] += row.gauge[RATE] * (until - since)
