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

from hpcgym.core.constants import FLAG_HELD, NEVER
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.multi_queue_partitions import class_of
from hpcgym.core.kernels.types import Jobs, Sim


@kernel(inlined=True)
def is_held(sim: Sim, job: int) -> bool:
    """Tell whether a waiting job is held, so not eligible yet."""
    return sim.flag[job] & FLAG_HELD != 0


@kernel(inlined=True)
def next_eligible(sim: Sim) -> int:
    """Return the instant at which the next delay ends, s; `NEVER` if no job is held."""
    if sim.n_held == 0:
        return NEVER
    return sim.held_time[sim.n_held - 1]


@kernel
def hold_job(jobs: Jobs, sim: Sim, job: int) -> None:
    """Hold a newcomer of the last class if there is a delay.

    Writes its flag, `held_*` and `n_held`.
    """
    is_last = class_of(jobs, sim, job) == int(sim.n_classes) - 1
    if not is_last or sim.delay <= 0.0:
        return
    end = jobs.submit_time[job] + math.ceil(sim.delay)
    place = sim.n_held
    sim.n_held = place + 1
    # Ties: the earlier job becomes eligible first.
    while place > 0 and sim.held_time[place - 1] <= end:
        sim.held_time[place] = sim.held_time[place - 1]
        sim.held_job[place] = sim.held_job[place - 1]
        place -= 1
    sim.held_time[place] = end
    sim.held_job[place] = job
    sim.flag[job] = FLAG_HELD


@kernel(inlined=True)
def admit_job(sim: Sim) -> None:
    """Make the job whose delay ends now eligible; write its flag, `n_held` and `n_events`."""
    sim.n_held -= 1
    sim.n_events += 1
    sim.flag[sim.held_job[sim.n_held]] = 0


@kernel
def record_slowdown(jobs: Jobs, sim: Sim, job: int) -> None:
    """Count a completed job into its batch, and close the batch if it is full.

    Writes `n_batch`, `n_batch_short`, `batch_slowdown`, and what `close_batch` writes.
    """
    run_time = jobs.run_time[job]
    # Short jobs are those of the first class. Without a run time a job has no slowdown.
    if run_time > 0 and class_of(jobs, sim, job) == 0:
        wait = sim.start_time[job] - jobs.submit_time[job]
        sim.batch_slowdown += 1.0 + wait / run_time
        sim.n_batch_short += 1
    sim.n_batch += 1
    if sim.n_batch >= sim.batch_jobs:
        close_batch(sim)


@kernel
def close_batch(sim: Sim) -> None:
    """Change the delay with the mean slowdown of the batch's short jobs, and begin a new batch.

    Writes `delay`, `last_slowdown` and the sums of the batch.
    """
    # A batch without short jobs changes nothing; the first batch with some counts as the first.
    if sim.n_batch_short > 0:
        slowdown = sim.batch_slowdown / sim.n_batch_short
        last = sim.last_slowdown
        change = 0.0
        if last > 0.0:
            change = (slowdown - last) / max(slowdown, last)  # within [-1, 1]
        elif sim.printed_delta == 1.0:
            change = slowdown  # as the paper prints it for the first batch
        if abs(change) > sim.tolerance:  # else the delay stays
            changed = sim.delay + change * sim.first_delay
            sim.delay = max(changed, 0.0)
        sim.last_slowdown = slowdown
    sim.batch_slowdown = 0.0
    sim.n_batch = 0
    sim.n_batch_short = 0
