"""Processes that work side by side, spawned and ended together."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Any

from hpcgym.errors import EvaluationError

INTERRUPT_S = 0.5
"""How long to wait for a Ctrl-C that has ended the other processes first, s."""


@contextmanager
def workers(
    processes: int, begin: Callable[..., None], *given: object
) -> Iterator[ProcessPoolExecutor]:
    """Lend processes that end with the block; what they have not begun by then is dropped.

    Args:
        processes: How many.
        begin: What each of them calls first; picklable.
        *given: What it is called with; picklable.

    Yields:
        The pool.

    Raises:
        EvaluationError: One of them was ended from outside, say for want of memory.

    Source:
        House rule: an error a person can act on.
    """
    context = get_context("spawn")  # a forked child dies of its parent's threads
    pool = ProcessPoolExecutor(processes, context, partial(_begin, begin, *given))
    try:
        yield pool
    except BrokenProcessPool:
        time.sleep(INTERRUPT_S)
        raise EvaluationError(
            f"one of {processes} processes was ended from outside, as systems do that run out of "
            "memory; try fewer processes. What had finished is kept if there is a file to resume "
            "from"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(begin: Callable[..., None], *given: Any) -> None:
    """Let Ctrl-C end a process without a traceback, then begin."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    begin(*given)
