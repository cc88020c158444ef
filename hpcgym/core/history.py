"""What a causal scheduler may know of each user: a bounded record of the jobs that have ended."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RING_JOBS = 20
"""Completed jobs remembered per user."""


class History(NamedTuple):
    """Completed jobs per user: rings of the last `RING_JOBS`, and two running figures.

    The k-th job a user completed (k from 0) stands in column k mod RING_JOBS.

    Attributes:
        run_time: Executed run times, shape (n_users, RING_JOBS), s.
        requested_time: Their requests, shape (n_users, RING_JOBS), s.
        completed: Jobs completed so far, shape (n_users,).
        last_end_time: End of the latest one, shape (n_users,), s; meaningless where completed == 0.
    """

    run_time: NDArray[np.int64]
    requested_time: NDArray[np.int64]
    completed: NDArray[np.int64]
    last_end_time: NDArray[np.int64]


def empty_history(n_users: int) -> History:
    """Return the record of users of whom nothing is known.

    Args:
        n_users: Number of users.

    Returns:
        A record in which no user has completed a job.

    Source:
        House rule: an episode not cut from a log starts without history.
    """
    return History(
        run_time=np.zeros((n_users, RING_JOBS), dtype=np.int64),
        requested_time=np.zeros((n_users, RING_JOBS), dtype=np.int64),
        completed=np.zeros(n_users, dtype=np.int64),
        last_end_time=np.zeros(n_users, dtype=np.int64),
    )


def history_of(
    users: NDArray[np.int64],
    past_user: NDArray[np.int64],
    past_run_time: NDArray[np.int64],
    past_requested_time: NDArray[np.int64],
    past_end_time: NDArray[np.int64],
    before: History | None = None,
) -> History:
    """Fold jobs that have ended into the record of each user.

    Args:
        users: User ids to keep, ascending, shape (n_users,).
        past_user: User of each completed job, shape (n_past,).
        past_run_time: Executed run time, shape (n_past,), s.
        past_requested_time: Request, shape (n_past,), s.
        past_end_time: End, shape (n_past,), s, on the clock of the episode (<= 0); ties keep the
            order given.
        before: What was known of these users before any of those jobs ended, on the same clock;
            None = nothing.

    Returns:
        The record at time 0.

    Source:
        Specification, section 10, "Information".
    """
    history = empty_history(len(users))
    if before is not None:
        history = History(*(column.copy() for column in before))
    place = np.searchsorted(users, past_user)
    place[place == len(users)] = 0
    known = np.flatnonzero(users[place] == past_user)
    known = known[np.argsort(past_end_time[known], kind="stable")]
    place = place[known]
    by_user = np.argsort(place, kind="stable")
    known, place = known[by_user], place[by_user]
    first = np.searchsorted(place, np.arange(len(users)))
    last = np.searchsorted(place, np.arange(len(users)), side="right")
    rank = np.arange(len(place)) - first[place]
    recent = rank >= (last - first)[place] - RING_JOBS
    cell = (place[recent], (history.completed[place] + rank)[recent] % RING_JOBS)
    history.run_time[cell] = past_run_time[known[recent]]
    history.requested_time[cell] = past_requested_time[known[recent]]
    history.completed[:] += last - first
    seen = last > first
    history.last_end_time[seen] = past_end_time[known[last[seen] - 1]]
    return history
