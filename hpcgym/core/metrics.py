"""How good a schedule is, in plain numpy: a formula and its source for each figure.

Per job, with submit time r, start s, executed run time p and q processors: the wait is w = s - r.
Times are s; the figures of many jobs are summed up by `summary` under flat names such as
`mean_bsld`, `p99_wait_time` or `share_bsld_1_10`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.workload import Workload

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

BSLD_BOUND_S = 10
"""Run times below this count as this in bounded slowdowns (tau), s."""

WEEK_S = 604_800
"""Length of a week, s."""

CLASS_BOUNDS_S = (100, 1_000, 10_000)
"""Largest requested time of the classes 1, 2 and 3, s; class 4 has no bound."""

JOB_METRICS = ("wait_time", "turnaround_time", "slowdown", "bsld", "pp_bsld")
"""The figures every job has, in the order `per_job` gives them."""


def slowdown(wait_time: IntArray, run_time: IntArray) -> FloatArray:
    """Compute 1 + w / p, the turnaround as a multiple of the run time.

    Args:
        wait_time: Shape (n_jobs,), s, >= 0.
        run_time: As executed, shape (n_jobs,), s, >= 0.

    Returns:
        Shape (n_jobs,), >= 1; NaN for jobs of zero run time, which have none.

    Source:
        Lawson, Smirni, Puiu 2002, section 4.

    Example:
        >>> slowdown(np.array([30, 0, 5]), np.array([10, 10, 0]))
        array([ 4.,  1., nan])
    """
    result = np.full(len(run_time), np.nan)
    np.divide(wait_time, run_time, out=result, where=run_time > 0)
    return result + 1.0


def bsld(wait_time: IntArray, run_time: IntArray) -> FloatArray:
    """Compute max((w + p) / max(p, tau), 1), the bounded slowdown, tau = `BSLD_BOUND_S`.

    Args:
        wait_time: Shape (n_jobs,), s, >= 0.
        run_time: As executed, shape (n_jobs,), s, >= 0.

    Returns:
        Shape (n_jobs,), >= 1.

    Source:
        Carastan-Santos et al. 2019, equation 2.

    Example:
        >>> bsld(np.array([30, 8, 5]), np.array([20, 4, 0]))
        array([2.5, 1.2, 1. ])
    """
    return np.maximum((wait_time + run_time) / np.maximum(run_time, BSLD_BOUND_S), 1.0)


def pp_bsld(wait_time: IntArray, run_time: IntArray, processors: IntArray) -> FloatArray:
    """Compute max((w + p) / (q max(p, tau)), 1), the bounded slowdown per processor.

    Args:
        wait_time: Shape (n_jobs,), s, >= 0.
        run_time: As executed, shape (n_jobs,), s, >= 0.
        processors: Shape (n_jobs,), >= 1.

    Returns:
        Shape (n_jobs,), >= 1.

    Source:
        Carastan-Santos et al. 2019, equation 3; Zotkin, Keleher 1999.

    Example:
        >>> pp_bsld(np.array([180, 180]), np.array([20, 20]), np.array([4, 16]))
        array([2.5, 1. ])
    """
    bound = processors * np.maximum(run_time, BSLD_BOUND_S)
    return np.maximum((wait_time + run_time) / bound, 1.0)


def makespan(submit_time: IntArray, start_time: IntArray, run_time: IntArray) -> int:
    """Measure the span from the first submission to the last end.

    Args:
        submit_time: Shape (n_jobs,), s.
        start_time: Shape (n_jobs,), s.
        run_time: As executed, shape (n_jobs,), s.

    Returns:
        The span, s.

    Source:
        Specification, section 1, "Metrics".

    Example:
        >>> makespan(np.array([5, 6]), np.array([5, 15]), np.array([10, 20]))
        30
    """
    return int((start_time + run_time).max() - submit_time.min())


def utilisation(
    submit_time: IntArray,
    start_time: IntArray,
    run_time: IntArray,
    processors: IntArray,
    machine_processors: int,
) -> float:
    """Compute sum(p q) / (M span), the share of the machine that worked during the makespan.

    Args:
        submit_time: Shape (n_jobs,), s.
        start_time: Shape (n_jobs,), s.
        run_time: As executed, shape (n_jobs,), s.
        processors: Shape (n_jobs,), >= 1.
        machine_processors: Processors of the machine (M).

    Returns:
        0 to 1; 0 where the makespan is 0.

    Source:
        Specification, section 1, "Metrics".

    Example:
        >>> jobs = np.array([0, 0]), np.array([0, 10]), np.array([10, 10]), np.array([4, 2])
        >>> utilisation(*jobs, machine_processors=4)
        0.75
    """
    span = makespan(submit_time, start_time, run_time)
    work = int((run_time * processors).sum())
    return work / (machine_processors * span) if span else 0.0


def requested_time_class(requested_time: IntArray) -> IntArray:
    """Sort jobs into four classes by request: up to 100 s, 1000 s, 10,000 s, and longer.

    Args:
        requested_time: Shape (n_jobs,), s, >= 1.

    Returns:
        Class of each job, shape (n_jobs,), 1 to 4.

    Source:
        Lawson, Smirni, Puiu 2002, section 2 (classes) and section 3 (by estimate).

    Example:
        >>> requested_time_class(np.array([100, 101, 10_000, 10_001]))
        array([1, 2, 3, 4])
    """
    return np.searchsorted(CLASS_BOUNDS_S, requested_time).astype(np.int64) + 1


def per_job(workload: Workload, start_time: IntArray, run_time: IntArray) -> dict[str, FloatArray]:
    """Compute every figure that each job has.

    Args:
        workload: The jobs.
        start_time: When each started, shape (n_jobs,), s.
        run_time: As executed, shape (n_jobs,), s.

    Returns:
        One array of shape (n_jobs,) for each of `JOB_METRICS`; the turnaround is w + p.

    Source:
        Specification, section 1, "Metrics".
    """
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
) -> dict[str, float]:
    """Sum a schedule up in one flat record.

    An unfinished schedule is measured at `now`: jobs still waiting then count as if they started
    then, which bounds their figures from below, and jobs to come are left out.

    Args:
        workload: The jobs.
        start_time: When each started, shape (n_jobs,), s, -1 = not yet.
        run_time: As executed, shape (n_jobs,), s.
        backfilled: Which started out of order, shape (n_jobs,).
        thresholded: Which had waited beyond the threshold when they started, shape (n_jobs,).
        now: The instant an unfinished schedule has reached, s; None leaves out all jobs that
            have not started.

    Returns:
        `n_jobs` (those counted) and `complete` (whether every job has started); mean, median, p90,
        p99 and max of each of `JOB_METRICS`, as in `mean_bsld` (percentiles interpolate linearly;
        NaN where no job has the figure); `n_zero_run_time`, the jobs that have no slowdown;
        `share_bsld_1` (exactly 1), `share_bsld_1_10` (1, 10), `share_bsld_10_100` [10, 100) and
        `share_bsld_100` (100 and more); `n_backfilled`, `n_thresholded`; `makespan` and
        `utilisation` of the jobs that have started.

    Source:
        Specification, section 1, "Metrics"; the shares are Carastan-Santos et al. 2019, figure 3;
        the reading of an unfinished schedule is that of the reward (section 10).

    Example:
        >>> jobs = Workload.from_arrays([0, 0], [20, 20], [20, 20], [4, 4], machine_processors=4)
        >>> never = np.zeros(2, dtype=bool)
        >>> figures = summary(jobs, np.array([0, 20]), jobs.run_time, never, never)
        >>> figures["mean_bsld"], figures["max_wait_time"], figures["utilisation"]
        (1.5, 20.0, 1.0)
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
    return {
        "n_jobs": len(values["bsld"]),
        "complete": is_complete,
        **_job_figures(values),
        "n_backfilled": int(np.count_nonzero(backfilled[counted])),
        "n_thresholded": int(np.count_nonzero(thresholded[counted])),
        "makespan": makespan(*ran) if n_started else 0,
        "utilisation": utilisation(*ran, *processors) if n_started else 0.0,
    }


def summary_by(
    labels: IntArray,
    workload: Workload,
    start_time: IntArray,
    run_time: IntArray,
    backfilled: BoolArray,
    thresholded: BoolArray,
) -> dict[int, dict[str, float]]:
    """Sum a finished schedule up for each group of jobs.

    Args:
        labels: Group of each job, shape (n_jobs,), such as `requested_time_class` or the user.
        workload: The jobs.
        start_time: When each started, shape (n_jobs,), s.
        run_time: As executed, shape (n_jobs,), s.
        backfilled: Which started out of order, shape (n_jobs,).
        thresholded: Which had waited beyond the threshold when they started, shape (n_jobs,).

    Returns:
        Label -> the keys of `summary` that belong to jobs (all but `complete`, `makespan` and
        `utilisation`) and `share_of_work`, the group's part of sum(p q); labels ascend.

    Source:
        Lawson, Smirni, Puiu 2002, figure 5 (by class); house rule (by user).
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
            **_job_figures({key: column[jobs] for key, column in values.items()}),
            "n_backfilled": int(backfilled[jobs].sum()),
            "n_thresholded": int(thresholded[jobs].sum()),
            "share_of_work": int(work[jobs].sum()) / total,
        }
        for name, jobs in zip(names, groups, strict=True)
    }


def weekly(values: FloatArray, time: IntArray) -> dict[str, NDArray[np.generic]]:
    """Average a per-job figure week by week, and over all weeks so far.

    Args:
        values: The figure, shape (n_jobs,); jobs without one are NaN and left out.
        time: Instant by which a job belongs to a week, shape (n_jobs,), s, >= 0: its end, as in
            the figures of the paper below, or its submission.

    Returns:
        Arrays of shape (n_weeks,), from week 0 = [0, `WEEK_S`) to the last with a job: `week`,
        `n_jobs` (with a figure), `mean` (NaN in a week without jobs) and `cumulative_mean` (over
        all jobs up to the end of the week, NaN before the first).

    Source:
        Carastan-Santos et al. 2019, figure 1: cumulative averages over the jobs finished up to
        each week.

    Example:
        >>> series = weekly(np.array([1.0, 3.0, 5.0]), np.array([0, 9, WEEK_S]))
        >>> series["mean"], series["cumulative_mean"]
        (array([2., 5.]), array([2., 3.]))
    """
    week = time // WEEK_S
    has_figure = ~np.isnan(values)
    n_weeks = int(week.max()) + 1
    n_jobs = np.bincount(week[has_figure], minlength=n_weeks)
    total = np.bincount(week[has_figure], weights=values[has_figure], minlength=n_weeks)
    with np.errstate(invalid="ignore"):
        return {
            "week": np.arange(n_weeks),
            "n_jobs": n_jobs,
            "mean": total / n_jobs,
            "cumulative_mean": np.cumsum(total) / np.cumsum(n_jobs),
        }


def _job_figures(values: dict[str, FloatArray]) -> dict[str, float]:
    """Return the statistics of each of `JOB_METRICS`, and the shares of the bounded slowdown."""
    has_slowdown = ~np.isnan(values["slowdown"])
    n_jobs = len(has_slowdown)
    n_zero_run_time = n_jobs - int(np.count_nonzero(has_slowdown))
    figures = _statistics(values)
    if n_zero_run_time > 0:
        figures |= _statistics({"slowdown": values["slowdown"][has_slowdown]})
    figures["n_zero_run_time"] = n_zero_run_time
    reached = [n_jobs, *(int(np.count_nonzero(values["bsld"] >= edge)) for edge in _BSLD_EDGES), 0]
    for key, below, above in zip(_BSLD_SHARES, reached[:-1], reached[1:], strict=True):
        figures[f"share_bsld_{key}"] = (below - above) / n_jobs if n_jobs else np.nan
    return figures


_BSLD_EDGES = (float(np.nextafter(1.0, 2.0)), 10.0, 100.0)
_BSLD_SHARES = ("1", "1_10", "10_100", "100")
_STACKED_JOBS = 100_000


def _statistics(values: dict[str, FloatArray]) -> dict[str, float]:
    """Return mean, median, p90, p99 and max of columns of one length, NaN where it is 0.

    One call serves all columns of a short log, whose cost is the call's; those of a long log are
    copied one at a time.
    """
    if len(values) > 1 and len(values["bsld"]) > _STACKED_JOBS:
        columns_apart = ({key: column} for key, column in values.items())
        return {k: v for one in columns_apart for k, v in _statistics(one).items()}
    columns = np.array(list(values.values()))
    if columns.shape[1] == 0:
        kinds = np.full((5, len(columns)), np.nan)
    else:
        percentiles = np.percentile(columns, (50, 90, 99), axis=1)
        kinds = np.vstack([columns.mean(axis=1), percentiles, columns.max(axis=1)])
    names = [f"{kind}_{key}" for key in values for kind in ("mean", "median", "p90", "p99", "max")]
    return dict(zip(names, kinds.T.ravel().tolist(), strict=True))
