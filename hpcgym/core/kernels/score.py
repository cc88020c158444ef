"""How each rule scores a job; the lowest score goes first."""

import math

import numpy as np

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.records import Jobs, Row
from hpcgym.core.state import (
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
    Float,
)


@kernel
def keeps_order(rule: int, weight: Float) -> bool:
    """Tell whether the scores of a rule are the same at every instant.

    Args:
        rule: The rule.
        weight: Its parameters, shape (N_WEIGHTS,).

    Returns:
        False if a score must be worked out at each pass.

    Source:
        House rule: an order that stays is kept, not made anew.
    """
    if rule == RULE_WEIGHTS:
        return weight[2] == 0.0 and weight[4] == 0.0
    return rule != RULE_WFP3 and rule != RULE_UNICEF and rule != RULE_MULTIFACTOR


@kernel
def mixed_score(weight: Float, q: float, e: float, wait: float) -> float:
    """Score a job by a weighted sum of the six features.

    Args:
        weight: Six weights for (q, e, wait, e/q, (wait+e)/e, e*q), then what each feature is
            divided by, shape (N_WEIGHTS,).
        q: Processors.
        e: Estimate, s.
        wait: Wait so far, s.

    Returns:
        The score, summed in the order of the features.

    Source:
        Legrand 2018 (RR-9212), equation 3; specification, "Action semantics".
    """
    total = weight[0] * (q / weight[6])
    total += weight[1] * (e / weight[7])
    total += weight[2] * (wait / weight[8])
    total += weight[3] * ((e / q) / weight[9])
    total += weight[4] * (((wait + e) / e) / weight[10])
    total += weight[5] * ((e * q) / weight[11])
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
def score(jobs: Jobs, row: Row, rule: int, weight: Float, job: int, now: int) -> float:
    """Score a waiting job; the lowest goes first.

    Args:
        jobs: The job table.
        row: The simulation.
        rule: The rule.
        weight: Its parameters, shape (N_WEIGHTS,).
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
        return mixed_score(weight, q, e, wait)
    if rule == RULE_SUBMIT:
        return weight[0] * jobs.submit_time[job]
    if rule == RULE_WFP3:
        return -((wait / e) * (wait / e) * (wait / e) * q)
    if rule == RULE_UNICEF:
        return -(wait / (math.log2(max(q, 2.0)) * e))
    if rule == RULE_MULTIFACTOR:
        machine = float(row.setting[MACHINE_PROCESSORS])
        age = min(wait / weight[0], 1.0)
        return -(weight[1] * age + weight[2] * (1.0 - q / machine))
    if rule == RULE_SMITH:
        return (e * q) / row.inverse[job]
    if rule == RULE_KEYS:
        return jobs.keys[job, int(weight[0])]
    return learned_score(rule, q, e, max(float(jobs.submit_time[job]), 1.0))


@kernel
def base_key(jobs: Jobs, row: Row, rule: int, weight: Float, job: int) -> float:
    """Return the key under which a newcomer enters a queue whose order is kept.

    Args:
        jobs: The job table.
        row: The simulation.
        rule: The rule of the queue.
        weight: Its parameters, shape (N_WEIGHTS,).
        job: Index of the newcomer.

    Returns:
        Its score, or its submit time where scores change with time and the order is made later.

    Source:
        House rule: where no order is kept, arrival order is the cheapest to keep.
    """
    if keeps_order(rule, weight):
        return score(jobs, row, rule, weight, job, jobs.submit_time[job])
    return np.float64(jobs.submit_time[job])
