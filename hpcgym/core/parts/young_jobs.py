"""The running jobs in rows, and which of them are young enough to give way to trials.

Jobs on trial are not among them. What is known of a job elsewhere is not in the cache, so rows hold
what is asked of each running job at every pass. There are none where no job gives way and no
observation shows any.

Cost: O(running jobs) for a job that leaves the machine and for a look at the young ones. Rows are
put by area where they are shown, or give way: O(running jobs), and a step for each two that have
changed places since the last time.

Source: Specification, section 15, "Young jobs give way".
"""

import math
from typing import Any

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.nodes.rooms import component_of
from hpcgym.core.kernels.queue.entries import is_overdue
from hpcgym.core.kernels.types import Jobs

N_ROW_COLUMNS = 4

# Columns of `Sim.row_of_running`: the job's index; since when it runs usefully, s; its processors;
# 1 = it may give way, but for its age, its width and the threshold.
JOB, SINCE, PROCESSORS, GIVES_WAY = range(N_ROW_COLUMNS)


@kernel(inlined=True)
def age_at(sim: Any, position: int) -> int:
    """Return the age of the job in a row, s; below 0 if it runs usefully later."""
    return sim.now - sim.row_of_running[position, SINCE]


@kernel(inlined=True)
def area_at(sim: Any, position: int) -> int:
    """Return the processors of the job in a row times its age, processor-s."""
    return sim.row_of_running[position, PROCESSORS] * age_at(sim, position)


@kernel(inlined=True)
def may_be_killed(jobs: Jobs, job: int) -> bool:
    """Tell whether a job may be killed and started again."""
    return len(jobs.requeue) == 0 or jobs.requeue[job] == s.MAY_BE_KILLED


@kernel(inlined=True)
def keeps_rows(sim: Any) -> bool:
    """Tell whether rows are kept, which does not change during an episode."""
    return sim.show_trials == 1 or sim.young > 0.0


@kernel
def add_row(jobs: Jobs, sim: Any, job: int, since: int) -> None:
    """Add the row of a job that starts, and runs usefully from an instant on, s."""
    if not keeps_rows(sim):
        return
    gives_way = (
        jobs.requested_time[job] > sim.long_request
        and sim.n_gave_way[job] < sim.most_times
        and may_be_killed(jobs, job)
    )
    row = sim.row_of_running[sim.n_rows]
    row[JOB], row[SINCE] = job, since
    row[PROCESSORS], row[GIVES_WAY] = jobs.processors[job], int(gives_way)
    sim.n_rows += 1


@kernel
def remove_row(sim: Any, job: int) -> None:
    """Remove the row of a job, which has one where rows are kept."""
    if not keeps_rows(sim):
        return
    rows = sim.row_of_running
    last = sim.n_rows - 1
    position = last
    while rows[position, JOB] != job:
        position -= 1
    for later in range(position, last):
        for column in range(N_ROW_COLUMNS):
            rows[later, column] = rows[later + 1, column]
    sim.n_rows = last


@kernel(inlined=True)
def is_in_turn(sim: Any, position: int) -> bool:
    """Tell whether a row belongs behind the one before it: the least area is last."""
    area, before = area_at(sim, position), area_at(sim, position - 1)
    rows = sim.row_of_running
    return before > area or (before == area and rows[position - 1, JOB] > rows[position, JOB])


@kernel
def put_rows_by_area(sim: Any) -> None:
    """Put the rows by area as of now, the least last; of equal ones the earlier job."""
    rows = sim.row_of_running
    for behind in range(1, sim.n_rows):
        position = behind
        while position > 0 and not is_in_turn(sim, position):
            for column in range(N_ROW_COLUMNS):
                value = rows[position, column]
                rows[position, column] = rows[position - 1, column]
                rows[position - 1, column] = value
            position -= 1


@kernel(inlined=True)
def may_give_way(sim: Any, position: int, below: int, widest: int) -> int:
    """Return whether the job in a row may give way, below an age, s, and up to so many processors.

    It is 1 or 0, found without a branch.
    """
    row = sim.row_of_running[position]
    age = age_at(sim, position)
    is_young = int(age >= 0) & int(age < below)  # below 0 it does not run usefully yet
    is_narrow = int(row[PROCESSORS] <= widest)
    return row[GIVES_WAY] & is_young & is_narrow & int(not is_overdue(sim, row[JOB]))


@kernel(inlined=True)
def widest_to_give_way(sim: Any, machine: int) -> int:
    """Return on how many processors of a machine a job may run that gives way."""
    return int(min(sim.victim, 1.0) * machine)


@kernel
def count_young(sim: Any) -> int:
    """Count the processors of jobs that may give way now."""
    below, widest = math.ceil(sim.young), widest_to_give_way(sim, sim.machine_processors)
    processors = 0
    for position in range(sim.n_rows):
        giving = may_give_way(sim, position, below, widest)
        processors += giving * sim.row_of_running[position, PROCESSORS]
    return processors


@kernel
def list_victims(jobs: Jobs, sim: Any, component: int, machine: int) -> int:
    """List young jobs of a component, -1 = all, by area run, and return how many.

    Writes `victim_job` and the order of `row_of_running`.
    """
    put_rows_by_area(sim)
    below, widest = math.ceil(sim.young), widest_to_give_way(sim, machine)
    n = 0
    for position in range(sim.n_rows - 1, -1, -1):
        job = sim.row_of_running[position, JOB]
        if may_give_way(sim, position, below, widest) == 1 and (
            component < 0 or component_of(jobs, job) == component
        ):
            sim.victim_job[n] = job
            n += 1
    return n
