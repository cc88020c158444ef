"""Rewards: how the agent is paid for what waiting costs, alone or paired with a baseline.

`hpcgym.core.parts.waiting_cost` adds the cost up. A step pays the cost since the last one. The
forms that pay as the cost accrues, at starts or at the end have one sum. The others compare the
final cost with the baseline's.

Source: Specification, section 10, "Reward identity" and "Paired reward".
"""

import math

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import (
    BASE_ORDER,
    PAY_AS_ACCRUED,
    PAY_AT_START,
    PAY_BY_USER,
    PAY_LOG_RATIO,
)
from hpcgym.core.kernels.queue.ordered_queue import list_jobs
from hpcgym.core.kernels.types import Int, Jobs, RewardPlan, Sim
from hpcgym.core.parts.waiting_cost import has_started


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
    last = count_before(reward_plan.moment, now + 1) - 1
    if last >= 0:
        waited = reward_plan.passed[last] + reward_plan.slope[last] * (
            now - reward_plan.moment[last]
        )
    return reward_plan.at_submission * count_before(reward_plan.submit_time, now + 1) + waited


@kernel
def owed(form: int, accrued: float, started: float, over: bool) -> float:
    """Return how much of a cost a form (`PAY_*`) has paid by now, summed over all steps.

    `accrued` counts waiting jobs as if they started now, `started` leaves them out.
    """
    # At the end every form owes the whole cost, so that all have one sum.
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
def unfairness(jobs: Jobs, sim: Sim, reward_plan: RewardPlan) -> float:
    """Return the root mean square of users' mean costs, as if waiting jobs started now.

    Jobs to come cost what they cost at their submission. Costs O(users + waiting jobs). Writes
    `user_total` and `scratch`.
    """
    n_users = len(reward_plan.user_weight)
    for user in range(n_users):
        sim.user_total[user] = sim.user_cost[user]
    for position in range(list_jobs(sim, BASE_ORDER, sim.scratch)):
        job = sim.scratch[position]
        if not has_started(sim, job):
            waited = max(sim.now - jobs.reward_onset[job], 0)
            sim.user_total[jobs.user[job]] += jobs.reward_rate[job] * waited
    total, counted = 0.0, 0
    for user in range(n_users):
        if reward_plan.user_weight[user] > 0.0:
            mean = reward_plan.at_submission + sim.user_total[user] * reward_plan.user_weight[user]
            total += mean * mean
            counted += 1
    return math.sqrt(total / counted) if counted > 0 else 0.0


@kernel
def pay(jobs: Jobs, sim: Sim, reward_plan: RewardPlan, over: bool) -> None:
    """Pay what the agent, and the baseline, owe since the last step.

    `over` says whether all jobs have started. Writes `reward`, `agent_term`, `baseline_term`,
    `paid` and `paid_baseline`, and what `unfairness` writes.
    """
    form = reward_plan.form
    if form == PAY_BY_USER:
        due = unfairness(jobs, sim, reward_plan)
        sim.reward = sim.agent_term = sim.paid - due
        sim.paid = due
        return
    first = reward_plan.at_submission  # what each job costs at its submission, before it waits
    accrued = first * sim.next_job + sim.accrued
    n_started = sim.n_started - sim.n_cancelled  # cancelled jobs cost nothing
    due = owed(form, accrued, first * n_started + sim.started_cost, over)
    baseline_due = 0.0
    if reward_plan.is_paired == 1:
        now = sim.now
        if over:
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
