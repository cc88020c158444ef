"""The running jobs by age, and which of them are young enough to give way to trials.

Jobs on trial are not among them. The list has a row for each job, so that who looks for young ones
reads little of what is known of jobs elsewhere, which is not in the cache.

Cost: O(1) for a job that starts now, and O(running jobs) at most for one that leaves the machine; a
look at young jobs is at no other.

Source: Specification, section 15, "Young jobs give way".
"""

from typing import Any

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.nodes.rooms import component_of
from hpcgym.core.kernels.queue.entries import is_overdue
from hpcgym.core.kernels.types import Int, Jobs

N_AGE_COLUMNS = 4

# Columns of `Sim.by_age`.
JOB, SINCE, PROCESSORS, GIVES_WAY = range(N_AGE_COLUMNS)


@kernel(inlined=True)
def age_at(sim: Any, position: int) -> int:
    """Return the age of the job at a place of the list, s; below 0 if it runs usefully later."""
    return sim.now - sim.by_age[position, SINCE]


@kernel
def forget_age(sim: Any, job: int) -> None:
    """Take a job off the list, which is on it."""
    by_age = sim.by_age
    last = sim.n_by_age - 1
    position = last
    while by_age[position, JOB] != job:
        position -= 1
    for later in range(position, last):
        for column in range(N_AGE_COLUMNS):
            by_age[later, column] = by_age[later + 1, column]
    sim.n_by_age = last


@kernel(inlined=True)
def may_be_killed(jobs: Jobs, job: int) -> bool:
    """Tell whether a job may be killed and started again."""
    return len(jobs.requeue) == 0 or jobs.requeue[job] == s.MAY_BE_KILLED


@kernel
def list_by_age(jobs: Jobs, sim: Any, job: int, since: int) -> None:
    """List a job that starts, and runs usefully from an instant on, s."""
    by_age, position = sim.by_age, sim.n_by_age
    while position > 0 and by_age[position - 1, SINCE] > since:
        for column in range(N_AGE_COLUMNS):
            by_age[position, column] = by_age[position - 1, column]
        position -= 1
    gives_way = (
        jobs.requested_time[job] > sim.long_request
        and sim.n_gave_way[job] < sim.most_times
        and may_be_killed(jobs, job)
    )
    by_age[position, JOB], by_age[position, SINCE] = job, since
    by_age[position, PROCESSORS], by_age[position, GIVES_WAY] = jobs.processors[job], int(gives_way)
    sim.n_by_age += 1


@kernel(inlined=True)
def may_give_way(sim: Any, position: int, machine: int) -> bool:
    """Tell whether a young job of the list may give way on a machine of so many processors."""
    return (
        sim.by_age[position, GIVES_WAY] != 0
        and age_at(sim, position) >= 0  # else it does not run usefully yet
        and sim.by_age[position, PROCESSORS] <= sim.victim * machine
        and not is_overdue(sim, sim.by_age[position, JOB])
    )


@kernel
def count_young(sim: Any, young: float) -> None:
    """Count the processors of jobs below an age, s, that may give way; write `young_processors`."""
    young_processors = 0
    for at in range(sim.n_by_age - 1, -1, -1):
        if age_at(sim, at) >= young:
            break
        if may_give_way(sim, at, sim.machine_processors):
            young_processors += sim.by_age[at, PROCESSORS]
    sim.young_processors = young_processors


@kernel(inlined=True)
def put_by_area(listed: Int, areas: Int, n: int, most: int, job: int, area: int) -> int:
    """Put a job into a list of n by area run, ties by number; return how many are listed.

    The list holds the first `most`. Writes `listed` and `areas`.
    """
    position = n
    if n == most:
        position -= 1
        if areas[position] < area or (areas[position] == area and listed[position] < job):
            return n
    while position > 0 and (
        areas[position - 1] > area or (areas[position - 1] == area and listed[position - 1] > job)
    ):
        listed[position] = listed[position - 1]
        areas[position] = areas[position - 1]
        position -= 1
    listed[position] = job
    areas[position] = area
    return min(n + 1, most)


@kernel
def list_victims(jobs: Jobs, sim: Any, component: int, machine: int) -> int:
    """List young jobs of a component, -1 = all, by area run, and return how many."""
    n, most = 0, len(sim.victim_job)
    for at in range(sim.n_by_age - 1, -1, -1):
        age = age_at(sim, at)
        if age >= sim.young:
            break
        job = sim.by_age[at, JOB]
        if may_give_way(sim, at, machine) and (
            component < 0 or component_of(jobs, job) == component
        ):
            area = age * sim.by_age[at, PROCESSORS]
            n = put_by_area(sim.victim_job, sim.victim_area, n, most, job, area)
    return n
