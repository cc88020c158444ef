"""Accounting of Slurm and PBS, as sites print it: read, counted, written as logs.

`formats` names the formats, a file each. Each turns texts into blocks of rows (`rows`), with help
of `cells` for single values and of `slurm` for what Slurm's fields mean. `runs` makes runs of the
rows, and `write` writes them.
"""

from hpcgym.trace.accounting.formats import FORMATS
from hpcgym.trace.accounting.runs import Accounting, read_accounting
from hpcgym.trace.accounting.write import check_suffix, hashed, write_accounting

__all__ = ["FORMATS", "Accounting", "check_suffix", "hashed", "read_accounting", "write_accounting"]
