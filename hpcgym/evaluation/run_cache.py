"""The file in which long work keeps what has finished, so that a second run goes on from there.

One JSON line per run, under the digest of everything that decides it: the jobs, the agent, the
settings, and the sources of hpcgym that run and train. A line ends with a digest of itself, by
which an altered one is found.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from hpcgym.core.columns import COLUMNS
from hpcgym.core.workload import Workload
from hpcgym.errors import EvaluationError, OutputError
from hpcgym.evaluation.content import content_digest
from hpcgym.scenario.episodes import Episodes

Row = dict[str, Any]

_HEAD = b'{"key"'

NOT_DIGESTED = ("evaluation", "report", "cli")
"""Rooms that ask for runs and show them; they can change while kept runs stay valid."""


class RunCache:
    """Finished runs by digest.

    Runs of other evaluations in the same file are kept and not used; so are runs of other sources.
    A last line that a crash cut off is run again. Agents and trainers are told apart by what they
    hold and by the text of their files: see `hpcgym.evaluation.content`.

    Args:
        path: The file; created if it is not there.

    Raises:
        EvaluationError: The file is not a run cache, or has a line that is not as it was written;
            the message names the line.
        OutputError: It cannot be read or written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._done: dict[str, list[Row]] = {}
        try:
            self.path.touch()
            content = self.path.read_bytes()
        except OSError as error:
            raise OutputError(f"{path}: cannot be kept: {error.strerror or error}") from error
        *lines, cut_off = content.split(b"\n")
        if not all(one[: len(_HEAD)] == _HEAD[: len(one)] for one in (*lines, cut_off)[:1]):
            raise EvaluationError(f"{path}: is not the run cache of a command")
        for number, line in enumerate(lines, start=1):
            key, self._done[key] = _entry_of(line, f"{path}:{number}")
        if cut_off:
            with self.path.open("r+b") as file:
                file.truncate(len(content) - len(cut_off))

    def keeps_others_only(self, prefix: str) -> bool:
        """Tell whether there are rows, but none under a digest that begins so."""
        return bool(self._done) and not any(key.startswith(prefix) for key in self._done)

    def find(self, key: str) -> list[Row] | None:
        """Return the rows kept under a digest, equal to those given to `keep`, or None."""
        return self._done.get(key)

    def keep(self, key: str, rows: list[Row]) -> None:
        """Append rows, plain values by column, under a digest.

        Raises:
            OutputError: The file cannot be written.
        """
        try:
            with self.path.open("ab", buffering=0) as file:  # whole lines, whoever else writes
                file.write(_line_of(key, rows).encode())
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(f"{self.path}: cannot be kept: {reason}") from error
        self._done[key] = rows


def _line_of(key: str, rows: list[Row]) -> str:
    """Return the line of an entry, with its digest at the end."""
    entry = json.dumps({"key": key, "rows": rows})
    return f'{entry[:-1]}, "sha256": "{hashlib.sha256(entry.encode()).hexdigest()}"}}\n'


def _entry_of(line: bytes, where: str) -> tuple[str, list[Row]]:
    """Return the key and the rows of a line; refuse one that `_line_of` has not written."""
    try:
        entry = json.loads(line)
        key, rows = entry["key"], entry["rows"]
        if _line_of(key, rows).encode() == line + b"\n":
            return key, rows
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise EvaluationError(
        f"{where}: damaged: this line is not as it was written; remove it, and what it kept is run "
        "again"
    )


def digest(workload: Workload, *others: object) -> str:
    """Digest the jobs of an episode, hpcgym's sources, and whatever else decides a run.

    Args:
        workload: The episode, users' histories included.
        others: Anything; see `hpcgym.evaluation.content`.

    Example:
        >>> from hpcgym.scenario.episodes import Episodes
        >>> tiny = Episodes("tiny").workload(0)
        >>> digest(tiny, "SAF") == digest(tiny, "SAF"), digest(tiny, "SAF") == digest(tiny, "SPF")
        (True, False)
    """
    fixed = (workload.machine_processors, workload.week_start, workload.machine)
    found = hashlib.sha256(content_digest((_sources(), fixed, others)).encode())
    columns = [values for key, values in workload.columns().items() if COLUMNS[key].decides]
    for array in (*columns, workload.user_index, *workload.history):
        found.update(array.tobytes())
    return found.hexdigest()


def digest_of_weeks(episodes: Episodes) -> str:
    """Digest the weeks of a log, the scheduler that runs them, and hpcgym's sources."""
    jobs = [digest(episodes.workload(week)) for week in range(len(episodes))]
    return digest(episodes.workload(0), jobs, episodes.settings, episodes.numbers)


def source_digest(package: Path) -> str:
    """Digest the sources that run and train, the package's version included.

    The rooms of `NOT_DIGESTED` are left out; a change there counts with the next version.
    """
    found = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        place = source.relative_to(package)
        if place.parts[0] not in NOT_DIGESTED:
            found.update(f"\0{place.as_posix()}\0".encode())
            found.update(source.read_bytes())
    return found.hexdigest()


@cache
def _sources() -> str:
    """Digest the sources of this process."""
    return source_digest(Path(str(files("hpcgym"))))
