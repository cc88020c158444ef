"""A cap on long jobs, and cost-benefit backfilling, on a machine of nodes: what its passes ask.

The pass of a component is EASY's (`hpcgym.core.kernels.nodes.nodes_pass`). It asks which jobs the
cap blocks, and whether a job should start though it delays a reservation. The component is the
machine that the cap takes its share of, and cpus are its processors. What is asked is written into
`delayed`, `delayed_until` and `lacking`.

| task | when | argument | returns |
|---|---|---|---|
| `ON_COMPONENT` | the pass of a component begins | the component | 1 = costs are weighed |
| `IS_BLOCKED` | a job would start, or be reserved for | the job | 1 = the cap blocks it |
| `ADD_COST` | before step 3 | a job without a placement | |
| `PAYS` | in step 3 | a job that would delay `delayed` | 1 = it starts all the same |

Cost: O(running jobs) for a pass, and O(log n) for each job asked about.

Source: Specification, section 13, "Cap and costs on nodes".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.nodes.rooms import component_of
from hpcgym.core.kernels.scoring.user_estimates import expected_rate, expected_run_time
from hpcgym.core.kernels.types import Counter, Gauge, Jobs
from hpcgym.core.parts.cap import is_blocked_of, on_release, on_start
from hpcgym.core.parts.cost_benefit import CostBenefitSim, delay_of, kappa_behind

HEARS = s.ON_START | s.ON_RELEASE


class CostOnNodesSim(CostBenefitSim):
    """What a cap and costs add to a simulation on nodes; `capped` is about one component."""

    component_cpus: Counter  # of the component at hand
    rate_of_misfits: Gauge
    """Summed E[1/D] of its waiting jobs that had no placement when step 3 began, 1/s."""


@kernel
def count_held(jobs: Jobs, sim: CostOnNodesSim, component: int) -> int:
    """Count the cpus of a component's running jobs that counted when they started."""
    held = 0
    for position in range(sim.n_running):
        job = sim.ending_job[position]
        if sim.flag[job] & s.FLAG_CAPPED != 0 and component_of(jobs, job) == component:
            held += jobs.processors[job]
    return held


@kernel
def count_walked(jobs: Jobs, sim: CostOnNodesSim) -> int:
    """Count the cpus that the waiting jobs of the component ask for."""
    asked = 0
    for position in range(sim.n_walked):
        asked += jobs.processors[sim.component_walk[position]]
    return asked


@kernel
def begin_component(jobs: Jobs, sim: CostOnNodesSim, component: int) -> bool:
    """Begin the pass of a component; tell whether costs are weighed in it."""
    sim.rate_of_misfits = 0.0
    if sim.n_walked == 0:
        return False
    shape = jobs.shape[sim.component_walk[0]]
    sim.component_cpus = jobs.limit[jobs.need[shape, s.NEED_PARTITION], s.LIMIT_CPUS]
    sim.capped = 0 if sim.cap == float("inf") else count_held(jobs, sim, component)
    sim.binds = 1
    if sim.pressed > 0.0:
        sim.binds = int(count_walked(jobs, sim) >= sim.pressed * sim.component_cpus)
    # What a delay costs is not known where a job may have to wait for an outage to end.
    return sim.kappa > 0.0 and sim.n_foreseen == 0


@kernel
def pays_on_nodes(jobs: Jobs, sim: CostOnNodesSim, job: int) -> bool:
    """Tell whether a job should start that would delay a reservation."""
    other = sim.delayed
    kappa = kappa_behind(jobs, sim, other)
    if kappa == 0.0:
        return False
    left = sim.delayed_until - sim.now
    delay = delay_of(expected_run_time(jobs, sim, job), left)
    share = sim.lacking / jobs.chunks[other]
    benefit = kappa * (left + expected_run_time(jobs, sim, other))
    return sim.rate_of_misfits * delay * share <= expected_rate(jobs, sim, job) * benefit


def work(jobs: Jobs, sim: CostOnNodesSim, task: int, argument: int) -> int:
    """Do a task for a simulation; `argument` is a job, or a component."""
    if task == s.IS_BLOCKED:
        return int(is_blocked_of(jobs, sim, argument, sim.component_cpus))
    if task == s.PAYS:
        return int(pays_on_nodes(jobs, sim, argument))
    if task == s.ADD_COST:
        sim.rate_of_misfits += expected_rate(jobs, sim, argument)
    elif task == s.ON_COMPONENT:
        return int(begin_component(jobs, sim, argument))
    elif task == s.ON_START:
        return on_start(jobs, sim, argument)
    elif task == s.ON_RELEASE:
        on_release(jobs, sim, argument)
    return 0
