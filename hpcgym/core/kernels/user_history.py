"""Users' completed jobs: recorded at each end, read once at each submission."""

import math

import numpy as np

from hpcgym.core.history import RING_JOBS
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.records import Jobs, Row
from hpcgym.core.kernels.seats import seat_of
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.state import LOG_LARGEST, NOW

MONTH_MINUTES = 43_200.0


@kernel
def record_completion(jobs: Jobs, row: Row, job: int) -> None:
    """Enter a job that has ended into its user's ring.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of the job.

    Writes:
        The user's row of the four `history_*` arrays.

    Source:
        Specification, section 10, "Information".
    """
    user = jobs.user[job]
    spot = row.history_completed[user] % RING_JOBS
    row.history_run_time[user, spot] = jobs.run_time[job]
    row.history_requested_time[user, spot] = jobs.requested_time[job]
    row.history_completed[user] += 1
    row.history_last_end_time[user] = row.counter[NOW]


@kernel
def expect_inverse(jobs: Jobs, row: Row, job: int) -> float:
    """Expect 1/D of a newcomer, D = max(run time, tau), from its user's last jobs.

    The request counts as one more observation, so a user without history gets 1/max(e, tau).

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of the newcomer.

    Returns:
        E[1/D], 1/s.

    Source:
        Specification, section 10, "Information".
    """
    user = jobs.user[job]
    completed = row.history_completed[user]
    n = min(completed, RING_JOBS)
    oldest = (completed - n) % RING_JOBS
    estimate = jobs.estimate[job]
    total = 0.0
    for spot in range(oldest, n):
        total += 1.0 / max(min(row.history_run_time[user, spot], estimate), BSLD_BOUND_S)
    for spot in range(oldest):
        total += 1.0 / max(min(row.history_run_time[user, spot], estimate), BSLD_BOUND_S)
    total += 1.0 / max(estimate, BSLD_BOUND_S)
    return total / (n + 1)


@kernel
def write_history_fields(jobs: Jobs, row: Row, job: int, log_largest: float) -> None:
    """Write what an observation shows of a newcomer's user, frozen from now on.

    Args:
        jobs: The job table.
        row: The simulation, `inverse` of the job written.
        job: Index of the newcomer.
        log_largest: Natural logarithm of the scenario's largest request in s.

    Writes:
        The row of `history_field` of the job's seat: see the data sheet of `hpcgym.env.scheduling`.

    Source:
        Specification, section 10, "Observation".
    """
    seat = seat_of(row, job)
    field = row.history_field[seat]
    user = jobs.user[job]
    completed = row.history_completed[user]
    field[4] = np.float32(min(-math.log(row.inverse[seat]) / log_largest, 1.0))
    if completed == 0:
        field[0] = np.float32(0.0)
        field[1] = np.float32(-1.0)
        field[2] = np.float32(-1.0)
        field[3] = np.float32(-1.0)
        field[5] = np.float32(-1.0)
        return
    field[0] = np.float32(min(math.log(1.0 + completed) / math.log(1001.0), 1.0))
    for back in range(2):
        if completed > back:
            spot = (completed - 1 - back) % RING_JOBS
            seconds = max(row.history_run_time[user, spot], 1)
            field[1 + back] = np.float32(min(math.log(seconds) / log_largest, 1.0))
        else:
            field[1 + back] = np.float32(-1.0)
    share = 0.0
    n = min(completed, RING_JOBS)
    for spot in range(n):
        share += row.history_run_time[user, spot] / row.history_requested_time[user, spot]
    field[3] = np.float32(min(share / n, 1.0))
    minutes = (row.counter[NOW] - row.history_last_end_time[user]) / 60.0
    field[5] = np.float32(min(math.log(1.0 + minutes) / math.log(1.0 + MONTH_MINUTES), 1.0))


@kernel
def meet_user(jobs: Jobs, row: Row, job: int) -> None:
    """Note down what is known of a newcomer's user, frozen from now on.

    Args:
        jobs: The job table.
        row: The simulation, at the instant of the job's submission.
        job: Index of the newcomer, which has a seat.

    Writes:
        `inverse` of its seat; `history_field` too where observations are made.

    Source:
        Specification, section 10, "Information".
    """
    row.inverse[seat_of(row, job)] = expect_inverse(jobs, row, job)
    if len(row.history_field) > 0:
        write_history_fields(jobs, row, job, row.gauge[LOG_LARGEST])
