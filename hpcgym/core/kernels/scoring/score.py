"""How each rule scores a job; the lowest score goes first."""

import math

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.running_jobs import is_overdue
from hpcgym.core.kernels.scoring.user_estimates import index_score
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    AREA,
    BACKFILL_RULE,
    BASE,
    BASE_RULE,
    MACHINE_PROCESSORS,
    N_OVERDUE,
    NOW,
    RHO,
    RULE_F1,
    RULE_F2,
    RULE_F3,
    RULE_INDEX,
    RULE_KEYS,
    RULE_MULTIFACTOR,
    RULE_SMITH,
    RULE_SUBMIT,
    RULE_UNICEF,
    RULE_WEIGHTS,
    RULE_WFP3,
    E,
    Q,
)


@kernel(inlined=True)
def parameters_of(sim: Sim, which: int) -> tuple[float, ...]:
    """Return the parameters of an order's rule as plain numbers, which a loop need not load again.

    Args:
        row: The simulation.
        which: The order.

    Returns:
        The order's row of `weight`, N_WEIGHTS numbers.

    Source:
        House rule: one formula, quick for one job and for all that wait.
    """
    return (
        sim.weight[which, 0],
        sim.weight[which, 1],
        sim.weight[which, 2],
        sim.weight[which, 3],
        sim.weight[which, 4],
        sim.weight[which, 5],
        sim.weight[which, 6],
        sim.weight[which, 7],
        sim.weight[which, 8],
    )


@kernel(inlined=True)
def mixed_score(jobs: Jobs, weight: tuple[float, ...], job: int, wait: float) -> float:
    """Score a job by a weighted sum of the six features.

    Args:
        jobs: The job table.
        weight: Weights of (q, e, wait, e/q, (wait+e)/e, e*q); those on a unit scale have been
            divided by the units.
        job: Index of the job.
        wait: Wait so far, s.

    Returns:
        The score, summed in the order of the features.

    Source:
        Legrand 2018 (RR-9212), equation 3; specification, "Action semantics".
    """
    e = jobs.feature[job, E]
    total = weight[0] * jobs.feature[job, Q]
    total += weight[1] * e
    total += weight[2] * wait
    total += weight[3] * jobs.feature[job, RHO]
    total += weight[4] * ((wait + e) / e)
    total += weight[5] * jobs.feature[job, AREA]
    return total


@kernel
def learned_score(rule: int, q: float, e: float, r: float) -> float:
    """Score a job by one of the four learned formulas.

    Args:
        rule: `RULE_F1` to `RULE_F4`.
        q: Processors.
        e: Estimate, s.
        r: Submit time, s from the start of the workload, at least 1.

    Returns:
        The score; it depends on where the clock starts.

    Source:
        Carastan-Santos and de Camargo 2017, SC, table of policies F1 to F4.
    """
    if rule == RULE_F1:
        return math.log10(e) * q + 870.0 * math.log10(r)
    if rule == RULE_F2:
        return math.sqrt(e) * q + 25_600.0 * math.log10(r)
    if rule == RULE_F3:
        return e * q + 6_860_000.0 * math.log10(r)
    return e * math.sqrt(q) + 530_000.0 * math.log10(r)


@kernel
def score(jobs: Jobs, sim: Sim, which: int, rule: int, job: int, now: int) -> float:
    """Score a waiting job; the lowest goes first.

    Args:
        jobs: The job table.
        row: The simulation.
        which: The order whose row of `weight` holds the rule's parameters.
        rule: The rule.
        job: Index of the job.
        now: The instant, s.

    Returns:
        The score.

    Source:
        Specification, sections 3, 6 and 8.
    """
    q = jobs.feature[job, Q]
    e = jobs.feature[job, E]
    wait = float(now - jobs.submit_time[job])
    if rule == RULE_WEIGHTS:
        return mixed_score(jobs, parameters_of(sim, which), job, wait)
    if rule == RULE_SUBMIT:
        return sim.weight[which, 0] * jobs.submit_time[job]
    if rule == RULE_WFP3:
        return -((wait / e) * (wait / e) * (wait / e) * q)
    if rule == RULE_UNICEF:
        return -(wait / (math.log2(max(q, 2.0)) * e))
    if rule == RULE_MULTIFACTOR:
        machine = float(sim.setting[MACHINE_PROCESSORS])
        age = min(wait / sim.weight[which, 0], 1.0)
        return -(sim.weight[which, 1] * age + sim.weight[which, 2] * (1.0 - q / machine))
    if rule == RULE_SMITH:
        return jobs.feature[job, AREA] / sim.inverse[entry_of(sim, job)]
    if rule == RULE_INDEX:
        return index_score(jobs, sim, parameters_of(sim, which), job)
    if rule == RULE_KEYS:
        return jobs.keys[job, int(sim.weight[which, 0])]
    return learned_score(rule, q, e, max(float(jobs.submit_time[job]), 1.0))


@kernel
def score_listed(jobs: Jobs, sim: Sim, which: int, rule: int, n: int) -> None:
    """Score the listed jobs at this instant.

    Args:
        jobs: The job table.
        row: The simulation, the waiting jobs that matter the first of `scratch`.
        which: The order whose rule scores; its parameters stand in its row of `weight`.
        rule: The rule.
        n: Number of jobs listed.

    Writes:
        Their keys in this order, -inf beyond the threshold.

    Source:
        Specification, section 1, "Queue order": scores are evaluated at t.
    """
    now = sim.counter[NOW]
    if rule == RULE_WEIGHTS:
        weight = parameters_of(sim, which)
        for place in range(n):
            job = sim.scratch[place]
            wait = float(now - jobs.submit_time[job])
            sim.key[which, entry_of(sim, job)] = mixed_score(jobs, weight, job, wait)
    else:
        for place in range(n):
            job = sim.scratch[place]
            sim.key[which, entry_of(sim, job)] = score(jobs, sim, which, rule, job, now)
    if sim.counter[N_OVERDUE] > 0:
        for place in range(n):
            job = sim.scratch[place]
            if is_overdue(sim, job):
                sim.key[which, entry_of(sim, job)] = -float("inf")


@kernel
def first_key(jobs: Jobs, sim: Sim, which: int, job: int) -> float:
    """Return the key under which a newcomer enters a queue.

    Args:
        jobs: The job table.
        row: The simulation.
        which: `BASE`, or `FILL` where the backfill order is another one that keeps.
        job: Index of the newcomer.

    Returns:
        Its score, the same at every instant.

    Source:
        House rule: an order that stays is kept, not made anew.
    """
    rule = sim.setting[BASE_RULE if which == BASE else BACKFILL_RULE]
    return score(jobs, sim, which, rule, job, jobs.submit_time[job])
