"""What tells logs apart for a scheduler: load by week, wide jobs, requests, habits of users.

`docs/logs.md` explains each number and shows the bundled logs beside real ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.workload import Workload
from hpcgym.trace.split import WEEK_S

HEAVY_LOAD = 0.9
SHORT_RUN_S = 60
SESSION_GAP_S = 1200  # a user's next submission within this continues the session

N_COMMON = 10

Statistics = dict[str, float | int]


def workload_statistics(workload: Workload) -> Statistics:
    """Return the statistics of a log by name; shares are of jobs unless named otherwise.

    Run times are those executed: cut at the request. A statistic that nothing goes into is NaN.
    """
    run = np.minimum(workload.run_time, workload.requested_time)
    return {
        "jobs": len(workload),
        "processors": workload.machine_processors,
        **_of_load(workload, run),
        **_of_sizes(workload, run),
        **_of_times(workload.requested_time, run),
        **_of_users(workload, run),
    }


def weekly_loads(workload: Workload) -> NDArray[np.float64]:
    """Return the work submitted in each week over what the machine can do, shape (n_weeks,).

    A last week that the log does not fill is left out, unless it is the only one.
    """
    work = np.minimum(workload.run_time, workload.requested_time) * workload.processors
    loads = np.bincount(workload.submit_time // WEEK_S, work) / WEEK_S
    return loads[: max(len(loads) - 1, 1)] / workload.machine_processors


def _of_load(workload: Workload, run: NDArray[np.int64]) -> Statistics:
    loads = weekly_loads(workload)
    span = max(int(workload.submit_time[-1]), 1) * workload.machine_processors
    return {
        "weeks": len(loads),
        "load": float(run @ workload.processors) / span,
        "median_week": float(np.median(loads)),
        "p90_week": float(np.quantile(loads, 0.9)),
        "max_week": float(loads.max()),
        "heavy_weeks": float(np.mean(loads >= HEAVY_LOAD)),
    }


def _of_sizes(workload: Workload, run: NDArray[np.int64]) -> Statistics:
    size = workload.processors
    is_wide = 2 * size >= workload.machine_processors
    parallel = size[size > 1]
    work = run * size
    return {
        "serial": float(np.mean(size == 1)),
        "powers_of_two": _mean((parallel & (parallel - 1)) == 0),
        "wide": float(np.mean(is_wide)),
        "work_of_wide": float(work[is_wide].sum() / max(work.sum(), 1)),
    }


def _of_times(requested: NDArray[np.int64], run: NDArray[np.int64]) -> Statistics:
    counts = np.sort(np.unique(requested, return_counts=True)[1])[::-1]
    used = run / requested
    return {
        "short": float(np.mean(run < SHORT_RUN_S)),
        "median_run_time": int(np.median(run)),
        "mean_run_time": int(np.mean(run)),
        "median_request": int(np.median(requested)),
        "common_requests": float(counts[:N_COMMON].sum() / len(requested)),
        "median_use": float(np.median(used)),
        "killed": float(np.mean(used == 1)),
    }


def _of_users(workload: Workload, run: NDArray[np.int64]) -> Statistics:
    """Compare each job with the one that its user submitted before."""
    order = np.lexsort((np.arange(len(workload)), workload.user))
    before, after = order[:-1], order[1:]
    same = (workload.user[before] == workload.user[after]) & (workload.user[after] >= 0)
    before, after = before[same], after[same]
    log_run = np.log(np.maximum(run, 1))
    again = np.ones(len(after), dtype=bool)
    for column in (workload.processors, workload.requested_time):
        again &= column[before] == column[after]
    gap = workload.submit_time[after] - workload.submit_time[before]
    jobs_of_user = np.sort(np.bincount(np.maximum(workload.user, 0)))[::-1]
    strangers = np.random.default_rng(0).permutation(len(run))
    return {
        "users": len(np.unique(workload.user)),
        "five_users": float(jobs_of_user[:5].sum() / len(workload)),
        "in_session": _mean(gap <= SESSION_GAP_S),
        "same_shape": _mean(again),
        "factor_to_last": _factor(log_run[after] - log_run[before]),
        "factor_to_any": _factor(log_run - log_run[strangers]),
    }


def _mean(which: NDArray[np.bool_]) -> float:
    return float(which.mean()) if len(which) else np.nan


def _factor(difference: NDArray[np.float64]) -> float:
    """Return by which factor half of the pairs differ at most."""
    return float(np.exp(np.median(np.abs(difference)))) if len(difference) else np.nan
