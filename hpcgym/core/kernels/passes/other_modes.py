"""What the event engine asks of backfilling modes other than EASY, as one function by address."""

from hpcgym.core.constants import (
    BACKFILL_COST_BENEFIT,
    BACKFILL_DEPTH,
    BACKFILL_LOOK_AHEAD,
    BACKFILL_MULTI_QUEUE,
    BACKFILL_RELAXED,
    BACKFILL_SHIFT,
    BACKFILL_SLACK,
    MODE_MUST_PLAN,
    MODE_PASS_BY_INSTANT,
    MODE_SHOW_CONTROLS,
)
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.env.controls import show_controls
from hpcgym.core.kernels.passes.conservative import depth_pass
from hpcgym.core.kernels.passes.conservative_kept import plans_are_due, shift_pass
from hpcgym.core.kernels.passes.cost_benefit import cost_benefit_pass
from hpcgym.core.kernels.passes.look_ahead import look_ahead_pass
from hpcgym.core.kernels.passes.multi_queue import multi_queue_pass
from hpcgym.core.kernels.passes.relaxed import relaxed_pass
from hpcgym.core.kernels.passes.slack import slack_pass
from hpcgym.core.kernels.types import Jobs, Sim, open_jobs, open_sim


@kernel
def mode_pass(jobs: Jobs, sim: Sim, contested: bool) -> bool:
    """Make the pass of the mode; return False if a pick ended it."""
    finished = True
    if sim.backfill == BACKFILL_DEPTH:
        finished = depth_pass(jobs, sim, contested)
    elif sim.backfill == BACKFILL_SHIFT:
        shift_pass(jobs, sim, contested)
    elif sim.backfill == BACKFILL_MULTI_QUEUE:
        finished = multi_queue_pass(jobs, sim, contested)
    elif sim.backfill == BACKFILL_LOOK_AHEAD:
        finished = look_ahead_pass(jobs, sim, contested)
    elif sim.backfill == BACKFILL_RELAXED:
        finished = relaxed_pass(jobs, sim, contested)
    elif sim.backfill == BACKFILL_COST_BENEFIT:
        finished = cost_benefit_pass(jobs, sim, contested)
    elif sim.backfill == BACKFILL_SLACK:
        slack_pass(jobs, sim, contested)
    return finished


@kernel
def work(jobs_at: int, sim_at: int, task: int, shadow: int) -> int:
    """Do a task (`MODE_*`) for a simulation, and return what it finds.

    `shadow` is the shadow time that an observation shows, s, -1 = all fit.
    """
    jobs, sim = open_jobs(jobs_at), open_sim(sim_at)
    if task == MODE_MUST_PLAN:
        return int(plans_are_due(sim))
    if task == MODE_SHOW_CONTROLS:
        show_controls(jobs, sim, shadow)
        return 0
    return int(mode_pass(jobs, sim, task == MODE_PASS_BY_INSTANT))


def call_work(jobs_at: int, sim_at: int, task: int, shadow: int) -> int:
    """Call the kernel by the convention of C."""
    return work(jobs_at, sim_at, task, shadow)
