"""Rollouts: copies of the simulation that run to their end under a rule, with forecast run times.

A copy holds what still matters of the simulation. It runs on a job table of its own, with estimates
or forecasts for run times, and no submissions but forecast ones. Copying costs O(n_waiting +
n_running), and a look at each job submitted within the threshold. It also costs a step for each
pair of running jobs whose forecast ends are not in the order of their estimates. The run costs what
any simulation costs.

Source: Streit 2002; specification, section 8, "dynP".
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.clock import run
from hpcgym.core.kernels.queue.entries import entry_of, take_entry
from hpcgym.core.kernels.queue.ordered_queue import list_jobs, put_in
from hpcgym.core.kernels.reset import clear_machine, set_rules
from hpcgym.core.kernels.running_jobs import is_overdue
from hpcgym.core.kernels.scoring.online_regression import copy_lessons
from hpcgym.core.kernels.scoring.score import first_key
from hpcgym.core.kernels.scoring.user_estimates import expect, is_expected
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.state import (
    AT_PASS,
    BASE,
    BASE_RULE,
    BY_BASE,
    CHECK,
    CORRECT,
    DECIDE,
    DECIDE_NEVER,
    EXPECT_BY_RECORDS,
    EXPECT_BY_REGRESSION,
    FILL,
    FILL_KEEPS,
    FREE,
    KEEP_HISTORY,
    KEEP_REWARD,
    LOG_LARGEST,
    N_JOBS,
    N_OVERDUE,
    N_REGRESSORS,
    N_RELEASES,
    N_RUNNING,
    N_STARTED,
    N_TERMS,
    N_WAITING,
    N_WEIGHTS,
    NEXT_JOB,
    NEXT_OVERDUE,
    NOW,
    ORDER_RULE,
    PASS_DUE,
    PHASE,
    PREDICT,
    WAITING_AREA,
    WAITING_PROCESSORS,
    Float,
    Int,
)


@kernel
def copy_settings(sim: Sim, plan: Sim, rule: int, weight: Float, n_coming: int) -> None:
    """Set up the copy with an empty machine, and a queue whose rule does not change with time.

    `n_coming` is the number of jobs behind those submitted so far.
    """
    set_rules(plan, sim.setting, sim.weight, sim.backfill_parameter)
    plan.setting[N_JOBS] = sim.counter[NEXT_JOB] + n_coming
    plan.setting[BASE_RULE] = rule
    plan.setting[ORDER_RULE] = BY_BASE
    plan.setting[DECIDE] = DECIDE_NEVER
    # A copy records no users, keeps no reward, and neither predicts nor corrects.
    for column in (KEEP_HISTORY, KEEP_REWARD, CHECK, PREDICT, CORRECT):
        plan.setting[column] = 0
    for column in range(N_WEIGHTS):
        plan.weight[BASE, column] = weight[column]
    clear_machine(plan, sim.gauge[LOG_LARGEST])
    for column in (NOW, FREE, NEXT_JOB, N_OVERDUE, NEXT_OVERDUE, WAITING_PROCESSORS, WAITING_AREA):
        plan.counter[column] = sim.counter[column]
    plan.counter[N_STARTED] = sim.counter[NEXT_JOB] - sim.counter[N_WAITING]
    for job in range(sim.counter[NEXT_JOB], plan.setting[N_JOBS]):
        plan.start_time[job] = -1
        plan.flag[job] = 0
    plan.counter[PHASE] = AT_PASS
    plan.counter[PASS_DUE] = 1


@kernel
def copy_running(jobs: Jobs, sim: Sim, plan: Sim) -> None:
    """Copy the running jobs, which end when their forecast run times have passed, or now."""
    n = sim.counter[N_RELEASES]
    plan.counter[N_RELEASES] = n
    plan.counter[N_RUNNING] = n
    for place in range(n):
        job = sim.release_job[place]
        plan.release_job[place] = job
        plan.release_time[place] = sim.release_time[place]
        plan.start_time[job] = sim.start_time[job]
        end = max(sim.start_time[job] + jobs.run_time[job], sim.counter[NOW])
        spot = place  # insertion sort: forecasts and estimates give nearly the same order
        while spot > 0 and plan.ending_time[spot - 1] < end:
            plan.ending_time[spot] = plan.ending_time[spot - 1]
            plan.ending_job[spot] = plan.ending_job[spot - 1]
            spot -= 1
        plan.ending_time[spot] = end
        plan.ending_job[spot] = job
    # The threshold still looks at these jobs, and must know which of them have started.
    for job in range(sim.counter[NEXT_OVERDUE], sim.counter[NEXT_JOB]):
        plan.start_time[job] = sim.start_time[job]


@kernel
def copy_expected(jobs: Jobs, sim: Sim, plan: Sim, job: int) -> None:
    """Copy a waiting job's terms and regressors; the copy updates the terms no more."""
    expect(jobs, sim, job)
    entry = entry_of(plan, job)
    # The copy completes no jobs of users, so `expect` never finds these terms out of date.
    plan.expected_at[entry] = plan.history_completed[jobs.user[job]]
    for column in range(N_TERMS):
        plan.expected[entry, column] = sim.expected[entry_of(sim, job), column]
    if is_expected(sim, EXPECT_BY_REGRESSION):
        for column in range(N_REGRESSORS):
            plan.regressor[entry, column] = sim.regressor[entry_of(sim, job), column]


@kernel
def copy_queue(jobs: Jobs, sim: Sim, plan: Sim, n: int) -> None:
    """Copy the first `n` jobs of `scratch`, all that wait, into the queues of the copy's rules."""
    copy_lessons(sim, plan)
    for place in range(n):
        job = sim.scratch[place]
        entry = take_entry(plan, job)
        if len(sim.inverse) > 0:
            plan.inverse[entry] = sim.inverse[entry_of(sim, job)]
        if is_expected(sim, EXPECT_BY_RECORDS):
            copy_expected(jobs, sim, plan, job)
        overdue = is_overdue(sim, job)
        plan.key[BASE, entry] = -float("inf") if overdue else first_key(jobs, plan, BASE, job)
        put_in(jobs, plan, BASE, job)
        if plan.setting[FILL_KEEPS] == 1:
            plan.key[FILL, entry] = -float("inf") if overdue else first_key(jobs, plan, FILL, job)
            put_in(jobs, plan, FILL, job)


@kernel
def roll_out(jobs: Jobs, sim: Sim, plan: Sim, rule: int, weight: Float, n_coming: int) -> int:
    """Copy the simulation, run the copy to its end under a rule, and return the number waiting now.

    `jobs` has forecast run times, and behind the jobs submitted so far `n_coming` others. At least
    one job waits. Writes `plan`, and into `scratch` the waiting jobs in base order.
    """
    copy_settings(sim, plan, rule, weight, n_coming)
    copy_running(jobs, sim, plan)
    n = list_jobs(sim, BASE, sim.scratch)
    copy_queue(jobs, sim, plan, n)
    run(jobs, plan)
    return n


@kernel
def rollout(jobs: Jobs, sim: Sim, plan: Sim, rule: int, weight: Float) -> float:
    """Return the mean bounded slowdown of the waiting jobs under a rule, if estimates were true.

    Arguments and writes are those of `roll_out`, with estimates for run times.
    """
    n = roll_out(jobs, sim, plan, rule, weight, 0)
    total = 0.0
    for place in range(n):
        job = sim.scratch[place]
        estimate = jobs.estimate[job]
        turnaround = plan.start_time[job] - jobs.submit_time[job] + estimate
        total += max(turnaround / max(estimate, BSLD_BOUND_S), 1.0)
    return total / n


@kernel
def predict_each(
    jobs: Jobs, sim: Sim, plan: Sim, rule: Int, weight: Float, predicted: Float
) -> None:
    """Write what `rollout` returns for each rule, shape (n_rules,)."""
    for which in range(len(rule)):
        predicted[which] = rollout(jobs, sim, plan, rule[which], weight[which])
