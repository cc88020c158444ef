"""What the event engine asks of the kernels of nodes, as one function with an address."""

from hpcgym.core.constants import (
    NODES_CHECK,
    NODES_CONTESTED,
    NODES_PASS,
    NODES_SHOW,
    NODES_SHOW_JOB,
    NODES_VACATE,
)
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.nodes.check import find_overuse
from hpcgym.core.kernels.nodes.nodes_pass import is_contested_on_nodes, nodes_pass
from hpcgym.core.kernels.nodes.observation import begin_showing, show_job
from hpcgym.core.kernels.nodes.rooms import clear_nodes, vacate
from hpcgym.core.kernels.types import open_jobs, open_sim


@kernel
def work(jobs_at: int, sim_at: int, task: int, job: int) -> int:
    """Do a task (`NODES_*`) for a simulation; `job` is a job where the task is about one.

    For `NODES_PASS` it says whether the orders of this instant decide. Return what the task finds.
    """
    jobs, sim = open_jobs(jobs_at), open_sim(sim_at)
    if sim.nodes_ready == 0:
        clear_nodes(jobs, sim)
    if task == NODES_PASS:
        return int(nodes_pass(jobs, sim, job == 1))
    if task == NODES_CONTESTED:
        return int(is_contested_on_nodes(jobs, sim))
    if task == NODES_VACATE:
        vacate(jobs, sim, job)
    elif task == NODES_SHOW:
        begin_showing(jobs, sim)
    elif task == NODES_SHOW_JOB:
        return show_job(jobs, sim, job)
    elif task == NODES_CHECK:
        return int(find_overuse(jobs, sim))
    return 0


def call_work(jobs_at: int, sim_at: int, task: int, job: int) -> int:
    """Call the kernel by the convention of C."""
    return work(jobs_at, sim_at, task, job)
