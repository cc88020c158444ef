"""One EASY pass in orders of this instant, worked out no further than the pass asks for them.

It has the steps of `hpcgym.core.kernels.passes.easy`, whose queues it does without: it lists the
waiting
jobs, takes the first ones out until one does not fit, and orders those alone that may start behind
it. O(n) for n waiting jobs, and O(log n) for each that starts or is tried.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.easy import (
    backfills,
    charge_extra,
    fits_behind,
    may_backfill,
    reserve,
    start_in_order,
)
from hpcgym.core.kernels.queue.ordered_queue import least_processors, list_jobs
from hpcgym.core.kernels.queue.selection import sort_listed, take_first
from hpcgym.core.kernels.running_jobs import start_waiting
from hpcgym.core.kernels.scoring.score import score_listed
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    BACKFILL_RULE,
    BASE,
    BY_BASE,
    CHECKED_HEAD,
    EXTRA,
    FILL,
    FILL_KEEPS,
    FREE,
    N_WAITING,
    NOW,
    ORDER,
    ORDER_RULE,
    ORDERED,
    PICK,
    SHADOW,
)


@kernel(inlined=True)
def make_primary_order(jobs: Jobs, sim: Sim) -> int:
    """Make the keys of the primary order, where no decision and no queue has them.

    Args:
        jobs: The job table.
        row: The simulation, its waiting jobs listed in `scratch`.

    Returns:
        The order whose keys decide.

    Writes:
        Keys of `ORDER`.

    Source:
        Specification, section 1, "Queue order".
    """
    if sim.counter[ORDERED] == 1:
        return ORDER
    if sim.setting[ORDER_RULE] == BY_BASE:
        return BASE
    score_listed(jobs, sim, ORDER, sim.setting[ORDER_RULE], sim.counter[N_WAITING])
    return ORDER


@kernel(inlined=True)
def list_in_order(jobs: Jobs, sim: Sim, contested: bool) -> int:
    """List the waiting jobs in queue order.

    Args:
        jobs: The job table.
        row: The simulation.
        contested: Whether the order of this instant decides; else the kept one does.

    Returns:
        Number of jobs listed.

    Writes:
        `scratch`; keys of orders that are not kept.

    Source:
        Specification, section 1, "Queue order".
    """
    n = list_jobs(sim, BASE, sim.scratch)
    if contested:
        primary = make_primary_order(jobs, sim)
        if primary != BASE:
            sort_listed(sim, primary, n)
    return n


@kernel(inlined=True)
def make_backfill_order(jobs: Jobs, sim: Sim, primary: int, n: int) -> int:
    """Make the keys of the backfill order, where no queue has them.

    Args:
        jobs: The job table.
        row: The simulation, the jobs that may start behind the head listed in `scratch`.
        primary: The primary order.
        n: Number of jobs listed.

    Returns:
        The order whose keys decide.

    Writes:
        Keys of `FILL` of the jobs listed.

    Source:
        Specification, section 1, "Queue order".
    """
    rule = sim.setting[BACKFILL_RULE]
    if rule == BY_BASE:
        return primary
    if sim.setting[FILL_KEEPS] == 0:
        score_listed(jobs, sim, FILL, rule, n)
    return FILL


@kernel(inlined=True)
def start_first(jobs: Jobs, sim: Sim, primary: int) -> int:
    """Start jobs from the front of the primary order while they fit (step 1).

    Args:
        jobs: The job table.
        row: The simulation, its waiting jobs listed in `scratch`.
        primary: The primary order.

    Returns:
        The head: the first job that does not fit, -1 if no job at all fits any more, -2 if the
        picked job started.

    Writes:
        `scratch`, which lists all waiting jobs but the head; what `start_waiting` writes.

    Source:
        Specification, section 1, "EASY pass", step 1.
    """
    pick = sim.counter[PICK]
    taken = 0
    while least_processors(sim, BASE) <= sim.counter[FREE]:
        job = take_first(sim, primary, sim.counter[N_WAITING], taken)
        if jobs.processors[job] > sim.counter[FREE]:
            return job
        start_waiting(jobs, sim, job, False)
        sim.counter[CHECKED_HEAD] = -1  # a start ahead of the head may delay it
        if job == pick:
            return -2
        taken += 1
    return -1


@kernel(inlined=True)
def start_front(jobs: Jobs, sim: Sim, contested: bool) -> tuple[int, int]:
    """Start jobs from the front of the queue while they fit (step 1).

    Args:
        jobs: The job table.
        row: The simulation.
        contested: Whether the order of this instant decides; else the kept one does.

    Returns:
        The primary order; the head, as `start_first` gives it where the order of this instant
        decides, else as `start_in_order`.

    Writes:
        SHADOW = -1; what `start_waiting` writes; where the order of this instant decides, `scratch`
        as `start_first` leaves it.

    Source:
        Specification, section 1, "EASY pass", step 1.
    """
    sim.counter[SHADOW] = -1
    if contested:
        list_jobs(sim, BASE, sim.scratch)
        primary = make_primary_order(jobs, sim)
        return primary, start_first(jobs, sim, primary)
    return BASE, start_in_order(jobs, sim)


@kernel(inlined=True)
def list_candidates(jobs: Jobs, sim: Sim) -> int:
    """List the jobs that may start behind the head, were each the first to be tried.

    Args:
        jobs: The job table.
        row: The simulation, its reservation known, all jobs but the head listed in `scratch`.

    Returns:
        Number of jobs listed.

    Writes:
        `scratch`.

    Source:
        Specification, section 1, "EASY pass", step 3: a start makes no refused job eligible.
    """
    free = sim.counter[FREE]
    extra = sim.counter[EXTRA]
    slack = sim.counter[SHADOW] - sim.counter[NOW]
    n = 0
    for place in range(sim.counter[N_WAITING] - 1):
        job = sim.scratch[place]
        if fits_behind(jobs, job, free, extra, slack):
            sim.scratch[n] = job
            n += 1
    return n


@kernel(inlined=True)
def backfill_first(jobs: Jobs, sim: Sim, which: int, n: int) -> None:
    """Start every candidate that may start behind the head, in backfill order (step 3).

    Args:
        jobs: The job table.
        row: The simulation, its reservation known, the candidates listed in `scratch`.
        which: The backfill order.
        n: Number of candidates.

    Writes:
        `scratch`; what `start_waiting` and `charge_extra` write.

    Source:
        Specification, section 1, "EASY pass", step 3.
    """
    for taken in range(n):
        job = take_first(sim, which, n - taken, taken)
        if backfills(jobs, sim, job):
            charge_extra(jobs, sim, job)
            start_waiting(jobs, sim, job, True)
            if least_processors(sim, BASE) > sim.counter[FREE]:
                return


@kernel
def easy_dynamic_pass(jobs: Jobs, sim: Sim) -> bool:
    """Make one scheduling pass in orders of this instant.

    Args:
        jobs: The job table.
        row: The simulation.

    Returns:
        False if the picked job started and the pass stopped there, for a new decision.

    Writes:
        What `start_waiting` writes; SHADOW and EXTRA, -1 where they were not needed; `scratch`,
        keys of orders that are not kept.

    Source:
        Mu'alem and Feitelson 2001; specification, section 1, "EASY pass".
    """
    primary, head = start_front(jobs, sim, True)
    if may_backfill(sim, head):
        reserve(jobs, sim, head)
        n = list_candidates(jobs, sim)
        backfill_first(jobs, sim, make_backfill_order(jobs, sim, primary, n), n)
    return head != -2
