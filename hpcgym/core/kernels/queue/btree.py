"""Nodes of a queue: up to NODE_CHILDREN children in order, and bounds on what their jobs ask for.

A node is a block, whose children are jobs, or a group, whose children are blocks. Its bounds are
its least processors, exact at every instant, and the least estimate of its jobs of at most each
size class. Those may be too low after a job has left; a search that looks through the node in vain
raises the one that let it in.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Jobs, Row
from hpcgym.core.state import N_NODES, N_QUEUES, NEVER, NODE_CHILDREN, SIZE_CLASSES, SPARE


@kernel(inlined=True)
def size_class_of(processors: int) -> int:
    """Return the class of a number of processors.

    Args:
        processors: Processors, >= 1.

    Returns:
        The class, 0 to SIZE_CLASSES - 1.

    Source:
        House rule: four classes an octave, so few of them bound jobs of every width.
    """
    octave = 0
    while processors >> octave > 1:
        octave += 1
    return min(4 * octave + ((4 * processors >> octave) & 3), SIZE_CLASSES - 1)


@kernel(inlined=True)
def make_node(row: Row, which: int) -> int:
    """Take a node that is not in use.

    Args:
        row: The simulation.
        which: The queue.

    Returns:
        The node, without children, its bounds those of no job.

    Writes:
        The node; `queue_used`.

    Source:
        House rule: allocate once; a list through the spare nodes keeps them.
    """
    node = row.queue_used[which, SPARE]
    if node >= 0:
        row.queue_used[which, SPARE] = row.node_child[node, 0]
    else:
        node = row.queue_used[which, N_NODES]
        row.queue_used[which, N_NODES] = node + N_QUEUES
    row.node_size[node] = 0
    clear_bounds(row, node)
    return node


@kernel(inlined=True)
def free_node(row: Row, which: int, node: int) -> None:
    """Give a node back.

    Args:
        row: The simulation.
        which: The queue.
        node: A node that no other holds any more.

    Writes:
        The node; `queue_used`.

    Source:
        House rule: allocate once; a list through the spare nodes keeps them.
    """
    row.node_child[node, 0] = row.queue_used[which, SPARE]
    row.queue_used[which, SPARE] = node


@kernel(inlined=True)
def insert_child(row: Row, node: int, place: int, child: int) -> None:
    """Put a child into its place.

    Args:
        row: The simulation.
        node: A node with room.
        place: Children before it.
        child: A job or a block.

    Writes:
        The node, but for its bounds.

    Source:
        House rule: nodes of bounded size keep a shift short.
    """
    for other in range(row.node_size[node], place, -1):
        row.node_child[node, other] = row.node_child[node, other - 1]
    row.node_child[node, place] = child
    row.node_size[node] += 1


@kernel(inlined=True)
def remove_child(row: Row, node: int, place: int) -> None:
    """Take a child out of its place.

    Args:
        row: The simulation.
        node: The node.
        place: Children before it.

    Writes:
        The node, but for its bounds.

    Source:
        House rule: nodes of bounded size keep a shift short.
    """
    last = row.node_size[node] - 1
    for other in range(place, last):
        row.node_child[node, other] = row.node_child[node, other + 1]
    row.node_size[node] = last


@kernel
def move_children(row: Row, node: int, first: int, to: int) -> None:
    """Move the later children of a node to the end of another.

    Args:
        row: The simulation.
        node: Where from.
        first: Children that stay.
        to: Where to, with room for them.

    Writes:
        Both nodes, but for their bounds.

    Source:
        House rule: a full node is split in two, two nearly empty ones become one.
    """
    size = row.node_size[to]
    for place in range(first, row.node_size[node]):
        row.node_child[to, size] = row.node_child[node, place]
        size += 1
    row.node_size[to] = size
    row.node_size[node] = first


@kernel(inlined=True)
def clear_bounds(row: Row, node: int) -> None:
    """Set the bounds of a node to those of no job.

    Args:
        row: The simulation.
        node: The node.

    Writes:
        `node_processors` and `node_estimate` of the node.

    Source:
        House rule: a bound is never too high, so a skipped node never hides a job.
    """
    row.node_processors[node] = NEVER
    for size_class in range(SIZE_CLASSES):
        row.node_estimate[node, size_class] = NEVER


@kernel(inlined=True)
def lower_bounds(jobs: Jobs, row: Row, node: int, job: int) -> None:
    """Lower the bounds of a node to those of a job it takes in.

    Args:
        jobs: The job table.
        row: The simulation.
        node: The node.
        job: Index of the job.

    Writes:
        `node_processors` and `node_estimate` of the node.

    Source:
        House rule: a bound is never too high, so a skipped node never hides a job.
    """
    if jobs.processors[job] < row.node_processors[node]:
        row.node_processors[node] = jobs.processors[job]
    estimate = jobs.estimate[job]
    size_class = jobs.size_class[job]
    while size_class < SIZE_CLASSES and estimate < row.node_estimate[node, size_class]:
        row.node_estimate[node, size_class] = estimate
        size_class += 1


@kernel(inlined=True)
def raise_estimate(row: Row, node: int, size_class: int, estimate: int) -> None:
    """Raise a bound that was found too low.

    What bounds the jobs of a class bounds those of every narrower class as well.

    Args:
        row: The simulation.
        node: The node.
        size_class: The class.
        estimate: Least estimate of the node's jobs of at most this class, s.

    Writes:
        `node_estimate` of the node, which stays in descending order.

    Source:
        House rule: a search in vain is not made twice.
    """
    while size_class >= 0 and row.node_estimate[node, size_class] < estimate:
        row.node_estimate[node, size_class] = estimate
        size_class -= 1


@kernel
def raise_processors_of_block(jobs: Jobs, row: Row, block: int) -> None:
    """Work out the least processors of a block that has lost a job with as few.

    Args:
        jobs: The job table.
        row: The simulation.
        block: The block.

    Writes:
        `node_processors` of the block; looks no further than the next job with as few.

    Source:
        House rule: whether some job fits must be exact, since decisions depend on it.
    """
    least = NEVER
    for place in range(row.node_size[block]):
        least = min(least, jobs.processors[row.node_child[block, place]])
        if least == row.node_processors[block]:
            return
    row.node_processors[block] = least


@kernel
def raise_processors_of_group(row: Row, group: int) -> None:
    """Work out the least processors of a group that has lost a job with as few.

    Args:
        row: The simulation.
        group: The group, the bounds of its blocks exact.

    Writes:
        `node_processors` of the group; looks no further than the next block with as few.

    Source:
        House rule: whether some job fits must be exact, since decisions depend on it.
    """
    least = NEVER
    for place in range(row.node_size[group]):
        least = min(least, row.node_processors[row.node_child[group, place]])
        if least == row.node_processors[group]:
            return
    row.node_processors[group] = least


@kernel
def take_bounds(row: Row, node: int, other: int) -> None:
    """Lower the bounds of a node to those of another whose jobs it takes in.

    Args:
        row: The simulation.
        node: The node.
        other: The other.

    Writes:
        `node_processors` and `node_estimate` of the node.

    Source:
        House rule: a bound is never too high, so a skipped node never hides a job.
    """
    row.node_processors[node] = min(row.node_processors[node], row.node_processors[other])
    for size_class in range(SIZE_CLASSES):
        row.node_estimate[node, size_class] = min(
            row.node_estimate[node, size_class], row.node_estimate[other, size_class]
        )


@kernel
def split_block(jobs: Jobs, row: Row, block: int, to: int) -> None:
    """Move the later half of a full block to an empty one.

    Args:
        jobs: The job table.
        row: The simulation.
        block: The full block.
        to: The empty one.

    Writes:
        Both blocks and their bounds.

    Source:
        House rule: nodes of bounded size keep a shift short.
    """
    move_children(row, block, NODE_CHILDREN // 2, to)
    clear_bounds(row, block)
    for node in (block, to):
        for place in range(row.node_size[node]):
            lower_bounds(jobs, row, node, row.node_child[node, place])


@kernel
def split_group(row: Row, group: int, to: int) -> None:
    """Move the later half of a full group to an empty one.

    Args:
        row: The simulation.
        group: The full group.
        to: The empty one.

    Writes:
        Both groups and their bounds.

    Source:
        House rule: nodes of bounded size keep a shift short.
    """
    move_children(row, group, NODE_CHILDREN // 2, to)
    clear_bounds(row, group)
    for node in (group, to):
        for place in range(row.node_size[node]):
            take_bounds(row, node, row.node_child[node, place])
