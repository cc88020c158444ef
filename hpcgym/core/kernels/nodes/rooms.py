"""How many chunks of a request each node can take: its room.

Jobs of one *shape* have equal chunks, partition, `spread` and `exclusive`, so they share their
rooms. A shape gets a row of `room` when it is first asked about, and keeps it while rows are left.
A change of a node is written into a ring. A row reads the changes it has missed when it is next
used. So a comparison tells whether a job can be placed at all, and an event costs a few steps for
each shape that waits.

When all rows are taken, a row that missed a change is given away. Rows read at this instant stay,
so a queue of more shapes than rows finds most of its rows again at the next pass.

Rooms in rows leave `spread` aside, totals do not: the rule "tightest" compares rooms without it.

Cost: O(changes missed); O(nodes) for a new row, and where more nodes changed than there are.

Source: Specification, section 13, "Room and placement" and "Cost".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.types import Jobs, Sim


@kernel(inlined=True)
def room_with(jobs: Jobs, shape: int, node: int, cpus: int, gpus: int, memory: int) -> int:
    """Return how many chunks of a shape fit into these free resources of a node."""
    if jobs.member[jobs.need[shape, s.NEED_PARTITION], node] == 0:
        return 0
    # Every chunk has a cpu, so a node is empty if all its cpus are free.
    if jobs.need[shape, s.NEED_EXCLUSIVE] == 1 and cpus < jobs.capacity[node, s.CPUS]:
        return 0
    wanted = jobs.need[shape, s.CPUS]
    if cpus < wanted:  # most nodes of a full machine, and no division
        return 0
    room = cpus if wanted == 1 else cpus // wanted
    wanted = jobs.need[shape, s.GPUS]
    if wanted > 0:
        room = min(room, gpus // wanted)
    wanted = jobs.need[shape, s.MEMORY]
    if wanted > 0 and jobs.capacity[node, s.MEMORY] > 0:
        room = min(room, memory // wanted)
    return max(room, 0)


@kernel(inlined=True)
def room_now(jobs: Jobs, sim: Sim, shape: int, node: int) -> int:
    """Return how many chunks of a shape a node can take now."""
    return room_with(
        jobs,
        shape,
        node,
        sim.free_on[node, s.CPUS],
        sim.free_on[node, s.GPUS],
        sim.free_on[node, s.MEMORY],
    )


@kernel(inlined=True)
def usable(jobs: Jobs, shape: int, room: int) -> int:
    """Return how many chunks a job may place where so many have room."""
    return min(room, 1) if jobs.need[shape, s.NEED_SPREAD] == 1 else room


@kernel(inlined=True)
def partition_of(jobs: Jobs, job: int) -> int:
    """Return the partition of a job."""
    return jobs.need[jobs.shape[job], s.NEED_PARTITION]


@kernel(inlined=True)
def component_of(jobs: Jobs, job: int) -> int:
    """Return the component that a job's partition belongs to."""
    return jobs.limit[partition_of(jobs, job), s.LIMIT_COMPONENT]


@kernel
def clear_nodes(jobs: Jobs, sim: Sim) -> None:
    """Empty every node; write all that is kept of nodes from instant to instant."""
    for node in range(len(jobs.capacity)):
        for resource in range(s.N_RESOURCES):
            sim.free_on[node, resource] = jobs.capacity[node, resource]
    for partition in range(len(jobs.limit)):
        sim.free_cpus[partition] = 0
        for node in range(len(jobs.capacity)):
            if jobs.member[partition, node] == 1:
                sim.free_cpus[partition] += jobs.capacity[node, s.CPUS]
    sim.room_shape[:] = 0
    sim.room_at[:] = -1
    sim.unplaced_at[:] = -1
    sim.placeable_at[:] = -1
    sim.refused_at[:, :] = -1
    sim.refused_more_at[:, :] = -1
    sim.due[:] = 0
    sim.is_touched[:, :] = 0
    sim.later[:, :, :] = 0
    sim.lent_on[:, :] = 0
    sim.passed_at[:] = -1
    sim.cursor[:, :] = 0
    sim.is_down[:] = 0
    sim.nodes_ready = 1


@kernel(inlined=True)
def use_of(jobs: Jobs, shape: int, node: int, chunks: int, resource: int) -> int:
    """Return how much of a node's resource so many chunks of a shape occupy."""
    if jobs.need[shape, s.NEED_EXCLUSIVE] == 1:
        return jobs.capacity[node, resource]
    # Memory that a node does not count is never free: its capacity is 0.
    if resource == s.MEMORY and jobs.capacity[node, s.MEMORY] == 0:
        return 0
    return chunks * jobs.need[shape, resource]


@kernel
def add_node(jobs: Jobs, sim: Sim, node: int, sign: int) -> None:
    """Take an empty node out of the machine (`sign` -1), or put it back.

    Writes `free_on`, `free_cpus`, the ring of changes, and `n_vacated` where a node is back.
    """
    for resource in range(s.N_RESOURCES):
        sim.free_on[node, resource] += sign * jobs.capacity[node, resource]
    for partition in range(len(jobs.limit)):
        if jobs.member[partition, node] == 1:
            sim.free_cpus[partition] += sign * jobs.capacity[node, s.CPUS]
    sim.changed_node[sim.n_changes % len(jobs.capacity)] = node
    sim.n_changes += 1
    if sign > 0:
        sim.n_vacated += 1


@kernel
def give_back(jobs: Jobs, sim: Sim, shape: int, node: int, chunks: int) -> None:
    """Return chunks of a shape to a node, or take them where `chunks` is below 0.

    Writes `free_on`, `free_cpus` and the ring of changes.
    """
    sign = 1 if chunks > 0 else -1
    for resource in range(s.N_RESOURCES):
        sim.free_on[node, resource] += sign * use_of(jobs, shape, node, sign * chunks, resource)
    cpus = sign * use_of(jobs, shape, node, sign * chunks, s.CPUS)
    for partition in range(len(jobs.limit)):
        if jobs.member[partition, node] == 1:
            sim.free_cpus[partition] += cpus
    sim.changed_node[sim.n_changes % len(jobs.capacity)] = node
    sim.n_changes += 1


@kernel
def vacate(jobs: Jobs, sim: Sim, job: int) -> None:
    """Free the nodes of a job that ends; write `due` and what changes of the nodes."""
    shape = jobs.shape[job]
    first = jobs.placed_first[job]
    for position in range(first, first + sim.placed_on[job]):
        give_back(jobs, sim, shape, sim.placed_node[position], sim.placed_chunks[position])
    sim.n_vacated += 1
    sim.due[component_of(jobs, job)] = 1


@kernel
def occupy(jobs: Jobs, sim: Sim, job: int, n: int) -> None:
    """Give a job that starts the n nodes of the placement found last.

    Writes `placed_*` and what changes of the nodes. Nodes are listed by id.
    """
    shape = jobs.shape[job]
    first = jobs.placed_first[job]
    sim.placed_on[job] = n
    for chosen in range(n):
        node, chunks = sim.chosen_node[chosen], sim.chosen_chunks[chosen]
        position = first + chosen
        while position > first and sim.placed_node[position - 1] > node:
            sim.placed_node[position] = sim.placed_node[position - 1]
            sim.placed_chunks[position] = sim.placed_chunks[position - 1]
            position -= 1
        sim.placed_node[position] = node
        sim.placed_chunks[position] = chunks
        give_back(jobs, sim, shape, node, -chunks)


@kernel
def fill_rooms(jobs: Jobs, sim: Sim, row: int, shape: int) -> None:
    """Give a row to a shape; write its rooms and their total."""
    total = 0
    for node in range(len(jobs.capacity)):
        room = room_now(jobs, sim, shape, node)
        sim.room[row, node] = room
        total += usable(jobs, shape, room)
    sim.room_total[row] = total
    sim.room_shape[row] = shape + 1
    sim.row_of_shape[shape] = row


@kernel
def next_row(jobs: Jobs, sim: Sim) -> int:
    """Return the row to give away: the next one that missed a change, if one is near.

    At most as many rows are looked at as there are nodes. Writes `turn`.
    """
    n_rows = len(sim.room_at)
    for ahead in range(min(n_rows, len(jobs.capacity))):
        row = (sim.turn + ahead) % n_rows
        if sim.room_at[row] < sim.n_changes:
            sim.turn = (row + 1) % n_rows
            return row
    return sim.turn


@kernel
def rooms_of(jobs: Jobs, sim: Sim, shape: int) -> int:
    """Return the row that holds the rooms of a shape as of now; write the row."""
    n_nodes = len(jobs.capacity)
    row = sim.row_of_shape[shape]
    if sim.room_shape[row] != shape + 1:
        row = next_row(jobs, sim)
        fill_rooms(jobs, sim, row, shape)
    elif sim.n_changes - sim.room_at[row] > n_nodes:
        fill_rooms(jobs, sim, row, shape)
    elif sim.room_at[row] < sim.n_changes:
        total = sim.room_total[row]
        for change in range(sim.room_at[row], sim.n_changes):
            node = sim.changed_node[change % n_nodes]
            room = room_now(jobs, sim, shape, node)
            total += usable(jobs, shape, room) - usable(jobs, shape, sim.room[row, node])
            sim.room[row, node] = room
        sim.room_total[row] = total
    sim.room_at[row] = sim.n_changes
    return row
