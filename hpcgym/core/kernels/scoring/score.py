"""The score of a waiting job under each ordering rule; the lowest score goes first.

Source: Specification, sections 3, 6 and 8; section 10, "Action semantics".
"""

import math

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.queue.entries import entry_of, is_overdue
from hpcgym.core.kernels.scoring.user_estimates import (
    index_score,
    urgent_score,
    weight_of_width,
)
from hpcgym.core.kernels.types import Jobs, Sim

# Parameters of `RULE_MULTIFACTOR`.
MAX_AGE, AGE_WEIGHT, SIZE_WEIGHT = 0, 1, 2


@kernel(inlined=True)
def parameters_of(sim: Sim, which: int) -> tuple[float, ...]:
    """Return the parameters of order `which` as a tuple, which a loop over jobs loads only once."""
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
    """Return the sum of (q, e, wait, e/q, (wait+e)/e, e*q) times `weight`, added in this order.

    Weights of features on the unit scale have already been divided by the units.

    Source: Legrand 2018 (RR-9212), equation 3.
    """
    q = jobs.feature[job, s.FEATURE_PROCESSORS]
    e = jobs.feature[job, s.FEATURE_ESTIMATE]
    total = weight[0] * q
    total += weight[1] * e
    total += weight[2] * wait
    total += weight[3] * (e / q)
    total += weight[4] * ((wait + e) / e)
    total += weight[5] * (e * q)
    return total


@kernel
def learned_score(rule: int, q: float, e: float, r: float) -> float:
    """Return the score of F1 to F4 by processors q, estimate e, s, and submit time r, s, >= 1.

    The score depends on the time origin.

    Source: Carastan-Santos and de Camargo 2017, table of policies F1 to F4.
    """
    if rule == s.RULE_F1:
        return math.log10(e) * q + 870.0 * math.log10(r)
    if rule == s.RULE_F2:
        return math.sqrt(e) * q + 25_600.0 * math.log10(r)
    if rule == s.RULE_F3:
        return e * q + 6_860_000.0 * math.log10(r)
    return e * math.sqrt(q) + 530_000.0 * math.log10(r)


@kernel
def score(jobs: Jobs, sim: Sim, which: int, rule: int, job: int, now: int) -> float:
    """Return a waiting job's score at `now` under a rule with the parameters of order `which`."""
    q = jobs.feature[job, s.FEATURE_PROCESSORS]
    e = jobs.feature[job, s.FEATURE_ESTIMATE]
    wait = now - jobs.feature[job, s.FEATURE_SUBMIT]
    if rule == s.RULE_WEIGHTS:
        return mixed_score(jobs, parameters_of(sim, which), job, wait)
    if rule == s.RULE_SUBMIT:
        return sim.weight[which, 0] * jobs.feature[job, s.FEATURE_SUBMIT]
    # The papers take the highest value first in the next three rules, hence the minus signs.
    if rule == s.RULE_WFP3:
        return -((wait / e) * (wait / e) * (wait / e) * q)
    if rule == s.RULE_UNICEF:
        return -(wait / (math.log2(max(q, 2.0)) * e))
    if rule == s.RULE_MULTIFACTOR:
        machine = float(sim.machine_processors)
        age = min(wait / sim.weight[which, MAX_AGE], 1.0)
        size = 1.0 - q / machine
        return -(sim.weight[which, AGE_WEIGHT] * age + sim.weight[which, SIZE_WEIGHT] * size)
    if rule == s.RULE_SMITH:
        return e * q / sim.inverse[entry_of(sim, job)]
    if rule == s.RULE_INDEX:
        return index_score(jobs, sim, parameters_of(sim, which), job)
    if rule == s.RULE_URGENT:
        weight = sim.weight[which]
        return urgent_score(jobs, sim, weight, job, wait, weight_of_width(sim, weight))
    if rule == s.RULE_KEYS:
        return jobs.keys[job, int(sim.weight[which, 0])]
    return learned_score(rule, q, e, max(jobs.feature[job, s.FEATURE_SUBMIT], 1.0))


@kernel
def score_listed(jobs: Jobs, sim: Sim, which: int, rule: int, n: int, first: int = 0) -> None:
    """Write the keys in order `which` of the jobs at places `first` to n - 1 of `scratch`.

    They are scored at `now`. Jobs beyond the threshold get -inf, and so go first.
    """
    now = sim.now
    if rule == s.RULE_WEIGHTS:
        weight = parameters_of(sim, which)  # `score` would load it again for every job
        for place in range(first, n):
            job = sim.scratch[place]
            wait = now - jobs.feature[job, s.FEATURE_SUBMIT]
            sim.key[which, entry_of(sim, job)] = mixed_score(jobs, weight, job, wait)
    elif rule == s.RULE_URGENT:
        width = weight_of_width(sim, sim.weight[which])
        for place in range(first, n):
            job = sim.scratch[place]
            wait = now - jobs.feature[job, s.FEATURE_SUBMIT]
            key = urgent_score(jobs, sim, sim.weight[which], job, wait, width)
            sim.key[which, entry_of(sim, job)] = key
    else:
        for place in range(first, n):
            job = sim.scratch[place]
            sim.key[which, entry_of(sim, job)] = score(jobs, sim, which, rule, job, now)
    if sim.n_overdue > 0:
        for place in range(first, n):
            job = sim.scratch[place]
            if is_overdue(sim, job):
                sim.key[which, entry_of(sim, job)] = -float("inf")


@kernel
def first_key(jobs: Jobs, sim: Sim, which: int, job: int) -> float:
    """Return a newcomer's key in `BASE_ORDER`, or in `BACKFILL_ORDER` if that has a queue."""
    # A queue holds only orders that do not change with time, so any instant gives the same score.
    rule = sim.base_rule if which == s.BASE_ORDER else sim.backfill_rule
    return score(jobs, sim, which, rule, job, jobs.submit_time[job])
