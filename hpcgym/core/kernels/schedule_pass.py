"""Which pass is made, and how much of it: by mode, and by whether the order can matter.

A pass that cannot start anything is not made, unless reservations that are kept are to be made or
moved. Where the order of this instant does not matter, kept orders serve.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.conservative import depth_pass
from hpcgym.core.kernels.passes.conservative_kept import plans_are_due, shift_pass
from hpcgym.core.kernels.passes.easy import easy_pass
from hpcgym.core.kernels.passes.easy_dynamic import contested_pass
from hpcgym.core.kernels.passes.look_ahead import look_ahead_pass
from hpcgym.core.kernels.passes.multi_queue import multi_queue_pass
from hpcgym.core.kernels.passes.relaxed import relaxed_pass
from hpcgym.core.kernels.passes.slack import slack_pass
from hpcgym.core.kernels.queue.ordered_queue import first_job, least_processors
from hpcgym.core.kernels.types import Jobs, Row
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
def count_pass(row: Row) -> None:
    """Count a pass and the jobs that wait at it.

    Args:
        row: The simulation.

    Writes:
        N_PASSES, SUM_WAITING, MOST_WAITING.

    Source:
        House rule: know the cost of every step.
    """
    row.counter[N_PASSES] += 1
    row.counter[SUM_WAITING] += row.counter[N_WAITING]
    row.counter[MOST_WAITING] = max(row.counter[MOST_WAITING], row.counter[N_WAITING])


@kernel(inlined=True)
def must_plan(row: Row) -> bool:
    """Tell whether a pass matters though no job may fit.

    Args:
        row: The simulation.

    Returns:
        True if reservations that are kept are to be made, or may have to move.

    Source:
        Specification, section 10, "Decision epochs": modes that keep reservations.
    """
    keeps = row.setting[BACKFILL] == BACKFILL_SHIFT or row.setting[BACKFILL] == BACKFILL_SLACK
    return keeps and plans_are_due(row)


@kernel(inlined=True)
def is_contested(row: Row) -> bool:
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
        row.counter[N_WAITING] - row.counter[N_OVERDUE] >= 2
        and row.counter[WAITING_PROCESSORS] > row.counter[FREE]
        and (least_processors(row, BASE) <= row.counter[FREE] or must_plan(row))
    )


@kernel(inlined=True)
def orders_keep(row: Row) -> bool:
    """Tell whether both orders stay from pass to pass.

    Args:
        row: The simulation.

    Returns:
        True if the base order serves as the primary order and the backfill order keeps as well.

    Source:
        House rule: an order that stays is kept, not made anew.
    """
    return row.setting[ORDER_RULE] == BY_BASE and (
        row.setting[BACKFILL_RULE] == BY_BASE or row.setting[FILL_KEEPS] == 1
    )


@kernel(inlined=True)
def make_pass(jobs: Jobs, row: Row) -> bool:
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
    count_pass(row)
    if row.counter[N_WAITING] == 0:
        return True
    keep = orders_keep(row)
    if (
        row.setting[FULL_PASSES] == 0
        and row.counter[ORDERED] == 0
        and least_processors(row, BASE) > row.counter[FREE]
        and not must_plan(row)
    ):
        row.counter[SHADOW] = -1
        row.counter[SETTLED_HEAD] = head_to_settle(row, keep)
        return True
    contested = row.counter[ORDERED] == 1 or (
        not keep and (row.setting[FULL_PASSES] == 1 or is_contested(row))
    )
    finished = True
    if row.setting[BACKFILL] == BACKFILL_DEPTH:
        finished = depth_pass(jobs, row, contested)
    elif row.setting[BACKFILL] == BACKFILL_SHIFT:
        shift_pass(jobs, row, contested)
    elif row.setting[BACKFILL] == BACKFILL_MULTI_QUEUE:
        finished = multi_queue_pass(jobs, row, contested)
    elif row.setting[BACKFILL] == BACKFILL_LOOK_AHEAD:
        finished = look_ahead_pass(jobs, row, contested)
    elif row.setting[BACKFILL] == BACKFILL_RELAXED:
        finished = relaxed_pass(jobs, row, contested)
    elif row.setting[BACKFILL] == BACKFILL_SLACK:
        slack_pass(jobs, row, contested)
    elif contested:
        finished = contested_pass(jobs, row)
    else:
        easy_pass(jobs, row)
    row.counter[SETTLED_HEAD] = head_to_settle(row, keep)
    return finished


@kernel(inlined=True)
def head_to_settle(row: Row, keep: bool) -> int:
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
        and row.setting[BACKFILL] <= BACKFILL_EASY
        and row.counter[ORDERED] == 0
        and row.setting[FULL_PASSES] == 0
        and row.setting[SEMANTICS] == BATCH
        and row.setting[DECIDE] == DECIDE_NEVER
    ):
        return first_job(row, BASE)
    return -1
