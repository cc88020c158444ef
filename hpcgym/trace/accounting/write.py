"""Write runs as a table of jobs or as a log in SWF, and replace names by keyed hashes."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.errors import OutputError
from hpcgym.output import writing
from hpcgym.trace.accounting.rows import NAMES
from hpcgym.trace.accounting.runs import Accounting, held_processors
from hpcgym.trace.swf import FIELDS, SwfLog, write_swf

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".csv.gz", ".swf", ".swf.gz")
"""Endings of the names of files that can be written."""

HASHED = ("user", "group", "executable")
"""Names that may tell who somebody is; those of partitions and queues stay."""

_DIGITS = 12


def check_suffix(path: str | Path) -> None:
    """Refuse a file that is neither a table of jobs nor a log.

    Raises:
        OutputError: Its name ends otherwise.
    """
    if not str(path).endswith(SUFFIXES):
        raise OutputError(f"{path}: allowed endings: {', '.join(SUFFIXES)}")


def write_accounting(path: str | Path, accounting: Accounting, *, force: bool = False) -> None:
    """Write runs by the ending of the file's name: `.csv` or `.swf`, also with `.gz`.

    Raises:
        OutputError: The name ends otherwise, a file is there, or it cannot be written.
    """
    check_suffix(path)
    path = Path(path)
    if ".swf" in path.suffixes[-2:]:
        write_swf(path, as_swf(accounting, path.name), force=force)
        return
    table = accounting.runs.drop(columns=["status", "charged"])
    table = table.assign(**{key: table[key].map({True: "true", False: "false"}) for key in _FLAGS})
    content = table.to_csv(index=False, lineterminator="\n").encode()
    if path.suffix == ".gz":
        content = gzip.compress(content, compresslevel=9, mtime=0)
    with writing(path, force=force) as target:
        target.write_bytes(content)


_FLAGS = ("spread", "exclusive")


def as_swf(accounting: Accounting, name: str) -> SwfLog:
    """Lay runs out as a log; names become numbers that comments explain.

    SWF knows no whole nodes: a run that had such asks for the processors that it held.
    """
    import pandas as pd

    runs = accounting.runs
    processors = held_processors(runs)
    begin = int(runs["submit_time"].min())
    memory_kb = np.ceil(runs["chunks"] * runs["memory_mb"] * 1024 / processors)
    known = {
        **{key: runs[key] for key in ("job_id", "wait_time", "run_time", "requested_time")},
        "status": runs["status"],
        "submit_time": runs["submit_time"] - begin,
        "allocated_processors": np.maximum(runs["charged"], 1),
        "requested_processors": processors,
        "requested_memory": np.where(memory_kb > 0, memory_kb, -1).astype(np.int64),
    }
    header = ["; Version: 2.2", f"; MaxJobs: {len(runs)}", f"; MaxRecords: {len(runs)}"]
    header += [f"; UnixStartTime: {begin}"]
    if accounting.machine_processors is not None:
        header.append(f"; MaxProcs: {accounting.machine_processors}")
        if accounting.is_guess:
            header.append("; Note: MaxProcs is the fewest on which the runs fit as recorded")
    for key in NAMES:
        known[key], names = _numbered(runs[key])
        header += [f"; {key.capitalize()}: {number} {text}" for number, text in names]
    records = pd.DataFrame({field: known.get(field, -1) for field in FIELDS})
    return SwfLog(name, None, tuple(header), records)


def _numbered(names: pd.Series[str]) -> tuple[pd.Series[int], list[tuple[int, str]]]:
    """Return names numbered from 1 by first appearance, "" as -1; names that are numbers stay."""
    import pandas as pd

    known = [name for name in pd.unique(names) if name]
    if all(name.isascii() and name.isdigit() and len(name) < 16 for name in known):
        return names.map(lambda name: int(name or -1)), []
    numbers = {name: number for number, name in enumerate(known, start=1)}
    listed = [(number, " ".join(name.split())) for name, number in numbers.items()]
    return names.map(lambda name: numbers.get(name, -1)), listed


def hashed(key: bytes, column: str, name: str) -> str:
    """Return a name by which nobody is known who has not got the key, the same for equal names.

    Example:
        >>> hashed(b"key", "queue", "normal"), hashed(b"key", "user", "ann")[:5]
        ('normal', 'user-')
    """
    if column not in HASHED:
        return name
    digest = hashlib.blake2b(f"{column}:{name}".encode(), key=key).hexdigest()
    return f"{column}-{digest[:_DIGITS]}"
