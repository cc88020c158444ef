"""Long reruns in parts that are kept as they finish, so that a second run goes on from there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from hpcgym.evaluation.execution import Execution
from hpcgym.evaluation.executors import AnyExecutor, executor_of
from hpcgym.evaluation.store import Row


class Part(NamedTuple):
    """One part of a rerun.

    Attributes:
        key: Digest of all that decides its rows; see `hpcgym.evaluation.store.digest`.
        label: What messages call it.
        work: Makes its rows, plain values by column.
    """

    key: str
    label: str
    work: Callable[[], list[Row]]


class Finished(NamedTuple):
    """The rows of a rerun.

    Attributes:
        rows: The rows of each part, in the order of the parts.
        seconds: Wall time that all parts took, those of earlier runs included, s. Parts that ran
            side by side are added up.
    """

    rows: list[list[Row]]
    seconds: float


def run_parts(
    parts: Sequence[Part], store: str | Path, title: str, *, executor: AnyExecutor = None
) -> Finished:
    """Run parts and keep each as it finishes; what is kept is not run again.

    Args:
        parts: The parts; their work must be picklable for an executor.
        store: File to keep them in, made if it does not exist.
        title: What the progress bar says first.
        executor: Whose workers share the parts, as of `hpcgym.evaluate`.

    Raises:
        EvaluationError: The file is not a store, or a part failed.
        OutputError: The file cannot be read or written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "unfinished.sqlite")
        ...     parts = [Part("a", "first", lambda: [{"bsld": 2.5}])]
        ...     once, again = (run_parts(parts, path, "demo") for _ in range(2))
        >>> once == again, once.rows
        (True, [[{'bsld': 2.5}]])
    """
    key, named = attrgetter("key"), attrgetter("label")
    with executor_of(executor) as workers:
        execution = Execution(workers, store)
        found = execution.rows(_timed, parts, key, named=named, shown_as=(title, "parts"))
    return Finished([rows[1:] for rows in found], sum(rows[0]["seconds"] for rows in found))


def _timed(part: Part) -> list[Row]:
    """Return how long a part took, and its rows."""
    begun = time.perf_counter()
    rows = part.work()
    return [{"seconds": time.perf_counter() - begun}, *rows]
