"""Ctrl-C at any instant: before a command has begun, and where Python would lose it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from typing import Any

AGAIN_S = 0.02  # how soon an interrupt is raised again that was lost, s


@contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end the process without a traceback inside the block, where nothing can be lost.

    A handler that is not Python's own stays.
    """
    is_own = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_own or current_thread() is not main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def raised_again() -> Iterator[None]:
    """Raise a KeyboardInterrupt again that came in a callback, as of imports: Python ignores it."""
    before = sys.unraisablehook

    def again(lost: Any) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            Timer(AGAIN_S, os.kill, [os.getpid(), signal.SIGINT]).start()
        else:
            before(lost)

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before
