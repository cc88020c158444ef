"""Rewards: what waiting has cost since the last decision, alone or beside a baseline."""

import math

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Bill, Row
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
def baseline_accrued(bill: Bill, now: int) -> float:
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
    place = count_before(bill.moment, now + 1) - 1
    if place >= 0:
        waited = bill.passed[place] + bill.slope[place] * (now - bill.moment[place])
    return bill.amount[0] * count_before(bill.submit_time, now + 1) + waited


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
def pay(row: Row, bill: Bill, over: bool, truncated: bool) -> None:
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
    form = bill.form[0]
    first = bill.amount[0]
    accrued = first * row.counter[NEXT_JOB] + row.gauge[ACCRUED]
    due = owed(form, accrued, first * row.counter[N_STARTED] + row.gauge[STARTED_COST], over)
    baseline_due = 0.0
    if bill.form[1] == 1:
        now = row.counter[NOW]
        if over and not truncated:
            baseline_due = bill.amount[1]
        else:
            started = bill.started_cost[count_before(bill.started, now)]
            baseline_due = owed(form, baseline_accrued(bill, now), started, over)
    if form >= PAY_LOG_RATIO:
        row.gauge[AGENT_TERM] = compared(form, due, baseline_due) if over else 0.0
    else:
        row.gauge[AGENT_TERM] = (row.gauge[PAID] - due) / bill.form[2]
        row.gauge[BASELINE_TERM] = (baseline_due - row.gauge[PAID_BASELINE]) / bill.form[2]
        row.gauge[PAID] = due
        row.gauge[PAID_BASELINE] = baseline_due
    row.gauge[REWARD] = row.gauge[AGENT_TERM] + row.gauge[BASELINE_TERM]


@kernel
def pay_at_horizon(row: Row, bill: Bill) -> None:
    """Add to the latest reward what is still owed where a horizon cuts the episode short.

    Args:
        row: The simulation, at a decision, its latest step paid.
        bill: How the rewards are paid.

    Writes:
        What `pay` writes.

    Source:
        Specification, section 10: at a truncation all forms of the reward have one sum.
    """
    reward = row.gauge[REWARD]
    agent = row.gauge[AGENT_TERM]
    baseline = row.gauge[BASELINE_TERM]
    pay(row, bill, True, True)
    row.gauge[REWARD] += reward
    row.gauge[AGENT_TERM] += agent
    row.gauge[BASELINE_TERM] += baseline
