"""Worker processes of this machine: spawned, started alike, and ended together."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import active_children, parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.sharedctypes import RawArray, Synchronized
from threading import Thread, current_thread, main_thread
from typing import Any, TypeVar

from hpcgym.base.progress import sent
from hpcgym.core.threads import keep_to_threads

ResultT = TypeVar("ResultT")

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Where numerical libraries read how many threads to start."""


class LocalExecutor(Executor):
    """Spawned processes of one thread each; where one is killed, all are replaced.

    With the block that it is used in, they end at once, whatever they are at.
    """

    chunk_s = 0.0  # how long a chunk takes at least, s; 0 = it is one task

    def __init__(self, n_workers: int) -> None:
        self.n_chunks = 2 * n_workers  # chunks of work that are handed over ahead
        self.shares = RawArray("d", n_workers)  # what each has done of its task, as `sent` says
        self._pool: ProcessPoolExecutor | None = None

    def submit(
        self, function: Callable[..., ResultT], /, *given: Any, **keywords: Any
    ) -> Future[ResultT]:
        """Have a process call a function; all must be picklable."""
        try:
            if self._pool is None:
                self._pool = self._new_pool()
            return self._submitted(self._pool, function, *given, **keywords)
        except BrokenProcessPool:
            self._pool = self._new_pool()
            return self._submitted(self._pool, function, *given, **keywords)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; those that have begun a task end it first."""
        if self._pool is not None:
            self._pool.shutdown(wait, cancel_futures=cancel_futures)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End all; after Ctrl-C at once, as a process may be importing, deaf to it."""
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            for process in active_children():
                if isinstance(process, _Process):  # and no process of the caller's
                    process.terminate()
        self.shutdown(cancel_futures=True)

    def _submitted(
        self, pool: ProcessPoolExecutor, function: Callable[..., ResultT], *given: Any, **more: Any
    ) -> Future[ResultT]:
        """Submit to a pool, whose processes start here."""
        with _one_thread_each():
            return pool.submit(_sharing, partial(function, *given, **more))

    def _new_pool(self) -> ProcessPoolExecutor:
        """Return processes that are not started yet; each takes a place of `shares`."""
        n_workers = len(self.shares)
        self.shares[:] = [0.0] * n_workers
        context = _Context()
        taken = context.Value("i", 0)
        return ProcessPoolExecutor(n_workers, context, partial(_begin, self.shares, taken))


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


_shares: Any = None
_place = 0


def _sharing(function: Callable[[], ResultT]) -> ResultT:
    """Call a function in a worker, and write meanwhile how far it is."""
    with sent(_shares, _place):
        return function()


def _begin(shares: Any, taken: Synchronized[int]) -> None:
    """Let Ctrl-C, or the end of its parent, end a process without a traceback."""
    global _shares, _place
    with taken.get_lock():
        _shares, _place = shares, taken.value
        taken.value += 1
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    Thread(target=_end_with_parent, daemon=True).start()
    keep_to_threads(1)


def _end_with_parent() -> None:
    """End this process once its parent has, which may have been killed: no task would come."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
