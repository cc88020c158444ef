"""Trials on a machine of nodes: what its passes ask, and young jobs that give way by node.

The pass of a component is EASY's (`hpcgym.core.kernels.nodes.nodes_pass`), which takes the nodes of
trials for free. What it asks about a cap and costs, `hpcgym.core.parts.cost_on_nodes` answers. What
follows it is in `hpcgym.core.parts.trials`, but for the last step: young jobs of a component give
way to candidates of their own. It has these parts:

1. All that young jobs hold is taken for idle. Who has no placement then has none with fewer.
2. For one who has, the young jobs are taken back one after the other until it has a placement.
3. Of these give way, node by node, those that hold what it needs there.

Cost: O(running jobs) for a component with a pass; for each candidate a comparison, and for one that
young jobs may give way to O(their nodes), and a placement for each that is taken back.

Source: Specification, section 15, "Trials on nodes" and "Young jobs on nodes".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import is_guaranteed, is_on_trial, put_on_trial
from hpcgym.core.kernels.nodes.nodes_pass import has_placement_on_free
from hpcgym.core.kernels.nodes.rooms import component_of, occupy
from hpcgym.core.kernels.nodes.timeline import place_before_outages
from hpcgym.core.kernels.nodes.trials import change_held, is_placed_on, show_idle
from hpcgym.core.kernels.queue.entries import is_overdue
from hpcgym.core.kernels.queue.ordered_queue import list_jobs
from hpcgym.core.kernels.queue.selection import take_first
from hpcgym.core.kernels.types import Counter, Jobs
from hpcgym.core.parts import cost_on_nodes, trials
from hpcgym.core.parts.candidates import list_candidates
from hpcgym.core.parts.cost_on_nodes import CostOnNodesSim
from hpcgym.core.parts.trials import TrialSim, give_way, postpone
from hpcgym.core.parts.young_jobs import list_victims

HEARS = trials.HEARS

REQUEUES = True
"""Jobs may have several attempts, so that a simulation keeps what is known of each job's."""

do_trials, do_costs = kernel(inlined=True)(trials.work), kernel(cost_on_nodes.work)


class TrialsOnNodesSim(TrialSim, CostOnNodesSim):
    """What trials and a cap add to a simulation on nodes."""

    n_young: Counter  # jobs of the component at hand that may give way, in `victim_job`


@kernel
def some_are_overdue(jobs: Jobs, sim: TrialsOnNodesSim, component: int) -> bool:
    """Tell whether a job of a component is overdue that waits off trial; writes `scratch`."""
    if sim.n_overdue == 0:
        return False
    for position in range(list_jobs(sim, s.BASE_ORDER, sim.scratch)):
        job = sim.scratch[position]
        if (
            is_overdue(sim, job)
            and not is_on_trial(sim, job)
            and component_of(jobs, job) == component
        ):
            return True
    return False


@kernel
def cpus_of(jobs: Jobs, component: int) -> int:
    """Return the cpus of a component's nodes."""
    partition = 0
    while jobs.limit[partition, s.LIMIT_COMPONENT] != component:
        partition += 1
    return int(jobs.limit[partition, s.LIMIT_CPUS])


@kernel
def count_guaranteed(jobs: Jobs, sim: TrialsOnNodesSim, component: int) -> int:
    """Count the cpus of a component's guaranteed trials."""
    cpus = 0
    for position in range(sim.n_trials):
        job = sim.job_on_trial[position]
        if is_guaranteed(sim, job) and component_of(jobs, job) == component:
            cpus += jobs.processors[job]
    return cpus


@kernel
def show_young(jobs: Jobs, sim: TrialsOnNodesSim, n: int, sign: int) -> None:
    """Take what the first n young jobs hold for idle, or, where `sign` is -1, no more."""
    for position in range(n):
        change_held(jobs, sim, sim.victim_job[position], sign)
    if sign > 0:
        sim.n_vacated += 1  # a shape without a placement there may have one now


@kernel
def place_idle(jobs: Jobs, sim: TrialsOnNodesSim, job: int) -> int:
    """Place a job on what idles until trials that begin now are over; return -1 if it cannot be.

    Writes `chosen_*`.
    """
    if not has_placement_on_free(jobs, sim, job):
        return -1
    return place_before_outages(jobs, sim, job, sim.idle_until)


@kernel
def place_among_young(jobs: Jobs, sim: TrialsOnNodesSim, job: int) -> None:
    """Place a job once as few young jobs as need be are taken back; write its nodes, not theirs.

    Where some must give way, `free_on` is below 0 then.
    """
    show_young(jobs, sim, sim.n_young, -1)
    n = 0
    placed = place_idle(jobs, sim, job)
    while placed < 0:
        change_held(jobs, sim, sim.victim_job[n], 1)
        sim.n_vacated += 1
        n += 1
        placed = place_idle(jobs, sim, job)
    occupy(jobs, sim, job, placed)
    show_young(jobs, sim, n, -1)


@kernel
def have_first_give_way(jobs: Jobs, sim: TrialsOnNodesSim, node: int) -> None:
    """Have the first young job with a chunk on a node give way; write the list of the others."""
    position = 0
    while not is_placed_on(jobs, sim, sim.victim_job[position], node):
        position += 1
    job = sim.victim_job[position]
    sim.n_young -= 1
    for later in range(position, sim.n_young):
        sim.victim_job[later] = sim.victim_job[later + 1]
    give_way(jobs, sim, job)


@kernel(inlined=True)
def is_short(sim: TrialsOnNodesSim, node: int) -> bool:
    """Tell whether more of a node is taken than idles."""
    free = sim.free_on[node]
    return bool(min(free[s.CPUS], free[s.GPUS], free[s.MEMORY]) < 0)


@kernel
def guarantee_trial(jobs: Jobs, sim: TrialsOnNodesSim, job: int) -> None:
    """Put a job that has a placement among young jobs on a guaranteed trial; some give way."""
    place_among_young(jobs, sim, job)
    n_young = sim.n_young
    first = jobs.placed_first[job]
    for each in range(first, first + sim.placed_on[job]):
        while is_short(sim, sim.placed_node[each]):
            have_first_give_way(jobs, sim, sim.placed_node[each])
    since = sim.now + int(sim.overhead)
    if sim.n_young < n_young:
        since += int(sim.overhead)
    put_on_trial(jobs, sim, job, since, since + int(sim.guarantee), True)
    show_young(jobs, sim, sim.n_young, 1)


@kernel
def make_way(jobs: Jobs, sim: TrialsOnNodesSim, component: int) -> None:
    """Have young jobs of a component give way to jobs of its own that were never tried."""
    if some_are_overdue(jobs, sim, component):
        return
    machine = cpus_of(jobs, component)
    most = int(sim.share * machine)
    left = most - count_guaranteed(jobs, sim, component)
    n = list_candidates(jobs, sim, left, True) if left > 0 else 0
    if n == 0:
        return
    show_idle(jobs, sim, sim.now + int(sim.overhead) + int(sim.guarantee))
    sim.n_young = list_victims(jobs, sim, component, machine)
    show_young(jobs, sim, sim.n_young, 1)
    for taken in range(n):
        job = take_first(sim, s.PASS_ORDER, n - taken, taken)
        if (
            component_of(jobs, job) == component
            and jobs.processors[job] <= left
            and place_idle(jobs, sim, job) > 0
        ):
            guarantee_trial(jobs, sim, job)
            left -= jobs.processors[job]
    show_young(jobs, sim, sim.n_young, -1)
    show_idle(jobs, sim, 0)
    sim.due[component] = 0  # who gave way has no pass of its own


@kernel
def after_pass(jobs: Jobs, sim: TrialsOnNodesSim) -> None:
    """Make the last step of an instant in each component that has had a pass."""
    for component in range(len(sim.due)):
        if sim.passed_at[component] == sim.n_passes:
            make_way(jobs, sim, component)


def work(jobs: Jobs, sim: TrialsOnNodesSim, task: int, argument: int) -> int:
    """Do a task for a simulation; `argument` is a job, a component, or what a pass goes by."""
    if task in (s.IS_BLOCKED, s.PAYS, s.ADD_COST, s.ON_COMPONENT):
        return do_costs(jobs, sim, task, argument)
    if task == s.POSTPONE:
        postpone(jobs, sim, argument)
        return 0
    answer = do_trials(jobs, sim, task, argument)
    if task == s.AFTER_PASS and sim.young > 0.0 and sim.n_waiting > 0:
        after_pass(jobs, sim)
    return answer
