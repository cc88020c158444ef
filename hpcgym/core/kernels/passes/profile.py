"""The profile: how many processors are free from when on, by estimates.

A step function of time from now on, in two arrays: from `profile_time[k]` until the next step,
`profile_free[k]` processors are free; after the last step all of the machine is. No two neighbours
are equal, so that it has at most one step per running job and two per reservation, and as many
elements are written. A pass makes the profile, takes reservations out of it and forgets it.

A running job past its estimate counts as free from now on, so that the profile may promise more
for now than `FREE` has: a job starts only if it fits both.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Jobs, Row
from hpcgym.core.state import FREE, N_PROFILE, N_RELEASES, NOW


@kernel
def make_profile(jobs: Jobs, row: Row) -> None:
    """Make the profile of the running jobs alone, in a step per job.

    Args:
        jobs: The job table.
        row: The simulation.

    Writes:
        The profile: it begins now and never falls.

    Source:
        Mu'alem and Feitelson 2001; specification, section 4, "Conservative".
    """
    last = 0
    free = row.counter[FREE]
    row.profile_time[0] = row.counter[NOW]
    row.profile_free[0] = free
    for place in range(row.counter[N_RELEASES] - 1, -1, -1):
        release = row.release_time[place]
        free += jobs.processors[row.release_job[place]]
        if release > row.profile_time[last]:  # else it ends with another, or should have ended
            last += 1
            row.profile_time[last] = release
        row.profile_free[last] = free
    row.counter[N_PROFILE] = last + 1


@kernel
def find_start(row: Row, processors: int, duration: int) -> int:
    """Find the earliest hole, in one walk over the profile up to the end of that hole.

    Args:
        row: The simulation, its profile made.
        processors: Processors wanted, at most the machine's.
        duration: For how long, s, >= 1.

    Returns:
        The earliest instant from which so many processors are free for so long, s.

    Source:
        Mu'alem and Feitelson 2001; specification, section 4, "Conservative".
    """
    last = row.counter[N_PROFILE] - 1
    start = row.profile_time[0]
    for step in range(last):
        if row.profile_free[step] < processors:
            start = row.profile_time[step + 1]
        elif row.profile_time[step + 1] - start >= duration:
            return start
    return start


@kernel
def is_free_now(row: Row, processors: int, duration: int) -> bool:
    """Tell whether processors are free from now on, in one walk over so long a part of the profile.

    Args:
        row: The simulation, its profile made.
        processors: Processors wanted.
        duration: For how long, s, >= 1.

    Returns:
        True if the earliest hole begins now.

    Source:
        Specification, section 8, "Reservation depth k".
    """
    until = row.profile_time[0] + duration
    for step in range(row.counter[N_PROFILE]):
        if row.profile_time[step] >= until:
            return True
        if row.profile_free[step] < processors:
            return False
    return True


@kernel
def find_step(row: Row, instant: int) -> int:
    """Find the step that begins at an instant, in O(log steps), or make it, in O(steps).

    Args:
        row: The simulation, its profile made.
        instant: s, now or later.

    Returns:
        The step.

    Writes:
        The profile, which may have equal neighbours then.

    Source:
        House rule: binary search.
    """
    low = 0
    high = row.counter[N_PROFILE]
    while high - low > 1:
        middle = (low + high) // 2
        if row.profile_time[middle] <= instant:
            low = middle
        else:
            high = middle
    if row.profile_time[low] == instant:
        return low
    for step in range(row.counter[N_PROFILE], high, -1):
        row.profile_time[step] = row.profile_time[step - 1]
        row.profile_free[step] = row.profile_free[step - 1]
    row.profile_time[high] = instant
    row.profile_free[high] = row.profile_free[low]
    row.counter[N_PROFILE] += 1
    return high


@kernel
def join_step(row: Row, step: int) -> None:
    """Strike a step out if it is equal to the one before, in O(steps).

    Args:
        row: The simulation, its profile made.
        step: The step.

    Writes:
        The profile.

    Source:
        House rule: the profile is as long as there are jobs in it.
    """
    if step == 0 or row.profile_free[step] != row.profile_free[step - 1]:
        return
    last = row.counter[N_PROFILE] - 1
    row.counter[N_PROFILE] = last
    for other in range(step, last):
        row.profile_time[other] = row.profile_time[other + 1]
        row.profile_free[other] = row.profile_free[other + 1]


@kernel
def change_profile(row: Row, start: int, end: int, change: int) -> None:
    """Let the free processors of an interval be more or fewer, in O(steps).

    Args:
        row: The simulation, its profile made.
        start: First instant, s, now or later.
        end: First instant after it, s.
        change: By how many processors.

    Writes:
        The profile.

    Source:
        House rule: one way to change the profile.
    """
    first = find_step(row, start)
    after = find_step(row, end)
    for step in range(first, after):
        row.profile_free[step] += change
    join_step(row, after)
    join_step(row, first)


@kernel(inlined=True)
def take_interval(jobs: Jobs, row: Row, job: int, start: int) -> None:
    """Take a job's processors out of the profile for its whole estimate, in O(steps).

    Args:
        jobs: The job table.
        row: The simulation, its profile made.
        job: Index of a waiting job.
        start: Its start or its reservation, s, now or later; so many processors are free then.

    Writes:
        The profile.

    Source:
        Mu'alem and Feitelson 2001; specification, section 4, "Conservative".
    """
    change_profile(row, start, start + jobs.estimate[job], -jobs.processors[job])


@kernel(inlined=True)
def give_back_interval(jobs: Jobs, row: Row, job: int, start: int) -> None:
    """Give a job's processors back to the profile, in O(steps).

    Args:
        jobs: The job table.
        row: The simulation, its profile made.
        job: Index of a waiting job.
        start: From when on they had been taken, s, now or later.

    Writes:
        The profile.

    Source:
        Specification, section 4, "Conservative", `compress="shift"`.
    """
    change_profile(row, start, start + jobs.estimate[job], jobs.processors[job])
