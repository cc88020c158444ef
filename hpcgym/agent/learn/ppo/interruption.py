"""What a training does with signals, and with failures of threads that write for it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hpcgym.agent.learn.ppo.callbacks import ValidationCallback

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""What interrupts a training: Ctrl-C, and a batch system that ends its job."""


@contextmanager
def interruptions_wait(callback: ValidationCallback) -> Iterator[None]:
    """Let the first interruption wait for the callback; the second raises KeyboardInterrupt.

    Signals that are ignored stay so, and those of other threads than the main one are left alone.
    """

    def note(*_: object) -> None:
        if callback.is_interrupted:
            raise KeyboardInterrupt
        callback.is_interrupted = True
        callback.work.name = "training, stops after this rollout, at once if interrupted again"

    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in SIGNALS if is_main}
    before = {
        number: handler for number, handler in before.items() if handler is not signal.SIG_IGN
    }
    for number in before:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def failures_raised_once() -> Iterator[None]:
    """Keep threads from printing an OSError, which TensorBoard's writer raises for its caller."""
    before = threading.excepthook

    def note(failed: threading.ExceptHookArgs) -> None:
        if not isinstance(failed.exc_value, OSError):
            before(failed)

    threading.excepthook = note
    try:
        yield
    finally:
        threading.excepthook = before
