"""How a decision sets the order of one pass."""

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.env.observation import count_visible
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.queue.ordered_queue import clear_queue, list_jobs, put_in
from hpcgym.core.kernels.queue.selection import take_first
from hpcgym.core.kernels.running_jobs import is_overdue
from hpcgym.core.kernels.scoring.score import score_listed
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    BASE,
    BASE_RULE,
    FILL,
    N_WAITING,
    N_WEIGHTS,
    ORDER,
    ORDERED,
    PICK,
    Float,
)


@kernel
def set_rule_parameters(sim: Sim, weight: Float) -> None:
    """Set the parameters of the rule that makes the order of this pass.

    Args:
        row: The simulation.
        weight: The parameters, shape (N_WEIGHTS,).

    Writes:
        The row of `weight` of `ORDER`.

    Source:
        House rule: an order's rule finds its parameters in one place.
    """
    for column in range(N_WEIGHTS):
        sim.weight[ORDER, column] = weight[column]


@kernel
def score_waiting(jobs: Jobs, sim: Sim, rule: int) -> None:
    """Order this pass by a rule whose parameters are set.

    Args:
        jobs: The job table.
        row: The simulation, at a decision.
        rule: The rule.

    Writes:
        Keys of `ORDER`, ORDERED; `scratch`, which lists the waiting jobs in base order.

    Source:
        Specification, section 1, "Queue order": scores are evaluated at t.
    """
    score_listed(jobs, sim, ORDER, rule, list_jobs(sim, BASE, sim.scratch))
    sim.counter[ORDERED] = 1


@kernel(inlined=True)
def is_rule_of_base(sim: Sim, rule: int, weight: Float) -> bool:
    """Tell whether a rule is the one that the base queue is kept in order by.

    Args:
        row: The simulation.
        rule: The rule.
        weight: Its parameters, shape (N_WEIGHTS,).

    Returns:
        True if the waiting jobs need no ordering.

    Source:
        House rule: an order that stays is kept, not made anew.
    """
    is_same = rule == sim.setting[BASE_RULE]
    for column in range(N_WEIGHTS):
        is_same = is_same and sim.weight[BASE, column] == weight[column]
    return is_same


@kernel
def rank_waiting(jobs: Jobs, sim: Sim, rule: int, weight: Float, lowest: float) -> int:
    """Order this pass by a rule, in keys that other keys can be set against.

    Args:
        jobs: The job table.
        row: The simulation, at a decision.
        rule: The rule.
        weight: Its parameters, shape (N_WEIGHTS,).
        lowest: Key of the first job, if it is not beyond the threshold.

    Returns:
        Index of the first job.

    Writes:
        Keys of `ORDER`: `lowest` plus the jobs that go before, -inf beyond the threshold; ORDERED;
        `scratch`.

    Source:
        Specification, section 1, "Queue order".
    """
    n = list_jobs(sim, BASE, sim.scratch)
    is_kept = is_rule_of_base(sim, rule, weight)
    if not is_kept:
        set_rule_parameters(sim, weight)
        score_listed(jobs, sim, ORDER, rule, n)
    first = sim.scratch[0]
    for taken in range(n):
        job = sim.scratch[taken] if is_kept else take_first(sim, ORDER, n - taken, taken)
        if taken == 0:
            first = job
        if not is_overdue(sim, job):
            sim.key[ORDER, entry_of(sim, job)] = lowest + taken
        else:
            sim.key[ORDER, entry_of(sim, job)] = -np.inf
    sim.counter[ORDERED] = 1
    return first


@kernel
def order_by_rule(jobs: Jobs, sim: Sim, rule: int, weight: Float) -> None:
    """Order this pass by a rule.

    Args:
        jobs: The job table.
        row: The simulation, at a decision.
        rule: The rule.
        weight: Its parameters, shape (N_WEIGHTS,).

    Writes:
        Keys of `ORDER`, ORDERED; `scratch`.

    Source:
        Specification, "Action semantics", `weights` and `policy`.
    """
    set_rule_parameters(sim, weight)
    score_waiting(jobs, sim, rule)


@kernel
def order_by_keys(jobs: Jobs, sim: Sim, which: int, listed: NDArray[np.int64], key: Float) -> None:
    """Order this pass by the keys given with the listed jobs.

    Args:
        jobs: The job table.
        row: The simulation, at a decision.
        which: `ORDER` for the primary order, `FILL` for the backfill order.
        listed: All waiting jobs, shape (n_waiting,).
        key: Their keys in the same places, shape (n_waiting,).

    Writes:
        The keys, those of jobs beyond the threshold -inf, whatever was given; ORDERED for the
        primary order, the queue for the backfill order.

    Source:
        Specification, "Action semantics": thresholded jobs precede in every kind.
    """
    if which == ORDER:
        sim.counter[ORDERED] = 1
    else:
        clear_queue(sim, which)
    for place in range(len(listed)):
        job = listed[place]
        sim.key[which, entry_of(sim, job)] = -np.inf if is_overdue(sim, job) else key[place]
        if which == FILL:
            put_in(jobs, sim, which, job)


@kernel
def order_visible_first(
    jobs: Jobs,
    sim: Sim,
    slot: NDArray[np.int64],
    score: NDArray[np.float32],
    rule: int,
    weight: Float,
) -> None:
    """Order this pass by scores of the visible jobs; the others follow in the order of a rule.

    Args:
        jobs: The job table.
        row: The simulation, at a decision.
        slot: Job in each slot, shape (n_slots,), -1 = empty.
        score: Score of each slot, shape (n_slots,), lowest first; those of empty slots are ignored.
        rule: The rule of the base order.
        weight: Its parameters, shape (N_WEIGHTS,).

    Writes:
        Keys of `ORDER`, ORDERED; `scratch`.

    Source:
        Specification, "Action semantics", `order`.
    """
    shown = count_visible(slot)
    if shown < sim.counter[N_WAITING]:
        rank_waiting(jobs, sim, rule, weight, 2.0)  # scores are at most 1
    for place in range(shown):
        job = slot[place]
        sim.key[ORDER, entry_of(sim, job)] = (
            -np.inf if is_overdue(sim, job) else np.float64(score[place])
        )
    sim.counter[ORDERED] = 1


@kernel
def order_picked_first(jobs: Jobs, sim: Sim, job: int, rule: int, weight: Float) -> None:
    """Let one job go first in this pass, the others in the order of a rule.

    If the job starts, the pass stops there and a new decision may be due at the same instant; if it
    does not fit, it holds the reservation for this pass.

    Args:
        jobs: The job table.
        row: The simulation, at a decision.
        job: Index of a waiting job, -1 = the first of the base order.
        rule: The rule of the base order.
        weight: Its parameters, shape (N_WEIGHTS,).

    Writes:
        Keys of `ORDER`, ORDERED, PICK; `scratch`.

    Source:
        Specification, "Action semantics", `job`.
    """
    first = rank_waiting(jobs, sim, rule, weight, 0.0)
    if job < 0:
        job = first
    if not is_overdue(sim, job):
        sim.key[ORDER, entry_of(sim, job)] = -1.0
    sim.counter[PICK] = job
