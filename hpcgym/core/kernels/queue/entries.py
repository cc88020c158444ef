"""Entries: the row of arrays that a job has only while it waits, for its keys and its reservation.

A job takes an entry at its submission and gives it back at its start. So as many entries are in use
as jobs ever waited at once, however long the log. Until a job starts, its element of `start_time`
encodes its entry.
"""

from hpcgym.core.constants import FIRST_ENTRY
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Sim


@kernel(inlined=True)
def entry_of(sim: Sim, job: int) -> int:
    """Return the entry of a waiting job, >= 0."""
    return FIRST_ENTRY - sim.start_time[job]


@kernel(inlined=True)
def take_entry(sim: Sim, job: int) -> int:
    """Count a job as waiting, and return an entry for it: the one given back last, or a new one.

    Writes `n_waiting`, `n_entries` and the job's `start_time`.
    """
    entry = sim.n_entries
    # Each waiting job has one of the `n_entries` entries, so the others are spare.
    n_spare = entry - sim.n_waiting
    if n_spare > 0:
        entry = sim.spare_entry[n_spare - 1]
    else:
        sim.n_entries = entry + 1
    sim.n_waiting += 1
    sim.start_time[job] = FIRST_ENTRY - entry
    return entry


@kernel(inlined=True)
def leave_entry(sim: Sim, job: int) -> None:
    """Count a job as no longer waiting, before its start is written, and take its entry back.

    Writes `n_waiting` and `spare_entry`.
    """
    sim.n_waiting -= 1
    n_spare = sim.n_entries - sim.n_waiting
    sim.spare_entry[n_spare - 1] = entry_of(sim, job)
