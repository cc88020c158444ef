"""What waits in each node of the base queue, so that an observation looks at few of many jobs.

A node's summary has its most processors, its oldest job, its least and its largest area. It is
exact, or not known. A job that enters is added to it. One that leaves and had one of the four makes
it unknown, as do splits and merges. It is computed again where an observation asks for it. So the
queue keeps summaries in O(1), and an observation pays a node's children for each that a job left.

Summaries and the links by age are begun when a long queue is observed, and given up when it is
short again. Other simulations pay one comparison wherever the queue changes.
"""

import numpy as np

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import BASE_ORDER
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.observation_fields import JobField

# Columns of `Sim.node_extreme` and of `Sim.node_area`.
WIDEST, OLDEST = 0, 1
LEAST, LARGEST = 0, 1

UNKNOWN = -1  # most processors of a node whose summary is not known
NO_JOB = 2**31 - 1  # oldest job of no jobs


@kernel(inlined=True)
def forget(sim: Sim, node: int) -> None:
    """Mark the summary of a node as not known."""
    sim.node_extreme[node, WIDEST] = UNKNOWN


@kernel(inlined=True)
def is_known(sim: Sim, node: int) -> bool:
    """Tell whether the summary of a node is exact."""
    return sim.node_extreme[node, WIDEST] != UNKNOWN


@kernel
def forget_all(sim: Sim) -> None:
    """Mark the summaries of all nodes of the base queue as not known."""
    for at in range(sim.n_groups[BASE_ORDER]):
        group = sim.group_order[BASE_ORDER, at]
        forget(sim, group)
        for position in range(sim.node_size[group]):
            forget(sim, sim.node_child[group, position])


@kernel(inlined=True)
def begin_summary(sim: Sim, node: int) -> None:
    """Write the summary of no jobs."""
    sim.node_extreme[node, WIDEST] = 0
    sim.node_extreme[node, OLDEST] = NO_JOB
    sim.node_area[node, LEAST] = 1.0
    sim.node_area[node, LARGEST] = 0.0


@kernel(inlined=True)
def include(sim: Sim, node: int, widest: int, oldest: int, least: float, largest: float) -> None:
    """Include jobs, given by a summary, in that of a node."""
    sim.node_extreme[node, WIDEST] = max(sim.node_extreme[node, WIDEST], widest)
    sim.node_extreme[node, OLDEST] = min(sim.node_extreme[node, OLDEST], oldest)
    sim.node_area[node, LEAST] = min(sim.node_area[node, LEAST], least)
    sim.node_area[node, LARGEST] = max(sim.node_area[node, LARGEST], largest)


@kernel(inlined=True)
def include_job(jobs: Jobs, sim: Sim, node: int, job: int) -> None:
    """Include a job in the summary of a node."""
    area = jobs.field[job, JobField.LOG_AREA]
    include(sim, node, jobs.processors[job], job, area, area)


@kernel
def add_job(jobs: Jobs, sim: Sim, block: int, group: int, job: int) -> None:
    """Include a job that enters a block in the summaries that are known of it and its group."""
    for node in (block, group):
        if is_known(sim, node):
            include_job(jobs, sim, node, job)


@kernel
def drop_job(jobs: Jobs, sim: Sim, block: int, group: int, job: int) -> None:
    """Forget the summaries that have a number of a job that leaves: its block's, its group's."""
    area = jobs.field[job, JobField.LOG_AREA]
    for node in (block, group):
        if (
            job == sim.node_extreme[node, OLDEST]
            or jobs.processors[job] == sim.node_extreme[node, WIDEST]
            or area == sim.node_area[node, LEAST]
            or area == sim.node_area[node, LARGEST]
        ):
            forget(sim, node)


@kernel
def know_block(jobs: Jobs, sim: Sim, block: int) -> None:
    """Make the summary of a block exact."""
    if is_known(sim, block):
        return
    begin_summary(sim, block)
    for spot in range(sim.node_size[block]):
        include_job(jobs, sim, block, sim.node_child[block, spot])


@kernel
def know_group(jobs: Jobs, sim: Sim, group: int) -> None:
    """Make the summary of a group exact, and then those of its blocks."""
    if is_known(sim, group):
        return
    begin_summary(sim, group)
    for position in range(sim.node_size[group]):
        block = sim.node_child[group, position]
        know_block(jobs, sim, block)
        widest, oldest = sim.node_extreme[block, WIDEST], sim.node_extreme[block, OLDEST]
        least, largest = sim.node_area[block, LEAST], sim.node_area[block, LARGEST]
        include(sim, group, widest, oldest, least, largest)


@kernel
def first_wider(jobs: Jobs, sim: Sim, free: int) -> int:
    """Return the first job in base order that requests more than `free` processors, -1 if none.

    Costs a step for each group before it, and for each child of two nodes. Writes summaries.
    """
    for at in range(sim.n_groups[BASE_ORDER]):
        group = sim.group_order[BASE_ORDER, at]
        know_group(jobs, sim, group)
        if sim.node_extreme[group, WIDEST] <= free:
            continue
        for position in range(sim.node_size[group]):
            block = sim.node_child[group, position]
            know_block(jobs, sim, block)
            if sim.node_extreme[block, WIDEST] <= free:
                continue
            for spot in range(sim.node_size[block]):
                if jobs.processors[sim.node_child[block, spot]] > free:
                    return sim.node_child[block, spot]
    return -1


@kernel(inlined=True)
def is_wider(sim: Sim, node: int, least: np.float32, largest: np.float32) -> bool:
    """Tell whether a node may have jobs with areas below `least` or above `largest`."""
    return sim.node_area[node, LEAST] < least or sim.node_area[node, LARGEST] > largest


@kernel
def range_in_group(
    jobs: Jobs,
    sim: Sim,
    group: int,
    skipped: int,
    youngest: int,
    least: np.float32,
    largest: np.float32,
) -> tuple[int, np.float32, np.float32]:
    """Widen a range of areas by the jobs of a group, as `range_of_areas` does.

    Return how many jobs are still to be skipped, and the range. Writes summaries.
    """
    for position in range(sim.node_size[group]):
        block = sim.node_child[group, position]
        know_block(jobs, sim, block)
        if is_wider(sim, block, least, largest):
            if skipped == 0 and sim.node_extreme[block, OLDEST] > youngest:
                least = min(least, sim.node_area[block, LEAST])
                largest = max(largest, sim.node_area[block, LARGEST])
                continue
            for spot in range(skipped, sim.node_size[block]):
                job = sim.node_child[block, spot]
                if job > youngest:
                    least = min(least, jobs.field[job, JobField.LOG_AREA])
                    largest = max(largest, jobs.field[job, JobField.LOG_AREA])
        skipped = max(skipped - sim.node_size[block], 0)
    return skipped, least, largest


@kernel
def range_of_areas(
    jobs: Jobs, sim: Sim, skipped: int, youngest: int
) -> tuple[np.float32, np.float32]:
    """Return least and largest `LOG_AREA` of the jobs behind the first ones and after `youngest`.

    They are behind the first `skipped` jobs in base order, and were submitted after job `youngest`.
    Costs two steps for each group, and looks into those that may widen what the others have. Writes
    summaries.
    """
    least, largest = np.float32(1.0), np.float32(0.0)
    first = 0
    while skipped > 0:
        group = sim.group_order[BASE_ORDER, first]
        skipped, least, largest = range_in_group(
            jobs, sim, group, skipped, youngest, least, largest
        )
        first += 1
    for at in range(first, sim.n_groups[BASE_ORDER]):
        group = sim.group_order[BASE_ORDER, at]
        know_group(jobs, sim, group)
        if sim.node_extreme[group, OLDEST] > youngest:
            least = min(least, sim.node_area[group, LEAST])
            largest = max(largest, sim.node_area[group, LARGEST])
    # The groups above have nothing wider now. The others have jobs that do not count.
    for at in range(first, sim.n_groups[BASE_ORDER]):
        group = sim.group_order[BASE_ORDER, at]
        if is_wider(sim, group, least, largest):
            _, least, largest = range_in_group(jobs, sim, group, 0, youngest, least, largest)
    return least, largest
