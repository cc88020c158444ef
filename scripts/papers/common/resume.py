"""Long reruns in parts that are kept as they finish, so that a second run goes on from there."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, MutableSequence, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from hpcgym.evaluation.store import Row, Store
from hpcgym.evaluation.workers import as_finished, no_shares, workers
from hpcgym.progress import shown, steps


class Part(NamedTuple):
    """One part of a rerun.

    Attributes:
        key: Digest of all that decides its rows; see `hpcgym.evaluation.store.digest`.
        label: What the progress bar shows once it has finished.
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
    parts: Sequence[Part], store: str | Path, title: str, *, processes: int = 1
) -> Finished:
    """Run parts and keep each as it finishes; what is kept is not run again.

    Args:
        parts: The parts; their work must be picklable for more than one process.
        store: File to keep them in, made if it does not exist.
        title: What the progress bar says first.
        processes: How many parts are run side by side.

    Raises:
        EvaluationError: The file is not a store, or a process was ended from outside.
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
    kept = Store(store)
    todo = [part for part in parts if kept.find(part.key) is None]
    if len(todo) < len(parts):
        n_kept = len(parts) - len(todo)
        print(f"{title}: {n_kept} of {len(parts)} parts are kept in {store}", file=sys.stderr)
    shares = None if processes == 1 else no_shares(len(todo))
    made = _made(todo, processes, shares)
    with closing(made), shown(), steps(len(todo), title, "parts", shares=shares) as work:
        for place, rows in made:
            kept.keep(todo[place].key, rows)
            work.name = f"{title}: {todo[place].label}"
            work.advance()
    found = [kept.find(part.key) or [] for part in parts]
    return Finished([rows[1:] for rows in found], sum(rows[0]["seconds"] for rows in found))


def _made(
    parts: Sequence[Part], processes: int, shares: MutableSequence[float] | None
) -> Generator[tuple[int, list[Row]]]:
    """Yield the place and the rows of every part, as they finish."""
    if shares is None or not parts:
        yield from enumerate(_timed(part.work) for part in parts)
        return
    with workers(processes, _nothing, shares=shares) as pool:
        yield from as_finished(pool, _timed, [part.work for part in parts])


def _timed(work: Callable[[], list[Row]]) -> list[Row]:
    """Return how long some work took, and its rows."""
    begun = time.perf_counter()
    rows = work()
    return [{"seconds": time.perf_counter() - begun}, *rows]


def _nothing() -> None:
    """Begin a worker that needs no preparation."""
