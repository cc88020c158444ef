"""Tsafrir's model of user estimates: few distinct round values, most of them far too long.

Source: Tsafrir, Etsion and Feitelson 2005; specification, section 9, "Tsafrir estimates".
"""

from __future__ import annotations

from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.base.errors import TraceError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

MINUTE_S = 60
HOUR_S = 3600

HEAD_S = (
    *(minutes * MINUTE_S for minutes in (5, 10, 15, 20, 30, 45)),
    *(hours * HOUR_S for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18, 24, 36, 48)),
)
"""The popular estimates after the maximum, which has rank 1, s."""

N_HEAD = 1 + len(HEAD_S)
HEAD_SHARE = 0.89
TAIL_SHARE = 0.11

_DISTINCT_JOBS = (0, 20, 200, 1000, 10_000, 70_000, 250_000)
_DISTINCT_ESTIMATES = (0, 10, 20, 35, 90, 340, 565)
_ROUND_STEPS_S = (HOUR_S, 1800, 900, 600, 300, 60, 10, 1)


def tsafrir_estimates(
    run_time: ArrayLike, generator: np.random.Generator, *, maximum: int | None = None
) -> IntArray:
    """Draw a requested time for each job, at least max(run time, 1) s.

    The estimates are fixed first. Then each job, the longest first, takes one of those left that
    are long enough, uniformly; where none is left, the maximum.

    Args:
        run_time: Run times, shape (n_jobs,), s, >= 0.
        maximum: Longest estimate, s; raised to the longest run time where it is below that.
            Default: the longest run time rounded up to whole hours.

    Raises:
        TraceError: `maximum` is below 1 s.

    Example:
        >>> import numpy as np
        >>> requests = tsafrir_estimates([30, 600, 4000], np.random.default_rng(0))
        >>> bool((requests >= [30, 600, 4000]).all())
        True
    """
    if maximum is not None and maximum < 1:
        raise TraceError(f"the longest estimate must be at least 1 s, got {maximum}")
    run = np.maximum(np.asarray(run_time, dtype=np.int64), 1)
    if len(run) == 0:
        return run
    longest_run = int(run.max())
    if maximum is None:
        maximum = -(-longest_run // HOUR_S) * HOUR_S
    maximum = max(maximum, longest_run)
    values, shares = estimate_distribution(len(run), generator, maximum)
    pool = np.repeat(values, _apportion(shares, len(run)))
    return _hand_out(run, pool, maximum, generator)


def n_distinct_estimates(n_jobs: int) -> int:
    """Return how many distinct estimates (K) a log of so many jobs has.

    K is linear between the model's points and a power law beyond; it never falls.
    """
    if n_jobs <= _DISTINCT_JOBS[-1]:
        return max(1, round(float(np.interp(n_jobs, _DISTINCT_JOBS, _DISTINCT_ESTIMATES))))
    return int(max(_DISTINCT_ESTIMATES[-1], round(0.653566 * n_jobs**0.547761)))


def estimate_distribution(
    n_jobs: int, generator: np.random.Generator, maximum: int
) -> tuple[IntArray, FloatArray]:
    """Return the distinct estimates by rank, s, and the share of jobs of each, both of shape (K,).

    The first 20 are the head, beginning with the maximum; the tail's ranks are drawn. The shares
    sum to 1. K shrinks where the maximum is too short for K values.
    """
    n_distinct = min(n_distinct_estimates(n_jobs), maximum)
    head = _head_values(min(n_distinct, N_HEAD), maximum)
    tail = _tail_values(n_distinct, head, maximum)
    head_shares = head_rank_shares()[: len(head)]
    if len(tail) == 0:
        return head, head_shares / head_shares.sum()
    ranks = np.arange(N_HEAD + 1, N_HEAD + 1 + len(tail))
    tail_shares = 795.6 * ranks**-2.267
    tail_shares *= TAIL_SHARE / tail_shares.sum()
    values = np.concatenate([head, generator.permutation(tail)])
    return values, np.concatenate([head_shares, tail_shares])


def head_rank_shares() -> FloatArray:
    """Return the shares of ranks 1 to 20, which sum to 0.89; rank 1 takes what the others leave."""
    ranks = np.arange(2, N_HEAD + 1)
    others = (14.0491 * np.exp(-0.177531 * ranks) + 0.462513) / 100
    return np.concatenate([[HEAD_SHARE - others.sum()], others])


def _head_values(n_head: int, maximum: int) -> IntArray:
    """Return the popular estimates by rank; those above the maximum are replaced by round ones."""
    rounder = (range(step, maximum, step) for step in _ROUND_STEPS_S)
    head = [maximum, *(value for value in HEAD_S if value < maximum)][:n_head]
    for value in chain.from_iterable(rounder):
        if len(head) >= n_head:
            break
        if value not in head:
            head.append(value)
    return np.array(head, dtype=np.int64)


def _tail_values(n_distinct: int, head: IntArray, maximum: int) -> IntArray:
    """Return the rare estimates: fractions of the maximum, denser among the short ones."""
    if n_distinct <= len(head):
        return np.empty(0, dtype=np.int64)
    a = 1 + 12.1039 * n_distinct**-0.6026
    x = np.linspace(0, 1, n_distinct - len(head) + 2)[1:-1]
    values = np.ceil(maximum * (a - 1) * x / (a - x)).astype(np.int64)
    return np.setdiff1d(values, head)


def _apportion(shares: FloatArray, total: int) -> IntArray:
    """Divide a total into whole parts in proportion to the shares, by largest remainders."""
    exact = shares * total
    parts = np.floor(exact).astype(np.int64)
    missing = total - int(parts.sum())
    parts[np.argsort(parts - exact, kind="stable")[:missing]] += 1
    return parts


def _hand_out(
    run: IntArray, pool: IntArray, maximum: int, generator: np.random.Generator
) -> IntArray:
    """Give each job, the longest first, one of the remaining estimates that are long enough."""
    # In falling order the estimates long enough for a job come first, and every later job has at
    # least as many: a Fisher-Yates shuffle whose range grows.
    falling = np.sort(-pool)
    jobs = generator.permutation(len(run))  # equal jobs come in random order
    jobs = jobs[np.argsort(-run[jobs], kind="stable")]
    long_enough = np.searchsorted(falling, -run[jobs], side="right")
    luck = generator.random(len(jobs))
    requests = np.full(len(jobs), maximum)
    # memoryviews hold eight bytes a job where lists would hold forty
    given, estimates = requests.data, (-falling).data
    used = 0
    for job, end, chance in zip(jobs.data, long_enough.data, luck.data, strict=True):
        if end > used:
            pick = used + int(chance * (end - used))
            given[job] = estimates[pick]
            estimates[pick] = estimates[used]
            used += 1
    return requests
