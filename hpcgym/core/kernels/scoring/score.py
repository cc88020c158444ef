"""The score of a waiting job under a rule; the lowest score goes first.

Mixed weights, the submit time and keys are here. Others are in `hpcgym.core.orders`, and called.

Source: Specification, sections 3, 6 and 8; section 10, "Action semantics".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import ask_order
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.queue.entries import entry_of, is_overdue
from hpcgym.core.kernels.types import Jobs, Sim


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


@kernel(inlined=True)
def kept_score(jobs: Jobs, sim: Sim, which: int, rule: int, job: int) -> float:
    """Return the score by the submit time, or the key that the job was given."""
    if rule == s.RULE_SUBMIT:
        return sim.weight[which, 0] * jobs.feature[job, s.FEATURE_SUBMIT]
    return jobs.keys[job, int(sim.weight[which, 0])]


@kernel
def score_listed(jobs: Jobs, sim: Sim, which: int, rule: int, n: int) -> None:
    """Write the keys in order `which` of the first n jobs in `scratch`.

    They are scored at `now`. Jobs beyond the threshold get -inf, and so go first.
    """
    if rule == s.RULE_WEIGHTS:
        weight = parameters_of(sim, which)
        for position in range(n):
            job = sim.scratch[position]
            wait = sim.now - jobs.feature[job, s.FEATURE_SUBMIT]
            sim.key[which, entry_of(sim, job)] = mixed_score(jobs, weight, job, wait)
    elif rule < s.RULE_CALLED:
        for position in range(n):
            job = sim.scratch[position]
            sim.key[which, entry_of(sim, job)] = kept_score(jobs, sim, which, rule, job)
    elif n > 0:
        ask_order(jobs, sim, which, rule, n)
    if sim.n_overdue > 0:
        for position in range(n):
            job = sim.scratch[position]
            if is_overdue(sim, job):
                sim.key[which, entry_of(sim, job)] = -float("inf")


@kernel
def score_alone(jobs: Jobs, sim: Sim, which: int, job: int) -> None:
    """Write a job's key in `BASE_ORDER`, or in `BACKFILL_ORDER` if that has a queue; `scratch`."""
    # A queue holds only orders that do not change with time, so any wait gives the same score.
    rule = sim.base_rule if which == s.BASE_ORDER else sim.backfill_rule
    if rule == s.RULE_WEIGHTS:
        key = mixed_score(jobs, parameters_of(sim, which), job, 0.0)
        sim.key[which, entry_of(sim, job)] = key
    elif rule < s.RULE_CALLED:
        sim.key[which, entry_of(sim, job)] = kept_score(jobs, sim, which, rule, job)
    else:
        sim.scratch[0] = job
        ask_order(jobs, sim, which, rule, 1)
    if is_overdue(sim, job):
        sim.key[which, entry_of(sim, job)] = -float("inf")
