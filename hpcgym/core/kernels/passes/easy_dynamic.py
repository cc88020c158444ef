"""EASY backfilling, in orders of this instant, made no further than the pass needs them.

The pass has the steps of `hpcgym.core.kernels.passes.easy`. Its orders change with time or come
from a decision, so no queue has them. The pass lists and scores the waiting jobs, and takes the
first ones until one does not fit. Then it orders only the jobs that may start behind it. For n
waiting jobs this costs O(n), and O(log n) for each job that starts or is tried.

A pass within limits passes over each job that an event withholds, and costs O(n log n).

Source: Mu'alem and Feitelson 2001; Specification, section 1, "EASY pass" and "Queue order";
    section 16, "Limits".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import start_waiting
from hpcgym.core.engine.moments import is_withheld
from hpcgym.core.kernels.passes.easy import (
    backfill,
    backfills,
    charge_extra,
    fits_behind,
    free_at,
    kept_backfill_order,
    may_backfill,
    reserve,
    reserve_room,
    start_in_order,
)
from hpcgym.core.kernels.queue.ordered_queue import list_jobs, some_job_fits
from hpcgym.core.kernels.queue.selection import sort_listed, take_first
from hpcgym.core.kernels.scoring.score import score_listed
from hpcgym.core.kernels.types import Jobs, Sim


@kernel(inlined=True)
def make_primary_order(jobs: Jobs, sim: Sim, n: int) -> int:
    """Return the order whose keys are the primary order.

    Writes keys of `PASS_ORDER` of n listed jobs, unless a decision has set them or the base order
    is the primary order.
    """
    if sim.ordered == 1:
        return s.PASS_ORDER
    if sim.order_rule == s.BY_BASE:
        return s.BASE_ORDER
    score_listed(jobs, sim, s.PASS_ORDER, sim.order_rule, n)
    return s.PASS_ORDER


@kernel(inlined=True)
def list_in_order(jobs: Jobs, sim: Sim, contested: bool) -> int:
    """List the waiting jobs in queue order in `scratch`, and return their number."""
    n = list_jobs(sim, s.BASE_ORDER, sim.scratch)
    if contested:
        primary = make_primary_order(jobs, sim, n)
        if primary != s.BASE_ORDER:
            sort_listed(sim, primary, n)
    return n


@kernel(inlined=True)
def make_backfill_order(jobs: Jobs, sim: Sim, primary: int, n: int) -> int:
    """Return the order whose keys are the backfill order.

    Writes keys of `BACKFILL_ORDER` of n listed jobs, unless a queue has them.
    """
    rule = sim.backfill_rule
    if rule == s.BY_BASE:
        return primary
    if sim.backfill_order_is_static == 0:
        score_listed(jobs, sim, s.BACKFILL_ORDER, rule, n)
    return s.BACKFILL_ORDER


@kernel(inlined=True)
def start_first(jobs: Jobs, sim: Sim, primary: int) -> int:
    """Start jobs from the front of the primary order while they fit (step 1).

    Return the head; `NO_HEAD` if no job fits any more, `PICK_STARTED` if the picked job started.
    The waiting jobs are listed in `scratch`. Writes what `start_waiting` writes, and `scratch`,
    which lists all waiting jobs but the head afterwards.
    """
    pick = sim.pick
    taken = 0
    # Without a job that fits, no head is needed: nothing could start behind it.
    while some_job_fits(sim):
        job = take_first(sim, primary, sim.n_waiting, taken)
        if jobs.processors[job] > sim.free:
            return job
        start_waiting(jobs, sim, job, False)
        sim.checked_head = -1  # a start ahead of the head may delay it
        if job == pick:
            return s.PICK_STARTED
        taken += 1
    return s.NO_HEAD


@kernel(inlined=True)
def start_front(jobs: Jobs, sim: Sim, contested: bool) -> tuple[int, int]:
    """Start jobs from the front of the queue while they fit (step 1).

    Return the primary order, and the head as `start_first` or `start_in_order` does. Writes
    `shadow` = -1 and, if contested, `scratch`.
    """
    sim.shadow = -1
    if contested:
        n = list_jobs(sim, s.BASE_ORDER, sim.scratch)
        primary = make_primary_order(jobs, sim, n)
        return primary, start_first(jobs, sim, primary)
    return s.BASE_ORDER, start_in_order(jobs, sim)


@kernel(inlined=True)
def list_candidates(jobs: Jobs, sim: Sim, listed: int) -> int:
    """List those of the listed jobs that may start behind the head if tried first; count them."""
    free = sim.free
    extra = sim.extra
    time_left = sim.shadow - sim.now
    n = 0
    # A start makes no refused job eligible, so jobs refused now need no order.
    for position in range(listed):
        job = sim.scratch[position]
        if fits_behind(jobs, job, free, extra, time_left):
            sim.scratch[n] = job
            n += 1
    return n


@kernel(inlined=True)
def left_free(jobs: Jobs, sim: Sim, job: int) -> int:
    """Return the processors that a job must leave free when it starts."""
    return sim.spared if sim.spared > 0 and jobs.requested_time[job] > sim.spared_by else 0


@kernel(inlined=True)
def has_room(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a job fits now, and leaves free what it must."""
    return int(jobs.processors[job]) + left_free(jobs, sim, job) <= sim.free


@kernel(inlined=True)
def backfill_first(jobs: Jobs, sim: Sim, which: int, n: int, within: bool) -> None:
    """Start what may start behind the head, of n listed candidates in order `which` (step 3).

    `within` says whether limits hold, and processors must be left free.
    """
    for taken in range(n):
        job = take_first(sim, which, n - taken, taken)
        if backfills(jobs, sim, job) and not (
            within and (not has_room(jobs, sim, job) or is_withheld(jobs, sim, job))
        ):
            charge_extra(jobs, sim, job)
            start_waiting(jobs, sim, job, True)
            if not some_job_fits(sim):
                return


@kernel
def easy_dynamic_pass(jobs: Jobs, sim: Sim) -> bool:
    """Make an EASY pass in orders of this instant; return False if it stopped at the picked job."""
    primary, head = start_front(jobs, sim, True)
    if may_backfill(sim, head):
        reserve(jobs, sim, head)
        n = list_candidates(jobs, sim, sim.n_waiting - 1)
        backfill_first(jobs, sim, make_backfill_order(jobs, sim, primary, n), n, False)
    return head != s.PICK_STARTED


@kernel
def easy_pass_behind(jobs: Jobs, sim: Sim, n: int) -> None:
    """Make an EASY pass: n listed jobs go by keys of `PASS_ORDER`, the others in kept orders.

    No waiting job is beyond the threshold. Costs O(n), and what a pass in kept orders costs.
    """
    sim.shadow = -1
    head = s.NO_HEAD
    while n > 0 and head == s.NO_HEAD and some_job_fits(sim):
        job = take_first(sim, s.PASS_ORDER, n, 0)
        n -= 1
        if jobs.processors[job] > sim.free:
            head = job
        else:
            start_waiting(jobs, sim, job, False)
            sim.checked_head = -1
    if head == s.NO_HEAD and n == 0:
        head = start_in_order(jobs, sim)
    if may_backfill(sim, head):
        reserve(jobs, sim, head)
        if sim.backfill_rule == s.BY_BASE:
            backfill_first(jobs, sim, s.PASS_ORDER, list_candidates(jobs, sim, n), False)
        # A job that was refused is refused again, so the queue may have it, too.
        backfill(jobs, sim, kept_backfill_order(sim), head)


@kernel
def start_within(jobs: Jobs, sim: Sim, contested: bool) -> tuple[int, int, int]:
    """Start jobs in queue order and within limits while they fit.

    Return the primary order; the head, `NO_HEAD` or `PICK_STARTED`; and how many others are listed
    in `scratch`. Writes what `start_waiting` writes, keys of orders that are not kept, and `shadow`
    = -1.
    """
    sim.shadow = sim.checked_head = -1
    n = list_jobs(sim, s.BASE_ORDER, sim.scratch)
    primary = make_primary_order(jobs, sim, n) if contested else s.BASE_ORDER
    taken, head, some_wait = 0, s.NO_HEAD, False
    while taken < n and some_job_fits(sim) and head == s.NO_HEAD:
        job = take_first(sim, primary, n - taken, taken)
        taken += 1
        if is_withheld(jobs, sim, job):
            some_wait = True
            continue
        if not has_room(jobs, sim, job):
            head = job
            continue
        # It counts as backfilled if one before it in queue order keeps waiting.
        start_waiting(jobs, sim, job, some_wait)
        if job == sim.pick:
            head = s.PICK_STARTED
    return primary, head, n - taken


@kernel
def pass_within(jobs: Jobs, sim: Sim, contested: bool) -> bool:
    """Make a pass within limits; return False if it stopped at the picked job.

    Writes what `start_within` writes, keys of orders that are not kept, `shadow` and `extra`.
    """
    primary, head, n = start_within(jobs, sim, contested)
    if head >= 0 and sim.backfill == s.BACKFILL_EASY:
        reserve_room(jobs, sim, head, left_free(jobs, sim, head))
        backfill_first(jobs, sim, make_backfill_order(jobs, sim, primary, n), n, True)
    return head != s.PICK_STARTED


@kernel
def work_within(jobs: Jobs, sim: Sim, task: int, argument: int) -> int:
    """Do a task of an event that makes the passes and withholds jobs (`hpcgym.core.events`)."""
    if task == s.MAKE_PASS:
        return int(pass_within(jobs, sim, argument == 1))
    if task == s.FITS_AHEAD:
        return int(has_room(jobs, sim, argument) and not is_withheld(jobs, sim, argument))
    if task == s.RESERVE_AHEAD:
        reserve_room(jobs, sim, argument, left_free(jobs, sim, argument))
    elif task == s.FREE_AHEAD:
        return free_at(jobs, sim, argument)
    return 0
