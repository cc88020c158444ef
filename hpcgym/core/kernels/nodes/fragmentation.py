"""How many free cpus no waiting job can use, instant by instant, in a schedule that is finished.

Waiting jobs of one shape can use the same, and of shapes that differ in memory only, a *family*,
the one with least can use most. So families are walked in place of jobs. A node keeps the most that
one of them can use, and which one. A family with a new least shape is compared with that. A node
looks at all families again only where a job came or left, or where its best shape no longer waits.
It stops at a family that can use all its free cpus.

Cost, with n nodes and f families that wait: O(n) for a new least shape, at most O(f) for a node to
look again.

Source: Specification, section 13, "Metrics" and "Room and placement".
"""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import CPUS, GPUS, MEMORY, NEED_EXCLUSIVE
from hpcgym.core.kernels.nodes.rooms import room_with, usable

NOBODY = -1
"""The least shape of a family that doesn't wait; the best family of a node that none can use."""


class Past(NamedTuple):
    """What happened, and on what machine.

    Shapes are sorted by family, then by memory. Changes are sorted by row: job `change_job[i]`
    comes or leaves as `change_sign[i]` is 1 or -1, in the queue or, where `is_on_nodes[i]`, on its
    nodes.
    """

    member: NDArray[Any]  # shape (n_partitions, n_nodes)
    capacity: NDArray[Any]  # shape (n_nodes, N_RESOURCES)
    need: NDArray[Any]  # shape (n_shapes, 6), as in `Jobs`
    family: NDArray[Any]  # of each shape
    family_end: NDArray[Any]  # shape after the last one of each family
    shape: NDArray[Any]  # of each job
    first: NDArray[Any]  # nodes of job j are those from first[j] to first[j + 1] - 1
    node: NDArray[Any]
    held: NDArray[Any]  # shape (n_placed, N_RESOURCES)
    change_row: NDArray[Any]
    change_job: NDArray[Any]
    change_sign: NDArray[Any]
    is_on_nodes: NDArray[Any]


class Present(NamedTuple):
    """What is so after the changes of a row."""

    free: NDArray[Any]  # shape (n_nodes, N_RESOURCES)
    most: NDArray[Any]  # cpus of each node that one waiting family can use
    best: NDArray[Any]  # that family
    is_stale: NDArray[Any]  # whether the node must look again
    stale: NDArray[Any]  # the nodes that must
    n_waiting: NDArray[Any]  # jobs of each shape
    least: NDArray[Any]  # shape of each family with least memory of those that wait
    waiting: NDArray[Any]  # families that wait
    position: NDArray[Any]  # of each family among them
    counts: NDArray[Any]  # in the columns N_*


N_STALE, N_FAMILIES, N_USABLE, N_FREE = range(4)
"""Counts: nodes that must look again, families that wait, cpus they can use, free cpus."""


@kernel(inlined=True)
def usable_cpus(past: Any, now: Any, shape: int, node: int) -> int:
    """Return how many free cpus of a node a shape can use."""
    free = now.free
    room = room_with(past, shape, node, free[node, CPUS], free[node, GPUS], free[node, MEMORY])
    if room > 0 and past.need[shape, NEED_EXCLUSIVE] == 1:
        return int(past.capacity[node, CPUS])
    return int(usable(past, shape, room) * past.need[shape, CPUS])


@kernel
def mark_stale(now: Any, node: int) -> None:
    """Note that a node must look again; write `stale`."""
    if not now.is_stale[node]:
        now.is_stale[node] = True
        now.stale[now.counts[N_STALE]] = node
        now.counts[N_STALE] += 1


@kernel
def offer(past: Any, now: Any, shape: int) -> None:
    """Let nodes be used by a shape; write `most` and `best` where it can use more."""
    for node in range(len(now.most)):
        if now.most[node] < now.free[node, CPUS] and not now.is_stale[node]:
            cpus = usable_cpus(past, now, shape, node)
            if cpus > now.most[node]:
                now.counts[N_USABLE] += cpus - now.most[node]
                now.most[node] = cpus
                now.best[node] = past.family[shape]


@kernel
def enter_queue(past: Any, now: Any, shape: int) -> None:
    """Add a job of a shape to the queue; write `n_waiting`, `least` and `waiting`."""
    now.n_waiting[shape] += 1
    family = past.family[shape]
    least = now.least[family]
    if least != NOBODY and least <= shape:
        return
    if least == NOBODY:
        now.position[family] = now.counts[N_FAMILIES]
        now.waiting[now.counts[N_FAMILIES]] = family
        now.counts[N_FAMILIES] += 1
    now.least[family] = shape
    offer(past, now, shape)


@kernel
def leave_queue(past: Any, now: Any, shape: int) -> None:
    """Remove a job of a shape from the queue; write `n_waiting`, `least`, `waiting` and `stale`."""
    now.n_waiting[shape] -= 1
    family = past.family[shape]
    if now.n_waiting[shape] > 0 or now.least[family] != shape:
        return
    end = past.family_end[family]
    while shape < end and now.n_waiting[shape] == 0:
        shape += 1
    now.least[family] = shape if shape < end else NOBODY
    if shape == end:
        now.counts[N_FAMILIES] -= 1
        last = now.waiting[now.counts[N_FAMILIES]]
        now.waiting[now.position[family]] = last
        now.position[last] = now.position[family]
    for node in range(len(now.best)):
        if now.best[node] == family:
            mark_stale(now, node)


@kernel
def change_nodes(past: Any, now: Any, job: int, sign: int) -> None:
    """Let a job take or leave its nodes; write `free`."""
    for use in range(past.first[job], past.first[job + 1]):
        node = past.node[use]
        for resource in range(now.free.shape[1]):
            now.free[node, resource] -= sign * past.held[use, resource]
        now.counts[N_FREE] -= sign * past.held[use, CPUS]
        mark_stale(now, node)


@kernel
def look_again(past: Any, now: Any, node: int) -> None:
    """Find the family that can use most of a node; write `most` and `best`."""
    most, best = 0, NOBODY
    free = now.free[node, CPUS]
    for position in range(now.counts[N_FAMILIES]):
        if most == free:
            break
        family = now.waiting[position]
        cpus = usable_cpus(past, now, now.least[family], node)
        if cpus > most:
            most, best = cpus, family
    now.counts[N_USABLE] += most - now.most[node]
    now.most[node] = most
    now.best[node] = best
    now.is_stale[node] = False


@kernel
def count_unusable(past: Any, now: Any, unusable: NDArray[Any]) -> None:
    """Write how many free cpus no waiting job can use from each row's instant to the next one's."""
    change = 0
    for row in range(len(unusable)):
        while change < len(past.change_row) and past.change_row[change] == row:
            job, sign = past.change_job[change], past.change_sign[change]
            if past.is_on_nodes[change]:
                change_nodes(past, now, job, sign)
            elif sign > 0:
                enter_queue(past, now, past.shape[job])
            else:
                leave_queue(past, now, past.shape[job])
            change += 1
        for position in range(now.counts[N_STALE]):
            look_again(past, now, now.stale[position])
        now.counts[N_STALE] = 0
        if now.counts[N_FAMILIES] > 0:
            unusable[row] = now.counts[N_FREE] - now.counts[N_USABLE]
