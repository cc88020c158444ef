"""Columns of one line: the energy of each job, and its twin. Imported before the job table is."""

from dataclasses import dataclass

from hpcgym.core import columns


@dataclass(frozen=True, eq=False, kw_only=True)
class WithEnergy(columns.JobColumns):
    """Jobs, each with the joules it needs, and another job, or none."""

    energy_j: columns.IntArray
    twin: columns.IntArray | None = None


columns.COLUMNS["energy_j"] = columns.JobColumn(0, default=7)
columns.COLUMNS["twin"] = columns.JobColumn(-1, default=-1, optional=True, refers=True)
columns.JobColumns = WithEnergy
