"""What waiting costs, added up as the clock moves.

A job costs `reward_rate` per second from `reward_onset` until it starts. The rates of jobs past
their onset are one sum, `rate`. Jobs whose onset is to come are in a binary heap. A step of the
clock thus costs O(log n) for each onset that it passes. A job that starts before its onset stays in
the heap until the onset, or until such jobs outnumber the waiting ones. The heap thus grows with
the waiting jobs, not with the log.

Source: Specification, section 10, "Reward identity".
"""

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import FLAG_TRIAL
from hpcgym.core.kernels.types import Jobs, Sim

STARTED_KEPT = 32  # jobs that have started and may stay in the heap however few wait


@kernel(inlined=True)
def has_started(sim: Sim, job: int) -> bool:
    """Tell whether a submitted job costs nothing now: it runs, be it on trial."""
    return sim.start_time[job] >= 0 or sim.flag[job] & FLAG_TRIAL != 0


@kernel
def push_onset(jobs: Jobs, sim: Sim, job: int) -> None:
    """Put a job into the heap of onsets; writes `onset` and `n_onsets`."""
    position = sim.n_onsets
    sim.n_onsets = position + 1
    while position > 0:
        parent = (position - 1) // 2
        if jobs.reward_onset[sim.onset[parent]] <= jobs.reward_onset[job]:
            break
        sim.onset[position] = sim.onset[parent]
        position = parent
    sim.onset[position] = job


@kernel
def drop_started(jobs: Jobs, sim: Sim) -> None:
    """Rebuild the heap from the jobs that have not started; writes `onset` and `n_onsets`."""
    n = sim.n_onsets
    sim.n_onsets = 0
    for position in range(n):  # in place: the heap never reaches a job that is still to be read
        if not has_started(sim, sim.onset[position]):
            push_onset(jobs, sim, sim.onset[position])


@kernel
def pop_onset(jobs: Jobs, sim: Sim) -> int:
    """Take the job with the earliest onset out of the heap; writes `onset` and `n_onsets`."""
    first = sim.onset[0]
    size = sim.n_onsets - 1
    sim.n_onsets = size
    moved = sim.onset[size]
    position = 0
    while 2 * position + 1 < size:
        child = 2 * position + 1
        if (
            child + 1 < size
            and jobs.reward_onset[sim.onset[child + 1]] < jobs.reward_onset[sim.onset[child]]
        ):
            child += 1
        if jobs.reward_onset[moved] <= jobs.reward_onset[sim.onset[child]]:
            break
        sim.onset[position] = sim.onset[child]
        position = child
    sim.onset[position] = moved
    return first


@kernel(inlined=True)
def on_submit(jobs: Jobs, sim: Sim, job: int) -> None:
    """Add a newcomer's rate to `rate`, or the newcomer to the heap if its onset is to come."""
    if jobs.reward_onset[job] <= sim.now:
        sim.rate += jobs.reward_rate[job]
        return
    if sim.n_onsets > 2 * sim.n_waiting + STARTED_KEPT:
        drop_started(jobs, sim)
    push_onset(jobs, sim, job)


@kernel(inlined=True)
def add_started(jobs: Jobs, sim: Sim, job: int, cost: float) -> None:
    """Add to what started jobs cost; write `started_cost`, and `user_cost` where it is kept."""
    sim.started_cost += cost
    if sim.keep_users == 1:
        sim.user_cost[jobs.user[job]] += cost


@kernel(inlined=True)
def on_start(jobs: Jobs, sim: Sim, job: int, since: int) -> None:
    """Subtract a job's rate from `rate` that takes processors, and add its cost to `started_cost`.

    It runs usefully from `since` on, s. If its onset is to come, neither changes, and `accrue`
    skips the job later.
    """
    onset = jobs.reward_onset[job]
    if onset <= sim.now:
        sim.rate -= jobs.reward_rate[job]
    if onset <= since:
        add_started(jobs, sim, job, jobs.reward_rate[job] * (since - onset))
        sim.accrued += jobs.reward_rate[job] * (since - max(onset, sim.now))
    if sim.n_waiting == 0:
        sim.rate = 0.0  # no rounding is carried from one busy period to the next


@kernel(inlined=True)
def on_evict(jobs: Jobs, sim: Sim, job: int, since: int) -> None:
    """Take a start back, `since` when the job ran: it has cost what it would have, had it waited.

    `on_submit` adds its rate again. Writes `accrued`, `started_cost`, and the heap, where the job
    may still be.
    """
    onset = jobs.reward_onset[job]
    if onset > sim.now:
        drop_started(jobs, sim)
    if onset <= since:
        add_started(jobs, sim, job, -jobs.reward_rate[job] * (since - onset))
    sim.accrued += jobs.reward_rate[job] * (max(onset, sim.now) - max(onset, since))


@kernel
def postpone(jobs: Jobs, sim: Sim, job: int, since: int) -> None:
    """Add the cost of a start that is later than `since`, s, as it was counted."""
    onset = jobs.reward_onset[job]
    more = max(sim.start_time[job], onset) - max(since, onset)
    add_started(jobs, sim, job, jobs.reward_rate[job] * more)
    sim.accrued += jobs.reward_rate[job] * more


@kernel
def accrue(jobs: Jobs, sim: Sim, until: int) -> None:
    """Add the cost of waiting from `now` until the instant the clock moves to.

    Writes `accrued`, and for onsets up to `until` also `rate` and the heap.
    """
    since = sim.now
    while sim.n_onsets > 0 and jobs.reward_onset[sim.onset[0]] <= until:
        job = pop_onset(jobs, sim)
        if not has_started(sim, job):
            onset = jobs.reward_onset[job]
            sim.accrued += sim.rate * (onset - since)
            sim.rate += jobs.reward_rate[job]
            since = onset
    sim.accrued += sim.rate * (until - since)
