"""How a decision sets the order of one scheduling pass: what kinds of action share.

Whatever the action says, jobs beyond the threshold get the key -inf and go first.

Source: Specification, section 10, "Action semantics".
"""

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import has_nodes
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.moments import is_withheld
from hpcgym.core.engine.schedule_pass import orders_are_static
from hpcgym.core.kernels.queue.entries import entry_of, is_overdue
from hpcgym.core.kernels.queue.ordered_queue import clear_queue, first_job, list_jobs, put_in
from hpcgym.core.kernels.queue.selection import take_first
from hpcgym.core.kernels.scoring.score import score_listed
from hpcgym.core.kernels.types import Float, Jobs, Sim


@kernel
def set_rule_parameters(sim: Sim, weight: Float) -> None:
    """Write the parameters, shape (N_WEIGHTS,), of the rule that orders this pass."""
    for column in range(s.N_WEIGHTS):
        sim.weight[s.PASS_ORDER, column] = weight[column]


@kernel
def score_waiting(jobs: Jobs, sim: Sim, rule: int) -> None:
    """Order this pass by a rule whose parameters have been set, with scores as of `now`.

    Writes keys of `PASS_ORDER`, `ordered`, and `scratch`: the waiting jobs in base order.
    """
    score_listed(jobs, sim, s.PASS_ORDER, rule, list_jobs(sim, s.BASE_ORDER, sim.scratch))
    sim.ordered = 1


@kernel(inlined=True)
def is_rule_of_base(sim: Sim, rule: int, weight: Float) -> bool:
    """Tell whether a rule is that of the base order, in which a queue keeps the waiting jobs."""
    is_same = rule == sim.base_rule
    for column in range(s.N_WEIGHTS):
        is_same = is_same and sim.weight[s.BASE_ORDER, column] == weight[column]
    return is_same


@kernel(inlined=True)
def keeps_orders(jobs: Jobs, sim: Sim) -> bool:
    """Tell whether passes go by queues if no decision orders them, and know the picked job."""
    makes_pass = sim.backfill <= s.BACKFILL_EASY and sim.looks_ahead == 0
    return makes_pass and not has_nodes(jobs) and orders_are_static(sim)


@kernel
def rank_waiting(jobs: Jobs, sim: Sim, rule: int, weight: Float, lowest: float) -> int:
    """Order this pass by ranks under a rule, `lowest` for the first job.

    Return the first job that no limit holds, else the first. Ranks can be compared with the keys
    of an action, scores cannot. Writes keys of `PASS_ORDER`, `ordered` and `scratch`.
    """
    n = list_jobs(sim, s.BASE_ORDER, sim.scratch)
    is_kept = is_rule_of_base(sim, rule, weight)  # then `scratch` is in this order already
    if not is_kept:
        set_rule_parameters(sim, weight)
        score_listed(jobs, sim, s.PASS_ORDER, rule, n)
    first, foremost = -1, -1
    for taken in range(n):
        job = sim.scratch[taken] if is_kept else take_first(sim, s.PASS_ORDER, n - taken, taken)
        if taken == 0:
            foremost = job
        if first < 0 and not is_withheld(jobs, sim, job):
            first = job
        if not is_overdue(sim, job):
            sim.key[s.PASS_ORDER, entry_of(sim, job)] = lowest + taken
        else:
            sim.key[s.PASS_ORDER, entry_of(sim, job)] = -np.inf
    sim.ordered = 1
    return first if first >= 0 else foremost


@kernel
def go_by_rule(jobs: Jobs, sim: Sim, rule: int) -> None:
    """Order this pass by a rule whose parameters have been set.

    Where decisions come at fixed intervals, it orders all passes until the next one. Writes
    `order_rule`, or what `score_waiting` writes.
    """
    if sim.decide == s.DECIDE_INTERVAL:
        sim.order_rule = rule
    # Queues are in the base order already.
    elif not (keeps_orders(jobs, sim) and is_rule_of_base(sim, rule, sim.weight[s.PASS_ORDER])):
        score_waiting(jobs, sim, rule)


@kernel
def order_by_rule(jobs: Jobs, sim: Sim, rule: int, weight: Float) -> None:
    """Order this pass by a rule with the given parameters, shape (N_WEIGHTS,)."""
    set_rule_parameters(sim, weight)
    score_waiting(jobs, sim, rule)


@kernel
def order_by_keys(jobs: Jobs, sim: Sim, which: int, listed: NDArray[np.int64], key: Float) -> None:
    """Order this pass by given keys of all waiting jobs, both of shape (n_waiting,).

    `which` is `PASS_ORDER` for the primary order, or `BACKFILL_ORDER`. Writes the keys, and
    `ordered` or the backfill queue.
    """
    if which == s.PASS_ORDER:
        sim.ordered = 1
    else:
        clear_queue(sim, which)
    for position in range(len(listed)):
        job = listed[position]
        sim.key[which, entry_of(sim, job)] = -np.inf if is_overdue(sim, job) else key[position]
        if which == s.BACKFILL_ORDER:
            put_in(jobs, sim, which, job)


@kernel
def order_picked_first(jobs: Jobs, sim: Sim, job: int, rule: int, weight: Float) -> None:
    """Put one job, -1 for a rule's first, at the front of this pass; the others follow by the rule.

    If the job starts, the pass stops, and the next decision may be at the same instant. If it does
    not fit, it holds the reservation of this pass. Writes `pick` and, unless EASY goes by the base
    order, keys of `PASS_ORDER`, `ordered` and `scratch`.
    """
    if keeps_orders(jobs, sim) and is_rule_of_base(sim, rule, weight):
        sim.pick = job if job >= 0 else first_job(sim, s.BASE_ORDER)
        return
    first = rank_waiting(jobs, sim, rule, weight, 0.0)
    if job < 0:
        job = first
    if not is_overdue(sim, job):
        sim.key[s.PASS_ORDER, entry_of(sim, job)] = -1.0  # before all ranks, which begin at 0
    sim.pick = job
