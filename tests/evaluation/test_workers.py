"""Ctrl-C while worker processes start: no traceback, nothing left running."""

import os
import signal
import time
from multiprocessing.context import SpawnProcess

import pytest

from hpcgym.errors import EvaluationError
from hpcgym.evaluation.workers import _Process, workers

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "pthread_sigmask"), reason="Windows has no masks of signals"
)

IMPORT_S = 30.0


def press() -> int:
    """Press Ctrl-C in the process that unpickles, as a terminal does in every one."""
    os.kill(os.getpid(), signal.SIGINT)
    return 0


def last() -> int:
    """Take as long as imports may."""
    time.sleep(IMPORT_S)
    return 0


class Pressing:
    """Is unpickled where a process imports what it works with."""

    def __reduce__(self) -> object:
        """Call `press` there."""
        return press, ()


class Lasting:
    """The same, with imports that take long."""

    def __reduce__(self) -> object:
        """Call `last` there."""
        return last, ()


def test_a_process_that_is_interrupted_while_it_imports_prints_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(EvaluationError), workers(1, int, Pressing()) as pool:
        pool.submit(int).result()
    assert capfd.readouterr().err == ""


def test_an_interruption_ends_processes_that_import() -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), workers(2, int, Lasting()) as pool:
        pool.submit(int)
        pool.submit(int)
        raise KeyboardInterrupt
    assert time.monotonic() - began < IMPORT_S / 2


def test_ctrl_c_within_a_start_is_raised_once_the_process_has_all_it_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = []

    def start(_: SpawnProcess) -> None:
        signal.raise_signal(signal.SIGINT)
        told.append("all")

    monkeypatch.setattr(SpawnProcess, "start", start)
    with pytest.raises(KeyboardInterrupt):
        _Process().start()
    assert told == ["all"]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_reaches_a_process_that_has_begun() -> None:
    with pytest.raises(EvaluationError), workers(1, int) as pool:
        pool.submit(press).result()
