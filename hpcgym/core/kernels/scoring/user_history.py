"""Users' completed jobs: a ring for each user, written at each end and read at each submission.

What is read at a submission stays as it is while the job waits, so an order by it stays, too. D =
max(run time, tau) is a job's bounded run time.

Source: Specification, section 10, "Information" and "Observation".
"""

import math

import numpy as np

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.history import RING_JOBS
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.observation_fields import N_KEPT_FIELDS, JobField

MONTH_MINUTES = 43_200.0

# Columns of `Sim.history_field`; those of `Sim.history_shown` are the first of them.
COMPLETED = 0
LAST_RUN_TIME = JobField.USER_LOG_LAST_RUN_TIME - JobField.USER_LOG_COMPLETED
MEAN_RUN_BY_REQUEST = JobField.USER_MEAN_RUN_BY_REQUEST - JobField.USER_LOG_COMPLETED
EXPECTED_BOUND = JobField.USER_LOG_EXPECTED_BOUND - JobField.USER_LOG_COMPLETED
RECENCY = JobField.USER_LOG_RECENCY - JobField.USER_LOG_COMPLETED


@kernel(inlined=True)
def past_inverse(sim: Sim, user: int, spot: int) -> float:
    """Return 1/D of the job at a spot of a user's ring, D = max(run time, 10 s), 1/s."""
    return 1.0 / max(sim.history_run_time[user, spot], BSLD_BOUND_S)


@kernel
def record_completion(jobs: Jobs, sim: Sim, job: int) -> None:
    """Write a job that ends at `now` into its user's ring, over the oldest if the ring is full."""
    user = jobs.user[job]
    spot = sim.history_completed[user] % RING_JOBS
    sim.history_run_time[user, spot] = jobs.run_time[job]
    sim.history_requested_time[user, spot] = jobs.requested_time[job]
    sim.history_processors[user, spot] = jobs.processors[job]
    sim.history_completed[user] += 1
    sim.history_last_end_time[user] = sim.now


@kernel
def expect_inverse(jobs: Jobs, sim: Sim, job: int) -> float:
    """Return E[1/D] of a newcomer, 1/s: the mean over its user's last jobs and its own estimate.

    The estimate counts as one more observation, so a user without history gets 1/max(e, tau). A
    longer run time counts as the estimate.
    """
    user = jobs.user[job]
    completed = sim.history_completed[user]
    n = min(completed, RING_JOBS)
    oldest = (completed - n) % RING_JOBS
    of_request = 1.0 / max(jobs.estimate[job], BSLD_BOUND_S)
    total = 0.0
    # Oldest first: the sum must not depend on where the ring begins. Of two values 1/D the larger
    # is that of the shorter time, hence `max`.
    for spot in range(oldest, n):
        total += max(past_inverse(sim, user, spot), of_request)
    for spot in range(oldest):
        total += max(past_inverse(sim, user, spot), of_request)
    total += of_request
    return total / (n + 1)


@kernel
def show_user(jobs: Jobs, sim: Sim, user: int, log_largest: float) -> None:
    """Compute the observation fields of a user that change only when one of the user's jobs ends.

    Writes the user's rows of `history_shown` and `history_shown_at`.
    """
    completed = sim.history_completed[user]
    sim.history_shown_at[user] = completed
    shown = sim.history_shown[user]
    if completed == 0:
        shown[COMPLETED] = np.float32(0.0)
        for column in range(LAST_RUN_TIME, N_KEPT_FIELDS):
            shown[column] = np.float32(-1.0)
        return
    shown[COMPLETED] = np.float32(min(math.log(1.0 + completed) / math.log(1001.0), 1.0))
    for back in range(2):  # the last one, then the last but one
        if completed > back:
            spot = (completed - 1 - back) % RING_JOBS
            seconds = max(sim.history_run_time[user, spot], 1)
            shown[LAST_RUN_TIME + back] = np.float32(min(math.log(seconds) / log_largest, 1.0))
        else:
            shown[LAST_RUN_TIME + back] = np.float32(-1.0)
    used = 0.0
    n = min(completed, RING_JOBS)
    for spot in range(n):
        run_time = sim.history_run_time[user, spot]
        used += run_time / sim.history_requested_time[user, spot]
    shown[MEAN_RUN_BY_REQUEST] = np.float32(min(used / n, 1.0))


@kernel
def write_history_fields(jobs: Jobs, sim: Sim, job: int) -> None:
    """Write the observation fields of a newcomer's history into its entry's row of `history_field`.

    Its `inverse` is written already. Computes the user's fields anew if a job of the user has
    ended.
    """
    entry = entry_of(sim, job)
    field = sim.history_field[entry]
    user = jobs.user[job]
    log_largest = sim.log_largest
    if sim.history_shown_at[user] != sim.history_completed[user]:
        show_user(jobs, sim, user, log_largest)
    for column in range(N_KEPT_FIELDS):
        field[column] = sim.history_shown[user, column]
    field[EXPECTED_BOUND] = np.float32(min(-math.log(sim.inverse[entry]) / log_largest, 1.0))
    field[RECENCY] = np.float32(-1.0)
    if sim.history_completed[user] > 0:
        minutes = (sim.now - sim.history_last_end_time[user]) / 60.0
        field[RECENCY] = np.float32(
            min(math.log(1.0 + minutes) / math.log(1.0 + MONTH_MINUTES), 1.0)
        )


@kernel
def meet_user(jobs: Jobs, sim: Sim, job: int) -> None:
    """Write what is known of a newcomer's user, to be kept while the job waits.

    Writes its entry's `inverse` and, where observations show it, `history_field`; `expected_at` and
    `regressed_at` become -1, since no terms have been computed yet.
    """
    entry = entry_of(sim, job)
    sim.inverse[entry] = expect_inverse(jobs, sim, job)
    if len(sim.expected_at) > 0:
        sim.expected_at[entry] = sim.regressed_at[entry] = -1
    if len(sim.history_field) > 0 and sim.show_small == 0:
        write_history_fields(jobs, sim, job)
