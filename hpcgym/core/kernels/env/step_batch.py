"""One step of many environments; none reads what another writes.

Threads may therefore share them in any way, with results equal to the last bit.
"""

from numba import prange

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.clock import run
from hpcgym.core.kernels.env.metrics import measure
from hpcgym.core.kernels.env.observation import observe
from hpcgym.core.kernels.env.reward_payment import pay_at_horizon
from hpcgym.core.kernels.env.step import step
from hpcgym.core.kernels.reset import begin
from hpcgym.core.kernels.types import (
    Batch,
    open_action_spec,
    open_batch,
    open_initial_state,
    open_jobs,
    open_reward_plan,
    open_sim,
)
from hpcgym.core.state import (
    AGENT_TERM,
    BASELINE_TERM,
    DONE,
    N_INVALID,
    N_STEPS,
    NOW,
    REWARD,
    Int,
)

# Columns of `Batch.address`.
JOBS, INITIAL_STATE, REWARD_PLAN, SIM, ACTION_SPEC = 0, 1, 2, 3, 4


@kernel
def first_refused(batch: Batch) -> int:
    """Return the first environment whose action is NaN, beyond [-1, 1] or no choice; -1 if none."""
    for env in range(len(batch.resting)):
        if batch.resting[env] == 1:
            continue
        if not 0 <= batch.number[env] < batch.n_choices[0]:
            return env
        for place in range(batch.values.shape[1]):
            if not abs(batch.values[env, place]) <= 1.0:
                return env
    return -1


@kernel
def count_ended(batch: Batch) -> int:
    """Count the episodes that the latest step terminated or truncated."""
    ended = 0
    for env in range(len(batch.resting)):
        if batch.resting[env] == 0:
            ended += int(batch.ended[0, env] | batch.ended[1, env])
    return ended


@kernel
def step_one(batch: Batch, env: int) -> None:
    """Step one environment, unless it rests.

    Writes its simulation, observation, `payment`, `tally` and `ended`, and at an end `figure`.
    """
    if batch.resting[env] == 1:
        return
    jobs = open_jobs(batch.address[env, JOBS])
    sim = open_sim(batch.address[env, SIM])
    reward_plan = open_reward_plan(batch.address[env, REWARD_PLAN])
    status = step(
        jobs,
        sim,
        open_action_spec(batch.address[env, ACTION_SPEC]),
        reward_plan,
        batch.slot[env],
        batch.number[env],
        batch.values[env],
        batch.shown_jobs[env],
        batch.shown_cluster[env],
        batch.mask[env],
    )
    is_cut = 0 < batch.horizon[0] <= sim.counter[N_STEPS]
    if is_cut and status != DONE:
        pay_at_horizon(sim, reward_plan)
    if is_cut or status == DONE:
        measure(jobs, sim, batch.figure[env])
    batch.payment[0, env] = sim.gauge[REWARD]
    batch.payment[1, env] = sim.gauge[AGENT_TERM]
    batch.payment[2, env] = sim.gauge[BASELINE_TERM]
    batch.tally[0, env] = sim.counter[NOW]
    batch.tally[1, env] = sim.counter[N_INVALID]
    batch.ended[0, env] = status == DONE
    batch.ended[1, env] = is_cut


@kernel
def find_refused(batch: int) -> int:
    """Return what `first_refused` says of the batch at an address."""
    return first_refused(open_batch(batch))


@kernel
def step_batch(batch: int) -> int:
    """Step every environment of the batch at an address, and return how many episodes ended.

    If an action is refused, nothing is done, and the result is -1 less the environment's index.
    """
    refused = first_refused(open_batch(batch))
    if refused >= 0:
        return -1 - refused
    for env in range(len(open_batch(batch).resting)):
        step_one(open_batch(batch), env)
    return count_ended(open_batch(batch))


@kernel(parallel=True)
def step_batch_in_parallel(batch: int) -> int:
    """Step as `step_batch` does, on the threads that numba has been given."""
    refused = first_refused(open_batch(batch))
    if refused >= 0:
        return -1 - refused
    for env in prange(len(open_batch(batch).resting)):
        step_one(open_batch(batch), env)
    return count_ended(open_batch(batch))


@kernel
def begin_batch(batch: int, envs: Int) -> None:
    """Begin episodes in the given environments, run to their first decisions, and observe.

    Writes their simulations, observations and clocks; clears their rewards and ends.
    """
    opened = open_batch(batch)
    for env in envs:
        jobs = open_jobs(opened.address[env, JOBS])
        sim = open_sim(opened.address[env, SIM])
        begin(sim, open_initial_state(opened.address[env, INITIAL_STATE]))
        run(jobs, sim)
        # Else `observe` would keep fields of the last episode's jobs, which had the same indices.
        opened.slot[env, :] = -1
        opened.shown_jobs[env, :] = 0.0
        opened.mask[env, :] = 0.0
        observe(
            jobs,
            sim,
            opened.slot[env],
            opened.shown_jobs[env],
            opened.shown_cluster[env],
            opened.mask[env],
        )
        opened.payment[:, env] = 0.0
        opened.tally[0, env] = sim.counter[NOW]
        opened.tally[1, env] = 0
        opened.ended[:, env] = 0
