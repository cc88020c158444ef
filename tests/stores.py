"""Rows of a store, read and removed without hpcgym."""

import sqlite3
from contextlib import closing
from pathlib import Path


def keys_in(path: Path) -> list[str]:
    """Return the digests of what a store keeps, in the order in which it was kept."""
    with closing(sqlite3.connect(path, timeout=30)) as store:
        return [key for (key,) in store.execute("SELECT key FROM kept ORDER BY rowid")]


def forget_first(path: Path) -> None:
    """Remove the row that was kept first."""
    with closing(sqlite3.connect(path)) as store, store:
        store.execute("DELETE FROM kept WHERE rowid = (SELECT min(rowid) FROM kept)")
