"""What the event engine asks of the kernels of nodes, as one function with an address."""

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import ask_mode
from hpcgym.core.kernels.nodes.check import find_overuse
from hpcgym.core.kernels.nodes.nodes_pass import is_contested_on_nodes, nodes_pass, try_on_idle
from hpcgym.core.kernels.nodes.observation import begin_showing, show_job
from hpcgym.core.kernels.nodes.rooms import clear_nodes, vacate
from hpcgym.core.kernels.nodes.trials import (
    clear,
    count_lent,
    end_clearing,
    keep,
    share_nodes,
    show_idle,
)
from hpcgym.core.kernels.types import Jobs, Sim


def work(jobs: Jobs, sim: Sim, task: int, job: int) -> int:
    """Do a task (`NODES_*`) for a simulation; `job` is a job where the task is about one.

    For `NODES_PASS` it says whether the orders of this instant decide, for `NODES_IDLE` when trials
    that begin from now on are over, 0 = none does. Return what the task finds.
    """
    if sim.nodes_ready == 0:
        clear_nodes(jobs, sim)
    if task == s.NODES_PASS:
        if sim.hears & s.PASS_ON_NODES != 0:
            return ask_mode(jobs.mode_pass, jobs, sim, s.MAKE_PASS, job)
        return int(nodes_pass(jobs, sim, job == 1))
    if task == s.NODES_CONTESTED:
        return int(is_contested_on_nodes(jobs, sim))
    if task == s.NODES_VACATE:
        vacate(jobs, sim, job)
    elif task == s.NODES_SHOW:
        begin_showing(jobs, sim)
    elif task == s.NODES_SHOW_JOB:
        return show_job(jobs, sim, job)
    elif task == s.NODES_CHECK:
        return int(find_overuse(jobs, sim))
    elif task == s.NODES_IDLE:
        show_idle(jobs, sim, job)
    elif task == s.NODES_TRY:
        return int(try_on_idle(jobs, sim, job))
    elif task == s.NODES_TAKE_BACK:
        count_lent(jobs, sim, job, -1)
    elif task == s.NODES_KEEP:
        keep(jobs, sim, job)
    elif task == s.NODES_SHARE:
        share_nodes(jobs, sim, job)
    elif task == s.NODES_CLEAR:
        clear(jobs, sim, job)
    elif task == s.NODES_CLEARED:
        end_clearing(jobs, sim, job)
    return 0
