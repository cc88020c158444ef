"""The functions through which Python calls kernels, but for batches of environments.

`hpcgym.core.kernels.env.step_batch` has those for batches.

Each takes structs by their addresses, opens them, and calls the kernel that its docstring names.
That kernel's docstring explains the other arguments.
"""

from hpcgym.core.compiler import by_address
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import BASE_ORDER
from hpcgym.core.engine import clock, life, reset, schedule_pass
from hpcgym.core.kernels.env import actions, metrics, observation
from hpcgym.core.kernels.env import step as env_step
from hpcgym.core.kernels.planning import forecast, newcomer, policy_sweep, rollout
from hpcgym.core.kernels.queue import ordered_queue
from hpcgym.core.kernels.scoring import estimates, user_estimates
from hpcgym.core.kernels.types import (
    Float,
    Int,
    Single,
    open_action_spec,
    open_initial_state,
    open_jobs,
    open_reward_plan,
    open_sim,
)


@kernel
def begin(sim: int, initial: int) -> None:
    """Set a simulation to the start of an episode: `reset.begin`."""
    reset.begin(open_sim(sim), open_initial_state(initial))


@kernel
def run(jobs: int, sim: int) -> int:
    """Run to the next decision or the end: `clock.run`."""
    return clock.run(open_jobs(jobs), open_sim(sim))


@kernel
def give_predictions(jobs: int, sim: int, predicted: Int) -> None:
    """Set the run times that Python has predicted: `estimates.give_predictions`."""
    estimates.give_predictions(open_jobs(jobs), open_sim(sim), predicted)


@kernel
def list_waiting(sim: int, listed: Int) -> int:
    """List the waiting jobs in base order: `ordered_queue.list_jobs`."""
    return ordered_queue.list_jobs(open_sim(sim), BASE_ORDER, listed)


@kernel
def start_waiting(jobs: int, sim: int, job: int, backfilled: bool) -> None:
    """Start a waiting job that fits: `life.start_waiting`."""
    life.start_waiting(open_jobs(jobs), open_sim(sim), job, backfilled)


@kernel
def ask_nodes(jobs: int, sim: int, task: int, job: int) -> int:
    """Have the kernels of nodes do a task: `by_address.ask_nodes`."""
    opened = open_jobs(jobs)
    return by_address.ask_nodes(opened.nodes_pass, opened, open_sim(sim), task, job)


@kernel
def fits_now(jobs: int, sim: int, job: int) -> bool:
    """Tell whether a waiting job may start if it is tried first: `schedule_pass.fits_now`."""
    return schedule_pass.fits_now(open_jobs(jobs), open_sim(sim), job)


@kernel
def reserve(jobs: int, sim: int, head: int) -> None:
    """Find a head's reservation: `schedule_pass.reserve_for`."""
    schedule_pass.reserve_for(open_jobs(jobs), open_sim(sim), head)


@kernel
def order_by_rule(jobs: int, sim: int, rule: int, weight: Float) -> None:
    """Order this pass by a rule: `actions.order_by_rule`."""
    actions.order_by_rule(open_jobs(jobs), open_sim(sim), rule, weight)


@kernel
def order_by_keys(jobs: int, sim: int, which: int, listed: Int, key: Float) -> None:
    """Order this pass by keys: `actions.order_by_keys`."""
    actions.order_by_keys(open_jobs(jobs), open_sim(sim), which, listed, key)


@kernel
def order_picked_first(jobs: int, sim: int, job: int, rule: int, weight: Float) -> None:
    """Put one job first in this pass: `actions.order_picked_first`."""
    actions.order_picked_first(open_jobs(jobs), open_sim(sim), job, rule, weight)


@kernel
def observe(
    jobs: int, sim: int, slot: Int, shown_jobs: Single, shown_cluster: Single, mask: Single
) -> None:
    """Write an observation: `observation.observe`."""
    observation.observe(open_jobs(jobs), open_sim(sim), slot, shown_jobs, shown_cluster, mask)


@kernel
def describe_listed(jobs: int, sim: int, listed: Int, inputs: Float) -> None:
    """Write what a network sees of some jobs: `user_estimates.describe_listed`."""
    user_estimates.describe_listed(open_jobs(jobs), open_sim(sim), listed, inputs)


@kernel
def copy_terms(jobs: int, sim: int, listed: Int, term: Float) -> None:
    """Copy the terms of the index of some jobs: `user_estimates.copy_terms`."""
    user_estimates.copy_terms(open_jobs(jobs), open_sim(sim), listed, term)


@kernel
def measure(jobs: int, sim: int, metric: Float) -> None:
    """Measure the schedule so far: `metrics.measure`."""
    metrics.measure(open_jobs(jobs), open_sim(sim), metric)


@kernel
def step(
    jobs: int,
    sim: int,
    action_spec: int,
    reward_plan: int,
    slot: Int,
    index: int,
    values: Single,
    shown_jobs: Single,
    shown_cluster: Single,
    mask: Single,
) -> int:
    """Take an action, run on, observe and pay: `env.step.step`."""
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
    initial: int,
    setting: Int,
    weight: Float,
    key: Float,
    key_row: Int,
    network: Float,
    network_row: Int,
    metric: Float,
) -> None:
    """Simulate an episode under each of several policies: `policy_sweep.sweep_policies`."""
    policy_sweep.sweep_policies(
        open_jobs(jobs),
        open_sim(sim),
        open_initial_state(initial),
        setting,
        weight,
        key,
        key_row,
        network,
        network_row,
        metric,
    )


@kernel
def predict_each(
    jobs: int, sim: int, plan: int, rule: Int, weight: Float, predicted: Float
) -> None:
    """Predict mean bounded slowdowns under each of several rules: `rollout.predict_each`."""
    rollout.predict_each(open_jobs(jobs), open_sim(sim), open_sim(plan), rule, weight, predicted)


@kernel
def forecast_jobs(
    jobs: int, sim: int, planned: int, rule: Int, weight: Float, drawn: Int, chance: Float
) -> int:
    """Write forecasts of the jobs present and to come: `forecast.forecast_jobs`."""
    return forecast.forecast_jobs(
        open_jobs(jobs), open_sim(sim), open_jobs(planned), rule, weight, drawn, chance
    )


@kernel
def cost_of_plan(planned: int, sim: int, plan: int, weight: Float, n_coming: int) -> float:
    """Predict the cost of waiting under an order: `forecast.cost_of_plan`."""
    return forecast.cost_of_plan(
        open_jobs(planned), open_sim(sim), open_sim(plan), weight, n_coming
    )


@kernel
def plan_newcomer(jobs: int, sim: int, processors: Int, duration: Int, wait: Int) -> None:
    """Predict the wait of a job submitted now in each of its shapes: `newcomer.plan_newcomer`."""
    newcomer.plan_newcomer(open_jobs(jobs), open_sim(sim), processors, duration, wait)
