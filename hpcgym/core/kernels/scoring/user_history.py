"""Users' completed jobs: recorded at each end, read once at each submission."""

import math

import numpy as np

from hpcgym.core.history import RING_JOBS
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs, Sim
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
def record_completion(jobs: Jobs, sim: Sim, job: int) -> None:
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
    spot = sim.history_completed[user] % RING_JOBS
    run_time = jobs.run_time[job]
    sim.history_run_time[user, spot] = run_time
    sim.history_requested_time[user, spot] = jobs.requested_time[job]
    sim.history_processors[user, spot] = jobs.processors[job]
    sim.history_inverse[user, spot] = 1.0 / max(run_time, BSLD_BOUND_S)
    if len(sim.history_log_bound) > 0:
        sim.history_log_bound[user, spot] = log_bounded(run_time)
    sim.history_completed[user] += 1
    sim.history_last_end_time[user] = sim.counter[NOW]


@kernel
def expect_inverse(jobs: Jobs, sim: Sim, job: int) -> float:
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
    completed = sim.history_completed[user]
    n = min(completed, RING_JOBS)
    oldest = (completed - n) % RING_JOBS
    of_request = 1.0 / max(jobs.estimate[job], BSLD_BOUND_S)
    total = 0.0
    for spot in range(oldest, n):
        total += max(sim.history_inverse[user, spot], of_request)
    for spot in range(oldest):
        total += max(sim.history_inverse[user, spot], of_request)
    total += of_request
    return total / (n + 1)


@kernel
def show_user(sim: Sim, user: int, log_largest: float) -> None:
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
    completed = sim.history_completed[user]
    sim.history_shown_at[user] = completed
    shown = sim.history_shown[user]
    if completed == 0:
        shown[0] = np.float32(0.0)
        for column in range(1, N_KEPT_FIELDS):
            shown[column] = np.float32(-1.0)
        return
    shown[0] = np.float32(min(math.log(1.0 + completed) / math.log(1001.0), 1.0))
    for back in range(2):
        if completed > back:
            spot = (completed - 1 - back) % RING_JOBS
            seconds = max(sim.history_run_time[user, spot], 1)
            shown[1 + back] = np.float32(min(math.log(seconds) / log_largest, 1.0))
        else:
            shown[1 + back] = np.float32(-1.0)
    run_time_ratio = 0.0
    n = min(completed, RING_JOBS)
    for spot in range(n):
        run_time_ratio += sim.history_run_time[user, spot] / sim.history_requested_time[user, spot]
    shown[3] = np.float32(min(run_time_ratio / n, 1.0))


@kernel
def write_history_fields(jobs: Jobs, sim: Sim, job: int) -> None:
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
    entry = entry_of(sim, job)
    field = sim.history_field[entry]
    user = jobs.user[job]
    log_largest = sim.gauge[LOG_LARGEST]
    if sim.history_shown_at[user] != sim.history_completed[user]:
        show_user(sim, user, log_largest)
    for column in range(N_KEPT_FIELDS):
        field[column] = sim.history_shown[user, column]
    field[4] = np.float32(min(-math.log(sim.inverse[entry]) / log_largest, 1.0))
    field[5] = np.float32(-1.0)
    if sim.history_completed[user] > 0:
        minutes = (sim.counter[NOW] - sim.history_last_end_time[user]) / 60.0
        field[5] = np.float32(min(math.log(1.0 + minutes) / math.log(1.0 + MONTH_MINUTES), 1.0))


@kernel
def meet_user(jobs: Jobs, sim: Sim, job: int) -> None:
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
    entry = entry_of(sim, job)
    sim.inverse[entry] = expect_inverse(jobs, sim, job)
    if len(sim.expected_at) > 0:
        sim.expected_at[entry] = -1
    if len(sim.history_field) > 0:
        write_history_fields(jobs, sim, job)
