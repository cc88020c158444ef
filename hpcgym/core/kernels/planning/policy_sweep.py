"""One episode under many policies, in one simulation; a cell is the episode under one policy."""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.clock import run
from hpcgym.core.kernels.env.metrics import measure
from hpcgym.core.kernels.reset import clear, recall_estimates, recall_users, set_rules
from hpcgym.core.kernels.types import InitialState, Jobs, Sim
from hpcgym.core.state import (
    KEEP_HISTORY,
    N_JOBS,
    Float,
    Int,
)


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
    figure: Float,
) -> None:
    """Simulate an episode to its end for each cell, and write metrics, shape (n_cells, N_FIGURES).

    Args:
        sim: Any simulation large enough; its content is lost.
        setting: Settings of each cell, shape (n_cells, N_SETTINGS).
        weight: Parameters of its rules, shape (n_cells, N_ORDERS, N_WEIGHTS).
        key: One number per job for policies given by keys, shape (n_keyed, n_jobs).
        key_row: Row of `key` for each cell, shape (n_cells,), -1 = not given by keys.
        network: Networks, shape (n_networks, N_NETWORK).
        network_row: Row of `network` for each cell, shape (n_cells,), -1 = none.
        figure: Where to.

    Also writes column 0 of `jobs.keys`, where rules by key find their numbers.
    """
    for cell in range(len(figure)):
        set_rules(sim, setting[cell], weight[cell], initial.backfill_parameter)
        if sim.setting[KEEP_HISTORY] != 0:
            recall_users(sim, initial)
        if network_row[cell] >= 0:
            for place in range(network.shape[1]):
                sim.network[place] = network[network_row[cell], place]
        if key_row[cell] >= 0:
            for job in range(sim.setting[N_JOBS]):
                jobs.keys[job, 0] = key[key_row[cell], job]
        recall_estimates(sim, initial)
        clear(sim, initial.log_largest[0])
        run(jobs, sim)
        measure(jobs, sim, figure[cell])
