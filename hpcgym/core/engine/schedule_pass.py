"""Choose the pass of an instant by backfilling mode, and decide how much of it is needed.

A pass that cannot start a job is not made, unless it must make or move reservations. Keeping the
orders in queues is cheaper than making them anew. So the kept orders also serve where the order
changes with time but cannot matter.

Passes share some conventions. `contested` says that the orders of this instant decide; else the
kept ones do, or any order gives the same result. A pass that can stop when the picked job starts,
so that a new decision may be due, returns False then. Each pass writes what `start_waiting` writes,
`scratch`, keys of orders that are not kept, and `shadow` where it makes a head's reservation; only
EASY's reads it at a later instant, and sets it to -1 where there was none.

Source: Specification, section 1, "EASY pass"; section 10, "Decision epochs".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import ask_mode, ask_nodes, has_nodes
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.moments import ask_ahead, has_limits, is_withheld
from hpcgym.core.kernels.passes.easy import easy_pass, reserve
from hpcgym.core.kernels.passes.easy_dynamic import easy_dynamic_pass, easy_pass_behind
from hpcgym.core.kernels.queue.entries import is_overdue
from hpcgym.core.kernels.queue.ordered_queue import first_job, list_jobs, some_job_fits
from hpcgym.core.kernels.types import Jobs, Sim


@kernel(inlined=True)
def count_pass(sim: Sim) -> None:
    """Count a pass and its waiting jobs; write `n_passes`, `sum_waiting` and `most_waiting`."""
    sim.n_passes += 1
    sim.sum_waiting += sim.n_waiting
    sim.most_waiting = max(sim.most_waiting, sim.n_waiting)


@kernel(inlined=True)
def must_plan(jobs: Jobs, sim: Sim) -> bool:
    """Tell whether a pass must make or move reservations that are kept, even if no job fits."""
    return sim.hears & s.MUST_PLAN != 0 and ask_mode(jobs.mode_pass, jobs, sim, s.MUST_PLAN, 0) == 1


@kernel(inlined=True)
def has_chosen(jobs: Jobs, sim: Sim) -> bool:
    """Tell whether the mode has settled which job goes first."""
    return (
        sim.hears & s.HAS_CHOSEN != 0 and ask_mode(jobs.mode_pass, jobs, sim, s.HAS_CHOSEN, 0) == 1
    )


@kernel(inlined=True)
def all_fit(jobs: Jobs, sim: Sim) -> bool:
    """Tell whether all waiting jobs fit together, whatever they are expected to do."""
    if sim.looks_ahead > 0 and ask_ahead(jobs, sim, s.ALL_FIT, 0) == 0:
        return False
    return sim.waiting_processors <= sim.free and (
        sim.hears & s.ALL_FIT == 0 or ask_mode(jobs.mode_pass, jobs, sim, s.ALL_FIT, 0) == 1
    )


@kernel
def fits_now(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a waiting job may start if it is tried first."""
    return jobs.processors[job] <= sim.free and (
        sim.looks_ahead == 0 or ask_ahead(jobs, sim, s.FITS_AHEAD, job) == 1
    )


@kernel
def reserve_for(jobs: Jobs, sim: Sim, head: int) -> None:
    """Find the reservation of a head that does not fit now; write `shadow` and `extra`."""
    if sim.looks_ahead > 0:
        ask_ahead(jobs, sim, s.RESERVE_AHEAD, head)
    else:
        reserve(jobs, sim, head)


@kernel
def list_within(jobs: Jobs, sim: Sim) -> int:
    """List the waiting jobs that no limit holds in `scratch`, in base order; return their number.

    Writes `scratch`, `n_withheld`, `withheld_processors` and `withheld_area`.
    """
    sim.n_withheld = sim.withheld_processors = sim.withheld_area = 0
    kept = 0
    for position in range(list_jobs(sim, s.BASE_ORDER, sim.scratch)):
        job = sim.scratch[position]
        if is_withheld(jobs, sim, job):
            sim.n_withheld += 1
            sim.withheld_processors += jobs.processors[job]
            sim.withheld_area += jobs.processors[job] * jobs.estimate[job]
        else:
            sim.scratch[kept] = job
            kept += 1
    return kept


@kernel
def is_contested_within(jobs: Jobs, sim: Sim) -> bool:
    """Tell whether two jobs within the threshold wait that no limit holds, and such a job fits."""
    count, fits = 0, False
    for position in range(list_jobs(sim, s.BASE_ORDER, sim.scratch)):
        job = sim.scratch[position]
        if is_withheld(jobs, sim, job):
            continue
        count += int(not is_overdue(sim, job))
        fits = fits or jobs.processors[job] <= sim.free
        if fits and count >= 2:
            return True
    return False


@kernel
def some_job_waits(jobs: Jobs, sim: Sim) -> bool:
    """Tell whether a job waits that no limit holds; writes `scratch`."""
    if not has_limits(sim):
        return sim.n_waiting > 0
    for position in range(list_jobs(sim, s.BASE_ORDER, sim.scratch)):
        if not is_withheld(jobs, sim, sim.scratch[position]):
            return True
    return False


@kernel(inlined=True)
def is_contested(jobs: Jobs, sim: Sim) -> bool:
    """Tell whether the order of the waiting jobs can matter at this pass."""
    if has_nodes(jobs):
        return ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_CONTESTED, 0) == 1
    # It cannot if overdue jobs (FCFS) leave one other job at most, if all jobs fit together, or if
    # none fits and nothing is to be planned. What a mode in Python does is not known.
    if sim.n_waiting - sim.n_overdue < 2 or has_chosen(jobs, sim):
        return False
    if has_limits(sim):
        return some_job_fits(sim) and is_contested_within(jobs, sim)
    if sim.backfill == s.BACKFILL_OWN:
        return True
    return not all_fit(jobs, sim) and (some_job_fits(sim) or must_plan(jobs, sim))


@kernel(inlined=True)
def orders_are_static(sim: Sim) -> bool:
    """Tell whether neither the primary nor the backfill order changes with time."""
    return sim.order_rule == s.BY_BASE and (
        sim.backfill_rule == s.BY_BASE or sim.backfill_order_is_static == 1
    )


@kernel(inlined=True)
def make_pass(jobs: Jobs, sim: Sim) -> bool:
    """Make as much of this instant's pass as can start a job; return False if a pick ended it.

    Writes counts of passes, what the pass writes, and `settled_head`.
    """
    count_pass(sim)
    if sim.n_waiting == 0:
        return True
    is_static = orders_are_static(sim)
    if has_nodes(jobs):
        sim.settled_head = -1
        by_instant = int(sim.ordered == 1 or not is_static)
        return ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_PASS, by_instant) == 1
    if sim.looks_ahead > 0 and sim.backfill <= s.BACKFILL_EASY:
        sim.settled_head = -1
        return ask_ahead(jobs, sim, s.MAKE_PASS, int(sim.ordered == 1 or not is_static)) == 1
    if (
        sim.full_passes == 0
        and sim.ordered == 0
        and not some_job_fits(sim)
        and not must_plan(jobs, sim)
    ):
        # No job fits, so each is refused under this head. A reservation is made once it is needed.
        sim.shadow = -1
        sim.settled_head = head_to_settle(sim, is_static)
        return True
    # `ordered`: a decision has set the keys of this pass. Event by event jobs end at one instant in
    # the order of their starts, so the order matters even where all jobs fit. Within limits it
    # tells who starts ahead of a job that one holds.
    is_each = sim.semantics != s.SEMANTICS_BATCH
    is_full = sim.full_passes == 1 or is_each or has_limits(sim)
    contested = sim.ordered == 1 or (not is_static and (is_full or is_contested(jobs, sim)))
    finished = True
    if sim.n_ahead > 0:
        easy_pass_behind(jobs, sim, sim.n_ahead)
    elif sim.backfill > s.BACKFILL_EASY:
        finished = ask_mode(jobs.mode_pass, jobs, sim, s.MAKE_PASS, int(contested)) == 1
    elif contested:
        finished = easy_dynamic_pass(jobs, sim)
    else:
        finished = easy_pass(jobs, sim)
    sim.settled_head = head_to_settle(sim, is_static)
    return finished


@kernel(inlined=True)
def head_to_settle(sim: Sim, is_static: bool) -> int:
    """Return the head under which every waiting job has been refused, or -1 if there is none.

    `is_static` says whether neither order changes with time. With -1 the next pass considers every
    waiting job.
    """
    # Other modes than EASY choose by more than one reservation, a window or a limit. With decisions
    # another job may be head next time. With `pyss` semantics processors are freed without a
    # completion.
    if (
        is_static
        and sim.backfill <= s.BACKFILL_EASY
        and sim.ordered == 0
        and sim.full_passes == 0
        and sim.semantics == s.SEMANTICS_BATCH
        and sim.decide == s.DECIDE_NEVER
    ):
        return first_job(sim, s.BASE_ORDER)
    return -1
