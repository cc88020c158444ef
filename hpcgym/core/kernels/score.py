"""How each rule scores a job; the lowest score goes first."""

import math

import numpy as np

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.records import Jobs, Row
from hpcgym.core.kernels.seats import seat_of
from hpcgym.core.state import (
    BACKFILL_RULE,
    BASE,
    BASE_RULE,
    FILL_KEEPS,
    MACHINE_PROCESSORS,
    RULE_F1,
    RULE_F2,
    RULE_F3,
    RULE_KEYS,
    RULE_MULTIFACTOR,
    RULE_SMITH,
    RULE_SUBMIT,
    RULE_UNICEF,
    RULE_WEIGHTS,
    RULE_WFP3,
)


@kernel
def mixed_score(row: Row, which: int, q: float, e: float, wait: float) -> float:
    """Score a job by a weighted sum of the six features.

    Args:
        row: The simulation; `weight` of the queue holds six weights for (q, e, wait, e/q,
            (wait+e)/e, e*q), then what each feature is divided by.
        which: The queue.
        q: Processors.
        e: Estimate, s.
        wait: Wait so far, s.

    Returns:
        The score, summed in the order of the features.

    Source:
        Legrand 2018 (RR-9212), equation 3; specification, "Action semantics".
    """
    total = row.weight[which, 0] * (q / row.weight[which, 6])
    total += row.weight[which, 1] * (e / row.weight[which, 7])
    total += row.weight[which, 2] * (wait / row.weight[which, 8])
    total += row.weight[which, 3] * ((e / q) / row.weight[which, 9])
    total += row.weight[which, 4] * (((wait + e) / e) / row.weight[which, 10])
    total += row.weight[which, 5] * ((e * q) / row.weight[which, 11])
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
def score(jobs: Jobs, row: Row, which: int, rule: int, job: int, now: int) -> float:
    """Score a waiting job; the lowest goes first.

    Args:
        jobs: The job table.
        row: The simulation.
        which: The queue whose row of `weight` holds the rule's parameters.
        rule: The rule.
        job: Index of the job.
        now: The instant, s.

    Returns:
        The score.

    Source:
        Specification, sections 3, 6 and 8.
    """
    q = float(jobs.processors[job])
    e = float(jobs.estimate[job])
    wait = float(now - jobs.submit_time[job])
    if rule == RULE_WEIGHTS:
        return mixed_score(row, which, q, e, wait)
    if rule == RULE_SUBMIT:
        return row.weight[which, 0] * jobs.submit_time[job]
    if rule == RULE_WFP3:
        return -((wait / e) * (wait / e) * (wait / e) * q)
    if rule == RULE_UNICEF:
        return -(wait / (math.log2(max(q, 2.0)) * e))
    if rule == RULE_MULTIFACTOR:
        machine = float(row.setting[MACHINE_PROCESSORS])
        age = min(wait / row.weight[which, 0], 1.0)
        return -(row.weight[which, 1] * age + row.weight[which, 2] * (1.0 - q / machine))
    if rule == RULE_SMITH:
        return (e * q) / row.inverse[seat_of(row, job)]
    if rule == RULE_KEYS:
        return jobs.keys[job, int(row.weight[which, 0])]
    return learned_score(rule, q, e, max(float(jobs.submit_time[job]), 1.0))


@kernel
def first_key(jobs: Jobs, row: Row, which: int, job: int) -> float:
    """Return the key under which a newcomer enters a queue that is kept in order.

    Args:
        jobs: The job table.
        row: The simulation.
        which: `BASE`, or `FILL` where the backfill order is another one.
        job: Index of the newcomer.

    Returns:
        Its score, or its submit time where scores change with time and the order is made later.

    Source:
        House rule: where no order is kept, arrival order is the cheapest to keep.
    """
    if which == BASE:
        return score(jobs, row, which, row.setting[BASE_RULE], job, jobs.submit_time[job])
    if row.setting[FILL_KEEPS] == 1:
        return score(jobs, row, which, row.setting[BACKFILL_RULE], job, jobs.submit_time[job])
    return np.float64(jobs.submit_time[job])
