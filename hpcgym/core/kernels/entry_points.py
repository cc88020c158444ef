"""The doors through which Python enters the kernels: records go in by their addresses.

Each door opens its records and calls the kernel that its docstring names.
"""

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.jit import kernel
from hpcgym.core.kernels import clock, reset
from hpcgym.core.kernels.env import actions, metrics, observation, reward_payment
from hpcgym.core.kernels.env import step as env_step
from hpcgym.core.kernels.passes import easy
from hpcgym.core.kernels.planning import forecast, newcomer, policy_sweep, rollout
from hpcgym.core.kernels.queue import ordered_queue
from hpcgym.core.kernels.scoring import estimates, user_estimates
from hpcgym.core.kernels.types import (
    open_action_spec,
    open_initial_state,
    open_jobs,
    open_reward_plan,
    open_sim,
)
from hpcgym.core.state import BASE, Float, Int

Singles = NDArray[np.float32]


@kernel
def begin(sim: int, start: int) -> None:
    """Set a simulation to the start of an episode.

    Source:
        `lifecycle.begin`, whose docstring holds.
    """
    reset.begin(open_sim(sim), open_initial_state(start))


@kernel
def run(jobs: int, sim: int) -> int:
    """Run to the next decision or the end.

    Source:
        `events.run`, whose docstring holds.
    """
    return clock.run(open_jobs(jobs), open_sim(sim))


@kernel
def give_predictions(jobs: int, sim: int, predicted: Int) -> None:
    """Take in what Python has predicted.

    Source:
        `predicting.give_predictions`, whose docstring holds.
    """
    estimates.give_predictions(open_jobs(jobs), open_sim(sim), predicted)


@kernel
def list_waiting(sim: int, listed: Int) -> int:
    """List the waiting jobs in base order.

    Source:
        `queue.list_jobs`, whose docstring holds.
    """
    return ordered_queue.list_jobs(open_sim(sim), BASE, listed)


@kernel
def reserve(jobs: int, sim: int, head: int) -> None:
    """Find a head's reservation.

    Source:
        `easy.reserve`, whose docstring holds.
    """
    easy.reserve(open_jobs(jobs), open_sim(sim), head)


@kernel
def order_by_rule(jobs: int, sim: int, rule: int, weight: Float) -> None:
    """Order this pass by a rule.

    Source:
        `deciding.order_by_rule`, whose docstring holds.
    """
    actions.order_by_rule(open_jobs(jobs), open_sim(sim), rule, weight)


@kernel
def order_by_keys(jobs: int, sim: int, which: int, listed: Int, key: Float) -> None:
    """Order this pass by keys.

    Source:
        `deciding.order_by_keys`, whose docstring holds.
    """
    actions.order_by_keys(open_jobs(jobs), open_sim(sim), which, listed, key)


@kernel
def order_picked_first(jobs: int, sim: int, job: int, rule: int, weight: Float) -> None:
    """Let one job go first in this pass.

    Source:
        `deciding.order_picked_first`, whose docstring holds.
    """
    actions.order_picked_first(open_jobs(jobs), open_sim(sim), job, rule, weight)


@kernel
def observe(
    jobs: int,
    sim: int,
    slot: Int,
    shown_jobs: Singles,
    shown_cluster: Singles,
    mask: Singles,
) -> None:
    """Write an observation.

    Source:
        `observing.observe`, whose docstring holds.
    """
    observation.observe(open_jobs(jobs), open_sim(sim), slot, shown_jobs, shown_cluster, mask)


@kernel
def describe_listed(jobs: int, sim: int, listed: Int, inputs: Float) -> None:
    """Write down what a network sees of some jobs.

    Source:
        `expecting.describe_listed`, whose docstring holds.
    """
    user_estimates.describe_listed(open_jobs(jobs), open_sim(sim), listed, inputs)


@kernel
def copy_terms(jobs: int, sim: int, listed: Int, term: Float) -> None:
    """Copy the terms of the index of some jobs.

    Source:
        `expecting.copy_terms`, whose docstring holds.
    """
    user_estimates.copy_terms(open_jobs(jobs), open_sim(sim), listed, term)


@kernel
def measure(jobs: int, sim: int, figure: Float) -> None:
    """Measure the schedule made so far.

    Source:
        `measuring.measure`, whose docstring holds.
    """
    metrics.measure(open_jobs(jobs), open_sim(sim), figure)


@kernel
def pay_at_horizon(sim: int, reward_plan: int) -> None:
    """Pay what is still owed at a horizon.

    Source:
        `paying.pay_at_horizon`, whose docstring holds.
    """
    reward_payment.pay_at_horizon(open_sim(sim), open_reward_plan(reward_plan))


@kernel
def step(
    jobs: int,
    sim: int,
    action_spec: int,
    reward_plan: int,
    slot: Int,
    index: int,
    values: Singles,
    shown_jobs: Singles,
    shown_cluster: Singles,
    mask: Singles,
) -> int:
    """Take an action, run on, observe and pay.

    Source:
        `stepping.step`, whose docstring holds.
    """
    return env_step.step(
        open_jobs(jobs),
        open_sim(sim),
        open_action_spec(action_spec),
        open_reward_plan(reward_plan),
        slot,
        index,
        values,
        shown_jobs,
        shown_cluster,
        mask,
    )


@kernel
def sweep_policies(
    jobs: int,
    sim: int,
    start: int,
    setting: Int,
    weight: Float,
    key: Float,
    key_row: Int,
    network: Float,
    network_row: Int,
    figure: Float,
) -> None:
    """Simulate an episode under one policy after the other.

    Source:
        `cells.sweep_policies`, whose docstring holds.
    """
    policy_sweep.sweep_policies(
        open_jobs(jobs),
        open_sim(sim),
        open_initial_state(start),
        setting,
        weight,
        key,
        key_row,
        network,
        network_row,
        figure,
    )


@kernel
def predict_each(
    jobs: int, sim: int, plan: int, rule: Int, weight: Float, predicted: Float
) -> None:
    """Predict what becomes of the waiting jobs under each of some rules.

    Source:
        `rollout.predict_each`, whose docstring holds.
    """
    rollout.predict_each(open_jobs(jobs), open_sim(sim), open_sim(plan), rule, weight, predicted)


@kernel
def foresee(
    jobs: int, sim: int, planned: int, rule: Int, weight: Float, drawn: Int, chance: Float
) -> int:
    """Write down what is foreseen of the jobs at hand and to come.

    Source:
        `planning.foresee`, whose docstring holds.
    """
    return forecast.foresee(
        open_jobs(jobs), open_sim(sim), open_jobs(planned), rule, weight, drawn, chance
    )


@kernel
def cost_of_plan(planned: int, sim: int, plan: int, weight: Float, n_coming: int) -> float:
    """Predict what waiting costs in all under an order.

    Source:
        `planning.cost_of_plan`, whose docstring holds.
    """
    return forecast.cost_of_plan(
        open_jobs(planned), open_sim(sim), open_sim(plan), weight, n_coming
    )


@kernel
def plan_newcomer(jobs: int, sim: int, processors: Int, duration: Int, wait: Int) -> None:
    """Predict the wait of a job that comes now, for each shape it might have.

    Source:
        `newcomer.plan_newcomer`, whose docstring holds.
    """
    newcomer.plan_newcomer(open_jobs(jobs), open_sim(sim), processors, duration, wait)
