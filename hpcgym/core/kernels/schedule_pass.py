"""Choose the pass of an instant by backfilling mode, and decide how much of it is needed.

A pass that cannot start a job is not made, unless it must make or move reservations. Keeping the
orders in queues is cheaper than making them anew. So the kept orders also serve where the order
changes with time but cannot matter.

Passes share two conventions. `contested` says that the orders of this instant decide; else the kept
ones do, or any order gives the same result. A pass returns False if it stopped because the picked
job started, so that a new decision may be due. Each writes what `start_waiting` writes, `scratch`,
keys of orders that are not kept, and `shadow`, -1 where it was not needed.

Source: Specification, section 1, "EASY pass"; section 10, "Decision epochs".
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.conservative import depth_pass
from hpcgym.core.kernels.passes.conservative_kept import plans_are_due, shift_pass
from hpcgym.core.kernels.passes.easy import easy_pass
from hpcgym.core.kernels.passes.easy_dynamic import easy_dynamic_pass
from hpcgym.core.kernels.passes.look_ahead import look_ahead_pass
from hpcgym.core.kernels.passes.multi_queue import multi_queue_pass
from hpcgym.core.kernels.passes.relaxed import relaxed_pass
from hpcgym.core.kernels.passes.slack import slack_pass
from hpcgym.core.kernels.queue.ordered_queue import first_job, least_processors
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    BACKFILL,
    BACKFILL_DEPTH,
    BACKFILL_EASY,
    BACKFILL_LOOK_AHEAD,
    BACKFILL_MULTI_QUEUE,
    BACKFILL_RELAXED,
    BACKFILL_RULE,
    BACKFILL_SHIFT,
    BACKFILL_SLACK,
    BASE,
    BATCH,
    BY_BASE,
    DECIDE,
    DECIDE_NEVER,
    FILL_KEEPS,
    FREE,
    FULL_PASSES,
    MOST_WAITING,
    N_OVERDUE,
    N_PASSES,
    N_WAITING,
    ORDER_RULE,
    ORDERED,
    SEMANTICS,
    SETTLED_HEAD,
    SHADOW,
    SUM_WAITING,
    WAITING_PROCESSORS,
)


@kernel(inlined=True)
def count_pass(sim: Sim) -> None:
    """Count a pass and its waiting jobs; write `n_passes`, `sum_waiting` and `most_waiting`."""
    sim.counter[N_PASSES] += 1
    sim.counter[SUM_WAITING] += sim.counter[N_WAITING]
    sim.counter[MOST_WAITING] = max(sim.counter[MOST_WAITING], sim.counter[N_WAITING])


@kernel(inlined=True)
def must_plan(sim: Sim) -> bool:
    """Tell whether a pass must make or move reservations that are kept, even if no job fits."""
    keeps = sim.setting[BACKFILL] == BACKFILL_SHIFT or sim.setting[BACKFILL] == BACKFILL_SLACK
    return keeps and plans_are_due(sim)


@kernel(inlined=True)
def is_contested(sim: Sim) -> bool:
    """Tell whether the order of the waiting jobs can matter at this pass."""
    # It cannot if overdue jobs (FCFS) leave one other job at most, if all jobs fit together, or if
    # none fits and nothing is to be planned.
    return (
        sim.counter[N_WAITING] - sim.counter[N_OVERDUE] >= 2
        and sim.counter[WAITING_PROCESSORS] > sim.counter[FREE]
        and (least_processors(sim, BASE) <= sim.counter[FREE] or must_plan(sim))
    )


@kernel(inlined=True)
def orders_keep(sim: Sim) -> bool:
    """Tell whether neither the primary nor the backfill order changes with time."""
    return sim.setting[ORDER_RULE] == BY_BASE and (
        sim.setting[BACKFILL_RULE] == BY_BASE or sim.setting[FILL_KEEPS] == 1
    )


@kernel(inlined=True)
def make_pass(jobs: Jobs, sim: Sim) -> bool:
    """Make as much of this instant's pass as can start a job, and write `settled_head`."""
    count_pass(sim)
    if sim.counter[N_WAITING] == 0:
        return True
    keep = orders_keep(sim)
    if (
        sim.setting[FULL_PASSES] == 0
        and sim.counter[ORDERED] == 0
        and least_processors(sim, BASE) > sim.counter[FREE]
        and not must_plan(sim)
    ):
        # No job fits, so each is refused under this head. A reservation is made once it is needed.
        sim.counter[SHADOW] = -1
        sim.counter[SETTLED_HEAD] = head_to_settle(sim, keep)
        return True
    # `ordered`: a decision has set the keys of this pass.
    contested = sim.counter[ORDERED] == 1 or (
        not keep and (sim.setting[FULL_PASSES] == 1 or is_contested(sim))
    )
    finished = True
    if sim.setting[BACKFILL] == BACKFILL_DEPTH:
        finished = depth_pass(jobs, sim, contested)
    elif sim.setting[BACKFILL] == BACKFILL_SHIFT:
        shift_pass(jobs, sim, contested)
    elif sim.setting[BACKFILL] == BACKFILL_MULTI_QUEUE:
        finished = multi_queue_pass(jobs, sim, contested)
    elif sim.setting[BACKFILL] == BACKFILL_LOOK_AHEAD:
        finished = look_ahead_pass(jobs, sim, contested)
    elif sim.setting[BACKFILL] == BACKFILL_RELAXED:
        finished = relaxed_pass(jobs, sim, contested)
    elif sim.setting[BACKFILL] == BACKFILL_SLACK:
        slack_pass(jobs, sim, contested)
    elif contested:
        finished = easy_dynamic_pass(jobs, sim)
    else:
        easy_pass(jobs, sim)
    sim.counter[SETTLED_HEAD] = head_to_settle(sim, keep)
    return finished


@kernel(inlined=True)
def head_to_settle(sim: Sim, keep: bool) -> int:
    """Return the head under which every waiting job has been refused, or -1 if there is none.

    `keep` says whether both orders keep. With -1 the next pass is a full one.
    """
    # Other modes than EASY choose by more than one reservation, a window or a limit. With decisions
    # another job may be head next time. With `pyss` semantics processors are freed without a
    # completion.
    if (
        keep
        and sim.setting[BACKFILL] <= BACKFILL_EASY
        and sim.counter[ORDERED] == 0
        and sim.setting[FULL_PASSES] == 0
        and sim.setting[SEMANTICS] == BATCH
        and sim.setting[DECIDE] == DECIDE_NEVER
    ):
        return first_job(sim, BASE)
    return -1
