"""Minutes: limits of the processor minutes that running jobs may still need, by their requests.

They fall as time passes. So such a limit has instants of its own, which cost O(waiting jobs) where
one of these fits. A question costs O(1), O(running jobs) where some outrun their requests. Slurm
counts in whole minutes, renewed every PriorityCalcPeriod; here each second counts.

Everything else of these limits is as in `hpcgym.core.parts.limits`.

Source: Specification, section 16, "Limits".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import has_nodes
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.moments import event_number
from hpcgym.core.kernels.passes.easy_dynamic import work_within
from hpcgym.core.kernels.queue.ordered_queue import list_jobs, some_job_fits
from hpcgym.core.kernels.types import IntVector, Jobs, empty
from hpcgym.core.parts import limits
from hpcgym.core.parts.limits import (
    N_KNOWN,
    N_LEVELS,
    LimitSim,
    begin,
    count_everywhere,
    exceeds,
    row_of_group,
)

HEARS = limits.HEARS


class MinutesSim(LimitSim):
    """What limits of minutes add to a simulation, beside what all limits add."""

    group_until: IntVector = empty("shares")  # of each processor when its request is over, added, s
    group_outruns: IntVector = empty("shares")  # running jobs that will outrun their requests
    group_lets_in: IntVector = empty("shares")  # of each event when minutes let a job in next, s


@kernel
def begin_counting(jobs: Jobs, sim: MinutesSim) -> None:
    """Give the groups of the limit that is asked their places, where nothing is needed yet."""
    first = sim.group_places
    begin(jobs, sim)
    for at in range(first, sim.group_places):
        sim.group_until[at] = sim.group_outruns[at] = 0


@kernel(inlined=True)
def most_minutes(jobs: Jobs, sim: MinutesSim, job: int, level: int) -> int:
    """Return the minutes that a level of the limit that is asked allows a job, -1 = any."""
    behind = event_number(jobs, sim, N_LEVELS) * N_KNOWN
    return int(jobs.known[job, jobs.known_first[sim.event] + behind + level])


@kernel
def still_needed(jobs: Jobs, sim: MinutesSim, level: int, at: int, instant: int) -> tuple[int, int]:
    """Return the processor seconds that a group may need from an instant on, and processors.

    No job is to end before.
    """
    cpus = int(sim.group_cpus[at])
    if sim.group_outruns[at] == 0:
        return int(sim.group_until[at] - cpus * instant), cpus
    needed = cpus = 0
    for position in range(sim.n_running):
        job = sim.ending_job[position]
        left = sim.start_time[job] + jobs.requested_time[job] - instant
        if left > 0 and row_of_group(jobs, sim, job, level) == at:
            needed += jobs.processors[job] * left
            cpus += jobs.processors[job]
    return needed, cpus


@kernel
def lets_in_at(jobs: Jobs, sim: MinutesSim, job: int, level: int) -> int:
    """Return when the minutes of a level let a waiting job in if no job ends, s; at least now."""
    at = row_of_group(jobs, sim, job, level)
    most = most_minutes(jobs, sim, job, level)
    instant = sim.now
    if at < 0 or most < 0:
        return instant
    room = 60 * most - jobs.processors[job] * jobs.requested_time[job]
    while True:  # what is needed falls ever more slowly, so no step goes too far
        needed, cpus = still_needed(jobs, sim, level, at, instant)
        if needed <= room:
            return int(instant)
        instant -= (room - needed) // cpus


@kernel
def needs_too_long(jobs: Jobs, sim: MinutesSim, job: int) -> bool:
    """Tell whether minutes of the limit that is asked hold a waiting job."""
    for level in range(event_number(jobs, sim, N_LEVELS)):
        if lets_in_at(jobs, sim, job, level) > sim.now:
            return True
    return False


@kernel
def next_let_in(jobs: Jobs, sim: MinutesSim) -> int:
    """Return when the minutes of a level of the limit that is asked let a waiting job in next, s.

    `NEVER` if they hold none, or none fits. Writes `scratch`.
    """
    following = s.NEVER
    if some_job_fits(sim):
        for position in range(list_jobs(sim, s.BASE_ORDER, sim.scratch)):
            for level in range(event_number(jobs, sim, N_LEVELS)):
                instant = lets_in_at(jobs, sim, sim.scratch[position], level)
                if instant > sim.now:
                    following = min(following, instant)
    sim.group_lets_in[sim.event] = following
    return int(following)


@kernel
def lets_in_now(jobs: Jobs, sim: MinutesSim) -> int:
    """Tell whether this is the instant found last, so that a pass is due."""
    is_due = sim.group_lets_in[sim.event] == sim.now
    if is_due and has_nodes(jobs):
        sim.due[:] = 1
    return int(is_due)


@kernel
def count_minutes(jobs: Jobs, sim: MinutesSim, job: int, sign: int) -> None:
    """Count the request of a job that starts, or with `sign` -1 of one that leaves."""
    requested = jobs.requested_time[job]
    until = jobs.processors[job] * (sim.start_time[job] + requested)
    for level in range(event_number(jobs, sim, N_LEVELS)):
        at = row_of_group(jobs, sim, job, level)
        if at >= 0:
            sim.group_until[at] += sign * until
            sim.group_outruns[at] += sign * int(jobs.run_time[job] > requested)


def work(jobs: Jobs, sim: MinutesSim, task: int, argument: int) -> int:
    """Do a task; `argument` is a job, an instant, or what a pass goes by."""
    if task == s.IS_BLOCKED:
        return int(exceeds(jobs, sim, argument) == 1 or needs_too_long(jobs, sim, argument))
    if task & (s.ON_START | s.ON_END | s.ON_LOSE | s.ON_EVICT) != 0:
        count_minutes(jobs, sim, argument, 1 if task == s.ON_START else -1)
    if task & (s.ON_SUBMIT | s.ON_START | s.ON_END | s.ON_LOSE | s.ON_EVICT) != 0:
        count_everywhere(jobs, sim, task, argument)
    elif task == s.NEXT_INSTANT:
        if sim.limits_begun <= sim.event:  # events are asked in turn
            begin_counting(jobs, sim)
        return next_let_in(jobs, sim)
    elif task == s.ON_INSTANT:
        return lets_in_now(jobs, sim)
    return work_within(jobs, sim, task, argument)
