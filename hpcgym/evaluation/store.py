"""The file in which long work keeps what has finished, so that a second run goes on from there.

One row of an SQLite file per run, under the digest of everything that decides it: the jobs, the
agent, the settings, the sources of hpcgym that run and train, and the versions of the libraries
that compute.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from hpcgym.base.errors import EvaluationError, OutputError
from hpcgym.core.columns import COLUMNS
from hpcgym.core.compiler.kernel_cache import COMPILER
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.content import content_digest

Row = dict[str, Any]

NOT_DIGESTED = ("evaluation", "site", "cli")
"""Rooms that ask for runs and show them; they can change while kept runs stay valid."""


class Store:
    """Finished runs by digest; several processes of one machine may write at once.

    Runs of other evaluations in the same file are kept and not used; so are runs of other sources.
    What a killed process was writing, and a row that is not as it was written, is run again. Agents
    and trainers are told apart by what they hold and by the text of their files: see
    `hpcgym.evaluation.content`.

    Args:
        path: The file; created if it is not there. An empty file is an empty store.

    Raises:
        EvaluationError: The file is not a store, or is damaged.
        OutputError: It cannot be read or written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._asked("SELECT key, rows, digest FROM kept")  # a file of another kind has none
        if self._asked("PRAGMA quick_check") not in (None, (b"ok",)):
            raise self._refusal()

    def keeps_others_only(self, prefix: str) -> bool:
        """Tell whether there are rows, but none under a digest that begins so."""
        query = "SELECT max(substr(key, 1, length(?1)) = ?1) FROM kept"
        return bool(self._asked(query, prefix) == (0,))

    def n_kept(self) -> int:
        """Return how many digests there are rows under."""
        return int((self._asked("SELECT count(*) FROM kept") or (0,))[0])

    def find(self, key: str) -> list[Row] | None:
        """Return the rows kept under a digest, equal to those given to `keep`, or None."""
        rows, digest = self._asked("SELECT rows, digest FROM kept WHERE key = ?", key) or ("", "")
        return json.loads(rows) if digest == _digest_of(key, rows) else None

    def keep(self, key: str, rows: list[Row]) -> None:
        """Write rows, plain values by column, under a digest, as `keep_all` does."""
        self.keep_all({key: rows})

    def keep_all(self, rows: Mapping[str, list[Row]]) -> None:
        """Write the rows of each digest, all or none; they are on disk at the return.

        Raises:
            OutputError: The file cannot be written, or others wrote for half a minute.
        """
        texts = {key: json.dumps(kept).encode() for key, kept in rows.items()}
        values = [(key, text, _digest_of(key, text)) for key, text in texts.items()]
        with self._opened("BEGIN IMMEDIATE") as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, rows BLOB, digest BLOB)"
            )
            database.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", values)
            database.execute("COMMIT")

    def _asked(self, query: str, *values: str) -> Any:
        """Return the first row that a query gives; None if there is none, or nothing is kept."""
        with self._opened("BEGIN") as database:
            database.execute("PRAGMA schema_version")  # locks, and undoes what a kill cut off
            return database.execute(query, values).fetchone() if self.path.stat().st_size else None

    @contextmanager
    def _opened(self, begin: str) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction; without a commit it is undone."""
        try:
            connection = sqlite3.connect(self.path.absolute(), timeout=30, isolation_level=None)
            with closing(connection):
                connection.text_factory = bytes  # an altered text may be none
                connection.execute(begin)
                yield connection
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if not isinstance(error, sqlite3.OperationalError) or code == sqlite3.SQLITE_ERROR:
                raise self._refusal() from error  # no such table, or no such file format
            raise OutputError(f"{self.path}: cannot be read or written: {error}") from error

    def _refusal(self) -> EvaluationError:
        """Return the error of a file that is not as a store is written."""
        what = "is not a store of finished work, or is damaged"
        return EvaluationError(f"{self.path}: {what}; name another file, or start anew (--force)")


def remove_store(path: Path) -> None:
    """Remove a store, and the journal that a killed process left beside it."""
    path.unlink(missing_ok=True)
    Path(f"{path}-journal").unlink(missing_ok=True)


def _digest_of(key: str, rows: object) -> bytes:
    """Digest a row, whatever an alteration has made of its rows."""
    return hashlib.sha256(repr((key, rows)).encode()).digest()


def digest(workload: Workload, *others: object) -> str:
    """Digest the jobs of an episode, users' histories included, what computes, and the others.

    What computes is in `versions`. The others are whatever else decides a run; see
    `hpcgym.evaluation.content`.

    Example:
        >>> from hpcgym.env.scenario.episodes import Episodes
        >>> tiny = Episodes("tiny").workload(0)
        >>> digest(tiny, "SAF") == digest(tiny, "SAF"), digest(tiny, "SAF") == digest(tiny, "SPF")
        (True, False)
    """
    fixed = (workload.machine_processors, workload.week_start, workload.machine)
    hasher = hashlib.sha256(content_digest((versions(), fixed, others)).encode())
    given = workload.columns()
    columns = [values for key, values in given.items() if COLUMNS[key].decides]
    if named := [key for key in given if COLUMNS[key].optional]:
        hasher.update(repr(named).encode())
    for array in (*columns, workload.user_index, *workload.history):
        hasher.update(array.tobytes())
    return hasher.hexdigest()


def digest_of_weeks(episodes: Episodes) -> str:
    """Digest the weeks of a log, the scheduler that runs them, and hpcgym's sources."""
    jobs = [digest(episodes.workload(week)) for week in range(len(episodes))]
    return digest(episodes.workload(0), jobs, episodes.settings, episodes.numbers)


def source_digest(package: Path) -> str:
    """Digest the sources that run and train, the package's version included.

    The rooms of `NOT_DIGESTED` are left out; a change there counts with the next version.
    """
    hasher = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        path = source.relative_to(package)
        if path.parts[0] not in NOT_DIGESTED:
            hasher.update(f"\0{path.as_posix()}\0".encode())
            hasher.update(source.read_bytes())
    return hasher.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Return the versions of what results depend on to the bit; of hpcgym also its sources'."""
    sources = source_digest(Path(str(files("hpcgym"))))
    try:
        of_hpcgym = version("hpcgym")
    except PackageNotFoundError:
        of_hpcgym = "not installed"
    of_hpcgym += f" (sources {sources[:16]})"
    return {"hpcgym": of_hpcgym, **COMPILER, "numpy": version("numpy")}
