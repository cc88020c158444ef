"""What `--apply` has changed: a file of lines, each on disk before Slurm is told.

Whenever a process is killed, the journal names every job whose site factor may not be 0. A line is
a JSON object with `at`, Unix s, and one of:

| key | meaning |
|---|---|
| `set` | site factors by job id that Slurm is about to be told |
| `expires` | beside `set`: until when all that is in force holds, Unix s |
| `boot` | beside `set`: which boot of the machine it was |
| `up` | the same instant as `expires`, s since that boot, by a clock that nobody sets |
| `cleared` | job ids whose site factor is 0 again or another's, or that have ended |
| `off` | nothing was changed, as this day is one without |
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hpcgym.base.errors import LiveError, OutputError, unreadable

LOCK_S = 30.0  # how long one process waits for another that has the journal


class Journal:
    """An open journal; see `opened`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        # By job id, the site factors that may be in force by these changes, the last one last.
        self.sites: dict[int, list[int]] = {}
        # The same of jobs that are cleared; a controller that is killed may forget the last
        # seconds, and have them again.
        self.former: dict[int, list[int]] = {}
        self.expires = 0  # until when they hold, Unix s
        # The boot at which that was noted, "" if not known; the same instant, s since then.
        self.boot, self.up = "", 0
        self.last_at = 0  # when the last entry was made, Unix s
        self.descriptors = (descriptor,)  # what a process must inherit to keep the journal locked
        text = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        self._torn = bool(text) and not text.endswith(b"\n")
        for entry in _entries(text):
            self._take(entry)

    def _take(self, entry: Mapping[str, Any]) -> None:
        for job, site in entry.get("set", {}).items():
            self.sites.setdefault(int(job), []).append(site)
        if "expires" in entry:
            self.expires = entry["expires"]
            self.boot, self.up = entry.get("boot", ""), entry.get("up", 0)
        for job in entry.get("cleared", ()):
            self.former.setdefault(job, []).extend(self.sites.pop(job, ()))
        self.last_at = entry["at"]

    def known(self, job: int) -> list[int]:
        """Return the site factors of a job that may be of these changes."""
        return [*self.sites.get(job, ()), *self.former.get(job, ())]

    def has_expired(self, now: float) -> bool:
        """Tell whether changes hold no longer, by the clock since the boot where it is the same.

        By the clock of the day they also do so at an instant before the last entry, as then that
        clock has been set back, and may have been days ahead.
        """
        boot, up = boot_clock()
        if boot and boot == self.boot:
            return up >= self.up
        return not self.last_at <= now < self.expires

    def intend(self, at: float, expires: float, sites: Mapping[int, int]) -> None:
        """Note site factors before Slurm is told; what is in force holds until `expires`, too."""
        told = {str(job): site for job, site in sites.items()}
        boot, up = boot_clock()
        until = {"expires": int(expires), "boot": boot, "up": int(up + expires - at)}
        self._append({"at": int(at), **until, "set": told})

    def clear(self, at: float, jobs: Iterable[int]) -> None:
        """Note jobs whose site factor is no longer of these changes."""
        if cleared := sorted(jobs):
            self._append({"at": int(at), "cleared": cleared})

    def note_off(self, at: float) -> None:
        """Note that this day is one without."""
        self._append({"at": int(at), "off": True})

    def _append(self, entry: Mapping[str, Any]) -> None:
        """Write a line and wait until the disk has it."""
        line = f"{json.dumps(entry)}\n".encode()
        try:
            left = b"\n" * self._torn + line
            while left:
                left = left[os.write(self.descriptors[0], left) :]
            os.fsync(self.descriptors[0])
        except OSError as error:
            self._torn = True
            raise OutputError(f"{self.path}: {error.strerror}; nothing more is noted") from error
        self._torn = False
        self._take(entry)


def boot_clock() -> tuple[str, float]:
    """Return which boot of the machine this is, "" if not known, and the s since then."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return "", 0.0
    return boot, time.clock_gettime(time.CLOCK_BOOTTIME)


def _entries(text: bytes) -> Iterator[dict[str, Any]]:
    """Yield the entries of a journal, but for broken lines: of those Slurm was never told."""
    for line in filter(None, text.split(b"\n")):
        try:
            entry = json.loads(line)
            whole = isinstance(entry, dict) and isinstance(entry["at"], int)
            told = entry.get("set", {}) if whole else {}
            whole = whole and all(job.isdigit() and type(told[job]) is int for job in told)
            whole = whole and all(type(job) is int for job in entry.get("cleared", ()))
        except (ValueError, KeyError, AttributeError, TypeError):
            whole = False
        if whole:
            yield entry


def entries_of(path: str | Path) -> list[dict[str, Any]]:
    """Return the entries of a journal, as it stands. LiveError: it cannot be read."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise LiveError(f"{unreadable(path, error)}; --apply writes it") from None
    return list(_entries(text))


@contextmanager
def opened(path: str | Path, *, wait_s: float = LOCK_S) -> Iterator[Journal]:
    """Open a journal, made if missing, and keep other processes out meanwhile."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise OutputError(
            f"{path}: {error.strerror}; the journal must be writable: --journal FILE"
        ) from None
    try:
        os.fsync(folder)
        _lock(path, descriptor, wait_s)
        yield Journal(path, descriptor)
    finally:
        os.close(folder)
        os.close(descriptor)


def _lock(path: Path, descriptor: int, wait_s: float) -> None:
    """Lock an open file; the lock ends with the process, however that ends."""
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if time.monotonic() > until:
                raise LiveError(
                    f"{path}: another hpcgym has had it for {wait_s:.0f} s; try again later"
                ) from None
            time.sleep(0.05)
