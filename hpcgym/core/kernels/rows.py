"""One simulation out of the stack, and its jobs out of the scenario's table: views."""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.records import Jobs, Queue, Row
from hpcgym.core.state import BASE, FILL, ORDER, JobTable, State


@kernel
def queue_of(state: State, env: int, which: int) -> Queue:
    """Return one queue of one simulation.

    Args:
        state: The stack.
        env: Row of the stack.
        which: `BASE`, `FILL` or `ORDER`.

    Returns:
        Views.

    Source:
        House rule: struct of arrays.
    """
    return Queue(
        state.key[env, which],
        state.queue_used[env, which],
        state.block_order[env, which],
        state.block_size[env, which],
        state.block_processors[env, which],
        state.block_estimate[env, which],
        state.block_job[env, which],
    )


@kernel
def row_of(state: State, env: int) -> Row:
    """Return one simulation of the stack.

    Args:
        state: The stack.
        env: Row of the stack.

    Returns:
        Views.

    Source:
        House rule: struct of arrays.
    """
    return Row(
        state.setting[env],
        state.weight[env],
        state.counter[env],
        state.gauge[env],
        state.start_time[env],
        state.flag[env],
        state.ending_time[env],
        state.ending_job[env],
        state.release_time[env],
        state.release_job[env],
        queue_of(state, env, BASE),
        queue_of(state, env, FILL),
        queue_of(state, env, ORDER),
        state.onset[env],
        state.history_run_time[env],
        state.history_requested_time[env],
        state.history_completed[env],
        state.history_last_end_time[env],
        state.inverse[env],
        state.history_field[env],
        state.scratch[env],
    )


@kernel
def jobs_of(table: JobTable, first: int, n_jobs: int) -> Jobs:
    """Return the jobs of one episode out of the scenario's table.

    Args:
        table: All jobs of the scenario, episode after episode.
        first: First job of the episode.
        n_jobs: Number of jobs of the episode.

    Returns:
        Views, so that jobs are counted from 0.

    Source:
        House rule: episodes are cut beforehand; a reset moves an offset.
    """
    end = first + n_jobs
    return Jobs(
        table.submit_time[first:end],
        table.run_time[first:end],
        table.estimate[first:end],
        table.requested_time[first:end],
        table.processors[first:end],
        table.user[first:end],
        table.keys[:, first:end],
        table.reward_rate[first:end],
        table.reward_onset[first:end],
        table.field[first:end],
    )
