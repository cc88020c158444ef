"""What a causal scheduler may know of each user: a bounded record of the jobs that have ended.

Source: Specification, section 10, "Information".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RING_JOBS = 20  # completed jobs remembered per user


class History(NamedTuple):
    """Completed jobs of each user: a ring of the last `RING_JOBS`, a count, and the latest end.

    The k-th job that a user completed (k from 0) is in column k mod `RING_JOBS`. Rings have shape
    (n_users, RING_JOBS), the rest (n_users,); times are s. `run_time` is as executed.
    `last_end_time` has no meaning where `completed` is 0.
    """

    run_time: NDArray[np.int64]
    requested_time: NDArray[np.int64]
    processors: NDArray[np.int64]
    completed: NDArray[np.int64]
    last_end_time: NDArray[np.int64]


def empty_history(n_users: int) -> History:
    """Return a history in which no user has completed a job."""
    return History(
        run_time=np.zeros((n_users, RING_JOBS), dtype=np.int64),
        requested_time=np.zeros((n_users, RING_JOBS), dtype=np.int64),
        processors=np.zeros((n_users, RING_JOBS), dtype=np.int64),
        completed=np.zeros(n_users, dtype=np.int64),
        last_end_time=np.zeros(n_users, dtype=np.int64),
    )


def history_of(
    users: NDArray[np.int64],
    past_user: NDArray[np.int64],
    past_run_time: NDArray[np.int64],
    past_requested_time: NDArray[np.int64],
    past_processors: NDArray[np.int64],
    past_end_time: NDArray[np.int64],
    before: History | None = None,
) -> History:
    """Fold jobs that have ended by time 0 into the history of some users.

    `users` are the ids to keep, ascending. The `past_*` arrays have shape (n_past,); times are s.
    `past_end_time` is on the clock of the episode, so at most 0, and ties keep the order given.
    `before` is what was known of the same users before any of these jobs ended; None = nothing.
    """
    history = empty_history(len(users))
    if before is not None:
        history = History(*(column.copy() for column in before))
    user = np.searchsorted(users, past_user)
    user[user == len(users)] = 0  # any valid index: the next line drops users not found
    known = np.flatnonzero(users[user] == past_user)
    known = known[np.argsort(past_end_time[known], kind="stable")]
    user = user[known]
    by_user = np.argsort(user, kind="stable")
    known, user = known[by_user], user[by_user]
    first = np.searchsorted(user, np.arange(len(users)))
    last = np.searchsorted(user, np.arange(len(users)), side="right")
    rank = np.arange(len(user)) - first[user]  # of each job among its user's, by end
    recent = rank >= (last - first)[user] - RING_JOBS
    cell = (user[recent], (history.completed[user] + rank)[recent] % RING_JOBS)
    history.run_time[cell] = past_run_time[known[recent]]
    history.requested_time[cell] = past_requested_time[known[recent]]
    history.processors[cell] = past_processors[known[recent]]
    history.completed[:] += last - first
    seen = last > first
    history.last_end_time[seen] = past_end_time[known[last[seen] - 1]]
    return history
