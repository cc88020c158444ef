"""Logs of sessions by number, each of other users: made from seeds at first use, and kept on disk.

They are kept where compiled kernels are, in a folder that parameters, generator and numpy name. A
file begins with a digest of its name and the rest, so a damaged one is made again. Where nothing
can be written, each process makes what it needs.

Source: Specification, section 9, "Log of sessions".
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import OutputError
from hpcgym.base.log import LOG
from hpcgym.base.output import writing
from hpcgym.base.progress import steps
from hpcgym.core.workload import Workload
from hpcgym.trace import estimates, lublin, sessions

COLUMNS = ("submit_time", "run_time", "requested_time", "processors", "user")
"""What a file holds: of all jobs the first, then the second, each in four bytes."""

SEAL_BYTES = hashlib.sha256().digest_size
DIGEST_DIGITS = 8  # digits of a digest on record, hexadecimal

UNUSED_LIFE_S = 30 * 86_400
"""A folder that no process has used for this long is removed when a new one is made."""

_not_kept: set[Path] = set()
"""Folders of which this process has said that nothing can be kept there."""

EDGE_WEEKS = 2  # weeks of a log that are no episodes: the first, and the one behind the last


@dataclass(frozen=True)
class Populations:
    """Logs by number from 0, each of 200 users who work in sessions.

    A log depends on its number and the parameters only, so more of them change none.
    """

    name: str  # what the logs are called
    seed: int  # seed of all; that of log k is (seed, k)
    weeks: int  # weeks of each that are whole and have a week before them
    load: float  # usual share of the machine that a week's jobs need
    processors: int  # processors of the machine
    wide: float = 0.0  # as of `hpcgym.trace.sessions.session_workload`
    session_jobs: float = 4.0
    # The digest of logs by number, as `digest_of_jobs` returns it.
    on_record: Mapping[int, str] = field(default_factory=dict)

    def log(self, number: int) -> Workload:
        """Return a log, from disk if it is there; its time 0 begins a Monday.

        Raises:
            TraceError: The machine has fewer than 32 processors.
        """
        path = self._path(number)
        jobs = None if path is None else _read(path)
        if jobs is None:
            made = f"population {number} of {self.name}"
            with steps(1, f"making {made}", notice=f"kept in {path.parent}" if path else ""):
                jobs = self.make(number)
            if path is not None:
                _keep(path, jobs)
        stated = self.on_record.get(number)
        if stated not in (None, digest_of_jobs(jobs)):
            _say_other(self.name, number)
        columns = dict(zip(COLUMNS, jobs, strict=True))
        return Workload.from_arrays(
            **columns,
            machine_processors=self.processors,
            name=self.name,
            unix_start=sessions.MONDAY_UNIX_S,
        )

    def make(self, number: int) -> NDArray[np.int32]:
        """Make the jobs of a log anew: `COLUMNS`, shape (5, n_jobs)."""
        log = sessions.session_workload(
            self.weeks + EDGE_WEEKS,
            np.random.default_rng([self.seed, number]),
            machine_processors=self.processors,
            load=self.load,
            wide=self.wide,
            session_jobs=self.session_jobs,
            name=self.name,
        )
        return np.array([getattr(log, column) for column in COLUMNS], dtype="<i4")

    def _path(self, number: int) -> Path | None:
        """Return the file of a log; None where nobody knows this user's folder of caches."""
        usual = (self.seed, self.weeks, self.load, self.processors)
        parameters = (*usual, self.wide, self.session_jobs)
        folder = _folder(repr(parameters))
        return None if folder is None else folder / f"{number}.jobs"


def digest_of_jobs(jobs: NDArray[np.int32]) -> str:
    """Return the first digits of the sha256 of a log's jobs, as a scenario puts them on record."""
    return hashlib.sha256(jobs.tobytes()).hexdigest()[:DIGEST_DIGITS]


@cache
def _folder(parameters: str) -> Path | None:
    """Return where logs with some parameters are kept, and note that it is used."""
    from hpcgym.core.compiler.jit import CACHE_FOLDER

    if CACHE_FOLDER is None:
        return None
    digest = hashlib.sha256(f"{parameters} {np.__version__}".encode())
    for module in (sessions, lublin, estimates):
        digest.update(Path(str(module.__file__)).read_bytes())
    folder = CACHE_FOLDER.parent / f"weeks-{digest.hexdigest()[:16]}"
    if folder.is_dir():
        with suppress(OSError):
            os.utime(folder)
    else:
        _remove_unused(folder.parent)
    return folder


def _remove_unused(root: Path) -> None:
    """Remove folders of logs that no process has used lately."""
    for folder in root.glob("weeks-*"):
        with suppress(OSError):  # another process may be removing it, too
            if folder.stat().st_mtime < time.time() - UNUSED_LIFE_S:
                shutil.rmtree(folder)


def _read(path: Path) -> NDArray[np.int32] | None:
    """Return the jobs in a file, shape (5, n_jobs); None if there is none, or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    data = content[SEAL_BYTES:]
    if content[:SEAL_BYTES] == _seal_of(path, data):
        return np.frombuffer(data, "<i4").reshape(len(COLUMNS), -1)
    LOG.warning("%s is damaged; it is made again", path)
    return None


def _keep(path: Path, jobs: NDArray[np.int32]) -> None:
    """Write the jobs of a log, whole or not at all; where that fails, say why and go on."""
    try:
        with writing(path, force=True) as file:
            file.write_bytes(_seal_of(path, jobs.tobytes()) + jobs.tobytes())
    except OutputError as error:
        _say_not_kept(path.parent, str(error))


def _seal_of(path: Path, data: bytes) -> bytes:
    """Return the digest of a file's contents under its own name in its own folder."""
    return hashlib.sha256(f"{path.parent.name}/{path.name}\0".encode() + data).digest()


def _say_not_kept(folder: Path, reason: str) -> None:
    """Say once a process why logs are made anew in every one."""
    if folder not in _not_kept:
        _not_kept.add(folder)
        LOG.warning("generated weeks cannot be kept: %s", reason)


@cache
def _say_other(name: str, number: int) -> None:
    """Say once a process that a log is not the one on record."""
    print(
        f"hpcgym: {name}: its keys of [trace], numpy {np.__version__} and this hpcgym make other "
        f"jobs of population {number} than its digests are of; results on these weeks compare with "
        "no others. With keys of your own, leave the digests out",
        file=sys.stderr,
    )
