"""How a decision sets the order of one pass."""

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.easy import sort_waiting
from hpcgym.core.kernels.queue import clear_queue, list_jobs, put_in
from hpcgym.core.kernels.records import Jobs, Row
from hpcgym.core.kernels.running import is_overdue
from hpcgym.core.kernels.seats import seat_of
from hpcgym.core.state import (
    BASE,
    FILL,
    N_WAITING,
    N_WEIGHTS,
    ORDER,
    ORDERED,
    PICK,
    Float,
)


@kernel
def set_rule_parameters(row: Row, weight: Float) -> None:
    """Set the parameters of the rule that makes the order of this pass.

    Args:
        row: The simulation.
        weight: The parameters, shape (N_WEIGHTS,).

    Writes:
        The order queue's row of `weight`.

    Source:
        House rule: a queue's rule finds its parameters in one place.
    """
    for column in range(N_WEIGHTS):
        row.weight[ORDER, column] = weight[column]


@kernel
def order_by_rule(jobs: Jobs, row: Row, rule: int, weight: Float) -> None:
    """Order this pass by a rule.

    Args:
        jobs: The job table.
        row: The simulation, at a decision.
        rule: The rule.
        weight: Its parameters, shape (N_WEIGHTS,).

    Writes:
        The order queue, ORDERED.

    Source:
        Specification, "Action semantics", `weights` and `policy`.
    """
    set_rule_parameters(row, weight)
    sort_waiting(jobs, row, ORDER, rule)
    row.counter[ORDERED] = 1


@kernel
def order_by_keys(jobs: Jobs, row: Row, which: int, listed: NDArray[np.int64], key: Float) -> None:
    """Order this pass by the keys given with the listed jobs.

    Args:
        jobs: The job table.
        row: The simulation, at a decision.
        which: `ORDER` for the primary order, `FILL` for the backfill order.
        listed: All waiting jobs, shape (n_waiting,).
        key: Their keys in the same places, shape (n_waiting,).

    Writes:
        The queue and its keys, jobs beyond the threshold first, whatever their keys; ORDERED for
        the primary order.

    Source:
        Specification, "Action semantics": thresholded jobs precede in every kind.
    """
    clear_queue(row, which)
    for place in range(len(listed)):
        job = listed[place]
        row.key[which, seat_of(row, job)] = -np.inf if is_overdue(row, job) else key[place]
        put_in(jobs, row, which, job)
    if which != FILL:
        row.counter[ORDERED] = 1


@kernel
def order_visible_first(
    jobs: Jobs,
    row: Row,
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
        The order queue, ORDERED.

    Source:
        Specification, "Action semantics", `order`.
    """
    shown = 0
    while shown < len(slot) and slot[shown] >= 0:
        shown += 1
    n = row.counter[N_WAITING]
    if shown < n:
        set_rule_parameters(row, weight)
        sort_waiting(jobs, row, ORDER, rule)
        list_jobs(row, ORDER, row.scratch)
    clear_queue(row, ORDER)
    if shown < n:
        for place in range(n):
            row.key[ORDER, seat_of(row, row.scratch[place])] = 2.0 + place  # scores are at most 1
    for place in range(shown):
        row.key[ORDER, seat_of(row, slot[place])] = np.float64(score[place])
    for place in range(list_jobs(row, BASE, row.scratch)):
        job = row.scratch[place]
        if is_overdue(row, job):
            row.key[ORDER, seat_of(row, job)] = -np.inf
        put_in(jobs, row, ORDER, job)
    row.counter[ORDERED] = 1


@kernel
def order_picked_first(jobs: Jobs, row: Row, job: int, rule: int, weight: Float) -> None:
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
        The order queue, ORDERED, PICK.

    Source:
        Specification, "Action semantics", `job`.
    """
    set_rule_parameters(row, weight)
    sort_waiting(jobs, row, ORDER, rule)
    list_jobs(row, ORDER, row.scratch)
    if job < 0:
        job = row.scratch[0]
    clear_queue(row, ORDER)
    for place in range(row.counter[N_WAITING]):
        other = row.scratch[place]
        overdue = is_overdue(row, other)
        seat = seat_of(row, other)
        row.key[ORDER, seat] = -np.inf if overdue else np.float64(place)
        if other == job and not overdue:
            row.key[ORDER, seat] = -1.0
        put_in(jobs, row, ORDER, other)
    row.counter[ORDERED] = 1
    row.counter[PICK] = job
