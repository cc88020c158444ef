"""Rewards: the cost of waiting since the last step, alone or paired with a baseline's.

The forms that pay as the cost accrues, at starts or at the end have one sum. The others compare the
final cost with the baseline's.

Source: Specification, section 10, "Reward identity" and "Paired reward".
"""

import math

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import RewardPlan, Sim
from hpcgym.core.state import (
    ACCRUED,
    AGENT_TERM,
    BASELINE_TERM,
    N_STARTED,
    NEXT_JOB,
    NOW,
    PAID,
    PAID_BASELINE,
    PAY_AS_ACCRUED,
    PAY_AT_START,
    PAY_LOG_RATIO,
    REWARD,
    STARTED_COST,
    Int,
)


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
    return reward_plan.amount[0] * count_before(reward_plan.submit_time, now + 1) + waited


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
    form = reward_plan.form[0]
    first = reward_plan.amount[0]  # what each job costs at its submission, before it waits
    accrued = first * sim.counter[NEXT_JOB] + sim.gauge[ACCRUED]
    due = owed(form, accrued, first * sim.counter[N_STARTED] + sim.gauge[STARTED_COST], over)
    baseline_due = 0.0
    if reward_plan.form[1] == 1:
        now = sim.counter[NOW]
        if over and not truncated:
            # The baseline may start its last jobs later than the agent: its whole cost is due.
            baseline_due = reward_plan.amount[1]
        else:
            # Its starts at `now` do not count yet: an agent decides before it starts jobs.
            started = reward_plan.started_cost[count_before(reward_plan.started, now)]
            baseline_due = owed(form, baseline_accrued(reward_plan, now), started, over)
    if form >= PAY_LOG_RATIO:
        sim.gauge[AGENT_TERM] = compared(form, due, baseline_due) if over else 0.0
    else:
        sim.gauge[AGENT_TERM] = (sim.gauge[PAID] - due) / reward_plan.form[2]
        sim.gauge[BASELINE_TERM] = (baseline_due - sim.gauge[PAID_BASELINE]) / reward_plan.form[2]
        sim.gauge[PAID] = due
        sim.gauge[PAID_BASELINE] = baseline_due
    sim.gauge[REWARD] = sim.gauge[AGENT_TERM] + sim.gauge[BASELINE_TERM]


@kernel
def pay_at_horizon(sim: Sim, reward_plan: RewardPlan) -> None:
    """Add to the latest reward what is still owed when a horizon truncates the episode."""
    reward = sim.gauge[REWARD]
    agent = sim.gauge[AGENT_TERM]
    baseline = sim.gauge[BASELINE_TERM]
    pay(sim, reward_plan, True, True)
    sim.gauge[REWARD] += reward
    sim.gauge[AGENT_TERM] += agent
    sim.gauge[BASELINE_TERM] += baseline
