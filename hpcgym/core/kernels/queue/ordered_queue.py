"""A queue of waiting jobs in ascending order of (key, index), as a B+ tree of fixed depth.

A list of groups holds blocks of jobs; `hpcgym.core.kernels.queue.btree` has the nodes and their
bounds. Finding a place takes three binary searches: the group, its block, and the place in the
block. Inserting or removing a job costs O(log n + NODE_CHILDREN) for n jobs. Once in hundreds of
times it also shifts the list of groups, some n / 700 entries. A search for jobs that may start
skips every group and block whose bounds rule out all of its jobs.

Arguments: `at` is a place in the list of groups, `position` one in a group, `spot` one in a block.

Source: Specification, section 1, "Queue order".
"""

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import BASE_ORDER, NODE_CHILDREN
from hpcgym.core.kernels.queue.btree import (
    free_node,
    insert_child,
    lower_bounds,
    make_node,
    move_children,
    raise_processors_of_block,
    raise_processors_of_group,
    remove_child,
    split_block,
    split_group,
    take_bounds,
)
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.queue.summary import add_job, drop_job, forget
from hpcgym.core.kernels.types import Jobs, Sim


@kernel(inlined=True)
def clear_queue(sim: Sim, which: int) -> None:
    """Empty a queue in O(1), leaving its nodes as they are.

    Writes `n_groups`, `n_nodes` and `spare_node`.
    """
    sim.n_groups[which] = 0
    # Of two queues, queue q uses nodes q, q + 2, and so on.
    sim.n_nodes[which] = which
    sim.spare_node[which] = -1


@kernel(inlined=True)
def precedes(sim: Sim, which: int, job: int, other: int) -> bool:
    """Tell whether a waiting job is before another in an order: by key, then by index."""
    key = sim.key[which, entry_of(sim, job)]
    other_key = sim.key[which, entry_of(sim, other)]
    return key < other_key or (key == other_key and job < other)


@kernel(inlined=True)
def first_of_group(sim: Sim, group: int) -> int:
    """Return the first job of a group."""
    return sim.node_child[sim.node_child[group, 0], 0]


@kernel(inlined=True)
def first_job(sim: Sim, which: int) -> int:
    """Return the first job of a queue, -1 if it is empty."""
    if sim.n_groups[which] == 0:
        return -1
    return first_of_group(sim, sim.group_order[which, 0])


@kernel(inlined=True)
def some_job_fits(sim: Sim) -> bool:
    """Tell whether a waiting job requests no more processors than are free."""
    # The bounds of groups are exact. With a long queue one of the first says yes, if any does.
    for at in range(sim.n_groups[BASE_ORDER]):
        if sim.node_processors[sim.group_order[BASE_ORDER, at]] <= sim.free:
            return True
    return False


@kernel(inlined=True)
def find_group(sim: Sim, which: int, job: int) -> int:
    """Return the place in the list of the group that holds, or should hold, a job."""
    # The last group whose first job is not after the job; the first group if there is none.
    low = 0
    high = sim.n_groups[which]
    while high - low > 1:
        middle = (low + high) // 2
        if precedes(sim, which, job, first_of_group(sim, sim.group_order[which, middle])):
            high = middle
        else:
            low = middle
    return low


@kernel(inlined=True)
def find_block(sim: Sim, which: int, group: int, job: int) -> int:
    """Return the place in a group of the block that holds, or should hold, a job."""
    low = 0
    high = sim.node_size[group]
    while high - low > 1:
        middle = (low + high) // 2
        block = sim.node_child[group, middle]
        if precedes(sim, which, job, sim.node_child[block, 0]):
            high = middle
        else:
            low = middle
    return low


@kernel(inlined=True)
def find_place(sim: Sim, which: int, block: int, job: int) -> int:
    """Return how many jobs of a block precede a job to be inserted."""
    low = 0
    high = sim.node_size[block]
    # Most newcomers of most orders go last.
    if high > 0 and precedes(sim, which, sim.node_child[block, high - 1], job):
        return high
    while low < high:
        middle = (low + high) // 2
        if precedes(sim, which, sim.node_child[block, middle], job):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def insert_group(sim: Sim, which: int, at: int) -> int:
    """Insert an empty group behind the first `at` groups of the list, and return it."""
    for other in range(sim.n_groups[which], at, -1):
        sim.group_order[which, other] = sim.group_order[which, other - 1]
    group = make_node(sim, which)
    sim.group_order[which, at] = group
    sim.n_groups[which] += 1
    return group


@kernel
def remove_group(sim: Sim, which: int, at: int) -> None:
    """Remove the group behind the first `at` groups of the list; it has no blocks."""
    free_node(sim, which, sim.group_order[which, at])
    sim.n_groups[which] -= 1
    for other in range(at, sim.n_groups[which]):
        sim.group_order[which, other] = sim.group_order[which, other + 1]


@kernel
def make_room(
    jobs: Jobs, sim: Sim, which: int, at: int, position: int, job: int
) -> tuple[int, int]:
    """Add a block behind the full one that a job belongs in; split a full group first.

    Return (`at`, `position`) of the block that the job belongs in now.
    """
    group = sim.group_order[which, at]
    if sim.node_size[group] == NODE_CHILDREN:
        later = insert_group(sim, which, at + 1)
        split_group(sim, group, later)
        if position >= sim.node_size[group]:
            position -= sim.node_size[group]
            at += 1
            group = later
    block = sim.node_child[group, position]
    follower = make_node(sim, which)
    insert_child(sim, group, position + 1, follower)
    # A queue that grows at its end keeps full blocks: the new last block starts empty.
    is_last = at + 1 == sim.n_groups[which] and position + 2 == sim.node_size[group]
    if is_last and precedes(sim, which, sim.node_child[block, NODE_CHILDREN - 1], job):
        return at, position + 1
    split_block(jobs, sim, block, follower)
    if precedes(sim, which, job, sim.node_child[follower, 0]):
        return at, position
    return at, position + 1


@kernel
def put_in(jobs: Jobs, sim: Sim, which: int, job: int) -> None:
    """Insert a job, its key set, into a queue without it."""
    if sim.n_groups[which] == 0:
        insert_child(sim, insert_group(sim, which, 0), 0, make_node(sim, which))
    at = find_group(sim, which, job)
    position = find_block(sim, which, sim.group_order[which, at], job)
    block = sim.node_child[sim.group_order[which, at], position]
    if sim.node_size[block] == NODE_CHILDREN:
        at, position = make_room(jobs, sim, which, at, position, job)
        block = sim.node_child[sim.group_order[which, at], position]
    insert_child(sim, block, find_place(sim, which, block, job), job)
    lower_bounds(jobs, sim, block, job)
    lower_bounds(jobs, sim, sim.group_order[which, at], job)
    if sim.keeps_summary == 1:
        add_job(jobs, sim, block, sim.group_order[which, at], job)


@kernel(inlined=True)
def are_nearly_empty(sim: Sim, node: int, other: int) -> bool:
    """Tell whether two neighbouring nodes are to be merged."""
    # Half a node at most: a merged node is not split again at once.
    return sim.node_size[node] + sim.node_size[other] <= NODE_CHILDREN // 2


@kernel
def merge_blocks(sim: Sim, which: int, group: int, position: int) -> None:
    """Move the jobs of the block at `position` + 1 to the end of the one before; free the node."""
    block = sim.node_child[group, position]
    following = sim.node_child[group, position + 1]
    move_children(sim, following, 0, block)
    take_bounds(sim, block, following)
    if sim.keeps_summary == 1:
        forget(sim, block)
    remove_child(sim, group, position + 1)
    free_node(sim, which, following)


@kernel
def merge_groups(sim: Sim, which: int, at: int) -> None:
    """Move the blocks of the group at `at` + 1 to the end of the one before, and free the node."""
    group = sim.group_order[which, at]
    following = sim.group_order[which, at + 1]
    move_children(sim, following, 0, group)
    take_bounds(sim, group, following)
    if sim.keeps_summary == 1:
        forget(sim, group)
    remove_group(sim, which, at + 1)


@kernel
def tidy_up(sim: Sim, which: int, at: int, position: int) -> None:
    """Free an empty block, or merge a nearly empty one with a neighbour; then its group."""
    group = sim.group_order[which, at]
    block = sim.node_child[group, position]
    last = sim.node_size[group] - 1
    if sim.node_size[block] == 0:
        remove_child(sim, group, position)
        free_node(sim, which, block)
    elif position < last and are_nearly_empty(sim, block, sim.node_child[group, position + 1]):
        merge_blocks(sim, which, group, position)
    elif position > 0 and are_nearly_empty(sim, block, sim.node_child[group, position - 1]):
        merge_blocks(sim, which, group, position - 1)
    else:
        return
    last = sim.n_groups[which] - 1
    if sim.node_size[group] == 0:
        remove_group(sim, which, at)
    elif at < last and are_nearly_empty(sim, group, sim.group_order[which, at + 1]):
        merge_groups(sim, which, at)
    elif at > 0 and are_nearly_empty(sim, group, sim.group_order[which, at - 1]):
        merge_groups(sim, which, at - 1)


@kernel
def take_out(jobs: Jobs, sim: Sim, which: int, job: int) -> None:
    """Remove a job from a queue that holds it, its key as it was when inserted."""
    at = find_group(sim, which, job)
    group = sim.group_order[which, at]
    position = find_block(sim, which, group, job)
    block = sim.node_child[group, position]
    spot = 0
    while sim.node_child[block, spot] != job:
        spot += 1
    remove_child(sim, block, spot)
    if sim.keeps_summary == 1:
        drop_job(jobs, sim, block, group, job)
    # Processor bounds are exact; estimate bounds may stay too low until a search raises them.
    if jobs.processors[job] == sim.node_processors[block]:
        raise_processors_of_block(jobs, sim, block)
        if jobs.processors[job] == sim.node_processors[group]:
            raise_processors_of_group(sim, group)
    if sim.node_size[block] <= NODE_CHILDREN // 2:
        tidy_up(sim, which, at, position)


@kernel
def list_first(sim: Sim, which: int, listed: NDArray[np.int64], most: int) -> int:
    """List the first jobs of a queue, `most` of them or all, and return their number."""
    n = 0
    for at in range(sim.n_groups[which]):
        group = sim.group_order[which, at]
        for position in range(sim.node_size[group]):
            block = sim.node_child[group, position]
            for spot in range(min(sim.node_size[block], most - n)):
                listed[n] = sim.node_child[block, spot]
                n += 1
            if n == most:
                return n
    return n


@kernel
def list_jobs(sim: Sim, which: int, listed: NDArray[np.int64]) -> int:
    """List the jobs of a queue in order in `listed`, and return their number."""
    n = 0
    for at in range(sim.n_groups[which]):
        group = sim.group_order[which, at]
        for position in range(sim.node_size[group]):
            block = sim.node_child[group, position]
            for spot in range(sim.node_size[block]):
                listed[n] = sim.node_child[block, spot]
                n += 1
    return n
