"""A column of one line: the energy of each job. Imported before the job table is."""

from dataclasses import dataclass

from hpcgym.core import columns


@dataclass(frozen=True, eq=False, kw_only=True)
class WithEnergy(columns.JobColumns):
    """Jobs, each with the joules it needs."""

    energy_j: columns.IntArray


columns.COLUMNS["energy_j"] = columns.JobColumn(0, default=7)
columns.JobColumns = WithEnergy
