"""Placement rules: which nodes a job's chunks go to, by the rooms that a cursor's row holds.

A rule takes nodes in its order, from each as many chunks as it has room for, until all chunks are
placed. If that takes more nodes than the partition allows, the nodes with most room are tried.

Each search writes the nodes into `chosen_node` and the chunks into `chosen_chunks`, and returns how
many nodes it took, or -1 where it found no placement. Cost: O(nodes), times the number of distinct
rooms where these decide the order, and times the groups taken where groups do.

Source: Specification, section 13, "Room and placement".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.nodes.rooms import usable
from hpcgym.core.kernels.types import Jobs, Sim

ANY_GROUP = -1
LOW, HIGH = 0, 1
"""Ends of a list of nodes by room: least room first, most room first."""


@kernel(inlined=True)
def most_nodes(jobs: Jobs, shape: int) -> int:
    """Return the most nodes that a job of a shape may have."""
    most = jobs.limit[jobs.need[shape, s.NEED_PARTITION], s.LIMIT_NODES]
    return most if most > 0 else s.NEVER


@kernel(inlined=True)
def is_sum_enough(jobs: Jobs, sim: Sim, shape: int) -> bool:
    """Tell whether a rule places every job for which the nodes have room in all."""
    strict = sim.placement == s.PLACE_CONTIGUOUS or sim.placement == s.PLACE_LOCAL
    return not strict and most_nodes(jobs, shape) == s.NEVER


@kernel(inlined=True)
def choose(jobs: Jobs, sim: Sim, shape: int, node: int, room: int, n: int, left: int) -> int:
    """Take chunks from a node as the n-th of a placement, and return how many are left."""
    chunks = min(usable(jobs, shape, room), left)
    sim.chosen_node[n] = node
    sim.chosen_chunks[n] = chunks
    return left - chunks


@kernel
def take_by_id(
    jobs: Jobs, sim: Sim, at: int, shape: int, group: int, n: int, left: int
) -> tuple[int, int]:
    """Take nodes of a group by id, after n others; return the nodes taken and the chunks left."""
    for node in range(len(jobs.capacity)):
        room = sim.row[at, node]
        if left > 0 and room > 0 and (group == ANY_GROUP or jobs.group[node] == group):
            left = choose(jobs, sim, shape, node, room, n, left)
            n += 1
            if left == 0:
                break
    return n, left


@kernel
def take_by_room(
    jobs: Jobs, sim: Sim, at: int, shape: int, group: int, end: int, n: int, left: int
) -> tuple[int, int]:
    """Take nodes of a group by room, ties by id; return the nodes taken and the chunks left.

    `end` says whether least or most room goes first; n nodes were taken before.
    """
    sign = 1 if end == LOW else -1
    bound = -s.NEVER
    while left > 0:
        following = s.NEVER  # the next room in this order, as a number that ascends
        for node in range(len(jobs.capacity)):
            room = sim.row[at, node]
            if room > 0 and (group == ANY_GROUP or jobs.group[node] == group):
                rank = sign * usable_rank(jobs, shape, room, end)
                if rank > bound and rank < following:
                    following = rank
        if following == s.NEVER:
            break
        bound = following
        for node in range(len(jobs.capacity)):
            room = sim.row[at, node]
            if (
                left > 0
                and room > 0
                and (group == ANY_GROUP or jobs.group[node] == group)
                and sign * usable_rank(jobs, shape, room, end) == bound
            ):
                left = choose(jobs, sim, shape, node, room, n, left)
                n += 1
    return n, left


@kernel(inlined=True)
def usable_rank(jobs: Jobs, shape: int, room: int, end: int) -> int:
    """Return the room by which nodes are compared: the least without the limit of `spread`."""
    return room if end == LOW else usable(jobs, shape, room)


@kernel
def sum_groups(jobs: Jobs, sim: Sim, at: int, shape: int) -> None:
    """Write the chunks that each group takes into `group_room`."""
    sim.group_room[:] = 0
    for node in range(len(jobs.capacity)):
        sim.group_room[jobs.group[node]] += usable(jobs, shape, sim.row[at, node])


@kernel
def smallest_group_for(sim: Sim, wanted: int, after: int) -> int:
    """Return the group with least room that holds so many chunks, ties by number; -1 if none.

    Groups up to `after` in this order are left out; -1 leaves out none.
    """
    best, least = -1, s.NEVER
    for group in range(len(sim.group_room)):
        room = sim.group_room[group]
        is_left = after < 0 or (room, group) > (sim.group_room[after], after)
        if is_left and room >= wanted and room < least:
            best, least = group, room
    return best


@kernel
def largest_group(sim: Sim) -> int:
    """Return the group with most room that is not taken, ties by number; -1 if there is none."""
    best, most = -1, 0
    for group in range(len(sim.group_room)):
        if sim.group_is_taken[group] == 0 and sim.group_room[group] > most:
            best, most = group, sim.group_room[group]
    return best


@kernel
def take_largest_groups(
    jobs: Jobs, sim: Sim, at: int, shape: int, wanted: int, by_room: bool
) -> int:
    """Place on groups by most room, inside each by id or by most room."""
    sim.group_is_taken[:] = 0
    n, left = 0, wanted
    while left > 0:
        group = largest_group(sim)
        if by_room:
            n, left = take_by_room(jobs, sim, at, shape, group, HIGH, n, left)
        else:
            n, left = take_by_id(jobs, sim, at, shape, group, n, left)
        sim.group_is_taken[group] = 1
    return n


@kernel
def take_fewest_groups(jobs: Jobs, sim: Sim, at: int, shape: int, wanted: int) -> int:
    """Place in the smallest group that holds all chunks, else on the largest groups.

    If that takes too many nodes, the same groups and those behind them are tried by most room, and
    last all nodes by most room.
    """
    sum_groups(jobs, sim, at, shape)
    most = most_nodes(jobs, shape)
    group = smallest_group_for(sim, wanted, -1)
    if group >= 0:
        n, _ = take_by_id(jobs, sim, at, shape, group, 0, wanted)
    else:
        n = take_largest_groups(jobs, sim, at, shape, wanted, False)
        if n > most:
            n = take_largest_groups(jobs, sim, at, shape, wanted, True)
    while group >= 0 and n > most:
        n, _ = take_by_room(jobs, sim, at, shape, group, HIGH, 0, wanted)
        group = smallest_group_for(sim, wanted, group)
    if n > most:
        n, _ = take_by_room(jobs, sim, at, shape, ANY_GROUP, HIGH, 0, wanted)
    return n if n <= most else -1


@kernel
def take_one_group(jobs: Jobs, sim: Sim, at: int, shape: int, wanted: int) -> int:
    """Place in the lowest group that holds all chunks; -1 if there is none.

    If that takes too many nodes, each group that holds them is tried by most room.
    """
    sum_groups(jobs, sim, at, shape)
    most = most_nodes(jobs, shape)
    for by_room in range(2):
        for group in range(len(sim.group_room)):
            if sim.group_room[group] < wanted:
                continue
            if by_room == 1:
                n, _ = take_by_room(jobs, sim, at, shape, group, HIGH, 0, wanted)
            else:
                n, _ = take_by_id(jobs, sim, at, shape, group, 0, wanted)
            if n <= most:
                return n
            if by_room == 0:
                break
    return -1


@kernel
def take_run(jobs: Jobs, sim: Sim, at: int, shape: int, wanted: int) -> int:
    """Place on nodes with consecutive ids, from the lowest first id that serves; -1 if none."""
    most = most_nodes(jobs, shape)
    first, total = 0, 0
    for node in range(len(jobs.capacity)):
        room = usable(jobs, shape, sim.row[at, node])
        if room == 0:
            first, total = node + 1, 0
            continue
        total += room
        # A run longer than the limit gives up its first node.
        if node - first + 1 > most:
            total -= usable(jobs, shape, sim.row[at, first])
            first += 1
        if total >= wanted:
            n, left = 0, wanted
            for other in range(first, node + 1):
                left = choose(jobs, sim, shape, other, sim.row[at, other], n, left)
                n += 1
            return n
    return -1


@kernel
def place_chunks(jobs: Jobs, sim: Sim, at: int, shape: int, wanted: int) -> int:
    """Place so many chunks of a shape by the scheduler's rule, in the rooms of cursor `at`.

    Return the number of nodes, -1 if the rule has no placement. Writes `chosen_*`.
    """
    if sim.cursor[at, s.CURSOR_TOTAL] < wanted:
        return -1
    rule = sim.placement
    if rule in (s.PLACE_CONTIGUOUS, s.PLACE_BEST_EFFORT_CONTIGUOUS):
        n = take_run(jobs, sim, at, shape, wanted)
        if n > 0 or rule == s.PLACE_CONTIGUOUS:
            return n
    if rule in (s.PLACE_LOCAL, s.PLACE_BEST_EFFORT_LOCAL):
        n = take_one_group(jobs, sim, at, shape, wanted)
        if n > 0 or rule == s.PLACE_LOCAL:
            return n
    if rule == s.PLACE_FEWEST_GROUPS:
        return take_fewest_groups(jobs, sim, at, shape, wanted)
    most = most_nodes(jobs, shape)
    if rule == s.PLACE_TIGHTEST:
        n, _ = take_by_room(jobs, sim, at, shape, ANY_GROUP, LOW, 0, wanted)
    else:
        n, _ = take_by_id(jobs, sim, at, shape, ANY_GROUP, 0, wanted)
    if n > most:
        n, _ = take_by_room(jobs, sim, at, shape, ANY_GROUP, HIGH, 0, wanted)
    return n if n <= most else -1
