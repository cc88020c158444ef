"""A queue kept in order: blocks of jobs, each with its least processors and least estimate.

Jobs stand in ascending order of (key, index). A job is put in or taken out in
O(log n + BLOCK_JOBS) steps, plus a shift of the block directory (n / BLOCK_JOBS entries at most)
when a block fills up or empties; a search for jobs that may start skips every block whose least
processors or least estimate rules all of its jobs out.
"""

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.records import Jobs, Queue
from hpcgym.core.state import BLOCK_JOBS, LENGTH, N_BLOCKS, NEVER


@kernel
def clear_queue(queue: Queue) -> None:
    """Take every job out, in constant time.

    Args:
        queue: The queue.

    Writes:
        `used`.

    Source:
        House rule: the directory stays a permutation of the blocks, so nothing is freed.
    """
    queue.used[N_BLOCKS] = 0
    queue.used[LENGTH] = 0


@kernel
def precedes(queue: Queue, job: int, other: int) -> bool:
    """Tell whether a job stands before another in the queue's order.

    Args:
        queue: The queue whose keys decide.
        job: Index of a job.
        other: Index of another job.

    Returns:
        True if (key, index) of `job` is the smaller.

    Source:
        Specification, section 1, "Queue order": ties by (submit, position).
    """
    return queue.key[job] < queue.key[other] or (queue.key[job] == queue.key[other] and job < other)


@kernel
def first_job(queue: Queue) -> int:
    """Return the first job of a queue.

    Args:
        queue: The queue.

    Returns:
        Its index, -1 if the queue is empty.

    Source:
        House rule: one word per thing.
    """
    if queue.used[N_BLOCKS] == 0:
        return -1
    return queue.job[queue.order[0], 0]


@kernel
def least_processors(queue: Queue) -> int:
    """Return the smallest request in a queue, in n / BLOCK_JOBS steps.

    Args:
        queue: The queue.

    Returns:
        Processors, `NEVER` if the queue is empty.

    Source:
        House rule: a pass is needed only if some job fits.
    """
    least = NEVER
    for place in range(queue.used[N_BLOCKS]):
        least = min(least, queue.processors[queue.order[place]])
    return least


@kernel
def find_block(queue: Queue, job: int) -> int:
    """Find the block a job stands in, or belongs in.

    Args:
        queue: A queue that is not empty.
        job: Index of the job, its key set.

    Returns:
        Place in the directory of the last block whose first job is not after the job, else 0.

    Source:
        House rule: binary search over the first jobs.
    """
    low = 0
    high = queue.used[N_BLOCKS]
    while high - low > 1:
        middle = (low + high) // 2
        if precedes(queue, job, queue.job[queue.order[middle], 0]):
            high = middle
        else:
            low = middle
    return low


@kernel
def find_in_block(queue: Queue, block: int, job: int) -> int:
    """Find where in a block a job stands, or belongs.

    Args:
        queue: The queue.
        block: The block.
        job: Index of the job, its key set.

    Returns:
        Number of jobs of the block that stand before it.

    Source:
        House rule: binary search.
    """
    low = 0
    high = queue.size[block]
    while low < high:
        middle = (low + high) // 2
        if precedes(queue, queue.job[block, middle], job):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def measure_block(queue: Queue, jobs: Jobs, block: int) -> None:
    """Work out the least processors and the least estimate of a block anew.

    Args:
        queue: The queue.
        jobs: The job table.
        block: The block.

    Writes:
        `processors` and `estimate` of the block.

    Source:
        House rule: bounds are exact, so a skipped block never hides a job.
    """
    processors = NEVER
    estimate = NEVER
    for place in range(queue.size[block]):
        job = queue.job[block, place]
        processors = min(processors, jobs.processors[job])
        estimate = min(estimate, jobs.estimate[job])
    queue.processors[block] = processors
    queue.estimate[block] = estimate


@kernel
def open_block(queue: Queue, place: int) -> int:
    """Put an unused block into the directory.

    Args:
        queue: The queue.
        place: Where in the directory.

    Returns:
        The block, with no job in it.

    Writes:
        `order`, `size`, `used`.

    Source:
        House rule: the directory stays a permutation of the blocks.
    """
    last = queue.used[N_BLOCKS]
    block = queue.order[last]
    for other in range(last, place, -1):
        queue.order[other] = queue.order[other - 1]
    queue.order[place] = block
    queue.size[block] = 0
    queue.processors[block] = NEVER
    queue.estimate[block] = NEVER
    queue.used[N_BLOCKS] = last + 1
    return block


@kernel
def close_block(queue: Queue, place: int) -> None:
    """Take an empty block out of the directory.

    Args:
        queue: The queue.
        place: Where in the directory it stands.

    Writes:
        `order`, `used`.

    Source:
        House rule: the directory stays a permutation of the blocks.
    """
    last = queue.used[N_BLOCKS] - 1
    block = queue.order[place]
    for other in range(place, last):
        queue.order[other] = queue.order[other + 1]
    queue.order[last] = block
    queue.used[N_BLOCKS] = last


@kernel
def split_block(queue: Queue, jobs: Jobs, place: int) -> None:
    """Move the later half of a full block into a block of its own behind it.

    Args:
        queue: The queue.
        jobs: The job table.
        place: Where in the directory the full block stands.

    Writes:
        Both blocks and the directory.

    Source:
        House rule: blocks of bounded size keep a shift short.
    """
    full = queue.order[place]
    block = open_block(queue, place + 1)
    half = BLOCK_JOBS // 2
    for moved in range(half, BLOCK_JOBS):
        queue.job[block, moved - half] = queue.job[full, moved]
    queue.size[full] = half
    queue.size[block] = BLOCK_JOBS - half
    measure_block(queue, jobs, full)
    measure_block(queue, jobs, block)


@kernel
def merge_block(queue: Queue, place: int) -> None:
    """Move the jobs of the next block into this one and close it.

    Args:
        queue: The queue.
        place: Where in the directory the earlier of the two blocks stands.

    Writes:
        Both blocks and the directory.

    Source:
        House rule: two neighbours hold more than half a block between them, so blocks stay few.
    """
    block = queue.order[place]
    following = queue.order[place + 1]
    size = queue.size[block]
    for moved in range(queue.size[following]):
        queue.job[block, size + moved] = queue.job[following, moved]
    queue.size[block] = size + queue.size[following]
    queue.processors[block] = min(queue.processors[block], queue.processors[following])
    queue.estimate[block] = min(queue.estimate[block], queue.estimate[following])
    close_block(queue, place + 1)


@kernel
def put_in(queue: Queue, jobs: Jobs, job: int) -> None:
    """Put a job into its place.

    Args:
        queue: A queue without the job.
        jobs: The job table.
        job: Index of the job, its key set.

    Writes:
        The block the job belongs in; splits it when full.

    Source:
        House rule: the order is kept, not made anew at each pass.
    """
    queue.used[LENGTH] += 1
    if queue.used[N_BLOCKS] == 0:
        open_block(queue, 0)
    place = find_block(queue, job)
    if queue.size[queue.order[place]] == BLOCK_JOBS:
        split_block(queue, jobs, place)
        place = find_block(queue, job)
    block = queue.order[place]
    spot = find_in_block(queue, block, job)
    for other in range(queue.size[block], spot, -1):
        queue.job[block, other] = queue.job[block, other - 1]
    queue.job[block, spot] = job
    queue.size[block] += 1
    queue.processors[block] = min(queue.processors[block], jobs.processors[job])
    queue.estimate[block] = min(queue.estimate[block], jobs.estimate[job])


@kernel
def take_out(queue: Queue, jobs: Jobs, job: int) -> None:
    """Take a job out of its place.

    Args:
        queue: A queue that holds the job.
        jobs: The job table.
        job: Index of the job, its key as it was when put in.

    Writes:
        The block the job stood in; closes it when empty, merges it with the next when both are
        nearly so.

    Source:
        House rule: the order is kept, not made anew at each pass.
    """
    queue.used[LENGTH] -= 1
    place = find_block(queue, job)
    block = queue.order[place]
    last = queue.size[block] - 1
    for other in range(find_in_block(queue, block, job), last):
        queue.job[block, other] = queue.job[block, other + 1]
    queue.size[block] = last
    if last == 0:
        close_block(queue, place)
        return
    if (
        jobs.processors[job] == queue.processors[block]
        or jobs.estimate[job] == queue.estimate[block]
    ):
        measure_block(queue, jobs, block)
    if (
        place + 1 < queue.used[N_BLOCKS]
        and last + queue.size[queue.order[place + 1]] <= BLOCK_JOBS // 2
    ):
        merge_block(queue, place)


@kernel
def list_jobs(queue: Queue, listed: NDArray[np.int64]) -> int:
    """List the jobs of a queue in order.

    Args:
        queue: The queue.
        listed: Where to, shape (>= jobs in the queue,).

    Returns:
        Number of jobs listed.

    Writes:
        `listed`.

    Source:
        House rule: one way to walk a queue.
    """
    n = 0
    for place in range(queue.used[N_BLOCKS]):
        block = queue.order[place]
        for spot in range(queue.size[block]):
            listed[n] = queue.job[block, spot]
            n += 1
    return n
