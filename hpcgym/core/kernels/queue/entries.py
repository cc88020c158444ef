"""Seats: where what belongs to a job only while it waits is kept, its keys for one.

A job takes a seat at its submission and gives it back at its start, so as many seats are in use as
jobs ever waited at once, however long the log. Until it starts, its entry of `start_time` says
which seat it has.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Sim
from hpcgym.core.state import FIRST_ENTRY, N_ENTRIES, N_WAITING


@kernel(inlined=True)
def entry_of(sim: Sim, job: int) -> int:
    """Return the seat of a waiting job.

    Args:
        row: The simulation.
        job: Index of the job.

    Returns:
        The seat, >= 0.

    Source:
        House rule: state grows with the jobs that wait, not with the log.
    """
    return FIRST_ENTRY - sim.start_time[job]


@kernel(inlined=True)
def take_entry(sim: Sim, job: int) -> int:
    """Count a job among those that wait, and give it a seat.

    Args:
        row: The simulation.
        job: Index of a job that is being submitted.

    Returns:
        The seat: the one given back last, or one never used before.

    Writes:
        N_WAITING, N_ENTRIES, the job's entry of `start_time`.

    Source:
        House rule: as many seats are spare as there are more seats than waiting jobs.
    """
    entry = sim.counter[N_ENTRIES]
    n_spare = entry - sim.counter[N_WAITING]
    if n_spare > 0:
        entry = sim.spare_entry[n_spare - 1]
    else:
        sim.counter[N_ENTRIES] = entry + 1
    sim.counter[N_WAITING] += 1
    sim.start_time[job] = FIRST_ENTRY - entry
    return entry


@kernel(inlined=True)
def leave_entry(sim: Sim, job: int) -> None:
    """Count a job no longer among those that wait, and take its seat back.

    Args:
        row: The simulation.
        job: Index of a waiting job; its start is written after this.

    Writes:
        N_WAITING, `spare_entry`.

    Source:
        House rule: as many seats are spare as there are more seats than waiting jobs.
    """
    sim.counter[N_WAITING] -= 1
    n_spare = sim.counter[N_ENTRIES] - sim.counter[N_WAITING]
    sim.spare_entry[n_spare - 1] = entry_of(sim, job)
