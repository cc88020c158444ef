"""Reservations placed again as if another job started now, and requests known to be refused then.

Source: Specification, section 13, "EASY and depth k" and "Cost".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import begins_at, is_on_trial
from hpcgym.core.kernels.nodes.placement import is_sum_enough
from hpcgym.core.kernels.nodes.rooms import component_of
from hpcgym.core.kernels.nodes.timeline import (
    OTHER_PLAN,
    PLAN,
    TRIAL,
    add_reservation,
    advance,
    begin_cursor,
    place_from,
    place_now,
)
from hpcgym.core.kernels.nodes.trials import set_apart
from hpcgym.core.kernels.types import Jobs, Sim


@kernel
def clear_plan(sim: Sim) -> None:
    """Forget all reservations."""
    sim.n_reservations = 0
    sim.n_planned_nodes = 0


@kernel
def choose_planned(sim: Sim, plan: int, number: int) -> int:
    """Make the nodes of a reservation the placement found last, and return their number."""
    n = sim.plan_on[plan, number]
    for each in range(n):
        sim.chosen_node[each] = sim.planned_node[plan, sim.plan_first[plan, number] + each]
        sim.chosen_chunks[each] = sim.planned_chunks[plan, sim.plan_first[plan, number] + each]
    return n


@kernel
def try_beside(jobs: Jobs, sim: Sim, job: int, n: int) -> int:
    """Place every reservation again as if a job started where it is placed now.

    The n nodes of that placement are the ones found last. Return the first reservation without a
    placement, -1 if all have one. Writes the other plan: the job, then the reservations on their
    new nodes.
    """
    n_reservations, n_nodes = sim.n_reservations, sim.n_planned_nodes
    clear_plan(sim)
    add_reservation(jobs, sim, OTHER_PLAN, job, begins_at(sim, job), n)
    sim.plan_start[OTHER_PLAN, 0] = min(sim.plan_start[OTHER_PLAN, 0], sim.now)
    set_apart(jobs, sim, job, 1)
    failed = -1
    for number in range(n_reservations):
        other = sim.plan_job[PLAN, number]
        start = sim.plan_start[PLAN, number]
        shape = jobs.shape[other]
        begin_cursor(jobs, sim, TRIAL, shape)
        advance(jobs, sim, TRIAL, OTHER_PLAN, shape, component_of(jobs, other), start)
        placed = place_from(jobs, sim, OTHER_PLAN, other, start)
        if placed < 0:
            sim.n_reservations, sim.n_planned_nodes = n_reservations, n_nodes
            failed = number
            break
        add_reservation(jobs, sim, OTHER_PLAN, other, start, placed)
    set_apart(jobs, sim, job, -1)
    return failed


@kernel
def adopt_other_plan(jobs: Jobs, sim: Sim) -> int:
    """Make the other plan the plan, but for the job that it begins with.

    That job's nodes become the placement found last; return their number.
    """
    n_reservations = sim.n_reservations
    clear_plan(sim)
    for number in range(1, n_reservations):
        n = choose_planned(sim, OTHER_PLAN, number)
        job, start = sim.plan_job[OTHER_PLAN, number], sim.plan_start[OTHER_PLAN, number]
        add_reservation(jobs, sim, PLAN, job, start, n)
    return choose_planned(sim, OTHER_PLAN, 0)


@kernel(inlined=True)
def count_begun(sim: Sim, until: int) -> int:
    """Count the reservations that begin before an instant."""
    count = 0
    while (
        count < sim.n_reservations and sim.plan_start[PLAN, sim.plan_by_start[PLAN, count]] < until
    ):
        count += 1
    return count


@kernel
def place_beside(jobs: Jobs, sim: Sim, job: int, reach: int, n: int) -> int:
    """Place a job of step 3 so that reservations keep their times; return its nodes, -1 if none.

    The n nodes of its placement now are the ones found last. Writes the plan.
    """
    failed = try_beside(jobs, sim, job, n)
    if failed < 0:
        return adopt_other_plan(jobs, sim)
    placed = place_now(jobs, sim, PLAN, job)
    if placed < 0 and not is_on_trial(sim, job):
        note_refusal(jobs, sim, job, reach, failed)
    return placed


@kernel(inlined=True)
def mark_of(sim: Sim, reach: int) -> int:
    """Return a number for this state and the reservations that begin before a job's end."""
    return sim.refused_state * (sim.n_jobs + 1) + reach


@kernel
def is_refused(jobs: Jobs, sim: Sim, job: int, reach: int) -> bool:
    """Tell whether this is known to be refused in step 3 since a job last started."""
    # The nodes of one on trial are not those where others of its request were refused, and outages
    # to come refuse others by their estimates.
    if is_on_trial(sim, job) or sim.n_foreseen > 0:
        return False
    shape, mark, column = jobs.shape[job], mark_of(sim, reach), reach % s.N_REACHES
    if sim.refused_at[jobs.request[job], column] == mark:
        return True
    is_known = sim.refused_more_at[shape, column] == mark
    return is_known and jobs.chunks[job] >= sim.refused_chunks[shape, column]


@kernel
def more_is_worse(jobs: Jobs, sim: Sim, shape: int, failed: int) -> bool:
    """Tell whether more chunks of a shape, too, leave a reservation without a placement.

    They do where its rule takes for them the same nodes and further ones, none of which the
    reservations before the failed one can have. The job refused is the first of the other plan.
    """
    is_lowest = sim.placement == s.PLACE_LOWEST
    if not (is_lowest or sim.placement == s.PLACE_TIGHTEST) or not is_sum_enough(jobs, sim, shape):
        return False
    if failed > 0 and not is_lowest:
        return False
    partition = jobs.need[shape, s.NEED_PARTITION]
    last = sim.planned_node[OTHER_PLAN, sim.plan_on[OTHER_PLAN, 0] - 1]
    for number in range(failed):
        other = jobs.need[jobs.shape[sim.plan_job[PLAN, number]], s.NEED_PARTITION]
        for node in range(last, len(jobs.capacity)):
            if jobs.member[partition, node] == 1 and jobs.member[other, node] == 1:
                return False
    return True


@kernel
def note_refusal(jobs: Jobs, sim: Sim, job: int, reach: int, failed: int) -> None:
    """Write that a job is refused in this state; a reservation failed beside it."""
    shape, mark, column = jobs.shape[job], mark_of(sim, reach), reach % s.N_REACHES
    sim.refused_at[jobs.request[job], column] = mark
    if more_is_worse(jobs, sim, shape, failed):
        sim.refused_more_at[shape, column] = mark
        sim.refused_chunks[shape, column] = jobs.chunks[job]
