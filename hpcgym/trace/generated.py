"""Logs that are made at first use: an entry of the shelf says how, and no file is bundled.

A log too large for a clone is made of its seed, in the folder of downloads. Its digest is on
record as that of any log, so a generator that draws otherwise is noticed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.base.errors import TraceError, unknown_name
from hpcgym.base.output import make_folder
from hpcgym.base.progress import steps
from hpcgym.trace.swf import log_of, write_swf

NOTE = "hpcgym.trace.synthetic.synthetic_workload"
"""What the header of a log names that is made here."""

KEYS = {"seed": int, "load": float}
"""Keys of `[generated]` in an entry: arguments of `synthetic_workload`."""


def checked(table: object, where: str) -> dict[str, Any]:
    """Return the table `[generated]` of an entry.

    Raises:
        TraceError: It is no table, lacks a key or has an unknown one, or a value has another type.
    """
    if not isinstance(table, dict):
        raise TraceError(f"{where}: generated must be a table, got {table!r}")
    for key in table:
        if key not in KEYS:
            raise TraceError(f"{where}: [generated] {unknown_name('key', key, KEYS)}")
    for key, kind in KEYS.items():
        if type(table.get(key)) is not kind:
            words = {int: "a whole number", float: "a number with a decimal point"}[kind]
            raise TraceError(f"{where}: [generated] {key} must be {words}, got {table.get(key)!r}")
    return table


def is_made(path: Path) -> bool:
    """Tell whether `make_log` has written a file."""
    with path.open("rb") as file:
        return NOTE.encode() in file.read(2_000)


def make_log(folder: Path, name: str, jobs: int, processors: int, seed: int, load: float) -> Path:
    """Draw a log by `synthetic_workload`, whose waits are unknown, and return its file.

    Raises:
        OutputError: The folder cannot be written to.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     make_log(Path(folder), "mine", 1000, 64, seed=1, load=0.7).name
        'mine.swf'
    """
    from hpcgym.trace.synthetic import synthetic_workload  # numba: not where logs are listed

    target = make_folder(folder) / f"{name}.swf"
    with steps(1, f"making {target.name}"):
        drawn = synthetic_workload(
            jobs, np.random.default_rng(seed), machine_processors=processors, load=load, name=name
        )
        note = f"; Note: {NOTE}, seed {seed}, load {load}"
        write_swf(target, log_of(drawn, (note,)), force=True)
    return target
