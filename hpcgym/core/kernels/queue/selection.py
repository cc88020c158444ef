"""The first of a list of jobs, and the next, and the next: an order worked out as far as needed.

Most passes ask for one or two of a dozen jobs, for which a look at each is quickest. Of a long list
a few jobs are found in this way, the others by a heap: n listed jobs of which k are taken cost
O(n + k log n).
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.queue.ordered_queue import precedes
from hpcgym.core.kernels.types import Sim

SHORT_LIST = 64
"""Jobs of which the first is always found by a look at each."""

FEW_TAKEN = 4
"""Jobs that are found so in any list."""


@kernel(inlined=True)
def find_first(sim: Sim, which: int, n: int) -> int:
    """Find the first of the listed jobs by a look at each.

    Args:
        row: The simulation, the jobs listed in `scratch`.
        which: The order whose keys decide.
        n: Number of jobs listed, >= 1.

    Returns:
        Its place in the list.

    Source:
        House rule: the shortest way for short lists.
    """
    at = 0
    first = sim.scratch[0]
    least = sim.key[which, entry_of(sim, first)]
    for place in range(1, n):
        job = sim.scratch[place]
        key = sim.key[which, entry_of(sim, job)]
        if key <= least and (key < least or job < first):
            at = place
            first = job
            least = key
    return at


@kernel
def sift_down(sim: Sim, which: int, place: int, n: int) -> None:
    """Let a job sink in the heap until none below it precedes it.

    Args:
        row: The simulation, the jobs listed in `scratch`.
        which: The order whose keys decide.
        place: Where the job stands; below it the list is a heap.
        n: Number of jobs listed.

    Writes:
        `scratch`.

    Source:
        House rule: binary heap, O(log n).
    """
    job = sim.scratch[place]
    while 2 * place + 1 < n:
        child = 2 * place + 1
        if child + 1 < n and precedes(sim, which, sim.scratch[child + 1], sim.scratch[child]):
            child += 1
        if precedes(sim, which, job, sim.scratch[child]):
            break
        sim.scratch[place] = sim.scratch[child]
        place = child
    sim.scratch[place] = job


@kernel
def make_heap(sim: Sim, which: int, n: int) -> None:
    """Make a heap of the listed jobs, the first of them on top.

    Args:
        row: The simulation, the jobs listed in `scratch`.
        which: The order whose keys decide.
        n: Number of jobs listed.

    Writes:
        `scratch`.

    Source:
        House rule: binary heap, made in O(n).
    """
    for place in range(n // 2 - 1, -1, -1):
        sift_down(sim, which, place, n)


@kernel(inlined=True)
def take_first(sim: Sim, which: int, n: int, taken: int) -> int:
    """Take the first of the listed jobs out of the list.

    Args:
        row: The simulation, the jobs listed in `scratch`.
        which: The order whose keys decide.
        n: Number of jobs listed, >= 1.
        taken: Number of jobs taken out of this list before.

    Returns:
        Index of the job; n - 1 jobs are listed from now on.

    Writes:
        `scratch`.

    Source:
        House rule: no order is worked out further than it is asked for.
    """
    is_long = n > SHORT_LIST and taken >= FEW_TAKEN
    if is_long and taken == FEW_TAKEN:
        make_heap(sim, which, n)
    place = 0 if is_long else find_first(sim, which, n)
    job = sim.scratch[place]
    sim.scratch[place] = sim.scratch[n - 1]
    if is_long:
        sift_down(sim, which, 0, n - 1)
    return job


@kernel
def sort_listed(sim: Sim, which: int, n: int) -> None:
    """Put the listed jobs into an order, all of them.

    Args:
        row: The simulation, the jobs listed in `scratch`.
        which: The order whose keys decide.
        n: Number of jobs listed.

    Writes:
        `scratch`.

    Source:
        House rule: heap sort, O(n log n), in place.
    """
    for taken in range(n):
        job = take_first(sim, which, n - taken, taken)
        sim.scratch[n - 1 - taken] = job
    for place in range(n // 2):
        job = sim.scratch[place]
        sim.scratch[place] = sim.scratch[n - 1 - place]
        sim.scratch[n - 1 - place] = job
