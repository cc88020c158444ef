"""Rewards: what waiting costs, added up as the clock moves, and how the agent is paid for it.

**Cost.** A job costs `reward_rate` per second from `reward_onset` until it starts. The rates of
jobs past their onset are one sum, `rate`. Jobs whose onset is to come are in a binary heap. A step
of the clock thus costs O(log n) for each onset that it passes. A job that starts before its onset
stays in the heap until the onset, or until such jobs outnumber the waiting ones. The heap thus
grows with the waiting jobs, not with the log.

**Payment.** A step pays the cost since the last one, alone or paired with a baseline's. The forms
that pay as the cost accrues, at starts or at the end have one sum. The others compare the final
cost with the baseline's.

Source: Specification, section 10, "Reward identity" and "Paired reward".
"""

import math

from hpcgym.core.constants import PAY_AS_ACCRUED, PAY_AT_START, PAY_LOG_RATIO
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Int, Jobs, RewardPlan, Sim

STARTED_KEPT = 32
"""Jobs that have started and may stay in the heap however few wait."""


@kernel
def push_onset(jobs: Jobs, sim: Sim, job: int) -> None:
    """Put a job into the heap of onsets; writes `onset` and `n_onsets`."""
    place = sim.n_onsets
    sim.n_onsets = place + 1
    while place > 0:
        parent = (place - 1) // 2
        if jobs.reward_onset[sim.onset[parent]] <= jobs.reward_onset[job]:
            break
        sim.onset[place] = sim.onset[parent]
        place = parent
    sim.onset[place] = job


@kernel
def drop_started(jobs: Jobs, sim: Sim) -> None:
    """Rebuild the heap from the jobs that have not started; writes `onset` and `n_onsets`."""
    n = sim.n_onsets
    sim.n_onsets = 0
    for place in range(n):  # in place: the heap never reaches a job that is still to be read
        if sim.start_time[sim.onset[place]] < 0:
            push_onset(jobs, sim, sim.onset[place])


@kernel
def pop_onset(jobs: Jobs, sim: Sim) -> int:
    """Take the job with the earliest onset out of the heap; writes `onset` and `n_onsets`."""
    first = sim.onset[0]
    size = sim.n_onsets - 1
    sim.n_onsets = size
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
    """Add a newcomer's rate to `rate`, or the newcomer to the heap if its onset is to come."""
    if jobs.reward_onset[job] <= sim.now:
        sim.rate += jobs.reward_rate[job]
        return
    if sim.n_onsets > 2 * sim.n_waiting + STARTED_KEPT:
        drop_started(jobs, sim)
    push_onset(jobs, sim, job)


@kernel(inlined=True)
def end_cost(jobs: Jobs, sim: Sim, job: int) -> None:
    """Subtract a starting job's rate from `rate`, and add its cost to `started_cost`.

    `n_waiting` no longer counts the job. If its onset is to come, neither changes, and `accrue`
    skips the job later.
    """
    waited = sim.now - jobs.reward_onset[job]
    if waited >= 0:
        sim.rate -= jobs.reward_rate[job]
        sim.started_cost += jobs.reward_rate[job] * waited
    if sim.n_waiting == 0:
        sim.rate = 0.0  # no rounding is carried from one busy period to the next


@kernel
def accrue(jobs: Jobs, sim: Sim, until: int) -> None:
    """Add the cost of waiting from `now` until the instant the clock moves to.

    Writes `accrued`, and for onsets up to `until` also `rate` and the heap.
    """
    since = sim.now
    while sim.n_onsets > 0 and jobs.reward_onset[sim.onset[0]] <= until:
        job = pop_onset(jobs, sim)
        if sim.start_time[job] < 0:
            onset = jobs.reward_onset[job]
            sim.accrued += sim.rate * (onset - since)
            sim.rate += jobs.reward_rate[job]
            since = onset
    sim.accrued += sim.rate * (until - since)


@kernel
def count_before(instant: Int, now: int) -> int:
    """Count the instants before `now` in an ascending array, by binary search."""
    low = 0
    high = len(instant)
    while low < high:
        middle = (low + high) // 2
        if instant[middle] < now:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def baseline_accrued(reward_plan: RewardPlan, now: int) -> float:
    """Return the baseline's cost of all jobs submitted by `now`, as if waiting jobs started now."""
    waited = 0.0
    place = count_before(reward_plan.moment, now + 1) - 1
    if place >= 0:
        waited = reward_plan.passed[place] + reward_plan.slope[place] * (
            now - reward_plan.moment[place]
        )
    return reward_plan.at_submission * count_before(reward_plan.submit_time, now + 1) + waited


@kernel
def owed(form: int, accrued: float, started: float, over: bool) -> float:
    """Return how much of a cost a form (`PAY_*`) has paid by now, summed over all steps.

    `accrued` counts waiting jobs as if they started now, `started` leaves them out.
    """
    # At the end every form owes the whole cost, so that all have one sum, at a truncation, too.
    if over or form == PAY_AS_ACCRUED:
        return accrued
    if form == PAY_AT_START:
        return started
    return 0.0


@kernel
def compared(form: int, agent: float, baseline: float) -> float:
    """Compare two costs so that easy and hard weeks weigh alike.

    The result is -ln(agent / baseline), or (baseline - agent) / max(agent, baseline, 1).

    Source: The latter is from SchedInspector (HPDC 2022).
    """
    if agent == baseline:  # also where no job has been submitted yet
        return 0.0
    if form == PAY_LOG_RATIO:
        return -math.log(agent / baseline)
    return (baseline - agent) / max(agent, baseline, 1.0)


@kernel
def pay(sim: Sim, reward_plan: RewardPlan, over: bool, truncated: bool) -> None:
    """Pay what the agent, and the baseline, owe since the last step.

    Writes `reward`, `agent_term`, `baseline_term`, `paid` and `paid_baseline`.
    """
    form = reward_plan.form
    first = reward_plan.at_submission  # what each job costs at its submission, before it waits
    accrued = first * sim.next_job + sim.accrued
    due = owed(form, accrued, first * sim.n_started + sim.started_cost, over)
    baseline_due = 0.0
    if reward_plan.is_paired == 1:
        now = sim.now
        if over and not truncated:
            # The baseline may start its last jobs later than the agent: its whole cost is due.
            baseline_due = reward_plan.baseline_total
        else:
            # Its starts at `now` do not count yet: an agent decides before it starts jobs.
            started = reward_plan.started_cost[count_before(reward_plan.started, now)]
            baseline_due = owed(form, baseline_accrued(reward_plan, now), started, over)
    if form >= PAY_LOG_RATIO:
        sim.agent_term = compared(form, due, baseline_due) if over else 0.0
    else:
        sim.agent_term = (sim.paid - due) / reward_plan.n_jobs
        sim.baseline_term = (baseline_due - sim.paid_baseline) / reward_plan.n_jobs
        sim.paid = due
        sim.paid_baseline = baseline_due
    sim.reward = sim.agent_term + sim.baseline_term


@kernel
def pay_at_truncation(sim: Sim, reward_plan: RewardPlan) -> None:
    """Add to the latest reward what is still owed when a horizon truncates the episode."""
    reward = sim.reward
    agent = sim.agent_term
    baseline = sim.baseline_term
    pay(sim, reward_plan, True, True)
    sim.reward += reward
    sim.agent_term += agent
    sim.baseline_term += baseline
