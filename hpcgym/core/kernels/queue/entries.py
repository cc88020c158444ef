"""Entries: the row of arrays that a job has only while it waits, for its keys and its reservation.

A job takes an entry at its submission and gives it back at its start. So as many entries are in use
as jobs ever waited at once, however long the log. Until a job starts, its element of `start_time`
encodes its entry.

Where a long queue is observed, its jobs are linked by age.
"""

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import FIRST_ENTRY, FLAG_HELD
from hpcgym.core.kernels.types import Sim

OLDER, YOUNGER = 0, 1  # columns of `Sim.age`


@kernel(inlined=True)
def entry_of(sim: Sim, job: int) -> int:
    """Return the entry of a waiting job, >= 0."""
    return FIRST_ENTRY - sim.start_time[job]


@kernel
def link_youngest(sim: Sim, job: int, entry: int) -> None:
    """Link a job behind all others by age; write `age`, `oldest` and `youngest`."""
    before = sim.youngest
    sim.age[entry, OLDER] = before
    sim.age[entry, YOUNGER] = -1
    if before < 0:
        sim.oldest = job
    else:
        sim.age[entry_of(sim, before), YOUNGER] = job
    sim.youngest = job


@kernel
def unlink(sim: Sim, entry: int) -> None:
    """Link the neighbours by age of a job with each other; write `age`, `oldest`, `youngest`."""
    before, behind = sim.age[entry, OLDER], sim.age[entry, YOUNGER]
    if before < 0:
        sim.oldest = behind
    else:
        sim.age[entry_of(sim, before), YOUNGER] = behind
    if behind < 0:
        sim.youngest = before
    else:
        sim.age[entry_of(sim, behind), OLDER] = before


@kernel(inlined=True)
def take_entry(sim: Sim, job: int) -> int:
    """Count a job as waiting, and return an entry for it: the one given back last, or a new one.

    Writes `n_waiting`, `n_entries`, the job's `start_time`, and `age` where it is kept.
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
    if sim.keeps_summary == 1:
        link_youngest(sim, job, entry)
    return entry


@kernel(inlined=True)
def leave_entry(sim: Sim, job: int) -> None:
    """Count a job as no longer waiting, before its start is written, and take its entry back.

    Writes `n_waiting`, `spare_entry`, and `age` where it is kept.
    """
    sim.n_waiting -= 1
    n_spare = sim.n_entries - sim.n_waiting
    sim.spare_entry[n_spare - 1] = entry_of(sim, job)
    if sim.keeps_summary == 1:
        unlink(sim, entry_of(sim, job))


@kernel(inlined=True)
def is_overdue(sim: Sim, job: int) -> bool:
    """Tell whether a waiting job is known to be beyond the threshold."""
    # Jobs cross it in order of submission, so one number divides them. Crossing is noticed at
    # passes only.
    return job < sim.next_overdue


@kernel(inlined=True)
def is_held(sim: Sim, job: int) -> bool:
    """Tell whether a waiting job is held, so not eligible yet."""
    return sim.flag[job] & FLAG_HELD != 0
