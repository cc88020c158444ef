"""Threads: how many, and how a stack of environments is stepped on them."""

from __future__ import annotations

import os
import threading
from typing import Any, cast

import numba
import numpy as np

from hpcgym.core.kernels.env import step_batch as kernels
from hpcgym.errors import HpcgymError

_team_is_busy = threading.Lock()
"""Not every threading layer of numba lets two threads enter a parallel region at once."""

_team_was_left_behind = False
"""Whether this process was forked: its parent's threads, if there were any, are not here."""

_most_threads: int | None = None
"""Threads that this process keeps to where a call names no number; None = one per core."""


def cores() -> int:
    """Count the cores this process may use.

    Returns:
        The number, >= 1.

    Source:
        House rule: batch systems give a process some cores of a machine.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def keep_to_threads(threads: int) -> None:
    """Let what this process does from now on take so many threads where it names no number.

    Args:
        threads: A whole number >= 1.

    Source:
        House rule: processes that share a machine do not take all its cores each.
    """
    global _most_threads
    _most_threads = checked_threads(threads)


def checked_threads(threads: int | None) -> int:
    """Return how many threads are meant.

    Args:
        threads: A whole number >= 1; None means one per core, or as `keep_to_threads` has it.

    Returns:
        The number.

    Raises:
        HpcgymError: Anything else.

    Source:
        House rule: an error says what is allowed.

    Example:
        >>> checked_threads(3)
        3
    """
    if threads is None:
        return cores() if _most_threads is None else _most_threads
    if isinstance(threads, bool) or not (isinstance(threads, (int, np.integer)) and threads >= 1):
        raise HpcgymError(f"threads must be a whole number >= 1 or None, got {threads!r}")
    return int(threads)


def step_batch(stack: Any, threads: int) -> int:
    """Step a stack of environments on so many threads, or as many as numba has.

    The parallel regions of a process take turns. A forked process steps on one thread, since the
    threads of its parent did not come with it and their library cannot start anew.

    Args:
        stack: Address of the environments.
        threads: Threads to use.

    Returns:
        As `hpcgym.core.kernels.env.step_batch.step_batch`.

    Writes:
        As it does.

    Source:
        House rule: threads and forks are known to go wrong together.
    """
    if threads == 1 or _team_was_left_behind:
        return kernels.step_batch(stack)
    with _team_is_busy:
        before = numba.get_num_threads()
        threads = min(threads, cast(Any, numba.config).NUMBA_NUM_THREADS)
        if threads == before:
            return kernels.step_batch_in_parallel(stack)
        numba.set_num_threads(threads)
        try:
            return kernels.step_batch_in_parallel(stack)
        finally:
            numba.set_num_threads(before)


def _leave_team_behind() -> None:
    """Remember that this process was forked."""
    global _team_was_left_behind
    _team_was_left_behind = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_team_behind)
