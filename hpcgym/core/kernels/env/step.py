"""One step of the environment: take the action, run to the next decision, observe."""

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.clock import run
from hpcgym.core.kernels.env.actions import (
    order_picked_first,
    order_visible_first,
    score_waiting,
    set_rule_parameters,
)
from hpcgym.core.kernels.env.observation import observe
from hpcgym.core.kernels.env.reward_payment import pay
from hpcgym.core.kernels.types import ActionSpec, Jobs, RewardPlan, Sim
from hpcgym.core.state import (
    ACTION_JOB,
    ACTION_ORDER,
    ACTION_WEIGHTS,
    AT_PASS,
    BAD_ACTION,
    DECIDE,
    DECIDE_INTERVAL,
    DONE,
    N_INVALID,
    N_STEPS,
    ORDER,
    ORDER_RULE,
    PHASE,
    RULE_SUBMIT,
    RULE_WEIGHTS,
)


@kernel
def set_weights(
    action_spec: ActionSpec, weights: NDArray[np.float32], weight: NDArray[np.float64]
) -> int:
    """Turn a weight vector into a rule: L1-normalised, the zero vector means FCFS.

    Args:
        choice: How actions are read.
        weights: The action, shape (6,).
        weight: Where the rule's parameters go, shape (N_WEIGHTS,).

    Returns:
        The rule.

    Writes:
        `weight`.

    Source:
        Specification, "Action semantics", `weights`.
    """
    norm = 0.0
    for feature in range(6):
        norm += abs(np.float64(weights[feature]))
    if norm == 0.0:
        weight[0] = 1.0
        return RULE_SUBMIT
    for feature in range(6):
        weight[feature] = np.float64(weights[feature]) / norm / action_spec.divisor[feature]
    return RULE_WEIGHTS


@kernel
def take_action(
    jobs: Jobs,
    sim: Sim,
    action_spec: ActionSpec,
    slot: NDArray[np.int64],
    index: int,
    values: NDArray[np.float32],
) -> None:
    """Set the order of this pass by an action.

    Args:
        jobs: The job table.
        row: The simulation, at a decision.
        choice: How actions are read.
        slot: Job in each slot of the last observation, shape (n_slots,), -1 = empty.
        index: The action, where it is a number.
        values: The action, where it is a vector.

    Writes:
        The order of this pass; at fixed intervals the rule that makes it from now on.

    Source:
        Specification, "Action semantics".
    """
    kind = action_spec.kind[0]
    if kind == ACTION_ORDER:
        order_visible_first(
            jobs, sim, slot, values, action_spec.base_rule[0], action_spec.base_weight
        )
        return
    if kind == ACTION_JOB:
        order_picked_first(
            jobs, sim, slot[index], action_spec.base_rule[0], action_spec.base_weight
        )
        return
    if kind == ACTION_WEIGHTS:
        rule = set_weights(action_spec, values, sim.weight[ORDER])
    else:
        rule = action_spec.rule[index]
        set_rule_parameters(sim, action_spec.rule_weight[index])
    if sim.setting[DECIDE] == DECIDE_INTERVAL:
        sim.setting[ORDER_RULE] = rule
    else:
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
    """Take an action, run to the next decision, observe and pay.

    An episode in which no decision ever came up ends in its first step, whatever the action.

    Args:
        jobs: The job table.
        row: The simulation, at a decision or at the end of an episode without one.
        choice: How actions are read.
        bill: How the rewards are paid.
        slot: Job in each slot, shape (n_slots,), -1 = empty.
        index: The action, where it is a number.
        values: The action, where it is a vector.
        shown_jobs: Where the jobs' fields go, shape (n_slots * n_fields,).
        shown_cluster: Where the state of the cluster goes, shape (N_CLUSTER,).
        mask: Which slots hold a job, shape (n_slots,).

    Returns:
        As `hpcgym.core.kernels.clock.run`; `BAD_ACTION`, with nothing done, if a value is NaN or
        beyond [-1, 1].

    Writes:
        The simulation and the observation.

    Source:
        House rule: one compiled step behind every face.
    """
    for value in values:
        if not abs(value) <= 1.0:
            return BAD_ACTION
    sim.counter[N_STEPS] += 1
    if action_spec.kind[0] == ACTION_JOB and slot[index] < 0:
        sim.counter[N_INVALID] += 1
    if sim.counter[PHASE] == AT_PASS:
        take_action(jobs, sim, action_spec, slot, index, values)
    status = run(jobs, sim)
    observe(jobs, sim, slot, shown_jobs, shown_cluster, mask)
    pay(sim, reward_plan, status == DONE, False)
    return status
