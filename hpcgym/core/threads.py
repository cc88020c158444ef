"""Threads: how many there may be, and how a batch of environments is stepped on them."""

from __future__ import annotations

import os
import threading
from typing import Any, cast

import numba
import numpy as np

from hpcgym.base.errors import HpcgymError
from hpcgym.core.kernels.env import step_batch as kernels

MOST_THREADS = 4096

# Parallel regions take turns: some threading layers of numba do not let two threads enter one.
_team_is_busy = threading.Lock()

# True in a forked process. The threads of its parent did not come with it, and their library cannot
# start again, so such a process steps on one thread.
_team_was_left_behind = False

_most_threads: int | None = None
"""Threads of this process where a call names no number; None = one per core."""


def cores() -> int:
    """Return the number of cores that this process may use; a batch system may grant only some."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def keep_to_threads(threads: int) -> None:
    """Set how many threads this process uses wherever a call names no number."""
    global _most_threads
    _most_threads = checked_threads(threads)


def checked_threads(threads: int | None) -> int:
    """Return the number of threads meant; None means as `keep_to_threads` has set, or one per core.

    Raises:
        HpcgymError: The value is neither None nor a whole number from 1 to MOST_THREADS.
    """
    if threads is None:
        return cores() if _most_threads is None else _most_threads
    if (
        isinstance(threads, bool)
        or not isinstance(threads, (int, np.integer))
        or not 1 <= threads <= MOST_THREADS
    ):
        raise HpcgymError(
            f"threads must be a whole number >= 1, at most {MOST_THREADS}, or None, got {threads!r}"
        )
    return int(threads)


def step_batch(batch: Any, threads: int) -> int:
    """Step the batch of environments at an address on so many threads, or as many as numba has.

    Returns and writes what `hpcgym.core.kernels.env.step_batch.step_batch` does.
    """
    if threads == 1 or _team_was_left_behind:
        return kernels.step_batch(batch)
    most = cast(Any, numba.config).NUMBA_NUM_THREADS
    with _team_is_busy:
        if threads >= most:
            return kernels.step_batch_in_parallel(batch, most)
        before = numba.get_num_threads()
        numba.set_num_threads(threads)
        try:
            return kernels.step_batch_in_parallel(batch, threads)
        finally:
            numba.set_num_threads(before)


def _leave_team_behind() -> None:
    """Remember that this process was forked."""
    global _team_was_left_behind
    _team_was_left_behind = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_team_behind)
