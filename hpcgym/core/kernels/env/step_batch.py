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
    Stack,
    open_bill,
    open_choice,
    open_jobs,
    open_row,
    open_stack,
    open_start,
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
JOBS, START, BILL, ROW, CHOICE = 0, 1, 2, 3, 4


@kernel
def first_refused(stack: Stack) -> int:
    """Find an environment whose action is none.

    Args:
        stack: The environments, with their actions.

    Returns:
        The first whose action is NaN, beyond [-1, 1] or no choice there is; -1 if there is none.

    Source:
        House rule: bad input is refused before anything has been done with it.
    """
    for env in range(len(stack.resting)):
        if stack.resting[env] == 1:
            continue
        if not 0 <= stack.number[env] < stack.n_choices[0]:
            return env
        for place in range(stack.values.shape[1]):
            if not abs(stack.values[env, place]) <= 1.0:
                return env
    return -1


@kernel
def count_ended(stack: Stack) -> int:
    """Count the episodes that ended by the latest step.

    Args:
        stack: The environments.

    Returns:
        How many were terminated or truncated; those that rest are not among them.

    Source:
        House rule: most steps end none, and need not look for any.
    """
    ended = 0
    for env in range(len(stack.resting)):
        if stack.resting[env] == 0:
            ended += int(stack.ended[0, env] | stack.ended[1, env])
    return ended


@kernel
def step_row(stack: Stack, env: int) -> None:
    """Step one environment, unless it rests.

    Args:
        stack: The environments, with actions that are not refused.
        env: Which one.

    Writes:
        Its simulation, observation, `payment`, `tally` and `ended`; `figure` at an end.

    Source:
        House rule: one dynamics; the step is `hpcgym.core.kernels.env.step.step`.
    """
    if stack.resting[env] == 1:
        return
    jobs = open_jobs(stack.address[env, JOBS])
    row = open_row(stack.address[env, ROW])
    bill = open_bill(stack.address[env, BILL])
    status = step(
        jobs,
        row,
        open_choice(stack.address[env, CHOICE]),
        bill,
        stack.slot[env],
        stack.number[env],
        stack.values[env],
        stack.shown_jobs[env],
        stack.shown_cluster[env],
        stack.mask[env],
    )
    is_cut = 0 < stack.horizon[0] <= row.counter[N_STEPS]
    if is_cut and status != DONE:
        pay_at_horizon(row, bill)
    if is_cut or status == DONE:
        measure(jobs, row, stack.figure[env])
    stack.payment[0, env] = row.gauge[REWARD]
    stack.payment[1, env] = row.gauge[AGENT_TERM]
    stack.payment[2, env] = row.gauge[BASELINE_TERM]
    stack.tally[0, env] = row.counter[NOW]
    stack.tally[1, env] = row.counter[N_INVALID]
    stack.ended[0, env] = status == DONE
    stack.ended[1, env] = is_cut


@kernel
def find_refused(stack: int) -> int:
    """Find an environment whose action is none.

    Args:
        stack: Address of the environments, with their actions.

    Returns:
        As `first_refused`.

    Source:
        House rule: bad input is refused before anything has been done with it.
    """
    return first_refused(open_stack(stack))


@kernel
def step_rows(stack: int) -> int:
    """Step every environment that does not rest, one after the other.

    Args:
        stack: Address of the environments.

    Returns:
        How many episodes ended; or -1 - env, env being the first environment whose action is
        refused, and then nothing has been done.

    Writes:
        As `step_row`.

    Source:
        House rule: one compiled step behind every face.
    """
    refused = first_refused(open_stack(stack))
    if refused >= 0:
        return -1 - refused
    for env in range(len(open_stack(stack).resting)):
        step_row(open_stack(stack), env)
    return count_ended(open_stack(stack))


@kernel(parallel=True)
def step_rows_abreast(stack: int) -> int:
    """Step every environment that does not rest, on the threads that numba has been given.

    Args:
        stack: Address of the environments.

    Returns:
        As `step_rows`.

    Writes:
        As `step_row`.

    Source:
        House rule: threads over environments only, each writing its own rows.
    """
    refused = first_refused(open_stack(stack))
    if refused >= 0:
        return -1 - refused
    for env in prange(len(open_stack(stack).resting)):
        step_row(open_stack(stack), env)
    return count_ended(open_stack(stack))


@kernel
def begin_rows(stack: int, envs: Int) -> None:
    """Begin episodes in some environments, run them to their first decisions, and observe.

    Args:
        stack: Address of the environments.
        envs: Which ones, shape (n_begun,).

    Writes:
        Their simulations, observations and clocks; their rewards and ends are cleared.

    Source:
        Specification, section 10, "Episodes".
    """
    opened = open_stack(stack)
    for env in envs:
        jobs = open_jobs(opened.address[env, JOBS])
        row = open_row(opened.address[env, ROW])
        begin(row, open_start(opened.address[env, START]))
        run(jobs, row)
        opened.slot[env, :] = -1  # jobs of the episode before may have had the same numbers
        opened.shown_jobs[env, :] = 0.0
        opened.mask[env, :] = 0.0
        observe(
            jobs,
            row,
            opened.slot[env],
            opened.shown_jobs[env],
            opened.shown_cluster[env],
            opened.mask[env],
        )
        opened.payment[:, env] = 0.0
        opened.tally[0, env] = row.counter[NOW]
        opened.tally[1, env] = 0
        opened.ended[:, env] = 0
