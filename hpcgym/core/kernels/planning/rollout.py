"""Rollouts: what would become of the waiting jobs under a rule, were run times as foreseen.

The simulation at hand is copied, as far as its jobs still matter, into another row, which runs to
its end with the run times of a table of its own: estimates or predictions, and no submissions but
those foreseen. The copy is made in O(n_waiting + n_running), a look at each job submitted within
the threshold, and a step for each pair of running jobs whose foreseen ends are not in the order of
their estimates; the run is that of any simulation.
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
    """Set up the copy: an empty machine whose queue a rule orders.

    Args:
        row: The simulation.
        plan: Its copy.
        rule: The rule of the copy's queue; its order keeps.
        weight: Parameters of the rule, shape (N_WEIGHTS,).
        n_coming: Jobs that come after those submitted so far.

    Writes:
        All of the copy but its jobs.

    Source:
        Specification, section 8, "dynP".
    """
    set_rules(plan, sim.setting, sim.weight, sim.backfill_parameter)
    plan.setting[N_JOBS] = sim.counter[NEXT_JOB] + n_coming
    plan.setting[BASE_RULE] = rule
    plan.setting[ORDER_RULE] = BY_BASE
    plan.setting[DECIDE] = DECIDE_NEVER
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
    """Copy the running jobs, which end when their foreseen run times have passed, now at soonest.

    Args:
        jobs: The job table, with run times as foreseen.
        row: The simulation.
        plan: Its copy, set up.

    Writes:
        Both lists of running jobs of the copy; its entries of `start_time` of all jobs that may
        still be looked at.

    Source:
        Specification, section 1, "Run time".
    """
    n = sim.counter[N_RELEASES]
    plan.counter[N_RELEASES] = n
    plan.counter[N_RUNNING] = n
    for place in range(n):
        job = sim.release_job[place]
        plan.release_job[place] = job
        plan.release_time[place] = sim.release_time[place]
        plan.start_time[job] = sim.start_time[job]
        end = max(sim.start_time[job] + jobs.run_time[job], sim.counter[NOW])
        spot = place
        while spot > 0 and plan.ending_time[spot - 1] < end:
            plan.ending_time[spot] = plan.ending_time[spot - 1]
            plan.ending_job[spot] = plan.ending_job[spot - 1]
            spot -= 1
        plan.ending_time[spot] = end
        plan.ending_job[spot] = job
    for job in range(sim.counter[NEXT_OVERDUE], sim.counter[NEXT_JOB]):
        plan.start_time[job] = sim.start_time[job]


@kernel
def copy_expected(jobs: Jobs, sim: Sim, plan: Sim, job: int) -> None:
    """Copy what is expected of a waiting job; in the copy no more is learnt.

    Args:
        jobs: The job table.
        row: The simulation.
        plan: Its copy, in which the job has a seat.
        job: Index of the job.

    Writes:
        `expected`, `expected_at` and `regressor` of its seats.

    Source:
        House rule: a copy knows what the simulation knows at this instant.
    """
    expect(jobs, sim, job)
    entry = entry_of(plan, job)
    plan.expected_at[entry] = plan.history_completed[jobs.user[job]]
    for column in range(N_TERMS):
        plan.expected[entry, column] = sim.expected[entry_of(sim, job), column]
    if is_expected(sim, EXPECT_BY_REGRESSION):
        for column in range(N_REGRESSORS):
            plan.regressor[entry, column] = sim.regressor[entry_of(sim, job), column]


@kernel
def copy_queue(jobs: Jobs, sim: Sim, plan: Sim, n: int) -> None:
    """Copy the waiting jobs, in the order of the copy's rule.

    Args:
        jobs: The job table.
        row: The simulation, its waiting jobs listed in `scratch`.
        plan: Its copy, set up.
        n: Number of waiting jobs.

    Writes:
        Seats, keys and queues of the copy; what is expected of the jobs, and what the regression
        has learnt.

    Source:
        Specification, section 1, "Queue order".
    """
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
    """Run a copy of the simulation to its end under a rule.

    Args:
        jobs: The job table, with run times as foreseen, and behind the jobs submitted so far those
            that are to come.
        row: The simulation, at a decision; at least one job waits.
        plan: Another row, as large; what it held is lost.
        rule: The rule that orders the queue from now on; its order keeps.
        weight: Parameters of the rule, shape (N_WEIGHTS,).
        n_coming: Jobs that are to come.

    Returns:
        Number of waiting jobs.

    Writes:
        `plan`; the simulation's `scratch`, which lists the waiting jobs in base order.

    Source:
        House rule: one dynamics; a rollout runs like any simulation.
    """
    copy_settings(sim, plan, rule, weight, n_coming)
    copy_running(jobs, sim, plan)
    n = list_jobs(sim, BASE, sim.scratch)
    copy_queue(jobs, sim, plan, n)
    run(jobs, plan)
    return n


@kernel
def rollout(jobs: Jobs, sim: Sim, plan: Sim, rule: int, weight: Float) -> float:
    """Predict the mean bounded slowdown of the waiting jobs under a rule, were estimates true.

    Args:
        jobs: The job table, with estimates for run times.
        row: The simulation, at a decision; at least one job waits.
        plan: Another row, as large; what it held is lost.
        rule: The rule that orders the queue from now on; its order keeps.
        weight: Parameters of the rule, shape (N_WEIGHTS,).

    Returns:
        The mean over the jobs that wait now.

    Writes:
        `plan`; the simulation's `scratch`.

    Source:
        Streit 2002; specification, section 8, "dynP".
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
    """Predict what becomes of the waiting jobs under each of some rules.

    Args:
        jobs: The job table, with estimates for run times.
        row: The simulation, at a decision; at least one job waits.
        plan: Another row, as large; what it held is lost.
        rule: The rules, shape (n_rules,); their orders keep.
        weight: Their parameters, shape (n_rules, N_WEIGHTS).
        predicted: Where to, shape (n_rules,).

    Writes:
        `predicted`, as `rollout` gives it; `plan`; the simulation's `scratch`.

    Source:
        Streit 2002; specification, section 8, "dynP".
    """
    for which in range(len(rule)):
        predicted[which] = rollout(jobs, sim, plan, rule[which], weight[which])
