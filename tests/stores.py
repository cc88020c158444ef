"""Rows of a store, read and removed without hpcgym, and which simulations run beside one."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hpcgym.evaluation import runner


def keys_in(path: Path) -> list[str]:
    """Return the digests of what a store keeps, in the order in which it was kept."""
    with closing(sqlite3.connect(path, timeout=30)) as store:
        return [key for (key,) in store.execute("SELECT key FROM kept ORDER BY rowid")]


def forget_first(path: Path) -> None:
    """Remove the row that was kept first."""
    with closing(sqlite3.connect(path)) as store, store:
        store.execute("DELETE FROM kept WHERE rowid = (SELECT min(rowid) FROM kept)")


def count_runs(
    patch: pytest.MonkeyPatch,
    *,
    stop_at: int = 10**9,
    error: type[BaseException] = InterruptedError,
) -> list[str]:
    """Note the policy of every simulation, and raise an error in one of them."""
    noted: list[str] = []
    simulate = runner.simulate

    def counted(workload, **settings):
        noted.append(settings["policy"].name)
        if len(noted) == stop_at:
            raise error
        return simulate(workload, **settings)

    patch.setattr(runner, "simulate", counted)
    return noted
