"""One simulation out of the stack, and its jobs out of a table, as kernels see them."""

from collections.abc import Iterator
from typing import Any

from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import JobTable, State
from hpcgym.core.struct import Struct


def sim_of(state: State, env: int) -> Struct[Sim]:
    """Return one simulation of the stack.

    Args:
        state: The stack; it must outlive the record.
        env: Row of the stack.

    Returns:
        Views, without the axis n_envs.

    Source:
        House rule: struct of arrays.
    """
    view: Iterator[Any] = (array[env] for array in state)
    return Struct(Sim(*view))


def own_table(table: JobTable, state: State, env: int) -> JobTable:
    """Return the jobs of an episode with the estimates of one simulation.

    Args:
        table: The jobs.
        state: The stack; it must outlive what is made of the table.
        env: Row of the stack.

    Returns:
        The table, its estimates and features those of the row where the stack has such, so that
        kernels read one table whoever makes the estimates.

    Source:
        House rule: jobs are shared among simulations, what moves is not.
    """
    if state.estimate.shape[1] == 0:
        return table
    n = len(table.estimate)
    return table._replace(estimate=state.estimate[env, :n], feature=state.feature[env, :n])


def jobs_of(table: JobTable, first: int, n_jobs: int) -> Struct[Jobs]:
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
    part: Iterator[Any] = (array[first : first + n_jobs] for array in table)
    return Struct(Jobs(*part))
