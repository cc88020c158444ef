"""One step of the environment: apply the action, run to the next decision, observe and pay.

Source: Specification, section 10, "Action semantics".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import take_action
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.clock import run
from hpcgym.core.kernels.env.observation import observe
from hpcgym.core.kernels.env.reward import pay
from hpcgym.core.kernels.types import ActionSpec, Int, Jobs, RewardPlan, Sim, Single


@kernel
def step(
    jobs: Jobs,
    sim: Sim,
    action_spec: ActionSpec,
    reward_plan: RewardPlan,
    slot: Int,
    index: int,
    values: Single,
    shown_jobs: Single,
    shown_cluster: Single,
    mask: Single,
) -> int:
    """Apply an action, run to the next decision, observe and pay.

    Return what `hpcgym.core.engine.clock.run` returns. If a value is NaN or beyond [-1, 1], return
    `STATUS_BAD_ACTION`, with nothing done. An episode without a decision ends in its first step,
    whatever the action. With `STATUS_OWN_PASS` and `STATUS_FULL` the step is not over: the caller
    makes the pass, or room, and calls again. Writes the simulation and, as `observe`, the
    observation.
    """
    if sim.phase != s.PHASE_OWN_PASS and sim.phase != s.PHASE_SUBMISSIONS:
        for value in values:
            if not abs(value) <= 1.0:  # also where the value is NaN
                return s.STATUS_BAD_ACTION
        sim.n_steps += 1
        if action_spec.names_slot == 1 and slot[index] < 0:
            sim.n_invalid += 1
        if sim.phase == s.PHASE_PASS:
            take_action(action_spec.act, jobs, sim, action_spec, slot, index, values)
    status = run(jobs, sim)
    if status in (s.STATUS_OWN_PASS, s.STATUS_FULL):
        return status
    observe(jobs, sim, slot, shown_jobs, shown_cluster, mask)
    pay(jobs, sim, reward_plan, status == s.STATUS_DONE)
    return status
