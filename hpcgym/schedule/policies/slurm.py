"""Slurm's priorities by its own files: `"slurm:slurm.conf,sshare.txt"` as a policy."""

from __future__ import annotations

from pathlib import Path

from hpcgym.core.orders.priority import Multifactor
from hpcgym.core.policy import Policy
from hpcgym.machine.files.priorities import read_priorities


def slurm_policy(*paths: str | Path) -> Policy:
    """Return the order that files of a Slurm mean, as `hpcgym.machine.files.priorities` reads them.

    Raises:
        MachineError: A file cannot be read, or states what is not modelled.
        PolicyError: A weight without the factors that it weighs.
    """
    return Multifactor(**read_priorities(*paths)).policy


class SlurmFiles:
    """Policies by names of files, parted by commas."""

    NAME = "slurm"
    READS_ONLY = True

    @staticmethod
    def read(text: str) -> Multifactor:
        """Read what stands behind the colon."""
        return Multifactor(**read_priorities(*filter(None, map(str.strip, text.split(",")))))
