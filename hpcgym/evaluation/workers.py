"""Worker processes: spawned, started alike, and ended together."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Callable, Iterable, Iterator, MutableSequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import active_children, parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.sharedctypes import RawArray
from threading import Thread, current_thread, main_thread
from typing import Any, TypeVar

from hpcgym.errors import EvaluationError
from hpcgym.progress import sent

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")

INTERRUPT_S = 0.5
"""How long to wait for a Ctrl-C that has ended the workers before this process, s."""

UNPICKLABLE = (pickle.PicklingError, AttributeError, TypeError)
"""What pickle raises where an object cannot be sent to another process."""


@contextmanager
def workers(
    processes: int,
    begin: Callable[..., None],
    *given: object,
    shares: MutableSequence[float] | None = None,
) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes that first call `begin(*given)`; both must be picklable.

    The pool ends with the block, which drops tasks that no process has begun. `shares` is where
    `sharing` writes, as of `no_shares`.

    Raises:
        EvaluationError: A process was killed from outside, as systems do when memory runs out.
    """
    pool = ProcessPoolExecutor(processes, _Context(), partial(_begin, shares, begin, *given))
    try:
        yield pool
    except BrokenProcessPool:
        time.sleep(INTERRUPT_S)  # a terminal's Ctrl-C reaches the workers first: let it be raised
        raise EvaluationError(
            f"one of {processes} processes was ended from outside, as systems do that run out of "
            "memory; try fewer processes. What had finished is kept if there is a file to resume "
            "from"
        ) from None
    except KeyboardInterrupt:
        for process in active_children():
            if isinstance(process, _Process):  # and no process of the caller's
                process.terminate()  # it may be importing, deaf to Ctrl-C
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class _Process(SpawnProcess):
    """A process that is deaf to Ctrl-C until it has begun: its imports would show tracebacks."""

    def start(self) -> None:
        """Start it; a Ctrl-C meanwhile is raised afterwards, so that it gets all it reads."""
        can_mask = hasattr(signal, "pthread_sigmask") and current_thread() is main_thread()
        if not can_mask or signal.getsignal(signal.SIGINT) is None:
            super().start()
            return
        noted: list[Any] = []
        handler = signal.signal(signal.SIGINT, lambda *given: noted.append(given))
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a child inherits it
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            signal.signal(signal.SIGINT, handler)
            if noted and callable(handler):
                handler(*noted[0])


class _Context(SpawnContext):
    """Makes such processes; a forked one would die of its parent's threads."""

    Process = _Process


def refuse_unpicklable(one: object, what: str, advice: str) -> None:
    """Refuse what cannot be sent to another process."""
    try:
        pickle.dumps(one)
    except UNPICKLABLE as error:
        raise EvaluationError(
            f"{what} cannot be sent to another process ({error}); {advice} with processes=1"
        ) from None


def no_shares(n_tasks: int) -> MutableSequence[float]:
    """Return an array that processes share, with what each of some tasks has done of its work."""
    shares: MutableSequence[float] = RawArray("d", n_tasks)
    return shares


def sharing(function: Callable[[TaskT], ResultT], place: int, task: TaskT) -> ResultT:
    """Do a task in a worker, and write meanwhile to a place of `shares` how far it is."""
    with sent(_shares, place):
        return function(task)


def as_finished(
    pool: ProcessPoolExecutor, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
) -> Iterator[tuple[int, ResultT]]:
    """Begin tasks in workers that share; return the place and the result of each as it ends.

    After an error no task begins; it is raised when those that had begun have ended.
    """
    return _as_finished(
        {pool.submit(sharing, function, place, task): place for place, task in enumerate(tasks)}
    )


def _as_finished(places: dict[Future[ResultT], int]) -> Iterator[tuple[int, ResultT]]:
    """Yield places and results, then raise the first error."""
    failed: BaseException | None = None
    for future in as_completed(places):
        place = places.pop(future)
        if future.cancelled():
            continue
        error = future.exception()
        if error is None:
            yield place, future.result()
            continue
        failed = failed or error
        for other in places:
            other.cancel()
    if failed is not None:
        raise failed


_shares: MutableSequence[float] = []


def _begin(shares: MutableSequence[float] | None, begin: Callable[..., None], *given: Any) -> None:
    """Let Ctrl-C, or the end of its parent, end a process without a traceback, then begin."""
    global _shares
    _shares = [] if shares is None else shares
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    Thread(target=_end_with_parent, daemon=True).start()
    begin(*given)


def _end_with_parent() -> None:
    """End this process once its parent has, which may have been killed: no task would come."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
