"""Take the first job of a list again and again: an order made no further than a pass needs it.

Most passes need one or two of a dozen jobs, for which looking at each job is fastest. In a long
list the first few are found in the same way, and the others with a binary heap. Taking k of n jobs
costs O(n + k log n).

The jobs are listed in `scratch`, places 0 to n - 1, and the keys of order `which` decide.
"""

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.queue.ordered_queue import precedes
from hpcgym.core.kernels.types import Sim

SHORT_LIST = 64  # length up to which each job of the list is looked at
FEW_TAKEN = 4  # jobs found by looking at each, however long the list is


@kernel(inlined=True)
def find_first(sim: Sim, which: int, n: int) -> int:
    """Return the place of the first of n >= 1 listed jobs by looking at each."""
    at = 0
    first = sim.scratch[0]
    least = sim.key[which, entry_of(sim, first)]
    for position in range(1, n):
        job = sim.scratch[position]
        key = sim.key[which, entry_of(sim, job)]
        # One comparison decides for most jobs; ties go by index.
        if key <= least and (key < least or job < first):
            at = position
            first = job
            least = key
    return at


@kernel
def sift_down(sim: Sim, which: int, position: int, n: int) -> None:
    """Move a job down the heap until it precedes both children; the places below are a heap."""
    job = sim.scratch[position]
    while 2 * position + 1 < n:
        child = 2 * position + 1
        if child + 1 < n and precedes(sim, which, sim.scratch[child + 1], sim.scratch[child]):
            child += 1
        if precedes(sim, which, job, sim.scratch[child]):
            break
        sim.scratch[position] = sim.scratch[child]
        position = child
    sim.scratch[position] = job


@kernel
def make_heap(sim: Sim, which: int, n: int) -> None:
    """Make a heap of the listed jobs in O(n), the first of them on top."""
    for position in range(n // 2 - 1, -1, -1):
        sift_down(sim, which, position, n)


@kernel(inlined=True)
def take_first(sim: Sim, which: int, n: int, taken: int) -> int:
    """Remove the first of n listed jobs and return it; `taken` jobs were removed before.

    Writes `scratch`, which lists n - 1 jobs afterwards.
    """
    # A list only shrinks, so one that is long now was long when the heap was made.
    is_long = n > SHORT_LIST and taken >= FEW_TAKEN
    if is_long and taken == FEW_TAKEN:
        make_heap(sim, which, n)
    position = 0 if is_long else find_first(sim, which, n)
    job = sim.scratch[position]
    sim.scratch[position] = sim.scratch[n - 1]
    if is_long:
        sift_down(sim, which, 0, n - 1)
    return job


@kernel(inlined=True)
def reverse_listed(sim: Sim, first: int, end: int) -> None:
    """List the jobs from place `first` to before `end` in reverse."""
    for position in range((end - first) // 2):
        job = sim.scratch[first + position]
        sim.scratch[first + position] = sim.scratch[end - 1 - position]
        sim.scratch[end - 1 - position] = job


@kernel
def sort_listed(sim: Sim, which: int, n: int) -> None:
    """Sort the listed jobs with a heap, in place, in O(n log n)."""
    for taken in range(n):
        job = take_first(sim, which, n - taken, taken)
        # The place is free now. The list comes out in reverse.
        sim.scratch[n - 1 - taken] = job
    reverse_listed(sim, 0, n)
