"""The delay of long jobs in multiple-queue backfilling, which adapts to the slowdown of short ones.

A job of the last class is held from its submission until the delay of that instant is over. A held
job is no pivot, has no reservation and does not start. The end of its delay is an event. After each
batch of completions the delay grows if the slowdown of short jobs has grown by more than a
tolerance, and it shrinks likewise.

Held jobs are listed with the soonest end last. Holding a job shifts the entries that end sooner;
all else is O(1).

Source: Lawson, Smirni, Puiu 2002, section 4.2; Specification, section 7, "Adaptive delay".
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
    """Tell whether a waiting job is held, so not eligible yet."""
    return sim.flag[job] & HELD != 0


@kernel(inlined=True)
def next_eligible(sim: Sim) -> int:
    """Return the instant at which the next delay ends, s; `NEVER` if no job is held."""
    if sim.counter[N_HELD] == 0:
        return NEVER
    return sim.held_time[sim.counter[N_HELD] - 1]


@kernel
def hold_job(jobs: Jobs, sim: Sim, job: int) -> None:
    """Hold a newcomer of the last class if there is a delay.

    Writes its flag, `held_*` and `n_held`.
    """
    is_last = class_of(jobs, sim, job) == int(sim.backfill_parameter[N_CLASSES]) - 1
    if not is_last or sim.gauge[DELAY] <= 0.0:
        return
    end = jobs.submit_time[job] + math.ceil(sim.gauge[DELAY])
    place = sim.counter[N_HELD]
    sim.counter[N_HELD] = place + 1
    # Ties: the earlier job becomes eligible first.
    while place > 0 and sim.held_time[place - 1] <= end:
        sim.held_time[place] = sim.held_time[place - 1]
        sim.held_job[place] = sim.held_job[place - 1]
        place -= 1
    sim.held_time[place] = end
    sim.held_job[place] = job
    sim.flag[job] = HELD


@kernel(inlined=True)
def admit_job(sim: Sim) -> None:
    """Make the job whose delay ends now eligible; write its flag, `n_held` and `n_events`."""
    sim.counter[N_HELD] -= 1
    sim.counter[N_EVENTS] += 1
    sim.flag[sim.held_job[sim.counter[N_HELD]]] = 0


@kernel
def record_slowdown(jobs: Jobs, sim: Sim, job: int) -> None:
    """Count a completed job into its batch, and close the batch if it is full."""
    run_time = jobs.run_time[job]
    # Short jobs are those of the first class. Without a run time a job has no slowdown.
    if run_time > 0 and class_of(jobs, sim, job) == 0:
        wait = sim.start_time[job] - jobs.submit_time[job]
        sim.gauge[BATCH_SLOWDOWN] += 1.0 + wait / run_time
        sim.counter[N_BATCH_SHORT] += 1
    sim.counter[N_BATCH] += 1
    if sim.counter[N_BATCH] >= sim.backfill_parameter[BATCH_JOBS]:
        close_batch(sim)


@kernel
def close_batch(sim: Sim) -> None:
    """Change the delay with the mean slowdown of the batch's short jobs, and begin a new batch.

    Writes `delay`, `last_slowdown` and the sums of the batch.
    """
    # A batch without short jobs changes nothing; the first batch with some counts as the first.
    if sim.counter[N_BATCH_SHORT] > 0:
        slowdown = sim.gauge[BATCH_SLOWDOWN] / sim.counter[N_BATCH_SHORT]
        last = sim.gauge[LAST_SLOWDOWN]
        change = 0.0
        if last > 0.0:
            change = (slowdown - last) / max(slowdown, last)  # within [-1, 1]
        elif sim.backfill_parameter[PRINTED_DELTA] == 1.0:
            change = slowdown  # as the paper prints it for the first batch
        if abs(change) > sim.backfill_parameter[TOLERANCE]:  # else the delay stays
            changed = sim.gauge[DELAY] + change * sim.backfill_parameter[FIRST_DELAY]
            sim.gauge[DELAY] = max(changed, 0.0)
        sim.gauge[LAST_SLOWDOWN] = slowdown
    sim.gauge[BATCH_SLOWDOWN] = 0.0
    sim.counter[N_BATCH] = 0
    sim.counter[N_BATCH_SHORT] = 0
