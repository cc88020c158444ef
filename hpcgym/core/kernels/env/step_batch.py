"""One step of many environments, each by itself: what one writes, no other reads.

Rows may therefore be shared among threads in any way, and come out the same to the bit.
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

# Columns of `Stack.address`.
JOBS, INITIAL_STATE, REWARD_PLAN, SIM, ACTION_SPEC = 0, 1, 2, 3, 4


@kernel
def first_refused(batch: Batch) -> int:
    """Find an environment whose action is none.

    Args:
        stack: The environments, with their actions.

    Returns:
        The first whose action is NaN, beyond [-1, 1] or no choice there is; -1 if there is none.

    Source:
        House rule: bad input is refused before anything has been done with it.
    """
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
    """Count the episodes that ended by the latest step.

    Args:
        stack: The environments.

    Returns:
        How many were terminated or truncated; those that rest are not among them.

    Source:
        House rule: most steps end none, and need not look for any.
    """
    ended = 0
    for env in range(len(batch.resting)):
        if batch.resting[env] == 0:
            ended += int(batch.ended[0, env] | batch.ended[1, env])
    return ended


@kernel
def step_one(batch: Batch, env: int) -> None:
    """Step one environment, unless it rests.

    Args:
        stack: The environments, with actions that are not refused.
        env: Which one.

    Writes:
        Its simulation, observation, `payment`, `tally` and `ended`; `figure` at an end.

    Source:
        House rule: one dynamics; the step is `hpcgym.core.kernels.env.step.step`.
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
    """Find an environment whose action is none.

    Args:
        stack: Address of the environments, with their actions.

    Returns:
        As `first_refused`.

    Source:
        House rule: bad input is refused before anything has been done with it.
    """
    return first_refused(open_batch(batch))


@kernel
def step_batch(batch: int) -> int:
    """Step every environment that does not rest, one after the other.

    Args:
        stack: Address of the environments.

    Returns:
        How many episodes ended; or -1 - env, env being the first environment whose action is
        refused, and then nothing has been done.

    Writes:
        As `step_one`.

    Source:
        House rule: one compiled step behind every face.
    """
    refused = first_refused(open_batch(batch))
    if refused >= 0:
        return -1 - refused
    for env in range(len(open_batch(batch).resting)):
        step_one(open_batch(batch), env)
    return count_ended(open_batch(batch))


@kernel(parallel=True)
def step_batch_in_parallel(batch: int) -> int:
    """Step every environment that does not rest, on the threads that numba has been given.

    Args:
        stack: Address of the environments.

    Returns:
        As `step_batch`.

    Writes:
        As `step_one`.

    Source:
        House rule: threads over environments only, each writing its own rows.
    """
    refused = first_refused(open_batch(batch))
    if refused >= 0:
        return -1 - refused
    for env in prange(len(open_batch(batch).resting)):
        step_one(open_batch(batch), env)
    return count_ended(open_batch(batch))


@kernel
def begin_batch(batch: int, envs: Int) -> None:
    """Begin episodes in some environments, run them to their first decisions, and observe.

    Args:
        stack: Address of the environments.
        envs: Which ones, shape (n_begun,).

    Writes:
        Their simulations, observations and clocks; their rewards and ends are cleared.

    Source:
        Specification, section 10, "Episodes".
    """
    opened = open_batch(batch)
    for env in envs:
        jobs = open_jobs(opened.address[env, JOBS])
        sim = open_sim(opened.address[env, SIM])
        begin(sim, open_initial_state(opened.address[env, INITIAL_STATE]))
        run(jobs, sim)
        opened.slot[env, :] = -1  # jobs of the episode before may have had the same numbers
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
