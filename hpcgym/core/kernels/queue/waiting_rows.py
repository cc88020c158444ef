"""Seats: where what belongs to a job only while it waits is kept, its keys for one.

A job takes a seat at its submission and gives it back at its start, so as many seats are in use as
jobs ever waited at once, however long the log. Until it starts, its entry of `start_time` says
which seat it has.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Row
from hpcgym.core.state import FIRST_SEAT, N_SEATS, N_WAITING


@kernel(inlined=True)
def seat_of(row: Row, job: int) -> int:
    """Return the seat of a waiting job.

    Args:
        row: The simulation.
        job: Index of the job.

    Returns:
        The seat, >= 0.

    Source:
        House rule: state grows with the jobs that wait, not with the log.
    """
    return FIRST_SEAT - row.start_time[job]


@kernel(inlined=True)
def take_seat(row: Row, job: int) -> int:
    """Count a job among those that wait, and give it a seat.

    Args:
        row: The simulation.
        job: Index of a job that is being submitted.

    Returns:
        The seat: the one given back last, or one never used before.

    Writes:
        N_WAITING, N_SEATS, the job's entry of `start_time`.

    Source:
        House rule: as many seats are spare as there are more seats than waiting jobs.
    """
    seat = row.counter[N_SEATS]
    n_spare = seat - row.counter[N_WAITING]
    if n_spare > 0:
        seat = row.spare_seat[n_spare - 1]
    else:
        row.counter[N_SEATS] = seat + 1
    row.counter[N_WAITING] += 1
    row.start_time[job] = FIRST_SEAT - seat
    return seat


@kernel(inlined=True)
def leave_seat(row: Row, job: int) -> None:
    """Count a job no longer among those that wait, and take its seat back.

    Args:
        row: The simulation.
        job: Index of a waiting job; its start is written after this.

    Writes:
        N_WAITING, `spare_seat`.

    Source:
        House rule: as many seats are spare as there are more seats than waiting jobs.
    """
    row.counter[N_WAITING] -= 1
    n_spare = row.counter[N_SEATS] - row.counter[N_WAITING]
    row.spare_seat[n_spare - 1] = seat_of(row, job)
