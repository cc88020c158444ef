"""The profile: how many processors are free from when on, by estimates.

A step function of time from now on, in two arrays: from `profile_time[k]` until the next step,
`profile_free[k]` processors are free; after the last step all of the machine is. No two neighbours
are equal, so that it has at most one step per running job and two per reservation, and as many
elements are written. A pass makes the profile, takes reservations out of it and forgets it.

A running job past its estimate counts as free from now on, so that the profile may promise more
for now than `FREE` has: a job starts only if it fits both.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import FREE, N_PROFILE, N_RELEASES, NOW


@kernel
def make_profile(jobs: Jobs, sim: Sim) -> None:
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
    free = sim.counter[FREE]
    sim.profile_time[0] = sim.counter[NOW]
    sim.profile_free[0] = free
    for place in range(sim.counter[N_RELEASES] - 1, -1, -1):
        release = sim.release_time[place]
        free += jobs.processors[sim.release_job[place]]
        if release > sim.profile_time[last]:  # else it ends with another, or should have ended
            last += 1
            sim.profile_time[last] = release
        sim.profile_free[last] = free
    sim.counter[N_PROFILE] = last + 1


@kernel
def find_start(sim: Sim, processors: int, duration: int) -> int:
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
    last = sim.counter[N_PROFILE] - 1
    start = sim.profile_time[0]
    for step in range(last):
        if sim.profile_free[step] < processors:
            start = sim.profile_time[step + 1]
        elif sim.profile_time[step + 1] - start >= duration:
            return start
    return start


@kernel
def is_free_now(sim: Sim, processors: int, duration: int) -> bool:
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
    until = sim.profile_time[0] + duration
    for step in range(sim.counter[N_PROFILE]):
        if sim.profile_time[step] >= until:
            return True
        if sim.profile_free[step] < processors:
            return False
    return True


@kernel
def find_step(sim: Sim, instant: int) -> int:
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
    high = sim.counter[N_PROFILE]
    while high - low > 1:
        middle = (low + high) // 2
        if sim.profile_time[middle] <= instant:
            low = middle
        else:
            high = middle
    if sim.profile_time[low] == instant:
        return low
    for step in range(sim.counter[N_PROFILE], high, -1):
        sim.profile_time[step] = sim.profile_time[step - 1]
        sim.profile_free[step] = sim.profile_free[step - 1]
    sim.profile_time[high] = instant
    sim.profile_free[high] = sim.profile_free[low]
    sim.counter[N_PROFILE] += 1
    return high


@kernel
def join_step(sim: Sim, step: int) -> None:
    """Strike a step out if it is equal to the one before, in O(steps).

    Args:
        row: The simulation, its profile made.
        step: The step.

    Writes:
        The profile.

    Source:
        House rule: the profile is as long as there are jobs in it.
    """
    if step == 0 or sim.profile_free[step] != sim.profile_free[step - 1]:
        return
    last = sim.counter[N_PROFILE] - 1
    sim.counter[N_PROFILE] = last
    for other in range(step, last):
        sim.profile_time[other] = sim.profile_time[other + 1]
        sim.profile_free[other] = sim.profile_free[other + 1]


@kernel
def change_profile(sim: Sim, start: int, end: int, change: int) -> None:
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
    first = find_step(sim, start)
    after = find_step(sim, end)
    for step in range(first, after):
        sim.profile_free[step] += change
    join_step(sim, after)
    join_step(sim, first)


@kernel(inlined=True)
def take_interval(jobs: Jobs, sim: Sim, job: int, start: int) -> None:
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
    change_profile(sim, start, start + jobs.estimate[job], -jobs.processors[job])


@kernel(inlined=True)
def give_back_interval(jobs: Jobs, sim: Sim, job: int, start: int) -> None:
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
    change_profile(sim, start, start + jobs.estimate[job], jobs.processors[job])
