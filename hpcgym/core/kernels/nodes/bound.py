"""When a job can start at the earliest, by the cpus of its component: a bound on reservations.

The profile (`hpcgym.core.kernels.passes.profile`) counts each job with the cpus that it asks for,
and nodes that are down with theirs. So it never says less than what is free on nodes. An instant
that it refuses needs no look at nodes. It says so in a step for each event.

Only conservative backfilling keeps it. With few reservations the nodes themselves are as quick.
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.nodes.rooms import component_of
from hpcgym.core.kernels.types import Jobs, Sim


@kernel
def make_bound(jobs: Jobs, sim: Sim, of: int) -> None:
    """Make the profile of the running jobs of the component that a job is of."""
    component = component_of(jobs, of)
    free = jobs.limit[jobs.need[jobs.shape[of], s.NEED_PARTITION], s.LIMIT_CPUS]
    for position in range(sim.n_releases):
        job = sim.release_job[position]
        if component_of(jobs, job) == component:
            free -= jobs.processors[job]
    last = 0
    sim.profile_time[0] = sim.now
    sim.profile_free[0] = free
    for position in range(sim.n_releases - 1, -1, -1):
        job = sim.release_job[position]
        if component_of(jobs, job) != component:
            continue
        free += jobs.processors[job]
        if sim.release_time[position] > sim.profile_time[last]:
            last += 1
            sim.profile_time[last] = sim.release_time[position]
        sim.profile_free[last] = free
    sim.n_profile = last + 1


@kernel
def find_hole(jobs: Jobs, sim: Sim, job: int, first: int) -> int:
    """Return the first instant from `first` on at which the profile has a hole for a job, s."""
    processors, duration = jobs.processors[job], jobs.estimate[job]
    start = first
    # The last step fits: the component is empty then.
    for step in range(sim.n_profile - 1):
        end = sim.profile_time[step + 1]
        if end <= first:
            continue
        if sim.profile_free[step] < processors:
            start = end
        elif end - start >= duration:
            return start
    return start
