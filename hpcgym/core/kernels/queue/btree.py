"""Nodes of a queue's B+ tree: up to NODE_CHILDREN children in order, and bounds on their jobs.

A node is a block, whose children are jobs, or a group, whose children are blocks. Its bounds let a
search skip it:

- `node_processors`: the least processors of its jobs. It is exact at every instant, because
  decisions depend on whether some job fits.
- `node_estimate`: for each size class, the least estimate among its jobs of at most that class.
  These bounds descend from class to class.

An estimate bound may be too low after a job has left, but it is never too high. So a skipped node
never hides a job that could start. A search that visits a node in vain raises the bound that
admitted it, and does not visit it again for the same reason.

Nodes are allocated once. Spare nodes form a linked list through their first child.
"""

import numpy as np

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import NEVER, NODE_CHILDREN, SIZE_CLASSES
from hpcgym.core.kernels.queue.summary import forget
from hpcgym.core.kernels.types import Jobs, Sim


@kernel(inlined=True)
def size_class_of(processors: int) -> int:
    """Return the size class of a number of processors, 0 to SIZE_CLASSES - 1, four an octave."""
    # A float has the octave, the place of the leading bit, as its exponent, and the two bits behind
    # that one, which name the quarter of the octave, in front of its mantissa.
    bits = int(np.float64(max(processors, 1)).view(np.int64))
    return min((bits >> 50) - 4 * 1_023, SIZE_CLASSES - 1)


@kernel(inlined=True)
def make_node(sim: Sim, which: int) -> int:
    """Return a node that was not in use, without children and with the bounds of no job.

    Writes the node, `n_nodes` and `spare_node`.
    """
    node = sim.spare_node[which]
    if node >= 0:
        sim.spare_node[which] = sim.node_child[node, 0]
    else:
        node = sim.n_nodes[which]
        # Two queues share one array of nodes: each takes every second.
        sim.n_nodes[which] = node + 1 + sim.backfill_order_is_static
    sim.node_size[node] = 0
    clear_bounds(sim, node)
    if sim.keeps_summary == 1:
        forget(sim, node)
    return node


@kernel(inlined=True)
def free_node(sim: Sim, which: int, node: int) -> None:
    """Give back a node that no other node holds; write the node and `spare_node`."""
    sim.node_child[node, 0] = sim.spare_node[which]
    sim.spare_node[which] = node


@kernel(inlined=True)
def insert_child(sim: Sim, node: int, position: int, child: int) -> None:
    """Insert a child behind the first `position` children of a node with room, bounds excepted."""
    for other in range(sim.node_size[node], position, -1):
        sim.node_child[node, other] = sim.node_child[node, other - 1]
    sim.node_child[node, position] = child
    sim.node_size[node] += 1


@kernel(inlined=True)
def remove_child(sim: Sim, node: int, position: int) -> None:
    """Remove the child behind the first `position` children of a node, bounds excepted."""
    last = sim.node_size[node] - 1
    for other in range(position, last):
        sim.node_child[node, other] = sim.node_child[node, other + 1]
    sim.node_size[node] = last


@kernel
def move_children(sim: Sim, node: int, first: int, to: int) -> None:
    """Move the children of a node from place `first` on to the end of `to`, bounds excepted."""
    size = sim.node_size[to]
    for position in range(first, sim.node_size[node]):
        sim.node_child[to, size] = sim.node_child[node, position]
        size += 1
    sim.node_size[to] = size
    sim.node_size[node] = first


@kernel(inlined=True)
def clear_bounds(sim: Sim, node: int) -> None:
    """Set the bounds of a node to those of no job."""
    sim.node_processors[node] = NEVER
    for size_class in range(sim.node_estimate.shape[1]):
        sim.node_estimate[node, size_class] = NEVER


@kernel(inlined=True)
def lower_bounds(jobs: Jobs, sim: Sim, node: int, job: int) -> None:
    """Lower the bounds of a node to those of a job that enters it."""
    if jobs.processors[job] < sim.node_processors[node]:
        sim.node_processors[node] = jobs.processors[job]
    estimate = jobs.estimate[job]
    size_class = jobs.size_class[job]
    # Bounds descend: behind the first that is low enough, all are.
    n_classes = sim.node_estimate.shape[1]
    while size_class < n_classes and estimate < sim.node_estimate[node, size_class]:
        sim.node_estimate[node, size_class] = estimate
        size_class += 1


@kernel(inlined=True)
def raise_estimate(sim: Sim, node: int, size_class: int, estimate: int) -> None:
    """Raise the estimate bounds of a node for a class and every narrower class.

    `estimate` is the least estimate of the node's jobs of at most `size_class`, s.
    """
    # A narrower class has a subset of these jobs, so its bound cannot be lower.
    while size_class >= 0 and sim.node_estimate[node, size_class] < estimate:
        sim.node_estimate[node, size_class] = estimate
        size_class -= 1


@kernel
def raise_processors_of_block(jobs: Jobs, sim: Sim, block: int) -> None:
    """Raise `node_processors` of a block that has lost a job with as few processors."""
    least = NEVER
    for position in range(sim.node_size[block]):
        least = min(least, jobs.processors[sim.node_child[block, position]])
        # Another job has as few: the bound is exact as it is.
        if least == sim.node_processors[block]:
            return
    sim.node_processors[block] = least


@kernel
def raise_processors_of_group(sim: Sim, group: int) -> None:
    """Raise `node_processors` of a group that has lost a job with as few; its blocks are exact."""
    least = NEVER
    for position in range(sim.node_size[group]):
        least = min(least, sim.node_processors[sim.node_child[group, position]])
        if least == sim.node_processors[group]:
            return
    sim.node_processors[group] = least


@kernel
def take_bounds(sim: Sim, node: int, other: int) -> None:
    """Lower the bounds of a node to those of another node, whose jobs it receives."""
    sim.node_processors[node] = min(sim.node_processors[node], sim.node_processors[other])
    for size_class in range(sim.node_estimate.shape[1]):
        sim.node_estimate[node, size_class] = min(
            sim.node_estimate[node, size_class], sim.node_estimate[other, size_class]
        )


@kernel
def split_block(jobs: Jobs, sim: Sim, block: int, to: int) -> None:
    """Move the later half of a full block to the empty block `to`; write the bounds of both."""
    move_children(sim, block, NODE_CHILDREN // 2, to)
    clear_bounds(sim, block)
    if sim.keeps_summary == 1:
        forget(sim, block)
    for node in (block, to):
        for position in range(sim.node_size[node]):
            lower_bounds(jobs, sim, node, sim.node_child[node, position])


@kernel
def split_group(sim: Sim, group: int, to: int) -> None:
    """Move the later half of a full group to the empty group `to`; write the bounds of both."""
    move_children(sim, group, NODE_CHILDREN // 2, to)
    clear_bounds(sim, group)
    if sim.keeps_summary == 1:
        forget(sim, group)
    for node in (group, to):
        for position in range(sim.node_size[node]):
            take_bounds(sim, node, sim.node_child[node, position])
