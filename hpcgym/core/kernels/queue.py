"""A queue kept in order: blocks of jobs, each with its least processors and least estimate.

Jobs stand in ascending order of (key, index). A job is put in or taken out in
O(log n + BLOCK_JOBS) steps, plus a shift of the block directory (n / BLOCK_JOBS entries at most)
when a block fills up or empties; a search for jobs that may start skips every block whose least
processors or least estimate rules all of its jobs out.
"""

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.records import Jobs, Row
from hpcgym.core.state import BLOCK_JOBS, LENGTH, N_BLOCKS, NEVER


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


@kernel
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


@kernel
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


@kernel
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
        least = min(least, row.block_processors[which, row.block_order[which, place]])
    return least


@kernel
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


@kernel
def find_in_block(row: Row, which: int, block: int, job: int) -> int:
    """Find where in a block a job stands, or belongs.

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
    while low < high:
        middle = (low + high) // 2
        if precedes(row, which, row.block_job[which, block, middle], job):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def measure_block(jobs: Jobs, row: Row, which: int, block: int) -> None:
    """Work out the least processors and the least estimate of a block anew.

    Args:
        jobs: The job table.
        row: The simulation.
        which: The queue.
        block: The block.

    Writes:
        `processors` and `estimate` of the block.

    Source:
        House rule: bounds are exact, so a skipped block never hides a job.
    """
    processors = NEVER
    estimate = NEVER
    for place in range(row.block_size[which, block]):
        job = row.block_job[which, block, place]
        processors = min(processors, jobs.processors[job])
        estimate = min(estimate, jobs.estimate[job])
    row.block_processors[which, block] = processors
    row.block_estimate[which, block] = estimate


@kernel
def lower_block(row: Row, which: int, block: int, processors: int, estimate: int) -> None:
    """Lower the bounds of a block to those of jobs it takes in.

    Args:
        row: The simulation.
        which: The queue.
        block: The block.
        processors: Least processors of the jobs.
        estimate: Least estimate of the jobs, s.

    Writes:
        `block_processors` and `block_estimate` of the block.

    Source:
        House rule: bounds are exact, so a skipped block never hides a job.
    """
    row.block_processors[which, block] = min(row.block_processors[which, block], processors)
    row.block_estimate[which, block] = min(row.block_estimate[which, block], estimate)


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
        row.block_order[which, other] = row.block_order[which, other - 1]
    row.block_order[which, place] = block
    row.block_size[which, block] = 0
    row.block_processors[which, block] = NEVER
    row.block_estimate[which, block] = NEVER
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
    measure_block(jobs, row, which, full)
    measure_block(jobs, row, which, block)


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
    row.block_processors[which, block] = min(
        row.block_processors[which, block], row.block_processors[which, following]
    )
    row.block_estimate[which, block] = min(
        row.block_estimate[which, block], row.block_estimate[which, following]
    )
    close_block(row, which, place + 1)


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
        split_block(jobs, row, which, place)
        place = find_block(row, which, job)
    block = row.block_order[which, place]
    spot = find_in_block(row, which, block, job)
    for other in range(row.block_size[which, block], spot, -1):
        row.block_job[which, block, other] = row.block_job[which, block, other - 1]
    row.block_job[which, block, spot] = job
    row.block_size[which, block] += 1
    row.block_processors[which, block] = min(
        row.block_processors[which, block], jobs.processors[job]
    )
    row.block_estimate[which, block] = min(row.block_estimate[which, block], jobs.estimate[job])


@kernel
def take_out(jobs: Jobs, row: Row, which: int, job: int) -> None:
    """Take a job out of its place.

    Args:
        jobs: The job table.
        row: The simulation.
        which: A queue that holds the job.
        job: Index of the job, its key as it was when put in.

    Writes:
        The block the job stood in; closes it when empty, merges it with the next when both are
        nearly so.

    Source:
        House rule: the order is kept, not made anew at each pass.
    """
    row.queue_used[which, LENGTH] -= 1
    place = find_block(row, which, job)
    block = row.block_order[which, place]
    last = row.block_size[which, block] - 1
    for other in range(find_in_block(row, which, block, job), last):
        row.block_job[which, block, other] = row.block_job[which, block, other + 1]
    row.block_size[which, block] = last
    if last == 0:
        close_block(row, which, place)
        return
    if (
        jobs.processors[job] == row.block_processors[which, block]
        or jobs.estimate[job] == row.block_estimate[which, block]
    ):
        measure_block(jobs, row, which, block)
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
