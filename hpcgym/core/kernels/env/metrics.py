"""Metrics of a schedule that take one look at each job.

The formulas are those of `hpcgym.core.metrics`; sums run in the order of the jobs.
"""

import math

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.state import (
    BACKFILLED,
    MACHINE_PROCESSORS,
    N_JOBS,
    N_STARTED,
    NOW,
    THRESHOLDED,
    Float,
)

FIGURES = (
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

N_FIGURES = len(FIGURES)
N_COUNTED, COMPLETE = 0, 1
WAIT_TIME, BSLD, PP_BSLD = 2, 5, 8  # the sum; then follow mean and maximum
COUNT_BACKFILLED, COUNT_THRESHOLDED, MAKESPAN, UTILISATION = 11, 12, 13, 14


@kernel
def count_job(jobs: Jobs, sim: Sim, job: int, start_time: int, figure: Float) -> None:
    """Add a job that starts at `start_time`, s, to the sums, maxima and counts."""
    run_time = jobs.run_time[job]
    wait = start_time - jobs.submit_time[job]
    bound = max(run_time, BSLD_BOUND_S)
    bsld = max((wait + run_time) / bound, 1.0)
    pp_bsld = max((wait + run_time) / (bound * jobs.processors[job]), 1.0)
    figure[WAIT_TIME] += wait
    figure[WAIT_TIME + 2] = max(figure[WAIT_TIME + 2], float(wait))
    figure[BSLD] += bsld
    figure[BSLD + 2] = max(figure[BSLD + 2], bsld)
    figure[PP_BSLD] += pp_bsld
    figure[PP_BSLD + 2] = max(figure[PP_BSLD + 2], pp_bsld)
    figure[COUNT_BACKFILLED] += int(sim.flag[job] & BACKFILLED != 0)
    figure[COUNT_THRESHOLDED] += int(sim.flag[job] & THRESHOLDED != 0)
    figure[N_COUNTED] += 1.0


@kernel
def measure(jobs: Jobs, sim: Sim, figure: Float) -> None:
    """Write the metrics of the schedule so far, shape (N_FIGURES,), in the order of `FIGURES`.

    Waiting jobs count as if they started now, jobs to come do not count. Makespan and utilisation
    cover the jobs that have started. A metric that no job has is NaN.
    """
    for column in range(N_FIGURES):
        figure[column] = 0.0
    first_submit = -1
    last_end = 0
    work = 0.0
    for job in range(sim.setting[N_JOBS]):
        start_time = sim.start_time[job]
        if start_time >= 0:
            if first_submit < 0:  # jobs are in order of submission
                first_submit = jobs.submit_time[job]
            last_end = max(last_end, start_time + jobs.run_time[job])
            work += jobs.run_time[job] * jobs.processors[job]
            count_job(jobs, sim, job, start_time, figure)
        elif jobs.submit_time[job] <= sim.counter[NOW]:
            count_job(jobs, sim, job, sim.counter[NOW], figure)
    for column in (WAIT_TIME, BSLD, PP_BSLD):
        figure[column + 1] = figure[column] / figure[N_COUNTED]  # NaN without jobs, as in numpy
        if figure[N_COUNTED] == 0.0:
            figure[column + 2] = math.nan
    figure[COMPLETE] = int(sim.counter[N_STARTED] == sim.setting[N_JOBS])
    if first_submit >= 0:
        figure[MAKESPAN] = last_end - first_submit
    if figure[MAKESPAN] > 0.0:
        figure[UTILISATION] = work / (sim.setting[MACHINE_PROCESSORS] * figure[MAKESPAN])
