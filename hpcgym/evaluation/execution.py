"""Tasks carried out: those that are kept are not done again, the others here or in processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, MutableSequence, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

from hpcgym.core.threads import keep_to_threads
from hpcgym.errors import EvaluationError, refuse_unless_a, refuse_unless_whole
from hpcgym.evaluation.store import Row, Store
from hpcgym.evaluation.workers import as_finished, no_shares, refuse_unpicklable, workers
from hpcgym.progress import shown, steps

Run: TypeAlias = Callable[[Any], list[Row]]
Packed: TypeAlias = Callable[[Any, list[Row], str, str], list[Row]]
Fresh: TypeAlias = Generator[tuple[int, list[Row]]]

MOST_PROCESSES = 4096

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Where numerical libraries read how many threads to start."""


@dataclass(frozen=True)
class Execution:
    """How tasks are carried out.

    Attributes:
        processes: How many share the tasks; 1 = they are done here.
        resume: File that keeps the rows of each task as soon as it is finished, and from which they
            are taken the next time; None = no file.
        progress: Whether to show progress.

    Raises:
        EvaluationError: A number of processes out of range, or a `resume` that is no path; later,
            one that is no store.
    """

    processes: int = 1
    resume: str | Path | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        refuse_unless_whole("processes", self.processes, 1, MOST_PROCESSES, EvaluationError)
        if self.resume is not None:
            kinds = (str, os.PathLike)
            refuse_unless_a(kinds, "resume", self.resume, "a path or None", EvaluationError)

    @cached_property
    def store(self) -> Store | None:
        """The file of finished work, opened when it is first asked for."""
        return None if self.resume is None else Store(self.resume)

    def rows(
        self,
        run: Run,
        tasks: Sequence[Any],
        key: Callable[[Any], str],
        *,
        shown_as: tuple[str, str],
        command: str,
        packed: Packed | None = None,
        one_thread: bool = False,
    ) -> list[list[Row]]:
        """Return the rows of each task.

        Args:
            run: Makes the rows of a task; pickled once into every process.
            tasks: The tasks; those with a `name` are called so in messages.
            key: Returns the digest of all that decides the rows of a task.
            shown_as: Title of the progress, and what a task is, in the plural.
            command: What a person does with an agent, for messages.
            packed: Makes plain values of a task's rows that leave the process; two texts say for
                messages where they go, and how to do without that. None = they are plain.
            one_thread: Whether each of several processes is to have one thread.

        Raises:
            EvaluationError: Something cannot be sent to another process, or be kept.
            OutputError: The store cannot be written.
        """
        store = self.store
        keys = ["" if store is None else key(task) for task in tasks]
        rows = [None if store is None else store.find(one) for one in keys]
        todo = [place for place, found in enumerate(rows) if found is None]
        left = [tasks[place] for place in todo]
        shares = None if self.processes == 1 else no_shares(len(todo))
        if shares is None:
            fresh = (made for made in enumerate(map(run, left)))
        else:
            sent = {getattr(one, "name", "an agent"): one for one in (*left, run)}
            for name, one in sent.items():
                refuse_unpicklable(one, name, f"{command} it")
            begin = partial(_begin_worker, run, packed, one_thread)
            fresh = _run_in_workers(self.processes, begin, left, shares, one_thread)
        with (
            closing(fresh),
            shown(self.progress),
            steps(len(tasks), *shown_as, shares=shares) as work,
        ):
            work.advance(len(tasks) - len(todo))
            for done, made in fresh:
                rows[todo[done]] = made
                if store is not None:
                    where = f"kept in {store.path}", "without a file to resume from"
                    kept = made if packed is None else packed(left[done], made, *where)
                    store.keep(keys[todo[done]], kept)
                work.advance()
        return [found for found in rows if found is not None]


def _run_in_workers(
    processes: int,
    begin: Callable[[], None],
    tasks: Sequence[Any],
    shares: MutableSequence[float],
    one_thread: bool,
) -> Fresh:
    """Yield the place and the rows of every task that is done in workers, as they finish."""
    with workers(processes, begin, shares=shares) as pool:
        with _one_thread_each() if one_thread else nullcontext():
            finished = as_finished(pool, _run_in_worker, tasks)
        yield from finished


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that are spawned meanwhile load numerical libraries with one thread."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


_run: Run
_packed: Packed | None


def _begin_worker(run: Run, packed: Packed | None, one_thread: bool) -> None:
    """Keep what a worker does in each task."""
    global _run, _packed
    _run, _packed = run, packed
    if one_thread:
        keep_to_threads(1)


def _run_in_worker(task: Any) -> list[Row]:
    """Do one task in a worker."""
    where = "sent back from another process", "with processes=1"
    return _run(task) if _packed is None else _packed(task, _run(task), *where)
