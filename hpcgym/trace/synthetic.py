"""A whole generated log: Lublin-Feitelson jobs, users with habits, and Tsafrir's estimates.

Source: Specification, section 9, "Generated log".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import TraceError
from hpcgym.core.workload import Workload
from hpcgym.trace.estimates import HOUR_S, tsafrir_estimates
from hpcgym.trace.lublin import lublin_workload
from hpcgym.trace.resample import scale_load
from hpcgym.trace.split import WEEK_S

LONGEST_REQUEST_S = 48 * HOUR_S

RUN_TIME_SPREAD = 3.0  # standard deviation of a job's log run time around its user's usual one
SIZE_SPREAD = 1.5  # standard deviation of its log2 processors around its user's usual one

QUIET_WEEK = 0.05
"""A user's activity in a quiet week, relative to a busy one; half of the weeks are quiet."""

BLOCK_JOBS = 10_000
"""Jobs whose users are drawn at once: one number for every job and user would fill the memory."""


def synthetic_workload(
    n_jobs: int,
    generator: np.random.Generator,
    *,
    machine_processors: int = 256,
    n_users: int = 64,
    load: float = 0.9,
    longest_request: int = LONGEST_REQUEST_S,
    name: str = "synthetic",
) -> Workload:
    """Draw a log with users and user estimates, busy enough that policies differ.

    Jobs come from the combined process of the Lublin-Feitelson model, requests from Tsafrir's.
    `draw_users` adds users, so that a user's past says a little about the next job.

    Args:
        machine_processors: Processors of the machine, >= 32.
        n_users: Users, >= 1, numbered from 1 by popularity.
        load: Processor-seconds of all jobs over those the machine has until the last submission.
        longest_request: Longest request, s, >= 1; longer run times are cut to it.

    Raises:
        TraceError: A number is out of range.

    Example:
        >>> import numpy as np
        >>> synthetic_workload(1000, np.random.default_rng(1))
        Workload('synthetic', 1000 jobs, 256 processors)
    """
    if n_users < 1:
        raise TraceError(f"n_users must be at least 1, got {n_users}")
    if not 0 < load < np.inf:
        raise TraceError(f"load must be a positive number, got {load}")
    base = lublin_workload(
        n_jobs, generator, machine_processors=machine_processors, job_types=False
    )
    base = replace(base, run_time=np.minimum(base.run_time, longest_request))
    offered = int(base.run_time @ base.processors) / machine_processors
    base = scale_load(base, load * int(base.submit_time[-1]) / offered)
    requests = tsafrir_estimates(base.run_time, generator, maximum=longest_request)
    users = draw_users(base, n_users, generator)
    columns = (base.submit_time, base.run_time, requests, base.processors)
    del base  # a long log is not held twice
    return Workload.from_arrays(
        *columns, machine_processors=machine_processors, user=users, name=name
    )


def draw_users(
    workload: Workload, n_users: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the user of each job, 1 to n_users by popularity, shape (n_jobs,); jobs do not change.

    The probability is proportional to popularity 1/rank, times the user's activity in that week,
    times a Gaussian closeness of the job to the user's usual job.
    """
    n_jobs = len(workload)
    log_run = np.log(np.maximum(workload.run_time, 1))
    log_size = np.log2(workload.processors)
    usual = generator.integers(n_jobs, size=n_users)
    week = workload.submit_time // WEEK_S
    busy = generator.random((int(week[-1]) + 1, n_users)) < 0.5
    popularity = -np.log(np.arange(1, n_users + 1)) + np.log(np.where(busy, 1.0, QUIET_WEEK))
    user = np.empty(n_jobs, dtype=np.int64)
    for first in range(0, n_jobs, BLOCK_JOBS):
        part = slice(first, first + BLOCK_JOBS)
        score = popularity[week[part]]
        score -= ((log_run[part, np.newaxis] - log_run[usual]) / RUN_TIME_SPREAD) ** 2 / 2
        score -= ((log_size[part, np.newaxis] - log_size[usual]) / SIZE_SPREAD) ** 2 / 2
        user[part] = np.argmax(score + generator.gumbel(size=score.shape), axis=1) + 1
    return user
