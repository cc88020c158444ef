"""Trials on a machine of nodes, beside a cap and costs: what its passes ask, and what follows them.

The pass of a component is EASY's (`hpcgym.core.kernels.nodes.nodes_pass`), which takes the nodes of
trials for free. What it asks about a cap and costs, `hpcgym.core.parts.cost_on_nodes` answers. What
follows it is `hpcgym.core.parts.trials`.

Source: Specification, section 15, "Trials on nodes".
"""

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import ADD_COST, IS_BLOCKED, ON_COMPONENT, PAYS
from hpcgym.core.kernels.types import Jobs
from hpcgym.core.parts import cost_on_nodes, trials
from hpcgym.core.parts.cost_on_nodes import CostOnNodesSim
from hpcgym.core.parts.trials import TrialSim

HEARS = trials.HEARS

REQUEUES = True
"""Jobs may have several attempts, so that a simulation keeps what is known of each job's."""

do_trials, do_costs = kernel(inlined=True)(trials.work), kernel(cost_on_nodes.work)


class TrialsOnNodesSim(TrialSim, CostOnNodesSim):
    """What trials and a cap add to a simulation on nodes."""


def work(jobs: Jobs, sim: TrialsOnNodesSim, task: int, argument: int) -> int:
    """Do a task for a simulation; `argument` is a job, a component, or what a pass goes by."""
    if task in (IS_BLOCKED, PAYS, ADD_COST, ON_COMPONENT):
        return do_costs(jobs, sim, task, argument)
    return do_trials(jobs, sim, task, argument)
