"""Check what must hold on a machine of nodes, after every pass of a debug run.

Source: Specification, section 13, "What must hold".
"""

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import N_RESOURCES
from hpcgym.core.engine.life import is_guaranteed, is_on_trial
from hpcgym.core.kernels.nodes.rooms import use_of
from hpcgym.core.kernels.nodes.trials import is_clearing
from hpcgym.core.kernels.types import Jobs, Sim


@kernel
def find_overuse(jobs: Jobs, sim: Sim) -> bool:
    """Tell whether jobs use more of a node than it has, or than is counted as free or lent."""
    for node in range(len(jobs.capacity)):
        for resource in range(N_RESOURCES):
            used, lent = 0, 0
            for position in range(sim.n_running):
                job = sim.ending_job[position]
                first = jobs.placed_first[job]
                for each in range(first, first + sim.placed_on[job]):
                    if sim.placed_node[each] == node:
                        chunks = sim.placed_chunks[each]
                        held = use_of(jobs, jobs.shape[job], node, chunks, resource)
                        if is_on_trial(sim, job) and not is_guaranteed(sim, job):
                            lent += held
                        else:
                            used += held
            for position in range(sim.n_releases):
                if is_clearing(sim, position):
                    job = sim.release_job[position]
                    first = jobs.placed_first[job]
                    for each in range(first, first + sim.cleared_on[job]):
                        if sim.cleared_node[each] == node:
                            chunks = sim.cleared_chunks[each]
                            used += use_of(jobs, jobs.shape[job], node, chunks, resource)
            capacity = jobs.capacity[node, resource]
            if len(sim.is_down) > 0 and sim.is_down[node] == 1:
                capacity = 0
            if used + lent > capacity or used + sim.free_on[node, resource] != capacity:
                return True
            if len(sim.lent_on) > 0 and sim.lent_on[node, resource] != lent:
                return True
    return False
