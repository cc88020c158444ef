"""Long reruns in parts that are kept as they finish, so that a second run goes on from there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hpcgym.evaluation.run_cache import Row, RunCache


class Part(NamedTuple):
    """One part of a rerun.

    Attributes:
        key: Digest of all that decides its rows; see `hpcgym.evaluation.run_cache.digest`.
        label: What the progress bar calls it.
        work: Makes its rows, plain values by column.
    """

    key: str
    label: str
    work: Callable[[], list[Row]]


class Finished(NamedTuple):
    """The rows of a rerun.

    Attributes:
        rows: The rows of each part, in the order of the parts.
        seconds: Wall time that all parts took, those of earlier runs included, s.
    """

    rows: list[list[Row]]
    seconds: float


def run_parts(parts: Sequence[Part], journal: str | Path, title: str) -> Finished:
    """Run parts one after the other and keep each as it finishes; what is kept is not run again.

    Args:
        parts: The parts.
        journal: File to keep them in, made if it does not exist.
        title: What the progress bar says first.

    Raises:
        EvaluationError: The file is not a journal.
        OutputError: The file cannot be read or written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "unfinished.jsonl")
        ...     parts = [Part("a", "first", lambda: [{"bsld": 2.5}])]
        ...     once, again = (run_parts(parts, path, "demo") for _ in range(2))
        >>> once == again, once.rows
        (True, [[{'bsld': 2.5}]])
    """
    kept = RunCache(journal)
    console = Console(stderr=True)
    n_kept = sum(kept.find(part.key) is not None for part in parts)
    if n_kept:
        console.print(f"{title}: {n_kept} of {len(parts)} parts are kept in {journal}")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    rows, seconds = [], 0.0
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=len(parts))
        for part in parts:
            bar.update(task, description=f"{title}: {part.label}")
            found = kept.find(part.key)
            if found is None:
                begun = time.perf_counter()
                made = part.work()
                found = [{"seconds": time.perf_counter() - begun}, *made]
                kept.keep(part.key, found)
            seconds += found[0]["seconds"]
            rows.append(found[1:])
            bar.advance(task)
    return Finished(rows, seconds)
