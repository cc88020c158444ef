"""Rewards: what waiting has cost since the last decision, alone or beside a baseline."""

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
    """Count the instants before a given one.

    Args:
        instant: Instants, ascending, s.
        now: The given one, s.

    Returns:
        How many are earlier.

    Source:
        House rule: binary search.
    """
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
    """Return what the baseline's schedule has cost the jobs submitted by an instant.

    Args:
        bill: How the rewards are paid.
        now: The instant, s.

    Returns:
        The sum of b_j(now), as if the jobs that wait started now.

    Source:
        Specification, section 10, "Paired reward".
    """
    waited = 0.0
    place = count_before(reward_plan.moment, now + 1) - 1
    if place >= 0:
        waited = reward_plan.passed[place] + reward_plan.slope[place] * (
            now - reward_plan.moment[place]
        )
    return reward_plan.amount[0] * count_before(reward_plan.submit_time, now + 1) + waited


@kernel
def owed(form: int, accrued: float, started: float, over: bool) -> float:
    """Return how much of a cost is to be paid by now, over all steps.

    Args:
        form: `PAY_*`.
        accrued: What all jobs submitted by now have cost, as if those that wait started now.
        started: What those that have started cost.
        over: Whether the episode ends here.

    Returns:
        The sum due; at the end the whole cost, in every form.

    Source:
        Specification, section 10: three forms, one sum.
    """
    if over or form == PAY_AS_ACCRUED:
        return accrued
    if form == PAY_AT_START:
        return started
    return 0.0


@kernel
def compared(form: int, agent: float, baseline: float) -> float:
    """Compare the cost of an agent with that of a baseline, so that weeks weigh alike.

    Args:
        form: `PAY_LOG_RATIO` or `PAY_RELATIVE`.
        agent: Cost of the agent's schedule.
        baseline: Cost of the baseline's.

    Returns:
        -ln(agent / baseline), or (baseline - agent) / max(agent, baseline, 1).

    Source:
        Specification, section 10, "Paired reward"; the latter from SchedInspector (HPDC 2022).
    """
    if agent == baseline:  # also where no job has been submitted yet
        return 0.0
    if form == PAY_LOG_RATIO:
        return -math.log(agent / baseline)
    return (baseline - agent) / max(agent, baseline, 1.0)


@kernel
def pay(sim: Sim, reward_plan: RewardPlan, over: bool, truncated: bool) -> None:
    """Pay what the agent's schedule, and the baseline's, have come to owe since the last step.

    A baseline has started, by a decision, the jobs it starts before that instant, as an agent has.

    Args:
        row: The simulation, at a decision or at its end.
        bill: How the rewards are paid.
        over: Whether the episode ends here.
        truncated: Whether a horizon ends it.

    Writes:
        REWARD, AGENT_TERM, BASELINE_TERM, PAID, PAID_BASELINE.

    Source:
        Specification, section 10, "Reward identity" and "Paired reward".
    """
    form = reward_plan.form[0]
    first = reward_plan.amount[0]
    accrued = first * sim.counter[NEXT_JOB] + sim.gauge[ACCRUED]
    due = owed(form, accrued, first * sim.counter[N_STARTED] + sim.gauge[STARTED_COST], over)
    baseline_due = 0.0
    if reward_plan.form[1] == 1:
        now = sim.counter[NOW]
        if over and not truncated:
            baseline_due = reward_plan.amount[1]
        else:
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
    """Add to the latest reward what is still owed where a horizon cuts the episode short.

    Args:
        row: The simulation, at a decision, its latest step paid.
        bill: How the rewards are paid.

    Writes:
        What `pay` writes.

    Source:
        Specification, section 10: at a truncation all forms of the reward have one sum.
    """
    reward = sim.gauge[REWARD]
    agent = sim.gauge[AGENT_TERM]
    baseline = sim.gauge[BASELINE_TERM]
    pay(sim, reward_plan, True, True)
    sim.gauge[REWARD] += reward
    sim.gauge[AGENT_TERM] += agent
    sim.gauge[BASELINE_TERM] += baseline
