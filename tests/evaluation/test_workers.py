"""Ctrl-C while worker processes start: no traceback, nothing left running."""

import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.context import SpawnProcess
from typing import Any

import pytest

from hpcgym.evaluation.workers import LocalExecutor, _begin, _Context, _Process

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


def begin(_: object, *given: Any) -> None:
    """Begin a process, with one more object."""
    _begin(*given)


class Importing(LocalExecutor):
    """Starts processes that unpickle one more object where they import."""

    def __init__(self, n_workers: int, imported: object) -> None:
        super().__init__(n_workers)
        self.imported = imported

    def _new_pool(self) -> ProcessPoolExecutor:
        given = self.imported, self.shares, _Context().Value("i", 0)
        return ProcessPoolExecutor(len(self.shares), _Context(), partial(begin, *given))


@pytest.mark.long
def test_a_process_that_is_interrupted_while_it_imports_prints_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(BrokenProcessPool), Importing(1, Pressing()) as pool:
        pool.submit(int).result()
    assert capfd.readouterr().err == ""


def test_an_interruption_ends_processes_that_import() -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Importing(2, Lasting()) as pool:
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


@pytest.mark.long
def test_ctrl_c_reaches_a_process_that_has_begun() -> None:
    with pytest.raises(BrokenProcessPool), LocalExecutor(1) as pool:
        pool.submit(press).result()


@pytest.mark.long
def test_a_process_that_was_killed_is_replaced() -> None:
    with LocalExecutor(1) as pool:
        first = pool.submit(os.getpid).result()
        with pytest.raises(BrokenProcessPool):
            pool.submit(signal.raise_signal, signal.SIGKILL).result()
        assert pool.submit(os.getpid).result() != first
