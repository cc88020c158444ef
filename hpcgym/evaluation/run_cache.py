"""A file of what a long evaluation has finished, so that a second run goes on from there."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from hpcgym.core.workload import Workload
from hpcgym.errors import EvaluationError, OutputError

Row = dict[str, Any]

ASKING = ("evaluation", "report", "cli")
"""Rooms whose code asks for runs and shows them; a table can be mended and the runs kept."""


class Journal:
    """Finished runs by the digest of all that decides them, one JSON line each.

    What another evaluation wrote into the same file is kept and not used, nor is what other
    sources of hpcgym ran or trained; a line cut off by a crash is run again. Agents are told apart
    by name, environment keywords and settings: an agent that changes its mind under the same name
    needs another file.

    Args:
        path: The file, made if it is not there.

    Raises:
        EvaluationError: The file is not a journal.
        OutputError: It cannot be read or written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._done: dict[str, list[Row]] = {}
        try:
            self.path.touch()
            text = self.path.read_text(encoding="utf-8")
        except OSError as error:
            raise OutputError(f"{path}: cannot be kept: {error.strerror or error}") from error
        except UnicodeDecodeError:
            raise EvaluationError(f"{path}: is not the journal of an evaluation") from None
        whole = text.rfind("\n") + 1
        for line in text[:whole].splitlines():
            try:
                entry = json.loads(line)
                self._done[entry["key"]] = entry["rows"]
            except (ValueError, TypeError, KeyError):
                raise EvaluationError(f"{path}: is not the journal of an evaluation") from None
        if whole < len(text):
            if not text[whole:].startswith('{"key"'):
                raise EvaluationError(f"{path}: is not the journal of an evaluation")
            with self.path.open("r+b") as file:
                file.truncate(len(text[:whole].encode()))

    def find(self, key: str) -> list[Row] | None:
        """Return the rows kept under a key, or None.

        Args:
            key: What `digest` gave.

        Returns:
            The rows, equal to those kept.

        Source:
            House rule: a long run can be cut off at any time and taken up again.
        """
        return self._done.get(key)

    def keep(self, key: str, rows: list[Row]) -> None:
        """Append rows under a key.

        Args:
            key: What `digest` gave.
            rows: Plain values by column.

        Raises:
            OutputError: The file cannot be written.

        Source:
            House rule: a long run can be cut off at any time and taken up again.
        """
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "rows": rows}) + "\n")
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(f"{self.path}: cannot be kept: {reason}") from error
        self._done[key] = rows


def digest(workload: Workload, *others: object) -> str:
    """Digest the jobs of an episode, the code that runs them, and whatever else decides a run.

    Args:
        workload: The episode as it was cut.
        others: Anything whose `repr` is the same in every process.

    Returns:
        A hexadecimal text; other jobs, users' histories, settings or sources give another.

    Source:
        House rule: a result is found again by what it was made of.

    Example:
        >>> from hpcgym.scenario.episodes import Episodes
        >>> tiny = Episodes("tiny").workload(0)
        >>> digest(tiny, "SAF") == digest(tiny, "SAF"), digest(tiny, "SAF") == digest(tiny, "SPF")
        (True, False)
    """
    fixed = (workload.machine_processors, workload.week_start)
    found = hashlib.sha256(repr((_sources(), fixed, others)).encode())
    columns = (
        workload.job_id,
        workload.submit_time,
        workload.run_time,
        workload.requested_time,
        workload.processors,
        workload.user_index,
    )
    for array in (*columns, *workload.history):
        found.update(array.tobytes())
    return found.hexdigest()


def source_digest(package: Path) -> str:
    """Digest the code that runs and trains, the package's version included.

    That of the rooms of `ASKING` is left out; a change there counts with the next version.

    Args:
        package: The folder of the package.

    Returns:
        A hexadecimal text.

    Source:
        House rule: a result is found again by what it was made of.
    """
    found = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        place = source.relative_to(package)
        if place.parts[0] not in ASKING:
            found.update(f"\0{place.as_posix()}\0".encode())
            found.update(source.read_bytes())
    return found.hexdigest()


@cache
def _sources() -> str:
    """Digest the sources of this process."""
    return source_digest(Path(str(files("hpcgym"))))
