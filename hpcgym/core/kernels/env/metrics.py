"""Metrics of a schedule that take one look at each job.

The formulas are those of `hpcgym.core.metrics`; sums run in the order of the jobs.
"""

import math

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import (
    FLAG_BACKFILLED,
    FLAG_NO_RUN,
    FLAG_THRESHOLDED,
    OUTAGE_FROM,
    OUTAGE_PROCESSORS,
    OUTAGE_TO,
)
from hpcgym.core.kernels.types import Float, Jobs, Sim
from hpcgym.core.metrics import BSLD_BOUND_S

EPISODE_METRICS = (
    "n_jobs",
    "complete",
    "sum_wait_time",
    "mean_wait_time",
    "max_wait_time",
    "sum_bsld",
    "mean_bsld",
    "max_bsld",
    "sum_pp_bsld",
    "mean_pp_bsld",
    "max_pp_bsld",
    "n_backfilled",
    "n_thresholded",
    "makespan",
    "utilisation",
)
"""Names of the metrics, in order; all but the sums are keys of `hpcgym.core.metrics.summary`."""

N_METRICS = len(EPISODE_METRICS)
N_COUNTED, COMPLETE = 0, 1
WAIT_TIME, BSLD, PP_BSLD = 2, 5, 8  # the sum
MEAN, MAXIMUM = 1, 2  # places behind the sum
COUNT_BACKFILLED, COUNT_THRESHOLDED, MAKESPAN, UTILISATION = 11, 12, 13, 14


@kernel
def count_job(jobs: Jobs, sim: Sim, job: int, start_time: int, metric: Float) -> None:
    """Add a job that starts at `start_time`, s, to the sums, maxima and counts."""
    run_time = jobs.run_time[job]
    wait = start_time - jobs.submit_time[job]
    bound = max(run_time, BSLD_BOUND_S)
    bsld = max((wait + run_time) / bound, 1.0)
    pp_bsld = max((wait + run_time) / (bound * jobs.processors[job]), 1.0)
    metric[WAIT_TIME] += wait
    metric[WAIT_TIME + MAXIMUM] = max(metric[WAIT_TIME + MAXIMUM], float(wait))
    metric[BSLD] += bsld
    metric[BSLD + MAXIMUM] = max(metric[BSLD + MAXIMUM], bsld)
    metric[PP_BSLD] += pp_bsld
    metric[PP_BSLD + MAXIMUM] = max(metric[PP_BSLD + MAXIMUM], pp_bsld)
    metric[COUNT_BACKFILLED] += int(sim.flag[job] & FLAG_BACKFILLED != 0)
    metric[COUNT_THRESHOLDED] += int(sim.flag[job] & FLAG_THRESHOLDED != 0)
    metric[N_COUNTED] += 1.0


@kernel
def measure(jobs: Jobs, sim: Sim, metric: Float) -> None:
    """Write the `EPISODE_METRICS` of the schedule so far, shape (N_METRICS,).

    Waiting jobs count as if they started now, jobs to come, lost or cancelled do not. Makespan and
    utilisation cover the jobs that have started. A metric that no job has is NaN.
    """
    for column in range(N_METRICS):
        metric[column] = 0.0
    first_submit = -1
    last_end = 0
    work = 0.0
    for job in range(sim.n_jobs):
        start_time = sim.start_time[job]
        if sim.flag[job] & FLAG_NO_RUN != 0:
            continue
        if start_time >= 0:
            if first_submit < 0:  # jobs are in order of submission
                first_submit = jobs.submit_time[job]
            last_end = max(last_end, start_time + jobs.run_time[job])
            work += jobs.run_time[job] * jobs.processors[job]
            count_job(jobs, sim, job, start_time, metric)
        elif jobs.submit_time[job] <= sim.now:
            count_job(jobs, sim, job, sim.now, metric)
    for column in (WAIT_TIME, BSLD, PP_BSLD):
        metric[column + MEAN] = metric[column] / metric[N_COUNTED]  # NaN without jobs, as in numpy
        if metric[N_COUNTED] == 0.0:
            metric[column + MAXIMUM] = math.nan
    metric[COMPLETE] = int(sim.n_started == sim.n_jobs)
    if first_submit >= 0:
        metric[MAKESPAN] = last_end - first_submit
    there = sim.machine_processors * metric[MAKESPAN]
    for row in range(len(jobs.outage)):
        lacks_from = max(jobs.outage[row, OUTAGE_FROM], first_submit)
        lacks_until = min(jobs.outage[row, OUTAGE_TO], last_end)
        there -= jobs.outage[row, OUTAGE_PROCESSORS] * max(lacks_until - lacks_from, 0)
    if there > 0.0:
        metric[UTILISATION] = work / there
