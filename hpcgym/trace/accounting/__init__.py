"""Accounting of batch schedulers, as sites have it: read, counted, written as logs.

`formats` names the formats, a file each. Each turns texts into blocks of rows (`rows`), with help
of `cells` for single values and of `slurm` for what Slurm's fields mean. `runs` makes runs of the
rows, by what `attempts` says of jobs and `charged` of processors, `as_log` a log or a workload of
these, and `write` writes them.
"""

from hpcgym.trace.accounting.as_log import as_log, to_workload
from hpcgym.trace.accounting.formats import FORMATS
from hpcgym.trace.accounting.runs import Accounting, read_accounting
from hpcgym.trace.accounting.write import anonymise, check_suffix, hashed, write_accounting

__all__ = [
    "FORMATS",
    "Accounting",
    "anonymise",
    "as_log",
    "check_suffix",
    "hashed",
    "read_accounting",
    "to_workload",
    "write_accounting",
]
