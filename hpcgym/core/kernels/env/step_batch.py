"""One step of many environments; none reads what another writes.

Threads may therefore share them in any way, with results equal to the last bit.
"""

from typing import Any

from numba import prange
from numpy.typing import NDArray

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.compiler.raw_memory import (
    clear_bytes,
    copy_bytes,
    fetcher,
    next_number,
    row_fetcher,
)
from hpcgym.core.compiler.struct import LINE_BYTES
from hpcgym.core.constants import N_RESOURCES, NODE_CHILDREN, PASS_ORDER, STATUS_DONE, STATUS_FULL
from hpcgym.core.engine.clock import run
from hpcgym.core.engine.reset import begin
from hpcgym.core.kernels.env.cluster import N_CLUSTER
from hpcgym.core.kernels.env.metrics import measure
from hpcgym.core.kernels.env.observation import count_visible, observe
from hpcgym.core.kernels.env.step import step
from hpcgym.core.kernels.types import (
    AT_SUBMISSION,
    OF_USER,
    WHILE_SHOWN,
    Batch,
    Int,
    Jobs,
    Sim,
    open_action_spec,
    open_batch,
    open_initial_state,
    open_jobs,
    open_reward_plan,
    open_sim,
)
from hpcgym.core.observation_fields import N_HISTORY_FIELDS

# Columns of `Batch.address`.
JOBS, INITIAL_STATE, REWARD_PLAN, SIM, ACTION_SPEC = 0, 1, 2, 3, 4

# Columns of `Batch.out`: the address of each part, 0 = nowhere; its bytes from row to row follow.
OUT_JOBS, OUT_CLUSTER, OUT_MACHINE, OUT_MASK = 0, 2, 4, 6
OUT_PARTS = {
    "jobs": OUT_JOBS,
    "cluster": OUT_CLUSTER,
    "machine": OUT_MACHINE,
    "action_mask": OUT_MASK,
}
N_OUT = 2 * len(OUT_PARTS)

# What an environment does in a call, `Batch.resting`. BEGUN: its episode has begun, but it needed
# more room before its first decision.
STEPS, RESTS, BEGINS, BEGUN = 0, 1, 2, 3

SINGLE_BYTES, WHOLE_BYTES = 4, 8

END_OF_LIST = 8  # numbers at the end of a list that are asked for ahead

MANY_TURNS = 64
"""Environments from which on so little stays in the caches that all that is in use is asked for."""

TURNS_APART = 8
"""Entries from one counter of `Batch.n_taken` to the next: no two are in one line of the cache."""


@kernel
def first_refused(batch: Batch) -> int:
    """Return the first environment whose action is NaN, beyond [-1, 1] or no choice; -1 if none."""
    for env in range(len(batch.resting)):
        if batch.resting[env] != STEPS:
            continue
        if not 0 <= batch.number[env] < batch.n_choices:
            return env
        for column in range(batch.values.shape[1]):
            if not abs(batch.values[env, column]) <= 1.0:
                return env
    return -1


@kernel
def count_ended(batch: Batch) -> int:
    """Count the episodes that the latest step terminated or truncated.

    If the step of some environment is not over, return -1 less that number and all environments.
    """
    n_envs = len(batch.resting)
    ended = 0
    full = 0
    for env in range(n_envs):
        if batch.resting[env] != RESTS:
            ended += int(batch.terminated[env] | batch.truncated[env])
            full += batch.full[env]
    return ended if full == 0 else -1 - n_envs - ended


# Lines at the front of a simulation, where its numbers lie, of its first jobs shown, and of slots.
fetch_front = fetcher(24)
fetch_shown = fetcher(8)
fetch_slots = fetcher(2)
fetch_line = fetcher(1)

# Rows of the arrays that are marked where they are declared.
fetch_submitted = row_fetcher(Jobs, AT_SUBMISSION)
fetch_visible = row_fetcher(Jobs, WHILE_SHOWN)
fetch_visible_in_sim = row_fetcher(Sim, WHILE_SHOWN)
fetch_user = row_fetcher(Sim, OF_USER)


@kernel(inlined=True)
def copy_part(batch: Batch, part: int, env: int, source: int, n: int) -> int:
    """Copy `n` numbers to an environment's row of a part; return the address behind them."""
    to = batch.out[part] + env * batch.out[part + 1]
    copy_bytes(to, source, SINGLE_BYTES * n)
    return to + SINGLE_BYTES * n


@kernel
def copy_out(batch: Batch, env: int, jobs: Jobs) -> None:
    """Copy the observation of an environment to where `out` says, if it does."""
    if batch.out[OUT_CLUSTER] == 0:
        return
    n_numbers = batch.shown_jobs.shape[1]
    n_slots = batch.slot.shape[1]
    if n_numbers == 0:  # these are all fields
        address = batch.shown_cluster[env].ctypes.data
        copy_part(batch, OUT_CLUSTER, env, address, batch.shown_cluster.shape[1])
        return
    # Behind the visible jobs all is zero, so it need not be read.
    n_used = count_visible(batch.slot[env]) * (n_numbers // n_slots)
    behind = copy_part(batch, OUT_JOBS, env, batch.shown_jobs[env].ctypes.data, n_used)
    clear_bytes(behind, SINGLE_BYTES * (n_numbers - n_used))
    cluster = batch.shown_cluster[env].ctypes.data
    n_machine = len(jobs.shown_partition) * N_RESOURCES  # fields of `machine`, the last ones
    n_own = batch.shown_cluster.shape[1] - n_machine
    copy_part(batch, OUT_CLUSTER, env, cluster, n_own)
    if n_machine > 0:
        copy_part(batch, OUT_MACHINE, env, cluster + SINGLE_BYTES * n_own, n_machine)
    copy_part(batch, OUT_MASK, env, batch.mask[env].ctypes.data, n_slots)


@kernel(inlined=True)
def fetch_bytes(address: int, n: int) -> None:
    """Ask for the lines of the cache that hold `n` bytes from an address on."""
    for line in range(n // LINE_BYTES + 1):
        fetch_line(address + line * LINE_BYTES)


@kernel(inlined=True)
def fetch_end(column: Int, n: int) -> None:
    """Ask for the last few of the first `n` numbers of a column, which change first."""
    first = max(n - END_OF_LIST, 0)
    fetch_bytes(column.ctypes.data + WHOLE_BYTES * first, WHOLE_BYTES * (n - first))


@kernel(inlined=True)
def fetch_row(table: NDArray[Any], row: int) -> None:
    """Ask for the line in which a row of an array begins; it may lie behind the last."""
    fetch_line(table.ctypes.data + table.strides[0] * row)


@kernel
def fetch_lists(batch: Batch, env: int) -> None:
    """Ask for the lists in use in an environment, and for the jobs that its numbers name.

    Its numbers have been asked for before.
    """
    sim = open_sim(batch.address[env, SIM])
    n_slots = batch.slot.shape[1]
    n = min(sim.n_waiting, n_slots)  # the cost must not grow with the queue
    fetch_bytes(batch.slot[env].ctypes.data, WHOLE_BYTES * n)
    row_bytes = SINGLE_BYTES * batch.shown_jobs.shape[1] // n_slots
    fetch_bytes(batch.shown_jobs[env].ctypes.data, row_bytes * n)
    fetch_bytes(batch.mask[env].ctypes.data, SINGLE_BYTES * n)
    fetch_bytes(batch.shown_cluster[env].ctypes.data, SINGLE_BYTES * N_CLUSTER)
    # The waiting jobs have the first entries, but for a few.
    fetch_bytes(sim.key[PASS_ORDER].ctypes.data, WHOLE_BYTES * n)
    fetch_bytes(sim.history_field.ctypes.data, SINGLE_BYTES * N_HISTORY_FIELDS * n)
    fetch_bytes(sim.scratch.ctypes.data, WHOLE_BYTES * n)
    fetch_bytes(sim.onset.ctypes.data, WHOLE_BYTES * min(sim.n_onsets, n_slots))
    fetch_end(sim.start_time, sim.next_job)
    fetch_end(sim.release_time, sim.n_releases)
    fetch_end(sim.release_job, sim.n_releases)
    fetch_end(sim.ending_time, sim.n_running)
    fetch_end(sim.ending_job, sim.n_running)
    jobs = open_jobs(batch.address[env, JOBS])
    fetch_submitted(jobs, sim.next_job)
    fetch_row(jobs.submit_time, sim.hour_ago)
    fetch_row(jobs.submit_time, sim.day_ago)
    fetch_row(jobs.submit_time, sim.next_overdue)
    fetch_row(sim.start_time, sim.next_overdue)


@kernel
def fetch_listed(batch: Batch, env: int) -> None:
    """Ask for what the lists in use name: visible and running jobs, and the next job's user."""
    jobs = open_jobs(batch.address[env, JOBS])
    sim = open_sim(batch.address[env, SIM])
    n_slots = batch.slot.shape[1]
    for position in range(n_slots):
        job = batch.slot[env, position]
        if job < 0:
            break
        fetch_visible(jobs, job)
        fetch_visible_in_sim(sim, job)
    for position in range(max(sim.n_releases - n_slots, 0), sim.n_releases):  # the soonest are last
        fetch_row(jobs.processors, sim.release_job[position])
    # The first block of a queue.
    fetch_bytes(sim.node_child.ctypes.data, WHOLE_BYTES * NODE_CHILDREN)
    # It may lie behind the last: an environment that is about to begin has the numbers of its last
    # episode. Read once, since another thread may be stepping this environment.
    next_job = sim.next_job
    if next_job < len(jobs.user):
        fetch_user(sim, jobs.user[next_job])


@kernel(inlined=True)
def fetch_ahead(batch: Batch, turn: int, ahead: int) -> None:
    """Ask for what the steps of the next environments read.

    Of many environments next to nothing stays in the caches. A simulation's numbers are asked for
    three turns before its own. They say how long its lists are, so these follow two turns before.
    What the lists name follows one turn before. Of few some lines of the next one are enough.
    """
    n_turns = len(batch.order)
    is_next = 0 <= turn + ahead < n_turns
    if n_turns < MANY_TURNS:
        if is_next:
            env = batch.order[turn + ahead]
            fetch_front(batch.address[env, SIM])
            fetch_shown(batch.shown_jobs[env].ctypes.data)
            fetch_slots(batch.slot[env].ctypes.data)
        return
    if 0 <= turn + 3 * ahead < n_turns:
        fetch_front(batch.address[batch.order[turn + 3 * ahead], SIM])
    if 0 <= turn + 2 * ahead < n_turns:
        fetch_lists(batch, batch.order[turn + 2 * ahead])
    if is_next:
        fetch_listed(batch, batch.order[turn + ahead])


@kernel
def begin_one(batch: Batch, env: int, jobs: Jobs, sim: Sim) -> None:
    """Begin an episode in an environment, run it to its first decision and observe.

    Writes its simulation, observation and clock; clears its rewards and ends. If it is full, it
    needs room, and goes on in the next call.
    """
    if batch.resting[env] == BEGINS:
        begin(sim, open_initial_state(batch.address[env, INITIAL_STATE]))
    batch.reward[env] = batch.agent_term[env] = batch.baseline_term[env] = 0.0
    batch.terminated[env] = batch.truncated[env] = 0
    batch.full[env] = run(jobs, sim) == STATUS_FULL
    if batch.full[env] == 1:
        return
    # Else `observe` would keep fields of the last episode's jobs, which had the same indices.
    batch.slot[env, :] = -1
    batch.shown_jobs[env, :] = 0.0
    batch.mask[env, :] = 0.0
    observe(
        jobs, sim, batch.slot[env], batch.shown_jobs[env], batch.shown_cluster[env], batch.mask[env]
    )
    batch.now[env] = sim.now
    batch.n_invalid[env] = 0
    copy_out(batch, env, jobs)


@kernel
def step_one(batch: Batch, turn: int, ahead: int) -> None:
    """Step the environment whose turn it is, or begin its episode, unless it rests.

    The next turn is this one plus `ahead`, 1 or -1.

    Writes its simulation, its observation, its rewards, clock and ends, and at an end `metric`.
    """
    env = batch.order[turn]
    if batch.resting[env] == RESTS:
        return
    fetch_ahead(batch, turn, ahead)
    jobs = open_jobs(batch.address[env, JOBS])
    sim = open_sim(batch.address[env, SIM])
    if batch.resting[env] != STEPS:
        begin_one(batch, env, jobs, sim)
        return
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
    batch.full[env] = status == STATUS_FULL
    if status == STATUS_FULL:
        batch.terminated[env] = batch.truncated[env] = 0
        return
    is_cut = 0 < batch.time_limit <= sim.n_steps
    if is_cut or status == STATUS_DONE:
        measure(jobs, sim, batch.metric[env])
    batch.reward[env] = sim.reward
    batch.agent_term[env] = sim.agent_term
    batch.baseline_term[env] = sim.baseline_term
    batch.now[env] = sim.now
    batch.n_invalid[env] = sim.n_invalid
    batch.terminated[env] = status == STATUS_DONE
    batch.truncated[env] = is_cut
    copy_out(batch, env, jobs)


@kernel
def find_refused(batch: int) -> int:
    """Return the first environment whose action is refused: `first_refused`."""
    return first_refused(open_batch(batch))


@kernel
def step_batch(batch: int) -> int:
    """Step every environment of the batch at an address, and return what `count_ended` does.

    If an action is refused, nothing is done, and the result is -1 less the environment's index.
    """
    refused = first_refused(open_batch(batch))
    if refused >= 0:
        return -1 - refused
    for turn in range(len(open_batch(batch).order)):
        step_one(open_batch(batch), turn, 1)
    return count_ended(open_batch(batch))


@kernel
def give_turns(batch: Batch) -> None:
    """Begin a round: no thread has taken a turn."""
    clear_bytes(batch.n_taken.ctypes.data, WHOLE_BYTES * len(batch.n_taken))


@kernel
def take_turns(batch: Batch, thread: int, threads: int) -> None:
    """Step the environments that two threads share, until all have had their turn.

    The first of the two begins at the front of them, the second at the back. The last of an odd
    number of threads has its environments for itself. So each thread has
    nearly the same turns in every call, and what it worked on is still in its caches; and neither
    waits for the other, whoever began later or had more to do.
    """
    pair = thread // 2
    n_envs = len(batch.order)
    first = n_envs * 2 * pair // threads
    last = min(n_envs * (2 * pair + 2) // threads, n_envs) - 1
    taken = batch.n_taken.ctypes.data + WHOLE_BYTES * TURNS_APART * pair
    ahead = 1 if thread % 2 == 0 else -1
    turn = first if ahead == 1 else last
    while next_number(taken) <= last - first:
        step_one(batch, turn, ahead)
        turn += ahead


@kernel(parallel=True)
def step_batch_in_parallel(batch: int, threads: int) -> int:
    """Step as `step_batch` does, on so many threads."""
    refused = first_refused(open_batch(batch))
    if refused >= 0:
        return -1 - refused
    give_turns(open_batch(batch))
    for thread in prange(threads):
        take_turns(open_batch(batch), int(thread), threads)
    return count_ended(open_batch(batch))
