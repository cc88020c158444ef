"""A queue kept in order: blocks of jobs, each with bounds on what its jobs ask for.

Jobs stand in ascending order of (key, index). A job is put in or taken out in
O(log n + BLOCK_JOBS) steps, plus a shift of the directory of blocks and their bounds, at most
n / BLOCK_JOBS entries, when a block fills up or empties. A search for jobs that may start skips
every block whose bounds rule all of its jobs out: its least processors, and the least estimate of
its jobs of at most each size class. The former is exact at every instant; the latter may be too low
after a job has left, and is worked out anew when a search has looked through the block.
"""

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.records import Jobs, Row
from hpcgym.core.state import BLOCK_JOBS, LENGTH, N_BLOCKS, NEVER, SIZE_CLASSES


@kernel
def clear_queue(row: Row, which: int) -> None:
    """Take every job out, in constant time.

    Args:
        row: The simulation.
        which: The queue.

    Writes:
        `used`.

    Source:
        House rule: the directory stays a permutation of the blocks, so nothing is freed.
    """
    row.queue_used[which, N_BLOCKS] = 0
    row.queue_used[which, LENGTH] = 0


@kernel(inlined=True)
def precedes(row: Row, which: int, job: int, other: int) -> bool:
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
    return row.key[which, job] < row.key[which, other] or (
        row.key[which, job] == row.key[which, other] and job < other
    )


@kernel(inlined=True)
def first_job(row: Row, which: int) -> int:
    """Return the first job of a queue.

    Args:
        row: The simulation.
        which: The queue.

    Returns:
        Its index, -1 if the queue is empty.

    Source:
        House rule: one word per thing.
    """
    if row.queue_used[which, N_BLOCKS] == 0:
        return -1
    return row.block_job[which, row.block_order[which, 0], 0]


@kernel(inlined=True)
def least_processors(row: Row, which: int) -> int:
    """Return the smallest request in a queue, in n / BLOCK_JOBS steps.

    Args:
        row: The simulation.
        which: The queue.

    Returns:
        Processors, `NEVER` if the queue is empty.

    Source:
        House rule: a pass is needed only if some job fits.
    """
    least = NEVER
    for place in range(row.queue_used[which, N_BLOCKS]):
        least = min(least, row.block_processors[which, place])
    return least


@kernel(inlined=True)
def find_block(row: Row, which: int, job: int) -> int:
    """Find the block a job stands in, or belongs in.

    Args:
        row: The simulation.
        which: A queue that is not empty.
        job: Index of the job, its key set.

    Returns:
        Place in the directory of the last block whose first job is not after the job, else 0.

    Source:
        House rule: binary search over the first jobs.
    """
    low = 0
    high = row.queue_used[which, N_BLOCKS]
    while high - low > 1:
        middle = (low + high) // 2
        if precedes(row, which, job, row.block_job[which, row.block_order[which, middle], 0]):
            high = middle
        else:
            low = middle
    return low


@kernel(inlined=True)
def find_in_block(row: Row, which: int, block: int, job: int) -> int:
    """Find where in a block a newcomer belongs.

    Args:
        row: The simulation.
        which: The queue.
        block: The block.
        job: Index of the job, its key set.

    Returns:
        Number of jobs of the block that stand before it.

    Source:
        House rule: binary search.
    """
    low = 0
    high = row.block_size[which, block]
    if high > 0 and precedes(row, which, row.block_job[which, block, high - 1], job):
        return high
    while low < high:
        middle = (low + high) // 2
        if precedes(row, which, row.block_job[which, block, middle], job):
            low = middle + 1
        else:
            high = middle
    return low


@kernel(inlined=True)
def size_class_of(processors: int) -> int:
    """Return the class of a number of processors.

    Args:
        processors: Processors, >= 1.

    Returns:
        The class, 0 to SIZE_CLASSES - 1.

    Source:
        House rule: classes double, so few of them bound jobs of every width.
    """
    size_class = 0
    while processors > 1 and size_class < SIZE_CLASSES - 1:
        processors >>= 1
        size_class += 1
    return size_class


@kernel(inlined=True)
def clear_bounds(row: Row, which: int, place: int) -> None:
    """Set the bounds of a block to those of no job.

    Args:
        row: The simulation.
        which: The queue.
        place: Where in the directory the block stands.

    Writes:
        `block_processors` and `block_estimate` of the block.

    Source:
        House rule: a bound is never too high, so a skipped block never hides a job.
    """
    row.block_processors[which, place] = NEVER
    row.block_is_loose[which, place] = 0
    for size_class in range(SIZE_CLASSES):
        row.block_estimate[which, size_class, place] = NEVER


@kernel(inlined=True)
def lower_bounds(
    row: Row, which: int, place: int, processors: int, size_class: int, estimate: int
) -> None:
    """Lower the bounds of a block to those of a job it takes in.

    Args:
        row: The simulation.
        which: The queue.
        place: Where in the directory the block stands.
        processors: Processors of the job.
        size_class: Their class.
        estimate: Estimate of the job, s.

    Writes:
        `block_processors` and `block_estimate` of the block.

    Source:
        House rule: a bound is never too high, so a skipped block never hides a job.
    """
    if processors < row.block_processors[which, place]:
        row.block_processors[which, place] = processors
    while size_class < SIZE_CLASSES and estimate < row.block_estimate[which, size_class, place]:
        row.block_estimate[which, size_class, place] = estimate
        size_class += 1


@kernel
def measure_block(jobs: Jobs, row: Row, which: int, place: int) -> None:
    """Work out the bounds of a block anew.

    Args:
        jobs: The job table.
        row: The simulation.
        which: The queue.
        place: Where in the directory the block stands.

    Writes:
        `block_processors` and `block_estimate` of the block.

    Source:
        House rule: a bound is never too high, so a skipped block never hides a job.
    """
    clear_bounds(row, which, place)
    block = row.block_order[which, place]
    for spot in range(row.block_size[which, block]):
        job = row.block_job[which, block, spot]
        lower_bounds(
            row, which, place, jobs.processors[job], jobs.size_class[job], jobs.estimate[job]
        )


@kernel
def raise_processors(jobs: Jobs, row: Row, which: int, place: int) -> None:
    """Work out the least processors of a block that has lost a job with as few.

    Args:
        jobs: The job table.
        row: The simulation.
        which: The queue.
        place: Where in the directory the block stands.

    Writes:
        `block_processors` of the block; looks no further than the next job with as few.

    Source:
        House rule: whether some job fits must be exact, since decisions depend on it.
    """
    block = row.block_order[which, place]
    least = NEVER
    for spot in range(row.block_size[which, block]):
        least = min(least, jobs.processors[row.block_job[which, block, spot]])
        if least == row.block_processors[which, place]:
            return
    row.block_processors[which, place] = least


@kernel
def move_bounds(row: Row, which: int, place: int, to: int) -> None:
    """Move the bounds of a block along with it.

    Args:
        row: The simulation.
        which: The queue.
        place: Where in the directory the block stood.
        to: Where it stands now.

    Writes:
        `block_processors` and `block_estimate` at `to`.

    Source:
        House rule: bounds lie in queue order, so a search reads them in one sweep.
    """
    row.block_processors[which, to] = row.block_processors[which, place]
    row.block_is_loose[which, to] = row.block_is_loose[which, place]
    for size_class in range(SIZE_CLASSES):
        row.block_estimate[which, size_class, to] = row.block_estimate[which, size_class, place]


@kernel
def open_block(row: Row, which: int, place: int) -> int:
    """Put an unused block into the directory.

    Args:
        row: The simulation.
        which: The queue.
        place: Where in the directory.

    Returns:
        The block, with no job in it.

    Writes:
        `order`, `size`, `used`.

    Source:
        House rule: the directory stays a permutation of the blocks.
    """
    last = row.queue_used[which, N_BLOCKS]
    block = row.block_order[which, last]
    for other in range(last, place, -1):
        move_bounds(row, which, other - 1, other)
        row.block_order[which, other] = row.block_order[which, other - 1]
    row.block_order[which, place] = block
    row.block_size[which, block] = 0
    clear_bounds(row, which, place)
    row.queue_used[which, N_BLOCKS] = last + 1
    return block


@kernel
def close_block(row: Row, which: int, place: int) -> None:
    """Take an empty block out of the directory.

    Args:
        row: The simulation.
        which: The queue.
        place: Where in the directory it stands.

    Writes:
        `order`, `used`.

    Source:
        House rule: the directory stays a permutation of the blocks.
    """
    last = row.queue_used[which, N_BLOCKS] - 1
    block = row.block_order[which, place]
    for other in range(place, last):
        move_bounds(row, which, other + 1, other)
        row.block_order[which, other] = row.block_order[which, other + 1]
    row.block_order[which, last] = block
    row.queue_used[which, N_BLOCKS] = last


@kernel
def split_block(jobs: Jobs, row: Row, which: int, place: int) -> None:
    """Move the later half of a full block into a block of its own behind it.

    Args:
        jobs: The job table.
        row: The simulation.
        which: The queue.
        place: Where in the directory the full block stands.

    Writes:
        Both blocks and the directory.

    Source:
        House rule: blocks of bounded size keep a shift short.
    """
    full = row.block_order[which, place]
    block = open_block(row, which, place + 1)
    half = BLOCK_JOBS // 2
    for moved in range(half, BLOCK_JOBS):
        row.block_job[which, block, moved - half] = row.block_job[which, full, moved]
    row.block_size[which, full] = half
    row.block_size[which, block] = BLOCK_JOBS - half
    measure_block(jobs, row, which, place)
    measure_block(jobs, row, which, place + 1)


@kernel
def merge_block(row: Row, which: int, place: int) -> None:
    """Move the jobs of the next block into this one and close it.

    Args:
        row: The simulation.
        which: The queue.
        place: Where in the directory the earlier of the two blocks stands.

    Writes:
        Both blocks and the directory.

    Source:
        House rule: two neighbours hold more than half a block between them, so blocks stay few.
    """
    block = row.block_order[which, place]
    following = row.block_order[which, place + 1]
    size = row.block_size[which, block]
    for moved in range(row.block_size[which, following]):
        row.block_job[which, block, size + moved] = row.block_job[which, following, moved]
    row.block_size[which, block] = size + row.block_size[which, following]
    row.block_is_loose[which, place] |= row.block_is_loose[which, place + 1]
    least = row.block_processors[which, place + 1]
    for size_class in range(SIZE_CLASSES):
        estimate = row.block_estimate[which, size_class, place + 1]
        lower_bounds(row, which, place, least, size_class, estimate)
    close_block(row, which, place + 1)


@kernel
def make_room(jobs: Jobs, row: Row, which: int, place: int, job: int) -> int:
    """Make room for a job that belongs in a full block.

    Args:
        jobs: The job table.
        row: The simulation.
        which: The queue.
        place: Where in the directory the full block stands.
        job: Index of the job, its key set.

    Returns:
        Where in the directory the block stands that the job belongs in now.

    Writes:
        A new block behind the full one: an empty one where the queue grows at its end, else one
        with its later half.

    Source:
        House rule: a queue that grows at its end has full blocks.
    """
    block = row.block_order[which, place]
    is_last = place + 1 == row.queue_used[which, N_BLOCKS]
    if is_last and precedes(row, which, row.block_job[which, block, BLOCK_JOBS - 1], job):
        open_block(row, which, place + 1)
        return place + 1
    split_block(jobs, row, which, place)
    return find_block(row, which, job)


@kernel
def put_in(jobs: Jobs, row: Row, which: int, job: int) -> None:
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
    row.queue_used[which, LENGTH] += 1
    if row.queue_used[which, N_BLOCKS] == 0:
        open_block(row, which, 0)
    place = find_block(row, which, job)
    if row.block_size[which, row.block_order[which, place]] == BLOCK_JOBS:
        place = make_room(jobs, row, which, place, job)
    block = row.block_order[which, place]
    spot = find_in_block(row, which, block, job)
    for other in range(row.block_size[which, block], spot, -1):
        row.block_job[which, block, other] = row.block_job[which, block, other - 1]
    row.block_job[which, block, spot] = job
    row.block_size[which, block] += 1
    lower_bounds(row, which, place, jobs.processors[job], jobs.size_class[job], jobs.estimate[job])


@kernel
def take_out(jobs: Jobs, row: Row, which: int, job: int) -> None:
    """Take a job out of its place.

    Args:
        jobs: The job table.
        row: The simulation.
        which: A queue that holds the job.
        job: Index of the job, its key as it was when put in.

    Writes:
        The block the job stood in and its bounds; closes it when empty, merges it with the next
        when both are nearly so.

    Source:
        House rule: the order is kept, not made anew at each pass.
    """
    row.queue_used[which, LENGTH] -= 1
    place = find_block(row, which, job)
    block = row.block_order[which, place]
    last = row.block_size[which, block] - 1
    spot = 0
    while row.block_job[which, block, spot] != job:
        spot += 1
    for other in range(spot, last):
        row.block_job[which, block, other] = row.block_job[which, block, other + 1]
    row.block_size[which, block] = last
    if last == 0:
        close_block(row, which, place)
        return
    if jobs.estimate[job] == row.block_estimate[which, jobs.size_class[job], place]:
        row.block_is_loose[which, place] = 1
    if jobs.processors[job] == row.block_processors[which, place]:
        raise_processors(jobs, row, which, place)
    if (
        place + 1 < row.queue_used[which, N_BLOCKS]
        and last + row.block_size[which, row.block_order[which, place + 1]] <= BLOCK_JOBS // 2
    ):
        merge_block(row, which, place)


@kernel
def list_jobs(row: Row, which: int, listed: NDArray[np.int64]) -> int:
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
    for place in range(row.queue_used[which, N_BLOCKS]):
        block = row.block_order[which, place]
        for spot in range(row.block_size[which, block]):
            listed[n] = row.block_job[which, block, spot]
            n += 1
    return n
