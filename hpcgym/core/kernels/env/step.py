"""One step of the environment: apply the action, run to the next decision, observe and pay.

Source: Specification, section 10, "Action semantics".
"""

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.clock import run
from hpcgym.core.kernels.env.actions import (
    is_rule_of_base,
    keeps_orders,
    order_picked_first,
    order_visible_first,
    score_waiting,
    set_controls,
    set_rule_parameters,
)
from hpcgym.core.kernels.env.observation import observe
from hpcgym.core.kernels.env.reward import pay
from hpcgym.core.kernels.types import ActionSpec, Jobs, RewardPlan, Sim


@kernel
def set_weights(
    action_spec: ActionSpec, weights: NDArray[np.float32], weight: NDArray[np.float64]
) -> int:
    """Write a weight vector, shape (6,), as parameters of a rule, and return the rule.

    The vector is L1-normalised; zero means FCFS.
    """
    norm = 0.0
    for feature in range(6):
        norm += abs(np.float64(weights[feature]))
    if norm == 0.0:
        weight[0] = 1.0
        return s.RULE_SUBMIT
    for feature in range(6):
        weight[feature] = np.float64(weights[feature]) / norm / action_spec.divisor[feature]
    return s.RULE_WEIGHTS


@kernel
def take_action(
    jobs: Jobs,
    sim: Sim,
    action_spec: ActionSpec,
    slot: NDArray[np.int64],
    index: int,
    values: NDArray[np.float32],
) -> None:
    """Set the order of this pass by an action, which is `index` or `values` depending on its kind.

    Where decisions come at fixed intervals, the rule orders all passes until the next decision, and
    so do controls always.
    """
    kind = action_spec.kind
    if kind == s.ACTION_ORDER:
        order_visible_first(jobs, sim, slot, values, action_spec.base_rule, action_spec.base_weight)
        return
    if kind == s.ACTION_JOB:
        order_picked_first(jobs, sim, slot[index], action_spec.base_rule, action_spec.base_weight)
        return
    if kind == s.ACTION_CONTROLS:
        set_controls(sim, action_spec, values)
        return
    if kind == s.ACTION_WEIGHTS:
        rule = set_weights(action_spec, values, sim.weight[s.PASS_ORDER])
    else:
        rule = action_spec.rule[index]
        set_rule_parameters(sim, action_spec.rule_weight[index])
    if sim.decide == s.DECIDE_INTERVAL:
        sim.order_rule = rule
    # Queues are in the base order already.
    elif not (keeps_orders(jobs, sim) and is_rule_of_base(sim, rule, sim.weight[s.PASS_ORDER])):
        score_waiting(jobs, sim, rule)


@kernel
def step(
    jobs: Jobs,
    sim: Sim,
    action_spec: ActionSpec,
    reward_plan: RewardPlan,
    slot: NDArray[np.int64],
    index: int,
    values: NDArray[np.float32],
    shown_jobs: NDArray[np.float32],
    shown_cluster: NDArray[np.float32],
    mask: NDArray[np.float32],
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
        if action_spec.kind == s.ACTION_JOB and slot[index] < 0:
            sim.n_invalid += 1
        if sim.phase == s.PHASE_PASS:
            take_action(jobs, sim, action_spec, slot, index, values)
    status = run(jobs, sim)
    if status in (s.STATUS_OWN_PASS, s.STATUS_FULL):
        return status
    observe(jobs, sim, slot, shown_jobs, shown_cluster, mask)
    pay(sim, reward_plan, status == s.STATUS_DONE, False)
    return status
