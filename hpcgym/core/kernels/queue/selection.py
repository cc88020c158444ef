"""The first of a list of jobs, and the next, and the next: an order worked out as far as needed.

Most passes ask for one or two of a dozen jobs, for which a look at each is quickest. Of a long list
a few jobs are found in this way, the others by a heap: n listed jobs of which k are taken cost
O(n + k log n).
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.queue.ordered_queue import precedes
from hpcgym.core.kernels.queue.waiting_rows import seat_of
from hpcgym.core.kernels.types import Row

SHORT_LIST = 64
"""Jobs of which the first is always found by a look at each."""

FEW_TAKEN = 4
"""Jobs that are found so in any list."""


@kernel(inlined=True)
def find_first(row: Row, which: int, n: int) -> int:
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
    first = row.scratch[0]
    least = row.key[which, seat_of(row, first)]
    for place in range(1, n):
        job = row.scratch[place]
        key = row.key[which, seat_of(row, job)]
        if key <= least and (key < least or job < first):
            at = place
            first = job
            least = key
    return at


@kernel
def sift_down(row: Row, which: int, place: int, n: int) -> None:
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
    job = row.scratch[place]
    while 2 * place + 1 < n:
        child = 2 * place + 1
        if child + 1 < n and precedes(row, which, row.scratch[child + 1], row.scratch[child]):
            child += 1
        if precedes(row, which, job, row.scratch[child]):
            break
        row.scratch[place] = row.scratch[child]
        place = child
    row.scratch[place] = job


@kernel
def make_heap(row: Row, which: int, n: int) -> None:
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
        sift_down(row, which, place, n)


@kernel(inlined=True)
def take_first(row: Row, which: int, n: int, taken: int) -> int:
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
        make_heap(row, which, n)
    place = 0 if is_long else find_first(row, which, n)
    job = row.scratch[place]
    row.scratch[place] = row.scratch[n - 1]
    if is_long:
        sift_down(row, which, 0, n - 1)
    return job


@kernel
def sort_listed(row: Row, which: int, n: int) -> None:
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
        job = take_first(row, which, n - taken, taken)
        row.scratch[n - 1 - taken] = job
    for place in range(n // 2):
        job = row.scratch[place]
        row.scratch[place] = row.scratch[n - 1 - place]
        row.scratch[n - 1 - place] = job
