"""Slurm's two schedulers on a machine of nodes: a queue for each partition, and whole nodes.

The main scheduler goes through all waiting jobs. One without a placement blocks its partition: no
later job of it starts, nor any job on its nodes. A cycle of backfilling gives each job that it
tests the earliest placement by estimates, on nodes that no reservation of the cycle holds
meanwhile. It starts those whose placement is now, and has the others hold their nodes wholly, on
the grid of time. When cycles are due, `hpcgym.core.parts.slurm` says. Both leave out nodes that an
outage is known to take meanwhile; a job that such nodes alone could hold blocks nothing.

A walk along the instants to come moves a cursor (`hpcgym.core.kernels.nodes.timeline`): running
jobs release what they hold of nodes, reservations take whole nodes and return them.

Cost, with n waiting jobs of which t are tested: O(n) to list them, times the number of tiers;
O(nodes) for each start of the main scheduler, and for each partition of the component that is
blocked then; for each tested job O(nodes), and a step for each node that running jobs release and
reservations hold up to its own. While an outage is known, O(nodes) for each job passed over.

Source: Specification, section 16, "Slurm's backfilling".
"""

from typing import Annotated

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.compiler.struct import Column
from hpcgym.core.engine.moments import is_withheld
from hpcgym.core.kernels.nodes.nodes_pass import has_placement_on_free, list_by_tier, take_nodes
from hpcgym.core.kernels.nodes.placement import place_chunks
from hpcgym.core.kernels.nodes.replan import clear_plan
from hpcgym.core.kernels.nodes.rooms import component_of, partition_of, room_with, usable
from hpcgym.core.kernels.nodes.timeline import (
    PLAN,
    TRIAL,
    WINDOW,
    add_interval,
    begin_cursor,
    change_whole_node,
    leave_out_down,
    next_return,
    pass_others,
    pass_releases,
)
from hpcgym.core.kernels.passes.easy_dynamic import list_in_order
from hpcgym.core.kernels.types import ByteVector, IntVector, Jobs, Sim, empty
from hpcgym.core.parts import slurm
from hpcgym.core.parts.slurm import (
    SlurmSim,
    begin_cycle,
    grid_of,
    is_due,
    is_left_out,
    next_cycle,
    pass_by,
)

HEARS = slurm.HEARS | s.PASS_ON_NODES


class SlurmOnNodesSim(SlurmSim):
    """What partitions add to a simulation with cycles."""

    max_job_part: Annotated[float, Column("backfill_parameter", 7)]

    is_blocked: ByteVector = empty("partitions")  # 1 = the main scheduler is through with it
    some_wait: ByteVector = empty("components")  # 1 = a job has been passed over in this step
    tested_of: IntVector = empty("partitions")  # jobs of each partition that this cycle has tested


@kernel
def list_queue(jobs: Jobs, sim: Sim, contested: bool) -> int:
    """List all waiting jobs in `component_walk`, higher tiers first; return their number."""
    n = list_in_order(jobs, sim, contested)
    list_by_tier(jobs, sim, n, s.LIMIT_RANK)
    return n


# --- The main scheduler ---------------------------------------------------------------------------


@kernel
def place_unblocked(jobs: Jobs, sim: SlurmOnNodesSim, job: int) -> int:
    """Place a job on what is free of nodes in no blocked partition; return how many it takes.

    Return -1 if there is no placement. Writes `chosen_*` and the cursor `TRIAL`.
    """
    if not has_placement_on_free(jobs, sim, job):
        return -1
    shape, component = jobs.shape[job], component_of(jobs, job)
    begin_cursor(jobs, sim, TRIAL, shape)
    for partition in range(len(jobs.limit)):
        if sim.is_blocked[partition] == 0 or jobs.limit[partition, s.LIMIT_COMPONENT] != component:
            continue
        for node in range(len(jobs.capacity)):
            if jobs.member[partition, node] == 1:
                sim.cursor[TRIAL, s.CURSOR_TOTAL] -= usable(jobs, shape, sim.row[TRIAL, node])
                sim.row[TRIAL, node] = 0
    leave_out_down(jobs, sim, TRIAL, shape, sim.now + jobs.estimate[job])
    return place_chunks(jobs, sim, TRIAL, shape, jobs.chunks[job])


@kernel
def is_held_by_outages(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a job had no placement even on empty nodes, but for those that outages take.

    They are those that are down, or known to go down before its estimated end. Writes `chosen_*`
    and the row of the cursor `TRIAL`.
    """
    if sim.n_foreseen == 0:
        return False
    shape, total = jobs.shape[job], 0
    for node in range(len(jobs.capacity)):
        has = jobs.capacity[node]
        room = room_with(jobs, shape, node, has[s.CPUS], has[s.GPUS], has[s.MEMORY])
        sim.row[TRIAL, node] = 0 if sim.is_down[node] == 1 else room
        total += usable(jobs, shape, sim.row[TRIAL, node])
    sim.cursor[TRIAL, s.CURSOR_TOTAL] = total
    leave_out_down(jobs, sim, TRIAL, shape, sim.now + jobs.estimate[job])
    return place_chunks(jobs, sim, TRIAL, shape, jobs.chunks[job]) < 0


@kernel
def start_by_partition(jobs: Jobs, sim: SlurmOnNodesSim, n: int) -> bool:
    """Start, of n listed jobs, each with a placement whose partition no earlier job blocks.

    Return False if it stopped at the picked job.
    """
    sim.is_blocked[:] = 0
    sim.some_wait[:] = 0
    unblocked = len(jobs.limit)
    for position in range(n):
        if unblocked == 0:
            break
        job = sim.component_walk[position]
        partition, component = partition_of(jobs, job), component_of(jobs, job)
        if sim.is_blocked[partition] == 1:
            continue
        if is_withheld(jobs, sim, job):
            sim.some_wait[component] = 1
            continue
        placed = place_unblocked(jobs, sim, job)
        if placed < 0:
            sim.some_wait[component] = 1
            if not is_held_by_outages(jobs, sim, job):
                sim.is_blocked[partition] = 1
                unblocked -= 1
            continue
        take_nodes(jobs, sim, job, placed, sim.some_wait[component] == 1)
        if job == sim.pick:
            return False
    return True


# --- Cycles ---------------------------------------------------------------------------------------


@kernel
def change_whole(jobs: Jobs, sim: Sim, shape: int, number: int, sign: int) -> None:
    """Have the cursor take the whole nodes of a reservation (`sign` -1), or return them."""
    first = sim.plan_first[PLAN, number]
    for each in range(first, first + sim.plan_on[PLAN, number]):
        change_whole_node(jobs, sim, TRIAL, shape, sim.planned_node[PLAN, each], sign)


@kernel
def pass_changes(jobs: Jobs, sim: Sim, shape: int, position: int, until: int, sign: int) -> int:
    """Have the cursor take the nodes that go down up to an instant (`sign` -1), or come back.

    Those before `position` of the changes foreseen are passed; return where the others begin.
    """
    while position < sim.n_foreseen:
        row = sim.foreseen[position]
        if jobs.node_change[row, s.CHANGE_TIME] > until:
            break
        if jobs.node_change[row, s.CHANGE_SIGN] == sign:
            node = jobs.node_change[row, s.CHANGE_NODE]
            change_whole_node(jobs, sim, TRIAL, shape, node, sign)
        position += 1
    return position


@kernel
def look_at_window(jobs: Jobs, sim: Sim, shape: int, start: int, end: int) -> None:
    """Have the cursor, at `start`, leave out the nodes held or down at any second before `end`.

    Both instants are later than at the call before.
    """
    position = sim.cursor[TRIAL, s.CURSOR_START]
    while position < sim.n_reservations:
        number = sim.plan_by_start[PLAN, position]
        if sim.plan_start[PLAN, number] >= end:
            break
        change_whole(jobs, sim, shape, number, -1)
        position += 1
    sim.cursor[TRIAL, s.CURSOR_START] = position
    position = sim.cursor[TRIAL, s.CURSOR_END]
    while position < sim.n_reservations:
        number = sim.plan_by_end[PLAN, position]
        if sim.plan_end[PLAN, number] > start:
            break
        change_whole(jobs, sim, shape, number, 1)
        position += 1
    sim.cursor[TRIAL, s.CURSOR_END] = position
    if sim.n_foreseen > 0:
        last = max(end - 1, start)
        sim.cursor[WINDOW, s.CURSOR_OUTAGE] = pass_changes(
            jobs, sim, shape, sim.cursor[WINDOW, s.CURSOR_OUTAGE], last, -1
        )
        sim.cursor[TRIAL, s.CURSOR_OUTAGE] = pass_changes(
            jobs, sim, shape, sim.cursor[TRIAL, s.CURSOR_OUTAGE], start, 1
        )


@kernel
def find_earliest(jobs: Jobs, sim: Sim, job: int) -> tuple[int, int]:
    """Return the earliest instant that has a placement for a job, s, and how many nodes it takes.

    Writes `chosen_*` and the cursor `TRIAL`.
    """
    shape, component = jobs.shape[job], component_of(jobs, job)
    begin_cursor(jobs, sim, TRIAL, shape)
    sim.cursor[WINDOW, s.CURSOR_OUTAGE] = 0  # of nodes that go down; TRIAL's of those that return
    start = sim.now
    while True:
        look_at_window(jobs, sim, shape, start, start + jobs.estimate[job])
        n = place_chunks(jobs, sim, TRIAL, shape, jobs.chunks[job])
        # On an empty partition every job has a placement, so the search ends.
        if n > 0:
            return start, n
        if len(sim.due) > 1:
            pass_others(jobs, sim, TRIAL, component)
        start = next_return(jobs, sim, TRIAL, PLAN, component)
        pass_releases(jobs, sim, TRIAL, shape, component, start)


@kernel
def is_left_out_of(jobs: Jobs, sim: SlurmOnNodesSim, job: int) -> bool:
    """Tell whether a cycle leaves out a job; count one that it tests."""
    partition = partition_of(jobs, job)
    if sim.tested_of[partition] >= sim.max_job_part or is_left_out(jobs, sim, job):
        return True
    sim.tested_of[partition] += 1
    return False


@kernel
def begin_tests(jobs: Jobs, sim: SlurmOnNodesSim, n: int) -> int:
    """Forget what a cycle before has found, and keep those of n listed jobs that wait; count them.

    Writes `component_walk`, the plan, `some_wait`, `tested` and `tested_of`.
    """
    clear_plan(sim)
    sim.some_wait[:] = 0
    sim.tested_of[:] = 0
    waiting = 0
    for position in range(n):
        job = sim.component_walk[position]
        if sim.start_time[job] <= s.FIRST_ENTRY:
            sim.component_walk[waiting] = job
            waiting += 1
            if sim.max_job_user < float("inf"):
                sim.tested[jobs.user[job]] = 0
    return waiting


@kernel
def next_placeable(jobs: Jobs, sim: Sim, first: int, n: int) -> int:
    """Return the first place of the list from `first` on whose job has a placement now, else n."""
    while first < n and not has_placement_on_free(jobs, sim, sim.component_walk[first]):
        first += 1
    return first


@kernel
def make_cycle_on_nodes(jobs: Jobs, sim: SlurmOnNodesSim, n: int) -> None:
    """Test those of n listed jobs that wait: start those placed now, reserve for the others.

    Writes what `begin_tests` and `take_nodes` write.
    """
    n = begin_tests(jobs, sim, n)
    n_tested, hopeful = 0, 0
    for position in range(n):
        # Reservations end with the cycle, so behind the last job that may start none is needed.
        hopeful = next_placeable(jobs, sim, max(hopeful, position), n)
        if hopeful == n or n_tested >= sim.max_job_test:
            return
        job = sim.component_walk[position]
        component = component_of(jobs, job)
        if is_left_out_of(jobs, sim, job):
            sim.some_wait[component] = 1
            continue
        n_tested += 1
        start, placed = find_earliest(jobs, sim, job)
        if start == sim.now:
            take_nodes(jobs, sim, job, placed, sim.some_wait[component] == 1)
            continue
        sim.some_wait[component] = 1
        if start - sim.now <= 60 * sim.bf_window:
            begin, end = grid_of(jobs, sim, job, start)
            if begin < end:
                add_interval(sim, PLAN, job, begin, end, placed)


@kernel
def count_nodes_changed(jobs: Jobs, sim: SlurmOnNodesSim) -> None:
    """Count the nodes that have gone down or come back by now; write `nodes_changed`."""
    n = len(jobs.node_change)
    while sim.nodes_changed < n and jobs.node_change[sim.nodes_changed, s.CHANGE_TIME] <= sim.now:
        sim.nodes_changed += 1


@kernel
def slurm_pass_on_nodes(jobs: Jobs, sim: SlurmOnNodesSim, contested: bool) -> bool:
    """Start jobs by partition, then make a cycle if it is due; return False if a pick ended it."""
    count_nodes_changed(jobs, sim)
    pass_by(sim)
    n = list_queue(jobs, sim, contested)
    if not start_by_partition(jobs, sim, n):
        return False
    if is_due(sim):
        begin_cycle(sim)
        make_cycle_on_nodes(jobs, sim, n)
    return True


def work(jobs: Jobs, sim: SlurmOnNodesSim, task: int, argument: int) -> int:
    """Do a task for a simulation; `argument` says of a pass what it goes by."""
    if task == s.NEXT_INSTANT:
        sim.due[:] = 1  # a pass is about all components
        if sim.n_passes > 0:  # at first no instant is over
            count_nodes_changed(jobs, sim)
        return next_cycle(sim)
    if task == s.MAKE_PASS:
        return int(slurm_pass_on_nodes(jobs, sim, argument == 1))
    return 0
