"""Chunks of tasks: handed to an executor, done by its workers, and handed over again if lost.

A task is a pure function of files and seeds. So it may be done twice, by whichever worker, and
whichever result comes first is the result. A worker that would do another task than was meant says
so: it works the key of each task out anew.
"""

from __future__ import annotations

import pickle
import platform
import secrets
import sys
import time
import traceback
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from math import ceil
from queue import SimpleQueue
from threading import local
from typing import Any, TypeAlias

from hpcgym.base.errors import EvaluationError
from hpcgym.base.progress import steps
from hpcgym.core.threads import keep_to_threads
from hpcgym.evaluation.store import Row, versions

Fresh: TypeAlias = Generator[tuple[int, Any]]
Packed: TypeAlias = Callable[[Any, list[Row], str, str], list[Row]]

CHUNK_S = 20.0  # how long a chunk takes at least where an executor says nothing else (`chunk_s`), s

N_CHUNKS = 256
"""How many are handed over ahead where an executor does not say how many workers it has."""

TRIES = 4  # how often a task is tried before it counts as failed
INTERRUPT_S = 0.5  # how long to wait for a Ctrl-C that has ended the workers before this process, s
SHOWN = 300  # characters of an executor's own message that ours repeats

UNPICKLABLE = (pickle.PicklingError, AttributeError, TypeError)
"""What pickle raises where an object cannot be sent to another process."""

_PROCESS = secrets.token_hex(8)  # tells this process, and those forked off it, from others


class WorkerLostError(EvaluationError):
    """A worker has ended, or was ended, while it was at a task."""


@dataclass(frozen=True)
class Work:
    """What is done with each task; pickled once for all workers."""

    run: Callable[[Any], Any]  # makes the result of a task
    key: Callable[[Any], str]  # returns the digest of all that decides it
    named: Callable[[Any], str]  # returns what messages call a task
    # Makes plain values of a result that leaves the process; two texts say for messages where it
    # goes, and how to do without that. None = it is plain.
    packed: Packed | None = None
    versions: dict[str, str] = field(default_factory=versions)  # what keys depend on beside tasks

    def done(self, task: Any, key: str) -> Any:
        """Return the result of a task, or the error that it ended in."""
        try:
            if self.versions != versions() or self.key(task) != key:
                raise EvaluationError(self._refusal())
            made = self.run(task)
            where = "sent back from another process", "without an executor (--on)"
            return made if self.packed is None else self.packed(task, made, *where)
        except Exception as error:
            return _sendable(error)

    def _refusal(self) -> str:
        """Say why a worker cannot do a task."""
        pairs = [(name, here, self.versions[name]) for name, here in versions().items()]
        other = [f"{name} {here}, not {meant}" for name, here, meant in pairs if here != meant]
        what = ", ".join(other) or "another log or agent under the same name"
        return f"the worker on {platform.node()} has {what}; its result would be another"


def results(
    executor: Executor,
    work: Work,
    tasks: Sequence[Any],
    keys: Sequence[str],
    idle: Callable[[], None] = lambda: None,
) -> Fresh:
    """Yield the position and the result of each task as chunks of them end.

    A task that failed, or whose worker died, is tried again, in the end without others beside it.
    The rest goes on; then the error of the first task that failed for good is raised, with a note
    that names it. Whenever no chunk has ended and it has to wait, `idle` is called first.

    Raises:
        EvaluationError: Something cannot be sent to a worker, or workers die one after the other.
    """
    what = _pickled(work, "an agent")
    limit = _n_chunks(executor)
    seconds: float = getattr(executor, "chunk_s", CHUNK_S)
    waiting = deque(range(len(tasks)))
    failures: dict[int, list[Exception]] = defaultdict(list)
    under_way: dict[Future[Any], list[int]] = {}
    ended: SimpleQueue[Future[Any]] = SimpleQueue()
    n_lost = 0  # chunks, one after the other

    def is_alone(position: int, n_failures: int) -> bool:
        """Tell whether a task has often failed, in the end with its worker: it may kill others."""
        errors = failures.get(position, [])
        return len(errors) >= n_failures and isinstance(errors[-1], WorkerLostError)

    def next_chunk() -> list[int]:
        """Return the tasks of the next chunk; none where it has to wait."""
        if not waiting or len(under_way) >= limit:
            return []
        at_work = [position for chunk in under_way.values() for position in chunk[:1]]
        if at_work and any(is_alone(position, TRIES - 1) for position in (waiting[0], at_work[0])):
            return []
        size = ceil(len(waiting) / limit) if seconds else 1
        chunk = [waiting.popleft()]
        while len(chunk) < size and not any(
            is_alone(position, 2) for position in (chunk[0], waiting[0])
        ):
            chunk.append(waiting.popleft())
        return chunk

    try:
        while waiting or under_way:
            while chunk := next_chunk():
                parts = [(position, tasks[position], keys[position]) for position in chunk]
                name = work.named(tasks[chunk[0]])
                given = what, chunk, _pickled(parts, name), seconds, _PROCESS, sys.path
                future = _submitted(executor, given)
                under_way[future] = chunk
                future.add_done_callback(ended.put)
            if ended.empty():
                idle()
            future = ended.get()
            chunk = under_way.pop(future)
            made = _result(future)
            n_lost = n_lost + 1 if isinstance(made, WorkerLostError) else 0
            if isinstance(made, WorkerLostError):
                time.sleep(INTERRUPT_S)  # a Ctrl-C may have reached workers first
                if n_lost > TRIES * limit:
                    raise made
                made = dict.fromkeys(chunk, made)
            for position in chunk:
                result = made.get(position, waiting)
                if result is waiting:  # not begun when the time of its chunk was over
                    waiting.append(position)
                elif isinstance(result, Exception):
                    failures[position].append(result)
                    if len(failures[position]) < TRIES:
                        waiting.append(position)
                else:
                    yield position, result
    finally:
        for future in under_way:
            future.cancel()
    failed = sorted(position for position, errors in failures.items() if len(errors) == TRIES)
    if failed:
        error = failures[failed[0]][-1]
        more = f"; {len(failed) - 1} more tasks failed" if len(failed) > 1 else ""
        told = f"{work.named(tasks[failed[0]])}, tried {TRIES} times{more}"
        error.__notes__ = [told, *getattr(error, "__notes__", ())]
        raise error


def _n_chunks(executor: Executor) -> int:
    """Return how many chunks an executor gets ahead: two for each worker, if it says how many."""
    stated: int | None = getattr(executor, "n_chunks", None)
    n_workers: int | None = getattr(executor, "_max_workers", None)
    return stated or (2 * n_workers if n_workers else N_CHUNKS)


def _submitted(executor: Executor, given: tuple[Any, ...]) -> Future[Any]:
    """Submit a chunk; an executor that refuses it has lost it."""
    try:
        return executor.submit(_work, *given)
    except Exception as error:
        future: Future[Any] = Future()
        future.set_exception(error)
        return future


def _result(future: Future[Any]) -> dict[int, Any] | WorkerLostError:
    """Return what a chunk has made by position, or why it is lost."""
    try:
        made = future.result()
        if isinstance(made, dict) and made:
            return made
        why = f"it sent {made!r:.80}"
    except Exception as error:  # of whatever kind the executor raises
        why = f"{type(error).__name__} {' '.join(str(error).split())[-SHOWN:]}"
    return WorkerLostError(
        "a worker was ended from outside, as systems do that run out of memory; try fewer "
        f"processes at once ({why}). What had finished is kept if there is a file to resume from"
    )


def _pickled(value: object, what: str) -> bytes:
    """Pickle what goes to another process, or refuse it."""
    try:
        return pickle.dumps(value)
    except UNPICKLABLE as error:
        raise EvaluationError(
            f"{what} cannot be sent to another process ({error}); leave the executor (--on) out"
        ) from None


def _work(
    what: bytes,
    positions: list[int],
    chunk: bytes,
    seconds: float,
    process: str,
    folders: list[str],
) -> dict[int, Any]:
    """Do tasks for so many seconds, one at least; return what each made, or its error."""
    until = time.monotonic() + seconds
    if process != _PROCESS:
        keep_to_threads(1)
        sys.path += [folder for folder in folders if folder not in sys.path]
    try:
        if getattr(_loaded, "what", None) != what:
            _loaded.work, _loaded.what = pickle.loads(what), what
        parts = pickle.loads(chunk)
    except Exception as error:
        text = (
            f"a worker on {platform.node()} cannot load what it works with "
            f"({type(error).__name__}: {error}); logs, and files of your own, must be there under "
            "the same path"
        )
        return dict.fromkeys(positions, EvaluationError(text))
    work: Work = _loaded.work
    made: dict[int, Any] = {}
    with steps(len(parts)) as progress:
        for position, task, key in parts:
            if made and time.monotonic() >= until:
                break
            made[position] = work.done(task, key)
            progress.advance()
    return made


_loaded = local()  # what a thread works with, and from which bytes it was loaded


def _sendable(error: Exception) -> Exception:
    """Return an error with its traceback as a note, and as one of ours if it cannot be sent."""
    note = traceback.format_exc()
    error.__traceback__ = error.__cause__ = error.__context__ = None
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = EvaluationError(f"{type(error).__name__}: {error}")
    error.add_note(note)
    return error
