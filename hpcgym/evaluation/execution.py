"""Tasks carried out: those that are kept are not done again, the others here or by an executor."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcgym.base.errors import EvaluationError, refuse_unless_a
from hpcgym.base.progress import shown, steps
from hpcgym.evaluation.chunks import Fresh, Packed, Work, results
from hpcgym.evaluation.store import Row, Store

MOST_PENDING = 256  # results that are not kept yet where chunks end faster than results are kept


@dataclass(frozen=True)
class Execution:
    """How tasks are carried out.

    Raises:
        EvaluationError: A `resume` that is no path; later, one that is no store.
    """

    executor: Executor | None = None  # whose workers share the tasks; None = they are done here
    # File that keeps the rows of each task as soon as it is finished, and from which they are taken
    # the next time; None = no file.
    resume: str | Path | None = None
    progress: bool = True  # whether to show progress

    def __post_init__(self) -> None:
        if self.resume is not None:
            kinds = (str, os.PathLike)
            refuse_unless_a(kinds, "resume", self.resume, "a path or None", EvaluationError)

    @cached_property
    def store(self) -> Store | None:
        """The file of finished work, opened when it is first asked for."""
        return None if self.resume is None else Store(self.resume)

    def rows(
        self,
        run: Callable[[Any], list[Row]],
        tasks: Sequence[Any],
        key: Callable[[Any], str],
        *,
        named: Callable[[Any], str],
        shown_as: tuple[str, str],
        packed: Packed | None = None,
    ) -> list[list[Row]]:
        """Return the rows of each task.

        Args:
            run: As the next arguments, an attribute of `hpcgym.evaluation.chunks.Work`.
            tasks: The tasks.
            shown_as: Title of the progress, and what a task is, in the plural.

        Raises:
            EvaluationError: Something cannot be sent to another process, or be kept.
            OutputError: The store cannot be written.
        """
        store = self.store
        is_known = store is not None or self.executor is not None
        keys = [key(task) if is_known else "" for task in tasks]
        rows = [None if store is None else store.find(digest) for digest in keys]
        todo = [position for position, made in enumerate(rows) if made is None]
        left = [tasks[position] for position in todo]
        pending: dict[str, list[Row]] = {}

        def keep() -> None:
            """Keep what has come since the last time; one transaction of many takes as long."""
            if store is not None and pending:
                store.keep_all(pending)
                pending.clear()

        work_of_each = Work(run, key, named, packed)
        fresh = self.fresh(work_of_each, left, [keys[position] for position in todo], keep)
        shares = getattr(self.executor, "shares", ())
        with (
            closing(fresh),
            shown(self.progress),
            steps(len(tasks), *shown_as, shares=shares) as work,
            ExitStack() as at_the_end,
        ):
            at_the_end.callback(keep)  # also what came before an error or Ctrl-C
            work.advance(len(tasks) - len(todo))
            for done, made in fresh:
                rows[todo[done]] = made
                if store is not None:
                    where = f"kept in {store.path}", "without a file to resume from"
                    kept = made if packed is None else packed(left[done], made, *where)
                    pending[keys[todo[done]]] = kept
                if len(pending) >= MOST_PENDING:
                    keep()
                work.advance()
        return [made for made in rows if made is not None]

    def fresh(
        self,
        work: Work,
        tasks: Sequence[Any],
        keys: Sequence[str],
        idle: Callable[[], None] = lambda: None,
    ) -> Fresh:
        """Yield the position and the result of each task as they finish; nothing is kept.

        Where it has to wait for the next, `idle` is called first.
        """
        if self.executor is not None:
            yield from results(self.executor, work, tasks, keys, idle)
            return
        for position, task in enumerate(tasks):
            idle()
            yield position, work.run(task)
