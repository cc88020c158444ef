"""Write runs as a table of jobs or as a log in SWF, and replace names by keyed hashes."""

from __future__ import annotations

import gzip
import hashlib
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.base.errors import OutputError
from hpcgym.base.output import writing
from hpcgym.base.packages import needing
from hpcgym.trace.accounting.as_log import as_log
from hpcgym.trace.accounting.runs import Accounting
from hpcgym.trace.swf import write_swf

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".csv.gz", ".swf", ".swf.gz", ".parquet")
"""Endings of the names of files that can be written."""

HASHED = ("user", "group", "executable")
"""Names that may tell who somebody is; those of partitions and queues stay."""

NOT_WRITTEN = ("status", "charged", "asked_memory_kb", "suspended", "cause", "ineligible")
_DIGITS = 12


def check_suffix(path: str | Path) -> None:
    """Refuse a file that is neither a table of jobs nor a log.

    Raises:
        OutputError: Its name ends otherwise, or it is Parquet and pyarrow is not installed.
    """
    if not str(path).endswith(SUFFIXES):
        raise OutputError(f"{path}: allowed endings: {', '.join(SUFFIXES)}")
    if str(path).endswith(".parquet"):
        with needing(f"{path}: writing Parquet", "pyarrow", error=OutputError):
            pass


def write_accounting(path: str | Path, accounting: Accounting, *, force: bool = False) -> None:
    """Write runs by the ending of the name: `.csv` or `.swf`, also with `.gz`, or `.parquet`.

    Raises:
        OutputError: The name ends otherwise, a file is there, or it cannot be written. Or it is
            Parquet, and pyarrow is not installed.
    """
    check_suffix(path)
    path = Path(path)
    if ".swf" in path.suffixes[-2:]:
        write_swf(path, as_log(accounting, path), force=force)
        return
    table = accounting.runs.drop(columns=[*NOT_WRITTEN])
    if path.suffix == ".parquet":
        with writing(path, force=force) as target:
            table.to_parquet(target, index=False)
        return
    table = table.assign(**{key: table[key].map({True: "true", False: "false"}) for key in _FLAGS})
    content = table.to_csv(index=False, lineterminator="\n").encode()
    if path.suffix == ".gz":
        content = gzip.compress(content, compresslevel=9, mtime=0)
    with writing(path, force=force) as target:
        target.write_bytes(content)


_FLAGS = ("spread", "exclusive")


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


def anonymise(runs: pd.DataFrame, key: bytes | None = None) -> pd.DataFrame:
    """Return a frame whose users, accounts and job names are hashes, as far as it has them.

    Args:
        runs: `Accounting.runs`, or any frame with columns of `HASHED`; "" stays.
        key: Equal keys give equal hashes; None draws one that is not kept.
    """
    key = secrets.token_bytes() if key is None else key
    columns = {}
    for column in filter(runs.columns.__contains__, HASHED):
        known = {name: hashed(key, column, name) if name else "" for name in set(runs[column])}
        columns[column] = runs[column].map(known)
    return runs.assign(**columns)
