"""Outages on a machine of nodes: nodes that give nothing for a time, announced or not.

Where a node goes down, the jobs that have a chunk on it are taken off the machine, and wait again
or are lost, as `hpcgym.core.parts.outages` has it. Passes look ahead by `Sim.foreseen`, which lists
when nodes go down and come back by all outages that are known and to come
(`hpcgym.core.kernels.nodes.timeline`). It changes at the instants of outages only.

Cost: O(beginnings and ends of nodes' outages) for an instant of an outage; for each job taken off
O(nodes of the running jobs).

Source: Specification, section 15, "Outages of nodes".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import end_guarantee, is_guaranteed, take_back
from hpcgym.core.kernels.nodes.rooms import add_node, clear_nodes
from hpcgym.core.kernels.types import Counter, Jobs, Sim
from hpcgym.core.parts.outages import begin, take_off

HEARS = 0

REQUEUES = True
"""Jobs may have several attempts, so that a simulation keeps what is known of each job's."""


class NodeOutageSim(Sim):
    """What outages of nodes add to a simulation."""

    next_node_change: Counter  # when one is announced, begins or ends next, s; 0 before all


@kernel
def count_down(jobs: Jobs, sim: Sim) -> int:
    """Write by how many outages each node is down; return how many changes are not to come."""
    sim.down_by[:] = 0
    row = 0
    while row < len(jobs.node_change) and jobs.node_change[row, s.CHANGE_TIME] <= sim.now:
        node = jobs.node_change[row, s.CHANGE_NODE]
        sim.down_by[node] -= jobs.node_change[row, s.CHANGE_SIGN]
        row += 1
    return row


@kernel
def goes_down(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a job has a chunk on a node that goes down now."""
    first = jobs.placed_first[job]
    for each in range(first, first + sim.placed_on[job]):
        node = sim.placed_node[each]
        if sim.down_by[node] > 0 and sim.is_down[node] == 0:
            return True
    return False


@kernel
def take_off_nodes(jobs: Jobs, sim: Sim) -> None:
    """Take the jobs on nodes that go down off the machine: trials, then others.

    Among both the latest start goes first. A trial that ends so does not count as one in vain.
    """
    for position in range(sim.n_trials - 1, -1, -1):
        job = sim.job_on_trial[position]
        if goes_down(jobs, sim, job):
            if is_guaranteed(sim, job):
                end_guarantee(jobs, sim, job)
            take_back(jobs, sim, job, s.NODE_DOWN)
    while True:
        last = -1
        for position in range(sim.n_running):
            job = sim.ending_job[position]
            is_later = last < 0 or (sim.start_time[job], job) > (sim.start_time[last], last)
            if is_later and goes_down(jobs, sim, job):
                last = job
        if last < 0:
            return
        take_off(jobs, sim, last)


@kernel
def change_nodes(jobs: Jobs, sim: Sim) -> None:
    """Take nodes that go down out of the machine, and give back those that are up again."""
    for node in range(len(sim.is_down)):  # none where all outages were over at time 0
        is_down = int(sim.down_by[node] > 0)
        if is_down != sim.is_down[node]:
            sign = -1 if is_down == 1 else 1
            sim.is_down[node] = is_down
            add_node(jobs, sim, node, sign)
            sim.free += sign * jobs.capacity[node, s.CPUS]
            sim.busy -= sign * jobs.capacity[node, s.CPUS]


@kernel
def foresee(jobs: Jobs, sim: Sim, first: int) -> None:
    """List the changes of nodes to come, from row `first` on, by the outages that are known."""
    sim.n_foreseen = 0
    for row in range(first, len(jobs.node_change)):
        if jobs.node_change[row, s.CHANGE_ANNOUNCED] > sim.now:
            continue
        node, sign = jobs.node_change[row, s.CHANGE_NODE], jobs.node_change[row, s.CHANGE_SIGN]
        before = sim.down_by[node]
        sim.down_by[node] = before - sign
        if (before > 0) != (before - sign > 0):
            sim.foreseen[sim.n_foreseen] = row
            sim.n_foreseen += 1


@kernel
def mark_changed(jobs: Jobs, sim: NodeOutageSim) -> int:
    """Mark the components of nodes of outages announced, begun or ended now; write `due`.

    Return 1 if there are any. Writes `next_node_change`.
    """
    is_due = 0
    sim.next_node_change = s.NEVER
    for row in range(len(jobs.node_change)):
        for column in (s.CHANGE_TIME, s.CHANGE_ANNOUNCED):
            instant = jobs.node_change[row, column]
            if instant > sim.now:
                sim.next_node_change = min(sim.next_node_change, instant)
            elif instant == sim.now:
                is_due = 1
                for partition in range(len(jobs.limit)):
                    if jobs.member[partition, jobs.node_change[row, s.CHANGE_NODE]] == 1:
                        sim.due[jobs.limit[partition, s.LIMIT_COMPONENT]] = 1
    return is_due


@kernel
def on_instant(jobs: Jobs, sim: NodeOutageSim) -> int:
    """Announce, begin and end outages; tell whether a pass is due."""
    if sim.next_node_change > sim.now:
        return 0  # another event happens
    if sim.nodes_ready == 0:
        clear_nodes(jobs, sim)
    if sim.now == 0:
        begin(jobs, sim)
    first = count_down(jobs, sim)
    take_off_nodes(jobs, sim)
    change_nodes(jobs, sim)
    foresee(jobs, sim, first)
    sim.checked_head = -1
    return mark_changed(jobs, sim)


def work(jobs: Jobs, sim: NodeOutageSim, task: int, argument: int) -> int:
    """Do a task; no task is about a job."""
    if task == s.NEXT_INSTANT:
        return int(sim.next_node_change)
    if task == s.ON_INSTANT:
        return on_instant(jobs, sim)
    return 0
