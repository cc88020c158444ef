"""What an agent sees of a machine of nodes, beyond what it sees of every machine.

Source: Specification, section 13, "Environment".
"""

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.moments import is_withheld
from hpcgym.core.kernels.nodes.nodes_pass import has_placement
from hpcgym.core.kernels.nodes.replan import clear_plan
from hpcgym.core.kernels.nodes.rooms import component_of, rooms_of
from hpcgym.core.kernels.nodes.timeline import reserve_earliest
from hpcgym.core.kernels.queue.ordered_queue import list_jobs
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.observation_fields import NodesField


@kernel
def first_misfit(jobs: Jobs, sim: Sim, component: int, waiting: int) -> int:
    """Return the first job of a component, higher tiers first, without a placement now; -1 if none.

    Jobs that a limit holds do not count. The waiting jobs are in `walk`, in base order.
    """
    first, highest = -1, -1
    for position in range(waiting):
        job = sim.walk[position]
        tier = jobs.limit[jobs.need[jobs.shape[job], s.NEED_PARTITION], s.LIMIT_TIER]
        if component_of(jobs, job) != component or (first >= 0 and tier >= highest):
            continue
        if not is_withheld(jobs, sim, job) and not has_placement(jobs, sim, job):
            first, highest = job, tier
    return first


@kernel
def show_machine(jobs: Jobs, sim: Sim) -> None:
    """Write the free share of each resource in each partition, 0 where it has none of it."""
    for column in range(len(jobs.shown_partition)):
        partition = jobs.shown_partition[column]
        for resource in range(s.N_RESOURCES):
            free, capacity = 0, 0
            for node in range(len(jobs.capacity)):
                if jobs.member[partition, node] == 1:
                    free += sim.free_on[node, resource]
                    capacity += jobs.capacity[node, resource]
            share = free / capacity if capacity > 0 else 0.0
            sim.shown_machine[column * s.N_RESOURCES + resource] = np.float32(share)


@kernel
def begin_showing(jobs: Jobs, sim: Sim) -> None:
    """Write what the fields of all jobs need: the shadow time of each component, and `machine`."""
    waiting = list_jobs(sim, s.BASE_ORDER, sim.walk)
    for component in range(len(sim.due)):
        clear_plan(sim)
        head = first_misfit(jobs, sim, component, waiting)
        shadow = -1 if head < 0 else reserve_earliest(jobs, sim, head, False)
        sim.component_shadow[component] = shadow
    show_machine(jobs, sim)


@kernel
def show_job(jobs: Jobs, sim: Sim, job: int) -> int:
    """Write the fields of a waiting job into `shown_job`; return what else is shown, as bits."""
    shape = jobs.shape[job]
    room = sim.room_total[rooms_of(jobs, sim, shape)]
    most_gpus = max(jobs.largest_node[s.GPUS], 1)
    most_memory = max(jobs.largest_node[s.MEMORY], 1)
    shown = sim.shown_job
    shown[NodesField.GPUS] = np.float32(min(jobs.need[shape, s.GPUS] / most_gpus, 1.0))
    shown[NodesField.MEMORY] = np.float32(min(jobs.need[shape, s.MEMORY] / most_memory, 1.0))
    shown[NodesField.PARTITION] = np.float32(jobs.need[shape, s.NEED_PARTITION] / len(jobs.limit))
    shown[NodesField.ROOM] = np.float32(min(room / jobs.chunks[job], 1.0))
    bits = s.NODES_FITS if has_placement(jobs, sim, job) else 0
    shadow = sim.component_shadow[component_of(jobs, job)]
    if shadow < 0 or sim.now + jobs.estimate[job] <= shadow:
        bits |= s.NODES_ENDS_BEFORE_SHADOW
    return bits
