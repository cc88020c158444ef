"""Metrics of a schedule, in plain numpy.

A job with submit time r, start s, executed run time p and q processors waits w = s - r. Times are
s; tau is `BSLD_BOUND_S`. `summary` has the metrics of many jobs under flat names such as
`mean_bsld`, `p99_wait_time` or `share_bsld_1_10`.

Source: Specification, section 1, "Metrics"; Lawson, Smirni, Puiu 2002, section 4 (slowdown);
Carastan-Santos et al. 2019, equations 2 and 3 (bounded slowdowns); Zotkin, Keleher 1999 (per
processor).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.constants import OUTAGE_FROM, OUTAGE_PROCESSORS, OUTAGE_TO
from hpcgym.core.workload import WEEK_S, Workload

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

BSLD_BOUND_S = 10  # run times below this count as this in bounded slowdowns (tau), s

CLASS_BOUNDS_S = (100, 1_000, 10_000)
"""Largest requests of classes 1 to 3, s (Lawson, Smirni, Puiu 2002, sections 2 and 3)."""

JOB_METRICS = ("wait_time", "turnaround_time", "slowdown", "bsld", "pp_bsld")
"""The metrics of a job, in the order of `per_job`."""


def slowdown(wait_time: IntArray, run_time: IntArray) -> FloatArray:
    """Compute 1 + w / p, the turnaround over the run time; NaN for jobs of zero run time."""
    result = np.full(len(run_time), np.nan)
    np.divide(wait_time, run_time, out=result, where=run_time > 0)
    return result + 1.0


def bsld(wait_time: IntArray, run_time: IntArray) -> FloatArray:
    """Compute max((w + p) / max(p, tau), 1), the bounded slowdown."""
    return np.maximum((wait_time + run_time) / np.maximum(run_time, BSLD_BOUND_S), 1.0)


def pp_bsld(wait_time: IntArray, run_time: IntArray, processors: IntArray) -> FloatArray:
    """Compute max((w + p) / (q max(p, tau)), 1), the bounded slowdown per processor.

    Example:
        >>> pp_bsld(np.array([180, 180]), np.array([20, 20]), np.array([4, 16]))
        array([2.5, 1. ])
    """
    bound = processors * np.maximum(run_time, BSLD_BOUND_S)
    return np.maximum((wait_time + run_time) / bound, 1.0)


def makespan(submit_time: IntArray, start_time: IntArray, run_time: IntArray) -> int:
    """Return the time from the first submission to the last end, s."""
    return int((start_time + run_time).max() - submit_time.min())


def utilisation(
    submit_time: IntArray,
    start_time: IntArray,
    run_time: IntArray,
    processors: IntArray,
    machine_processors: int,
    lacking: int = 0,
) -> float:
    """Compute sum(p q) / (M makespan), the used fraction of the machine; 0 where the makespan is 0.

    Processor-seconds that were `lacking` are taken off M makespan.
    """
    span = makespan(submit_time, start_time, run_time)
    work = int((run_time * processors).sum())
    there = machine_processors * span - lacking
    return work / there if there else 0.0


def lacking(
    outage: IntArray, submit_time: IntArray, start_time: IntArray, run_time: IntArray
) -> int:
    """Return the processor-seconds that outages took from the first submission to the last end."""
    first, last = int(submit_time.min()), int((start_time + run_time).max())
    begin, end = outage[:, OUTAGE_FROM].clip(first), outage[:, OUTAGE_TO].clip(None, last)
    return int((outage[:, OUTAGE_PROCESSORS] * (end - begin).clip(0)).sum())


def user_rms(values: FloatArray, user: IntArray) -> float:
    """Compute the root mean square, over users, of the mean of a user's jobs; NaN without jobs.

    Its square is the square of these means' mean, plus their variance.

    Example:
        >>> user_rms(np.array([1.0, 13.0, 1.0, 1.0]), np.array([0, 0, 1, 1]))
        5.0
    """
    if len(values) == 0:
        return np.nan
    n_jobs = np.bincount(user)
    mean = np.bincount(user, weights=values)[n_jobs > 0] / n_jobs[n_jobs > 0]
    return float(np.sqrt((mean**2).mean()))


def requested_time_class(requested_time: IntArray) -> IntArray:
    """Return each job's class, 1 to 4, by request: up to 100 s, 1000 s, 10,000 s, and longer."""
    return np.searchsorted(CLASS_BOUNDS_S, requested_time).astype(np.int64) + 1


def per_job(workload: Workload, start_time: IntArray, run_time: IntArray) -> dict[str, FloatArray]:
    """Compute each of `JOB_METRICS` for all jobs, shape (n_jobs,); the turnaround is w + p."""
    wait_time = start_time - workload.submit_time
    return {
        "wait_time": wait_time.astype(np.float64),
        "turnaround_time": (wait_time + run_time).astype(np.float64),
        "slowdown": slowdown(wait_time, run_time),
        "bsld": bsld(wait_time, run_time),
        "pp_bsld": pp_bsld(wait_time, run_time, workload.processors),
    }


def summary(
    workload: Workload,
    start_time: IntArray,
    run_time: IntArray,
    backfilled: BoolArray,
    thresholded: BoolArray,
    *,
    now: int | None = None,
    outage: IntArray | None = None,
) -> dict[str, float]:
    """Compute the metrics of a schedule, by name.

    An unfinished schedule is measured at `now`, as rewards do. Jobs still waiting count as if they
    started then, a lower bound, and later submissions are left out. Without `now`, all jobs that
    have not started are left out. `start_time` is -1 for jobs that have not started. `backfilled`
    jobs started out of order. `thresholded` jobs had waited beyond the threshold at their start.
    `outage` is as `hpcgym.core.kernels.types.Jobs.outage`.

    The metrics are:

    - `n_jobs`, the jobs counted, and `complete`, whether every job has started;
    - mean, median, p90, p99 and max of each of `JOB_METRICS`, such as `mean_bsld`; percentiles by
      linear interpolation, NaN where no job has the metric;
    - `n_zero_run_time`, the jobs without a slowdown;
    - the fractions of jobs by bounded slowdown: `share_bsld_1` (exactly 1), `share_bsld_1_10`
      (1, 10), `share_bsld_10_100` [10, 100) and `share_bsld_100`;
    - `user_rms_bsld`, the root mean square over users of a user's mean bounded slowdown;
    - `n_backfilled` and `n_thresholded`;
    - `makespan` and `utilisation` of the jobs that have started; what outages took does not count
      as capacity.

    Source: The fractions are those of Carastan-Santos et al. 2019, figure 3.
    """
    is_started = start_time >= 0
    is_complete = bool(is_started.all())
    counted: BoolArray | slice = slice(None)  # all jobs, uncopied
    started: BoolArray | slice = counted
    if not is_complete:
        started = is_started
        counted = is_started if now is None else is_started | (workload.submit_time <= now)
        start_time = start_time if now is None else np.where(is_started, start_time, now)
    values = per_job(workload, start_time, run_time)
    values = {key: column[counted] for key, column in values.items()}
    n_started = int(np.count_nonzero(is_started))
    ran = workload.submit_time[started], start_time[started], run_time[started]
    processors = workload.processors[started], workload.machine_processors
    down = 0 if outage is None or n_started == 0 else lacking(outage, *ran)
    return {
        "n_jobs": len(values["bsld"]),
        "complete": is_complete,
        **_job_metrics(values),
        "user_rms_bsld": user_rms(values["bsld"], workload.user_index[counted]),
        "n_backfilled": int(np.count_nonzero(backfilled[counted])),
        "n_thresholded": int(np.count_nonzero(thresholded[counted])),
        "makespan": makespan(*ran) if n_started else 0,
        "utilisation": utilisation(*ran, *processors, down) if n_started else 0.0,
    }


def summary_by(
    labels: IntArray,
    workload: Workload,
    start_time: IntArray,
    run_time: IntArray,
    backfilled: BoolArray,
    thresholded: BoolArray,
) -> dict[int, dict[str, float]]:
    """Summarise a finished schedule for each group of jobs, by label, ascending.

    A record has the keys of `summary` that belong to jobs (all but `complete`, `makespan` and
    `utilisation`) and `share_of_work`, the group's part of sum(p q).

    Source: Lawson, Smirni, Puiu 2002, figure 5 (by `requested_time_class`).
    """
    values = per_job(workload, start_time, run_time)
    work = run_time * workload.processors
    total = max(int(work.sum()), 1)
    order = np.argsort(labels, kind="stable")
    names, first = np.unique(labels[order], return_index=True)
    groups = np.split(order, first[1:])
    return {
        int(name): {
            "n_jobs": len(jobs),
            **_job_metrics({key: column[jobs] for key, column in values.items()}),
            "n_backfilled": int(backfilled[jobs].sum()),
            "n_thresholded": int(thresholded[jobs].sum()),
            "share_of_work": int(work[jobs].sum()) / total,
        }
        for name, jobs in zip(names, groups, strict=True)
    }


def weekly(values: FloatArray, time: IntArray) -> dict[str, NDArray[np.generic]]:
    """Average a per-job metric over each week, and over all weeks so far.

    A job belongs to the week of its `time`, s, >= 0: its end or its submission. The arrays reach
    from week 0 = [0, `WEEK_S`) to the last with a job. They are `week`, `n_jobs` (without NaN
    values), `mean` (NaN in a week without jobs) and `cumulative_mean` (NaN before the first job).

    Source: Carastan-Santos et al. 2019, figure 1, where jobs belong to the week of their end.
    """
    week = time // WEEK_S
    has_metric = ~np.isnan(values)
    n_weeks = int(week.max()) + 1
    n_jobs = np.bincount(week[has_metric], minlength=n_weeks)
    total = np.bincount(week[has_metric], weights=values[has_metric], minlength=n_weeks)
    with np.errstate(invalid="ignore"):
        return {
            "week": np.arange(n_weeks),
            "n_jobs": n_jobs,
            "mean": total / n_jobs,
            "cumulative_mean": np.cumsum(total) / np.cumsum(n_jobs),
        }


def _job_metrics(values: dict[str, FloatArray]) -> dict[str, float]:
    """Return the statistics of each of `JOB_METRICS`, and the fractions by bounded slowdown."""
    has_slowdown = ~np.isnan(values["slowdown"])
    n_jobs = len(has_slowdown)
    n_zero_run_time = n_jobs - int(np.count_nonzero(has_slowdown))
    metrics = _statistics(values)
    if n_zero_run_time > 0:
        metrics |= _statistics({"slowdown": values["slowdown"][has_slowdown]})
    metrics["n_zero_run_time"] = n_zero_run_time
    reached = [n_jobs, *(int(np.count_nonzero(values["bsld"] >= edge)) for edge in _BSLD_EDGES), 0]
    for key, below, above in zip(_BSLD_SHARES, reached[:-1], reached[1:], strict=True):
        metrics[f"share_bsld_{key}"] = (below - above) / n_jobs if n_jobs else np.nan
    return metrics


_BSLD_EDGES = (float(np.nextafter(1.0, 2.0)), 10.0, 100.0)
_BSLD_SHARES = ("1", "1_10", "10_100", "100")
_STACKED_JOBS = 100_000


def _statistics(values: dict[str, FloatArray]) -> dict[str, float]:
    """Return mean, median, p90, p99 and max of columns of one length, NaN where it is 0."""
    # One call for all columns saves numpy's overhead on a short log; on a long one the columns are
    # copied one at a time to save memory.
    if len(values) > 1 and len(values["bsld"]) > _STACKED_JOBS:
        columns_apart = ({key: column} for key, column in values.items())
        return {k: v for column in columns_apart for k, v in _statistics(column).items()}
    columns = np.array(list(values.values()))
    if columns.shape[1] == 0:
        kinds = np.full((5, len(columns)), np.nan)
    else:
        percentiles = np.percentile(columns, (50, 90, 99), axis=1)
        kinds = np.vstack([columns.mean(axis=1), percentiles, columns.max(axis=1)])
    names = [f"{kind}_{key}" for key in values for kind in ("mean", "median", "p90", "p99", "max")]
    return dict(zip(names, kinds.T.ravel().tolist(), strict=True))
