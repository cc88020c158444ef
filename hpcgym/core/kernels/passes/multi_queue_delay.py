"""The delay of long jobs, and how it adapts to the slowdown of short ones.

A job of the last class is held out of sight from its submission until the delay of that instant is
over: it is no pivot, holds no reservation and is not started. The end of its delay is an event.
Jobs that are held stand in a list with the soonest end last: O(1) to look for it, and a shift of
the entries that end sooner to put a job in. The delay is looked at once in `BATCH_JOBS`
completions; the work for each completion is constant.
"""

import math

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.multi_queue_partitions import class_of
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    BATCH_JOBS,
    BATCH_SLOWDOWN,
    DELAY,
    FIRST_DELAY,
    HELD,
    LAST_SLOWDOWN,
    N_BATCH,
    N_BATCH_SHORT,
    N_CLASSES,
    N_EVENTS,
    N_HELD,
    NEVER,
    PRINTED_DELTA,
    TOLERANCE,
)


@kernel(inlined=True)
def is_held(sim: Sim, job: int) -> bool:
    """Tell whether a waiting job is out of sight.

    Args:
        row: The simulation.
        job: Index of a waiting job.

    Returns:
        True until its delay is over.

    Source:
        Lawson, Smirni, Puiu 2002, section 4.2.
    """
    return sim.flag[job] & HELD != 0


@kernel(inlined=True)
def next_eligible(sim: Sim) -> int:
    """Return the instant at which the next delay is over.

    Args:
        row: The simulation.

    Returns:
        s, `NEVER` if no job is held.

    Source:
        Specification, section 7: the expiry is an event.
    """
    if sim.counter[N_HELD] == 0:
        return NEVER
    return sim.held_time[sim.counter[N_HELD] - 1]


@kernel
def hold_job(jobs: Jobs, sim: Sim, job: int) -> None:
    """Hold a newcomer back if it is of the last class and there is a delay now.

    Args:
        jobs: The job table.
        row: The simulation, its clock at the submission.
        job: Index of the newcomer.

    Writes:
        HELD in the job's flag, `held_*` (ties: the earlier job first), N_HELD.

    Source:
        Lawson, Smirni, Puiu 2002, section 4.2: not before t_s + D, the D of its submission.
    """
    is_last = class_of(jobs, sim, job) == int(sim.backfill_parameter[N_CLASSES]) - 1
    if not is_last or sim.gauge[DELAY] <= 0.0:
        return
    end = jobs.submit_time[job] + math.ceil(sim.gauge[DELAY])
    place = sim.counter[N_HELD]
    sim.counter[N_HELD] = place + 1
    while place > 0 and sim.held_time[place - 1] <= end:
        sim.held_time[place] = sim.held_time[place - 1]
        sim.held_job[place] = sim.held_job[place - 1]
        place -= 1
    sim.held_time[place] = end
    sim.held_job[place] = job
    sim.flag[job] = HELD


@kernel(inlined=True)
def admit_job(sim: Sim) -> None:
    """Let the job whose delay is over next be seen.

    Args:
        row: The simulation, its clock at that instant.

    Writes:
        The job's flag, N_HELD, N_EVENTS.

    Source:
        Specification, section 7: the expiry is an event.
    """
    sim.counter[N_HELD] -= 1
    sim.counter[N_EVENTS] += 1
    sim.flag[sim.held_job[sim.counter[N_HELD]]] = 0


@kernel
def record_slowdown(jobs: Jobs, sim: Sim, job: int) -> None:
    """Count a completed job into its batch, and close the batch if it is the last one.

    Args:
        jobs: The job table.
        row: The simulation, its clock at the job's end.
        job: Index of the job.

    Writes:
        N_BATCH, N_BATCH_SHORT, BATCH_SLOWDOWN; what `close_batch` writes.

    Source:
        Lawson, Smirni, Puiu 2002, section 4.2; specification, section 7: short means class 1, and
        jobs without a run time have no slowdown.
    """
    run_time = jobs.run_time[job]
    if run_time > 0 and class_of(jobs, sim, job) == 0:
        wait = sim.start_time[job] - jobs.submit_time[job]
        sim.gauge[BATCH_SLOWDOWN] += 1.0 + wait / run_time
        sim.counter[N_BATCH_SHORT] += 1
    sim.counter[N_BATCH] += 1
    if sim.counter[N_BATCH] >= sim.backfill_parameter[BATCH_JOBS]:
        close_batch(sim)


@kernel
def close_batch(sim: Sim) -> None:
    """Change the delay by how much the slowdown of short jobs has changed (steps 1 to 3).

    A batch without short jobs changes nothing; the first batch with some is the first of all.

    Args:
        row: The simulation.

    Writes:
        DELAY, LAST_SLOWDOWN; the batch's sums, to 0.

    Source:
        Lawson, Smirni, Puiu 2002, section 4.2; specification, section 7, "Adaptive delay".
    """
    if sim.counter[N_BATCH_SHORT] > 0:
        slowdown = sim.gauge[BATCH_SLOWDOWN] / sim.counter[N_BATCH_SHORT]
        last = sim.gauge[LAST_SLOWDOWN]
        change = 0.0
        if last > 0.0:
            change = (slowdown - last) / max(slowdown, last)  # step 1
        elif sim.backfill_parameter[PRINTED_DELTA] == 1.0:
            change = slowdown
        if abs(change) > sim.backfill_parameter[TOLERANCE]:  # step 2, else step 3
            changed = sim.gauge[DELAY] + change * sim.backfill_parameter[FIRST_DELAY]
            sim.gauge[DELAY] = max(changed, 0.0)
        sim.gauge[LAST_SLOWDOWN] = slowdown
    sim.gauge[BATCH_SLOWDOWN] = 0.0
    sim.counter[N_BATCH] = 0
    sim.counter[N_BATCH_SHORT] = 0
