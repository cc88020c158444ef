"""Users' completed jobs: recorded at each end, read once at each submission."""

import math

import numpy as np

from hpcgym.core.history import RING_JOBS
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.queue.waiting_rows import seat_of
from hpcgym.core.kernels.types import Jobs, Row
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.state import LOG_LARGEST, N_KEPT_FIELDS, NOW

MONTH_MINUTES = 43_200.0


@kernel(inlined=True)
def log_bounded(run_time: int) -> float:
    """Return log D of a job that has ended, D = max(run time, tau).

    Args:
        run_time: Its executed run time, s.

    Returns:
        The natural logarithm.

    Source:
        House rule: one logarithm for what ends now and for what had ended before, to the bit.
    """
    return math.log(max(float(run_time), BSLD_BOUND_S))


@kernel
def record_completion(jobs: Jobs, row: Row, job: int) -> None:
    """Enter a job that has ended into its user's ring.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of the job.

    Writes:
        The user's row of the `history_*` arrays, but for what is shown of it.

    Source:
        Specification, section 10, "Information".
    """
    user = jobs.user[job]
    spot = row.history_completed[user] % RING_JOBS
    run_time = jobs.run_time[job]
    row.history_run_time[user, spot] = run_time
    row.history_requested_time[user, spot] = jobs.requested_time[job]
    row.history_processors[user, spot] = jobs.processors[job]
    row.history_inverse[user, spot] = 1.0 / max(run_time, BSLD_BOUND_S)
    if len(row.history_log_bound) > 0:
        row.history_log_bound[user, spot] = log_bounded(run_time)
    row.history_completed[user] += 1
    row.history_last_end_time[user] = row.counter[NOW]


@kernel
def expect_inverse(jobs: Jobs, row: Row, job: int) -> float:
    """Expect 1/D of a newcomer, D = max(run time, tau), from its user's last jobs.

    The request counts as one more observation, so a user without history gets 1/max(e, tau). A run
    time counts up to the request: of two quotients 1/D the larger one is that of the lesser time.

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
    of_request = 1.0 / max(jobs.estimate[job], BSLD_BOUND_S)
    total = 0.0
    for spot in range(oldest, n):
        total += max(row.history_inverse[user, spot], of_request)
    for spot in range(oldest):
        total += max(row.history_inverse[user, spot], of_request)
    total += of_request
    return total / (n + 1)


@kernel
def show_user(row: Row, user: int, log_largest: float) -> None:
    """Work out what an observation shows of a user until the next completion.

    Args:
        row: The simulation.
        user: Index of the user.
        log_largest: Natural logarithm of the scenario's largest request in s.

    Writes:
        The user's row of `history_shown` and `history_shown_at`: see the data sheet of
        `hpcgym.env.scheduling`.

    Source:
        Specification, section 10, "Observation".
    """
    completed = row.history_completed[user]
    row.history_shown_at[user] = completed
    shown = row.history_shown[user]
    if completed == 0:
        shown[0] = np.float32(0.0)
        for column in range(1, N_KEPT_FIELDS):
            shown[column] = np.float32(-1.0)
        return
    shown[0] = np.float32(min(math.log(1.0 + completed) / math.log(1001.0), 1.0))
    for back in range(2):
        if completed > back:
            spot = (completed - 1 - back) % RING_JOBS
            seconds = max(row.history_run_time[user, spot], 1)
            shown[1 + back] = np.float32(min(math.log(seconds) / log_largest, 1.0))
        else:
            shown[1 + back] = np.float32(-1.0)
    share = 0.0
    n = min(completed, RING_JOBS)
    for spot in range(n):
        share += row.history_run_time[user, spot] / row.history_requested_time[user, spot]
    shown[3] = np.float32(min(share / n, 1.0))


@kernel
def write_history_fields(jobs: Jobs, row: Row, job: int) -> None:
    """Write what an observation shows of a newcomer's user, frozen from now on.

    Args:
        jobs: The job table.
        row: The simulation, `inverse` of the job written.
        job: Index of the newcomer.

    Writes:
        The row of `history_field` of the job's seat: see the data sheet of `hpcgym.env.scheduling`;
        what `show_user` writes, if the user has completed a job since it was last called.

    Source:
        Specification, section 10, "Observation".
    """
    seat = seat_of(row, job)
    field = row.history_field[seat]
    user = jobs.user[job]
    log_largest = row.gauge[LOG_LARGEST]
    if row.history_shown_at[user] != row.history_completed[user]:
        show_user(row, user, log_largest)
    for column in range(N_KEPT_FIELDS):
        field[column] = row.history_shown[user, column]
    field[4] = np.float32(min(-math.log(row.inverse[seat]) / log_largest, 1.0))
    field[5] = np.float32(-1.0)
    if row.history_completed[user] > 0:
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
        `inverse` of its seat, and that nothing else is expected of it yet; what
        `write_history_fields` writes where observations are made.

    Source:
        Specification, section 10, "Information".
    """
    seat = seat_of(row, job)
    row.inverse[seat] = expect_inverse(jobs, row, job)
    if len(row.expected_at) > 0:
        row.expected_at[seat] = -1
    if len(row.history_field) > 0:
        write_history_fields(jobs, row, job)
