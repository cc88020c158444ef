"""One simulation out of the stack, and its jobs out of the scenario's table: views."""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.records import Jobs, Row
from hpcgym.core.state import JobTable, State
from hpcgym.core.struct import borrowed


@kernel
def row_of(state: State, env: int) -> Row:
    """Return one simulation of the stack.

    Args:
        state: The stack.
        env: Row of the stack.

    Returns:
        Views that hold no reference: the state must outlive them.

    Source:
        House rule: struct of arrays.
    """
    return Row(
        borrowed(state.setting[env]),
        borrowed(state.weight[env]),
        borrowed(state.counter[env]),
        borrowed(state.gauge[env]),
        borrowed(state.start_time[env]),
        borrowed(state.flag[env]),
        borrowed(state.ending_time[env]),
        borrowed(state.ending_job[env]),
        borrowed(state.release_time[env]),
        borrowed(state.release_job[env]),
        borrowed(state.key[env]),
        borrowed(state.queue_used[env]),
        borrowed(state.block_order[env]),
        borrowed(state.block_size[env]),
        borrowed(state.block_processors[env]),
        borrowed(state.block_estimate[env]),
        borrowed(state.block_job[env]),
        borrowed(state.onset[env]),
        borrowed(state.history_run_time[env]),
        borrowed(state.history_requested_time[env]),
        borrowed(state.history_completed[env]),
        borrowed(state.history_last_end_time[env]),
        borrowed(state.inverse[env]),
        borrowed(state.history_field[env]),
        borrowed(state.scratch[env]),
    )


@kernel
def jobs_of(table: JobTable, first: int, n_jobs: int) -> Jobs:
    """Return the jobs of one episode out of the scenario's table.

    Args:
        table: All jobs of the scenario, episode after episode.
        first: First job of the episode.
        n_jobs: Number of jobs of the episode.

    Returns:
        Views, so that jobs are counted from 0; the table must outlive them.

    Source:
        House rule: episodes are cut beforehand; a reset moves an offset.
    """
    end = first + n_jobs
    return Jobs(
        borrowed(table.submit_time[first:end]),
        borrowed(table.run_time[first:end]),
        borrowed(table.estimate[first:end]),
        borrowed(table.requested_time[first:end]),
        borrowed(table.processors[first:end]),
        borrowed(table.user[first:end]),
        borrowed(table.keys[:, first:end]),
        borrowed(table.reward_rate[first:end]),
        borrowed(table.reward_onset[first:end]),
        borrowed(table.field[first:end]),
    )
