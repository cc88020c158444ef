"""One episode under many policies, in one simulation; a cell is the episode under one policy."""

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import HISTORY_NOT
from hpcgym.core.engine.clock import run
from hpcgym.core.engine.reset import clear, recall_estimates, recall_users, set_rules
from hpcgym.core.kernels.env.metrics import measure
from hpcgym.core.kernels.types import Float, InitialState, Int, Jobs, Sim


@kernel
def sweep_policies(
    jobs: Jobs,
    sim: Sim,
    initial: InitialState,
    setting: Int,
    weight: Float,
    key: Float,
    key_row: Int,
    network: Float,
    network_row: Int,
    metric: Float,
) -> None:
    """Simulate an episode to its end for each cell, and write metrics, shape (n_cells, N_METRICS).

    `sim` is any simulation that is large enough. Its content is lost. Each cell has a row of
    `setting`, shape (n_cells, N_SETTINGS), and of `weight`, shape (n_cells, N_ORDERS, N_WEIGHTS).
    `key`, shape (n_keyed, n_jobs), has the keys of policies given by keys, and `network`, shape
    (n_networks, N_NETWORK), the networks. `key_row` and `network_row`, shape (n_cells,), say which
    row of these a cell has, -1 = none. Writes also column 0 of `jobs.keys`, where rules by key find
    their numbers.
    """
    for cell in range(len(metric)):
        set_rules(sim, setting[cell], weight[cell], initial.backfill_parameter)
        if sim.keep_history != HISTORY_NOT:
            recall_users(sim, initial)
        if network_row[cell] >= 0:
            for column in range(network.shape[1]):
                sim.network[column] = network[network_row[cell], column]
        if key_row[cell] >= 0:
            for job in range(sim.n_jobs):
                jobs.keys[job, 0] = key[key_row[cell], job]
        recall_estimates(sim, initial)
        clear(sim, initial.log_largest)
        run(jobs, sim)
        measure(jobs, sim, metric[cell])
