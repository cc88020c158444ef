"""Which pass is made, and how much of it: by mode, and by whether the order can matter.

A pass that cannot start anything is not made, unless reservations that are kept are to be made or
moved. Where the order of this instant does not matter, kept orders serve.
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
    """Count a pass and the jobs that wait at it.

    Args:
        row: The simulation.

    Writes:
        N_PASSES, SUM_WAITING, MOST_WAITING.

    Source:
        House rule: know the cost of every step.
    """
    sim.counter[N_PASSES] += 1
    sim.counter[SUM_WAITING] += sim.counter[N_WAITING]
    sim.counter[MOST_WAITING] = max(sim.counter[MOST_WAITING], sim.counter[N_WAITING])


@kernel(inlined=True)
def must_plan(sim: Sim) -> bool:
    """Tell whether a pass matters though no job may fit.

    Args:
        row: The simulation.

    Returns:
        True if reservations that are kept are to be made, or may have to move.

    Source:
        Specification, section 10, "Decision epochs": modes that keep reservations.
    """
    keeps = sim.setting[BACKFILL] == BACKFILL_SHIFT or sim.setting[BACKFILL] == BACKFILL_SLACK
    return keeps and plans_are_due(sim)


@kernel(inlined=True)
def is_contested(sim: Sim) -> bool:
    """Tell whether the order of the waiting jobs can matter at this pass.

    Args:
        row: The simulation.

    Returns:
        True if two or more jobs within the threshold wait, the waiting jobs do not all fit
        together, and one of them fits now or some are to be planned.

    Source:
        Specification, section 10, "Decision epochs".
    """
    return (
        sim.counter[N_WAITING] - sim.counter[N_OVERDUE] >= 2
        and sim.counter[WAITING_PROCESSORS] > sim.counter[FREE]
        and (least_processors(sim, BASE) <= sim.counter[FREE] or must_plan(sim))
    )


@kernel(inlined=True)
def orders_keep(sim: Sim) -> bool:
    """Tell whether both orders stay from pass to pass.

    Args:
        row: The simulation.

    Returns:
        True if the base order serves as the primary order and the backfill order keeps as well.

    Source:
        House rule: an order that stays is kept, not made anew.
    """
    return sim.setting[ORDER_RULE] == BY_BASE and (
        sim.setting[BACKFILL_RULE] == BY_BASE or sim.setting[FILL_KEEPS] == 1
    )


@kernel(inlined=True)
def make_pass(jobs: Jobs, sim: Sim) -> bool:
    """Make the pass of this instant, as much of it as can start a job.

    Args:
        jobs: The job table.
        row: The simulation.

    Returns:
        False if the picked job started and a new decision may be due.

    Writes:
        What a pass writes; SETTLED_HEAD.

    Source:
        Specification, section 1, "EASY pass".
    """
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
        sim.counter[SHADOW] = -1
        sim.counter[SETTLED_HEAD] = head_to_settle(sim, keep)
        return True
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
    """Return the head under which every job now waiting has been refused.

    Args:
        row: The simulation, after a pass.
        keep: Whether both orders stay from pass to pass.

    Returns:
        Index of the head; -1 where no job waits, where the next pass may stand under another head
        or find processors freed before their job has ended, and in modes that choose otherwise than
        EASY: with more reservations than the head's, from a window that moves, or up to a limit.

    Source:
        House rule: no work per event that grows with the queue where it need not.
    """
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
