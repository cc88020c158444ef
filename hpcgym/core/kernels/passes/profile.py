"""The profile: processors free from now on, by estimates, as a step function of time.

`profile_free[k]` processors are free from `profile_time[k]` until the next step; after the last
step the whole machine is free. Neighbouring steps differ, so the profile has at most one step for
each running job and two for each reservation. A pass makes the profile, takes reservations out of
it, and forgets it. A hole is a part of it in which a job fits for its whole estimate.

A running job past its estimate counts as free from now on. So the profile may promise more
processors for now than `free` has, and a job starts only if it fits both.

Source: Mu'alem and Feitelson 2001; Specification, section 4, "Conservative".
"""

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.types import Jobs, Sim


@kernel
def make_profile(jobs: Jobs, sim: Sim) -> None:
    """Make the profile of the running jobs, which begins now and never falls, in a step per job."""
    last = 0
    free = sim.free
    sim.profile_time[0] = sim.now
    sim.profile_free[0] = free
    for position in range(sim.n_releases - 1, -1, -1):
        release = sim.release_time[position]
        free += jobs.processors[sim.release_job[position]]
        if release > sim.profile_time[last]:  # else it ends with another, or should have ended
            last += 1
            sim.profile_time[last] = release
        sim.profile_free[last] = free
    sim.n_profile = last + 1


@kernel
def find_start(sim: Sim, processors: int, duration: int) -> int:
    """Return the start of the earliest hole for so many processors and seconds, in O(steps)."""
    last = sim.n_profile - 1
    start = sim.profile_time[0]
    # A step with too few processors rules out every start up to its end. The last step always fits.
    for step in range(last):
        if sim.profile_free[step] < processors:
            start = sim.profile_time[step + 1]
        elif sim.profile_time[step + 1] - start >= duration:
            return start
    return start


@kernel
def is_free_now(sim: Sim, processors: int, duration: int) -> bool:
    """Tell whether the earliest hole for so many processors and seconds begins now."""
    until = sim.profile_time[0] + duration
    for step in range(sim.n_profile):
        if sim.profile_time[step] >= until:
            return True
        if sim.profile_free[step] < processors:
            return False
    return True


@kernel(inlined=True)
def find_step(sim: Sim, instant: int) -> int:
    """Return the step that begins at an instant, found in O(log steps) or inserted in O(steps)."""
    low = 0
    high = sim.n_profile
    while high - low > 1:
        middle = (low + high) // 2
        if sim.profile_time[middle] <= instant:
            low = middle
        else:
            high = middle
    if sim.profile_time[low] == instant:
        return low
    # The new step equals the one before until its caller changes it.
    for step in range(sim.n_profile, high, -1):
        sim.profile_time[step] = sim.profile_time[step - 1]
        sim.profile_free[step] = sim.profile_free[step - 1]
    sim.profile_time[high] = instant
    sim.profile_free[high] = sim.profile_free[low]
    sim.n_profile += 1
    return high


@kernel(inlined=True)
def join_step(sim: Sim, step: int) -> None:
    """Remove a step if it equals the one before, in O(steps)."""
    if step == 0 or sim.profile_free[step] != sim.profile_free[step - 1]:
        return
    last = sim.n_profile - 1
    sim.n_profile = last
    for other in range(step, last):
        sim.profile_time[other] = sim.profile_time[other + 1]
        sim.profile_free[other] = sim.profile_free[other + 1]


@kernel
def change_profile(sim: Sim, start: int, end: int, change: int) -> None:
    """Add `change` to the free processors from `start` until `end`, in O(steps)."""
    first = find_step(sim, start)
    after = find_step(sim, end)
    for step in range(first, after):
        sim.profile_free[step] += change
    # Only the ends can equal their neighbours now. The later goes first, as removal moves later
    # steps.
    join_step(sim, after)
    join_step(sim, first)


@kernel(inlined=True)
def take_interval(jobs: Jobs, sim: Sim, job: int, start: int) -> None:
    """Take a job's processors out of the profile from `start` on for its estimate, in O(steps)."""
    change_profile(sim, start, start + jobs.estimate[job], -jobs.processors[job])


@kernel(inlined=True)
def give_back_interval(jobs: Jobs, sim: Sim, job: int, start: int) -> None:
    """Give back what `take_interval` has taken for a job, in O(steps)."""
    change_profile(sim, start, start + jobs.estimate[job], jobs.processors[job])
