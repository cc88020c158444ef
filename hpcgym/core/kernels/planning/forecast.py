"""Forecasts for a planner: run times, the cost of waiting, and jobs that may come.

A forecast is a job table of the planner's own, on which rollouts run. It takes one of two forms:

- Expected: a job runs as long as its user's records say on average. One that has run longer than
  that is expected to run as long again. No job comes.
- Sampled: a job runs as long as one of these records, drawn with the weight it has in the average.
  Only records count that exceed the job's time so far. The last day's submissions come again,
  rotated on a circle, so that their bursts stay together.

Random numbers are drawn outside and passed in. A forecast reads nothing that a scheduler does not
know at this instant. It looks at each of at most RING_JOBS records three to nine times, for each
job that waits, runs or comes.

Source: Specification, section 8, "Planner"; Politis and Romano 1992 (circular block
bootstrap).
"""

import math

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.history import RING_JOBS
from hpcgym.core.kernels.planning.rollout import roll_out
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.queue.ordered_queue import list_jobs
from hpcgym.core.kernels.scoring.score import mixed_score
from hpcgym.core.kernels.scoring.user_estimates import (
    DECAY,
    N_KINDS,
    bounded_estimate,
    expect,
    expect_by_records,
    is_of_kind,
    weigh_terms,
    write_known,
)
from hpcgym.core.kernels.types import Float, Int, Jobs, Sim
from hpcgym.core.metrics import BSLD_BOUND_S

FIRST_ORDER = 2
"""Column of a planner's `keys` for its first order; those before are the job table's."""

RULE_INDEX = -2  # in place of the rule of an index, whose kernel no plan calls

WINDOW, ROTATION, HORIZON = 0, 1, 2
"""Elements of `drawn`, s: length and rotation of the window that comes again; for how long."""


@kernel
def copy_job(jobs: Jobs, job: int, planned: Jobs, to: int, submit_time: int) -> None:
    """Copy what a scheduler knows of a job to row `to`: all but run time, rate and orders' keys."""
    planned.submit_time[to] = submit_time
    planned.estimate[to] = jobs.estimate[job]
    planned.requested_time[to] = jobs.requested_time[job]
    planned.processors[to] = jobs.processors[job]
    planned.size_class[to] = jobs.size_class[job]
    planned.user[to] = jobs.user[job]
    for column in range(s.N_FEATURES):
        planned.feature[to, column] = jobs.feature[job, column]
    planned.feature[to, s.FEATURE_SUBMIT] = submit_time
    for column in range(FIRST_ORDER):
        planned.keys[to, column] = jobs.keys[job, column]


@kernel
def forecast_run_time(jobs: Jobs, job: int, term: Float) -> int:
    """Return the expected run time, s, by a job's terms, from 1 s to the estimate at submission."""
    run_time = int(bounded_estimate(jobs, job) * math.exp(term[s.TERM_RUN_TIME_RATIO]) + 0.5)
    return max(min(run_time, int(jobs.feature[job, s.FEATURE_ESTIMATE])), 1)


@kernel
def drawn_run_time(jobs: Jobs, sim: Sim, job: int, elapsed: int, chance: float) -> int:
    """Draw a job's run time, s, from those of its user's records that exceed `elapsed`, s.

    The records' weights are those of `expect_by_records`, so draws agree with its run-time ratio on
    average. `elapsed` is -1 for a job that has not started, `chance` is uniform in [0, 1). The
    result is from 1 s to the estimate, for a job that has not started that of its submission.
    """
    user = jobs.user[job]
    completed = sim.history_completed[user]
    most = jobs.estimate[job] if elapsed >= 0 else int(jobs.feature[job, s.FEATURE_ESTIMATE])
    # From the finest kind of record to the coarsest, and at last the estimate. Beside its records,
    # each kind has a weight of 1 for the next; the rest of `chance` is then uniform in [0, 1), too.
    for kind in range(N_KINDS - 2, -1, -1):
        weight, total = 1.0, 1.0
        for back in range(min(completed, RING_JOBS)):
            spot = (completed - 1 - back) % RING_JOBS
            run_time = sim.history_run_time[user, spot]
            if run_time > elapsed and is_of_kind(jobs, sim, job, spot, kind):
                total += weight
                weight *= DECAY
        chance *= total
        weight = 1.0
        for back in range(min(completed, RING_JOBS)):
            spot = (completed - 1 - back) % RING_JOBS
            run_time = sim.history_run_time[user, spot]
            if run_time > elapsed and is_of_kind(jobs, sim, job, spot, kind):
                if chance < weight:
                    return max(min(run_time, most), 1)
                chance -= weight
                weight *= DECAY
    return most


@kernel
def forecast_waiting(
    jobs: Jobs,
    job: int,
    planned: Jobs,
    to: int,
    submit_time: int,
    run_time: int,
    term: Float,
    rule: Int,
    weight: Float,
) -> None:
    """Write row `to` of `planned` for a job that waits, or comes at `submit_time`.

    `rule`, shape (n_orders,), and `weight`, shape (n_orders, N_WEIGHTS), make its keys. A rule is
    weights without the wait, the submit time, or `RULE_INDEX`.
    """
    copy_job(jobs, job, planned, to, submit_time)
    planned.estimate[to] = int(jobs.feature[job, s.FEATURE_ESTIMATE])
    planned.run_time[to] = run_time
    # The bounded slowdown grows by 1/D a second; D is the expected one, in samples, too.
    expected = float(forecast_run_time(jobs, job, term))
    planned.reward_rate[to] = 1.0 / max(expected, BSLD_BOUND_S)
    for which in range(len(rule)):
        if rule[which] == s.RULE_SUBMIT:
            key = weight[which, 0] * submit_time
        else:
            weights = weight[which]
            features = (weights[0], weights[1], weights[2], weights[3], weights[4], weights[5])
            if rule[which] == RULE_INDEX:
                key = weigh_terms((*features, weights[6], weights[7], weights[8]), term)
            else:
                key = mixed_score(jobs, features, job, 0.0)
        planned.keys[to, FIRST_ORDER + which] = key


@kernel
def forecast_running(jobs: Jobs, sim: Sim, planned: Jobs, chance: Float) -> None:
    """Write the running jobs' rows of `planned`, and `activations`.

    `chance` has a number for each, by estimated end, the latest first; empty means expected run
    times.
    """
    term = sim.activations
    for position in range(sim.n_releases):
        job = sim.release_job[position]
        copy_job(jobs, job, planned, job, jobs.submit_time[job])
        elapsed = sim.now - sim.start_time[job]
        if len(chance) > 0:
            run_time = drawn_run_time(jobs, sim, job, elapsed, chance[position])
        else:
            expect_by_records(jobs, sim, job, term)
            run_time = forecast_run_time(jobs, job, term)
            if run_time <= elapsed:  # run times have heavy tails: what has lasted goes on to last
                run_time = min(2 * elapsed, jobs.estimate[job])
        planned.run_time[job] = run_time


@kernel
def forecast_arrivals(
    jobs: Jobs, sim: Sim, planned: Jobs, rule: Int, weight: Float, drawn: Int, chance: Float
) -> int:
    """Write the rows of `planned` of jobs that may come, by submit time, and return their number.

    `drawn` has the elements `WINDOW`, `ROTATION` and `HORIZON`. `chance` has a number for each job
    that may come; if it is empty, none does.
    """
    if len(chance) == 0:
        return 0
    length, shift, horizon = drawn[WINDOW], drawn[ROTATION], drawn[HORIZON]
    now, end = sim.now, sim.next_job
    first = end
    while first > 0 and jobs.submit_time[first - 1] > now - length:
        first -= 1
    turn = first  # the first job that the rotation moves past the window's end, to its beginning
    while turn < end and jobs.submit_time[turn] - (now - length) + shift <= length:
        turn += 1
    term = sim.activations
    n = 0
    for offset in range(end - first):
        job = turn + offset
        delay = shift - length  # from `turn` on jobs come before those in front of it
        if job >= end:
            job += first - end
            delay = shift
        delay += jobs.submit_time[job] - (now - length)
        if delay > horizon or n == len(chance):
            break
        for column in range(s.N_TERMS):
            term[column] = 0.0
        write_known(jobs, job, term)
        expect_by_records(jobs, sim, job, term)
        run_time = drawn_run_time(jobs, sim, job, -1, chance[n])
        forecast_waiting(jobs, job, planned, end + n, now + delay, run_time, term, rule, weight)
        n += 1
    return n


@kernel
def forecast_jobs(
    jobs: Jobs, sim: Sim, planned: Jobs, rule: Int, weight: Float, drawn: Int, chance: Float
) -> int:
    """Write a forecast of all jobs at hand and to come, and return the number of those to come.

    `chance` has numbers in [0, 1): as `forecast_running` takes them, then for the waiting jobs in
    base order, then for those that may come. If it is empty, run times are as expected and no job
    comes. Writes `planned`, `scratch`, and what `expect` writes.
    """
    # The threshold looks at the submit times of these jobs, even of those that have ended.
    for job in range(sim.next_overdue, sim.next_job):
        planned.submit_time[job] = jobs.submit_time[job]
    n_running = sim.n_releases
    forecast_running(jobs, sim, planned, chance[:n_running])
    for position in range(list_jobs(sim, s.BASE_ORDER, sim.scratch)):
        job = sim.scratch[position]
        expect(jobs, sim, job)
        term = sim.expected[entry_of(sim, job)]
        if len(chance) > 0:
            run_time = drawn_run_time(jobs, sim, job, -1, chance[n_running + position])
        else:
            run_time = forecast_run_time(jobs, job, term)
        submit_time = jobs.submit_time[job]
        forecast_waiting(jobs, job, planned, job, submit_time, run_time, term, rule, weight)
    left = chance[n_running + sim.n_waiting :]
    return forecast_arrivals(jobs, sim, planned, rule, weight, drawn, left)


@kernel
def cost_of_plan(planned: Jobs, sim: Sim, plan: Sim, weight: Float, n_coming: int) -> float:
    """Return the predicted cost of waiting under one order: each whole wait times its job's rate.

    All jobs that wait or come count, each from its submission to its start in the rollout. `weight`
    names the column of the order's keys. Writes `plan` and the simulation's `scratch`.

    Source: Specification, section 8, "Planner"; Smith 1956.
    """
    n = roll_out(planned, sim, plan, s.RULE_KEYS, weight, n_coming)
    total = 0.0
    for position in range(n):
        job = sim.scratch[position]
        total += (plan.start_time[job] - planned.submit_time[job]) * planned.reward_rate[job]
    first = sim.next_job
    for job in range(first, first + n_coming):
        total += (plan.start_time[job] - planned.submit_time[job]) * planned.reward_rate[job]
    return total
