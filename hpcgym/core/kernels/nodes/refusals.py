"""Which requests are known to be refused in step 3 of a pass on nodes, until a job starts.

Source: Specification, section 13, "Cost".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import is_on_trial
from hpcgym.core.kernels.nodes.placement import is_sum_enough
from hpcgym.core.kernels.nodes.timeline import OTHER_PLAN, PLAN
from hpcgym.core.kernels.types import Jobs, Sim


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
