"""How many cpus of its partition each reservation leaves idle: a bound on what may start beside it.

Source: Specification, section 13, "Cost".
"""

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import is_guaranteed
from hpcgym.core.kernels.nodes.rooms import partition_of, use_of
from hpcgym.core.kernels.nodes.timeline import PLAN, depth_of, release_end
from hpcgym.core.kernels.nodes.trials import nodes_released
from hpcgym.core.kernels.types import Jobs, Sim


@kernel
def spare_beside(jobs: Jobs, sim: Sim, job: int, start: int) -> int:
    """Return how many cpus of its partition a reserved job leaves idle when it starts, at most."""
    partition = partition_of(jobs, job)
    spare = sim.free_cpus[partition] - jobs.processors[job]
    position = sim.n_releases - 1
    while position >= 0 and release_end(sim, position) <= start:
        shape = jobs.shape[sim.release_job[position]]
        nodes, chunks, first, n = nodes_released(jobs, sim, position)
        position -= 1
        for each in range(first, first + n):
            if jobs.member[partition, nodes[each]] == 1:
                spare += use_of(jobs, shape, nodes[each], chunks[each], s.CPUS)
    return spare


@kernel
def change_spares(jobs: Jobs, sim: Sim, job: int, n: int, since: int) -> None:
    """Write what the reservations leave idle once a job starts on the n nodes found last.

    From `since` on, s, they took its nodes for idle.
    """
    if depth_of(sim) == np.inf:
        return
    until = sim.start_time[job] + jobs.estimate[job]
    for number in range(sim.n_reservations):
        start = sim.plan_start[PLAN, number]
        idles = until <= start
        if idles == (since <= start):
            continue
        sign = 1 if idles else -1  # a guaranteed trial may end before its guarantee does
        reserved = sim.plan_job[PLAN, number]
        partition = jobs.need[jobs.shape[reserved], s.NEED_PARTITION]
        for chosen in range(n):
            node = sim.chosen_node[chosen]
            if jobs.member[partition, node] == 1:
                chunks = sim.chosen_chunks[chosen]
                sim.plan_spare[number] += sign * use_of(jobs, jobs.shape[job], node, chunks, s.CPUS)


@kernel
def is_too_wide(jobs: Jobs, sim: Sim, job: int, reach: int) -> bool:
    """Tell whether a reservation of a job's own partition leaves too few cpus for the job."""
    # Nodes that come back may leave more, and a guaranteed trial has nodes of its own.
    if sim.n_foreseen > 0 or is_guaranteed(sim, job):
        return False
    partition = partition_of(jobs, job)
    for position in range(reach):
        number = sim.plan_by_start[PLAN, position]
        reserved = sim.plan_job[PLAN, number]
        if (
            jobs.need[jobs.shape[reserved], s.NEED_PARTITION] == partition
            and sim.plan_spare[number] < jobs.processors[job]
        ):
            return True
    return False
