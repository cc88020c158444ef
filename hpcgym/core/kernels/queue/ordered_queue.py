"""A queue kept in order: groups of blocks of jobs, each with bounds on what its jobs ask for.

Jobs stand in ascending order of (key, index): a B+ tree of two levels of nodes
(`hpcgym.core.kernels.queue.btree`) under a list of groups. A job is put in or taken out in
O(log n + NODE_CHILDREN) steps, plus a shift of the list of groups, some n / 700 entries, once in
hundreds of times. A search for jobs that may start skips every group and every block whose bounds
rule all of its jobs out.
"""

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.jit import kernel
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
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import N_GROUPS, N_NODES, NEVER, NODE_CHILDREN, SPARE


@kernel(inlined=True)
def clear_queue(sim: Sim, which: int) -> None:
    """Take every job out, in constant time.

    Args:
        row: The simulation.
        which: The queue.

    Writes:
        `queue_used`.

    Source:
        House rule: what was in use is found again as it is needed.
    """
    sim.queue_used[which, N_GROUPS] = 0
    sim.queue_used[which, N_NODES] = which
    sim.queue_used[which, SPARE] = -1


@kernel(inlined=True)
def precedes(sim: Sim, which: int, job: int, other: int) -> bool:
    """Tell whether a job stands before another in the queue's order.

    Args:
        row: The simulation.
        which: The queue whose keys decide.
        job: Index of a job.
        other: Index of another job.

    Returns:
        True if (key, index) of `job` is the smaller.

    Source:
        Specification, section 1, "Queue order": ties by (submit, position).
    """
    key = sim.key[which, entry_of(sim, job)]
    other_key = sim.key[which, entry_of(sim, other)]
    return key < other_key or (key == other_key and job < other)


@kernel(inlined=True)
def first_of_group(sim: Sim, group: int) -> int:
    """Return the first job of a group.

    Args:
        row: The simulation.
        group: The group.

    Returns:
        Its index.

    Source:
        House rule: one word per thing.
    """
    return sim.node_child[sim.node_child[group, 0], 0]


@kernel(inlined=True)
def first_job(sim: Sim, which: int) -> int:
    """Return the first job of a queue.

    Args:
        row: The simulation.
        which: The queue.

    Returns:
        Its index, -1 if the queue is empty.

    Source:
        House rule: one word per thing.
    """
    if sim.queue_used[which, N_GROUPS] == 0:
        return -1
    return first_of_group(sim, sim.group_order[which, 0])


@kernel(inlined=True)
def least_processors(sim: Sim, which: int) -> int:
    """Return the smallest request in a queue, in as many steps as it has groups.

    Args:
        row: The simulation.
        which: The queue.

    Returns:
        Processors, `NEVER` if the queue is empty.

    Source:
        House rule: a pass is needed only if some job fits.
    """
    least = NEVER
    for at in range(sim.queue_used[which, N_GROUPS]):
        least = min(least, sim.node_processors[sim.group_order[which, at]])
    return least


@kernel(inlined=True)
def find_group(sim: Sim, which: int, job: int) -> int:
    """Find the group a job stands in, or belongs in.

    Args:
        row: The simulation.
        which: A queue that is not empty.
        job: Index of the job, its key set.

    Returns:
        Place in the list of the last group whose first job is not after the job, else 0.

    Source:
        House rule: binary search over the first jobs.
    """
    low = 0
    high = sim.queue_used[which, N_GROUPS]
    while high - low > 1:
        middle = (low + high) // 2
        if precedes(sim, which, job, first_of_group(sim, sim.group_order[which, middle])):
            high = middle
        else:
            low = middle
    return low


@kernel(inlined=True)
def find_block(sim: Sim, which: int, group: int, job: int) -> int:
    """Find the block of a group that a job stands in, or belongs in.

    Args:
        row: The simulation.
        which: The queue.
        group: The group.
        job: Index of the job, its key set.

    Returns:
        Place in the group of the last block whose first job is not after the job, else 0.

    Source:
        House rule: binary search over the first jobs.
    """
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
    """Find where in a block a newcomer belongs.

    Args:
        row: The simulation.
        which: The queue.
        block: The block.
        job: Index of the job, its key set.

    Returns:
        Number of jobs of the block that stand before it.

    Source:
        House rule: binary search; most newcomers of most orders go last.
    """
    low = 0
    high = sim.node_size[block]
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
    """Put a group into the list.

    Args:
        row: The simulation.
        which: The queue.
        at: Groups before it.

    Returns:
        The group, without blocks.

    Writes:
        The list and the group.

    Source:
        House rule: the list is as long as the queue has groups.
    """
    for other in range(sim.queue_used[which, N_GROUPS], at, -1):
        sim.group_order[which, other] = sim.group_order[which, other - 1]
    group = make_node(sim, which)
    sim.group_order[which, at] = group
    sim.queue_used[which, N_GROUPS] += 1
    return group


@kernel
def remove_group(sim: Sim, which: int, at: int) -> None:
    """Take a group without blocks out of the list.

    Args:
        row: The simulation.
        which: The queue.
        at: Groups before it.

    Writes:
        The list and the group.

    Source:
        House rule: the list is as long as the queue has groups.
    """
    free_node(sim, which, sim.group_order[which, at])
    sim.queue_used[which, N_GROUPS] -= 1
    for other in range(at, sim.queue_used[which, N_GROUPS]):
        sim.group_order[which, other] = sim.group_order[which, other + 1]


@kernel
def make_room(jobs: Jobs, sim: Sim, which: int, at: int, place: int, job: int) -> tuple[int, int]:
    """Make room for a job that belongs in a full block.

    Args:
        jobs: The job table.
        row: The simulation.
        which: The queue.
        at: Where in the list the block's group stands.
        place: Where in the group the block stands.
        job: Index of the job, its key set.

    Returns:
        `at` and `place` of the block that the job belongs in now.

    Writes:
        A new block behind the full one: an empty one where the queue grows at its end, else one
        with its later half. A full group is split in the same way before.

    Source:
        House rule: a queue that grows at its end has full blocks.
    """
    group = sim.group_order[which, at]
    if sim.node_size[group] == NODE_CHILDREN:
        later = insert_group(sim, which, at + 1)
        split_group(sim, group, later)
        if place >= sim.node_size[group]:
            place -= sim.node_size[group]
            at += 1
            group = later
    block = sim.node_child[group, place]
    follower = make_node(sim, which)
    insert_child(sim, group, place + 1, follower)
    is_last = at + 1 == sim.queue_used[which, N_GROUPS] and place + 2 == sim.node_size[group]
    if is_last and precedes(sim, which, sim.node_child[block, NODE_CHILDREN - 1], job):
        return at, place + 1
    split_block(jobs, sim, block, follower)
    if precedes(sim, which, job, sim.node_child[follower, 0]):
        return at, place
    return at, place + 1


@kernel
def put_in(jobs: Jobs, sim: Sim, which: int, job: int) -> None:
    """Put a job into its place.

    Args:
        jobs: The job table.
        row: The simulation.
        which: A queue without the job.
        job: Index of the job, its key set.

    Writes:
        The block the job belongs in; splits it when full.

    Source:
        House rule: the order is kept, not made anew at each pass.
    """
    if sim.queue_used[which, N_GROUPS] == 0:
        insert_child(sim, insert_group(sim, which, 0), 0, make_node(sim, which))
    at = find_group(sim, which, job)
    place = find_block(sim, which, sim.group_order[which, at], job)
    block = sim.node_child[sim.group_order[which, at], place]
    if sim.node_size[block] == NODE_CHILDREN:
        at, place = make_room(jobs, sim, which, at, place, job)
        block = sim.node_child[sim.group_order[which, at], place]
    insert_child(sim, block, find_place(sim, which, block, job), job)
    lower_bounds(jobs, sim, block, job)
    lower_bounds(jobs, sim, sim.group_order[which, at], job)


@kernel(inlined=True)
def are_nearly_empty(sim: Sim, node: int, other: int) -> bool:
    """Tell whether two neighbours are to become one.

    Args:
        row: The simulation.
        node: A block or a group.
        other: Its neighbour.

    Returns:
        True if both together fill at most half a node.

    Source:
        House rule: a node that is merged is not split again at once.
    """
    return sim.node_size[node] + sim.node_size[other] <= NODE_CHILDREN // 2


@kernel
def merge_blocks(sim: Sim, which: int, group: int, place: int) -> None:
    """Move the jobs of a block into the one before it and give it back.

    Args:
        row: The simulation.
        which: The queue.
        group: The group of both.
        place: Where in the group the earlier one stands.

    Writes:
        Both blocks, and the group but for its bounds.

    Source:
        House rule: nodes stay few.
    """
    block = sim.node_child[group, place]
    following = sim.node_child[group, place + 1]
    move_children(sim, following, 0, block)
    take_bounds(sim, block, following)
    remove_child(sim, group, place + 1)
    free_node(sim, which, following)


@kernel
def merge_groups(sim: Sim, which: int, at: int) -> None:
    """Move the blocks of a group into the one before it and give it back.

    Args:
        row: The simulation.
        which: The queue.
        at: Where in the list the earlier one stands.

    Writes:
        Both groups and the list.

    Source:
        House rule: nodes stay few.
    """
    group = sim.group_order[which, at]
    following = sim.group_order[which, at + 1]
    move_children(sim, following, 0, group)
    take_bounds(sim, group, following)
    remove_group(sim, which, at + 1)


@kernel
def tidy_up(sim: Sim, which: int, at: int, place: int) -> None:
    """Give an empty block back, or merge one nearly empty with a neighbour; its group likewise.

    Args:
        row: The simulation.
        which: The queue.
        at: Where in the list the block's group stands.
        place: Where in the group the block stands.

    Writes:
        The block and a neighbour, their group and a neighbour, the list.

    Source:
        House rule: nodes stay few.
    """
    group = sim.group_order[which, at]
    block = sim.node_child[group, place]
    last = sim.node_size[group] - 1
    if sim.node_size[block] == 0:
        remove_child(sim, group, place)
        free_node(sim, which, block)
    elif place < last and are_nearly_empty(sim, block, sim.node_child[group, place + 1]):
        merge_blocks(sim, which, group, place)
    elif place > 0 and are_nearly_empty(sim, block, sim.node_child[group, place - 1]):
        merge_blocks(sim, which, group, place - 1)
    else:
        return
    last = sim.queue_used[which, N_GROUPS] - 1
    if sim.node_size[group] == 0:
        remove_group(sim, which, at)
    elif at < last and are_nearly_empty(sim, group, sim.group_order[which, at + 1]):
        merge_groups(sim, which, at)
    elif at > 0 and are_nearly_empty(sim, group, sim.group_order[which, at - 1]):
        merge_groups(sim, which, at - 1)


@kernel
def take_out(jobs: Jobs, sim: Sim, which: int, job: int) -> None:
    """Take a job out of its place.

    Args:
        jobs: The job table.
        row: The simulation.
        which: A queue that holds the job.
        job: Index of the job, its key as it was when put in.

    Writes:
        The block the job stood in, its group, and the least processors of both.

    Source:
        House rule: the order is kept, not made anew at each pass.
    """
    at = find_group(sim, which, job)
    group = sim.group_order[which, at]
    place = find_block(sim, which, group, job)
    block = sim.node_child[group, place]
    spot = 0
    while sim.node_child[block, spot] != job:
        spot += 1
    remove_child(sim, block, spot)
    if jobs.processors[job] == sim.node_processors[block]:
        raise_processors_of_block(jobs, sim, block)
        if jobs.processors[job] == sim.node_processors[group]:
            raise_processors_of_group(sim, group)
    if sim.node_size[block] <= NODE_CHILDREN // 2:
        tidy_up(sim, which, at, place)


@kernel
def list_jobs(sim: Sim, which: int, listed: NDArray[np.int64]) -> int:
    """List the jobs of a queue in order.

    Args:
        row: The simulation.
        which: The queue.
        listed: Where to, shape (>= jobs in the queue,).

    Returns:
        Number of jobs listed.

    Writes:
        `listed`.

    Source:
        House rule: one way to walk a queue.
    """
    n = 0
    for at in range(sim.queue_used[which, N_GROUPS]):
        group = sim.group_order[which, at]
        for place in range(sim.node_size[group]):
            block = sim.node_child[group, place]
            for spot in range(sim.node_size[block]):
                listed[n] = sim.node_child[block, spot]
                n += 1
    return n
