"""Nodes of a queue: up to NODE_CHILDREN children in order, and bounds on what their jobs ask for.

A node is a block, whose children are jobs, or a group, whose children are blocks. Its bounds are
its least processors, exact at every instant, and the least estimate of its jobs of at most each
size class. Those may be too low after a job has left; a search that looks through the node in vain
raises the one that let it in.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Jobs, Sim
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
def make_node(sim: Sim, which: int) -> int:
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
    node = sim.queue_used[which, SPARE]
    if node >= 0:
        sim.queue_used[which, SPARE] = sim.node_child[node, 0]
    else:
        node = sim.queue_used[which, N_NODES]
        sim.queue_used[which, N_NODES] = node + N_QUEUES
    sim.node_size[node] = 0
    clear_bounds(sim, node)
    return node


@kernel(inlined=True)
def free_node(sim: Sim, which: int, node: int) -> None:
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
    sim.node_child[node, 0] = sim.queue_used[which, SPARE]
    sim.queue_used[which, SPARE] = node


@kernel(inlined=True)
def insert_child(sim: Sim, node: int, place: int, child: int) -> None:
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
    for other in range(sim.node_size[node], place, -1):
        sim.node_child[node, other] = sim.node_child[node, other - 1]
    sim.node_child[node, place] = child
    sim.node_size[node] += 1


@kernel(inlined=True)
def remove_child(sim: Sim, node: int, place: int) -> None:
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
    last = sim.node_size[node] - 1
    for other in range(place, last):
        sim.node_child[node, other] = sim.node_child[node, other + 1]
    sim.node_size[node] = last


@kernel
def move_children(sim: Sim, node: int, first: int, to: int) -> None:
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
    size = sim.node_size[to]
    for place in range(first, sim.node_size[node]):
        sim.node_child[to, size] = sim.node_child[node, place]
        size += 1
    sim.node_size[to] = size
    sim.node_size[node] = first


@kernel(inlined=True)
def clear_bounds(sim: Sim, node: int) -> None:
    """Set the bounds of a node to those of no job.

    Args:
        row: The simulation.
        node: The node.

    Writes:
        `node_processors` and `node_estimate` of the node.

    Source:
        House rule: a bound is never too high, so a skipped node never hides a job.
    """
    sim.node_processors[node] = NEVER
    for size_class in range(SIZE_CLASSES):
        sim.node_estimate[node, size_class] = NEVER


@kernel(inlined=True)
def lower_bounds(jobs: Jobs, sim: Sim, node: int, job: int) -> None:
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
    if jobs.processors[job] < sim.node_processors[node]:
        sim.node_processors[node] = jobs.processors[job]
    estimate = jobs.estimate[job]
    size_class = jobs.size_class[job]
    while size_class < SIZE_CLASSES and estimate < sim.node_estimate[node, size_class]:
        sim.node_estimate[node, size_class] = estimate
        size_class += 1


@kernel(inlined=True)
def raise_estimate(sim: Sim, node: int, size_class: int, estimate: int) -> None:
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
    while size_class >= 0 and sim.node_estimate[node, size_class] < estimate:
        sim.node_estimate[node, size_class] = estimate
        size_class -= 1


@kernel
def raise_processors_of_block(jobs: Jobs, sim: Sim, block: int) -> None:
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
    for place in range(sim.node_size[block]):
        least = min(least, jobs.processors[sim.node_child[block, place]])
        if least == sim.node_processors[block]:
            return
    sim.node_processors[block] = least


@kernel
def raise_processors_of_group(sim: Sim, group: int) -> None:
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
    for place in range(sim.node_size[group]):
        least = min(least, sim.node_processors[sim.node_child[group, place]])
        if least == sim.node_processors[group]:
            return
    sim.node_processors[group] = least


@kernel
def take_bounds(sim: Sim, node: int, other: int) -> None:
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
    sim.node_processors[node] = min(sim.node_processors[node], sim.node_processors[other])
    for size_class in range(SIZE_CLASSES):
        sim.node_estimate[node, size_class] = min(
            sim.node_estimate[node, size_class], sim.node_estimate[other, size_class]
        )


@kernel
def split_block(jobs: Jobs, sim: Sim, block: int, to: int) -> None:
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
    move_children(sim, block, NODE_CHILDREN // 2, to)
    clear_bounds(sim, block)
    for node in (block, to):
        for place in range(sim.node_size[node]):
            lower_bounds(jobs, sim, node, sim.node_child[node, place])


@kernel
def split_group(sim: Sim, group: int, to: int) -> None:
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
    move_children(sim, group, NODE_CHILDREN // 2, to)
    clear_bounds(sim, group)
    for node in (group, to):
        for place in range(sim.node_size[node]):
            take_bounds(sim, node, sim.node_child[node, place])
