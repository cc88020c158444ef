"""Rollouts: copies of the simulation that run to their end under a rule, with forecast run times.

A copy holds what still matters of the simulation. It runs on another job table, with estimates or
forecasts for run times, and no submissions but forecast ones. Copying costs O(n_waiting +
n_running), and a look at each job submitted within the threshold. It also costs a step for each
pair of running jobs whose forecast ends are not in the order of their estimates. The run costs what
any simulation costs.

Source: Streit 2002; specification, section 8, "dynP".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.calendar import put_in_turn
from hpcgym.core.engine.clock import run
from hpcgym.core.engine.reset import clear_machine, set_rules
from hpcgym.core.kernels.queue.entries import entry_of, take_entry
from hpcgym.core.kernels.queue.ordered_queue import list_jobs, put_in
from hpcgym.core.kernels.scoring.online_regression import copy_regression
from hpcgym.core.kernels.scoring.score import score_alone
from hpcgym.core.kernels.scoring.user_estimates import expect, is_expected
from hpcgym.core.kernels.types import Float, Int, Jobs, Sim
from hpcgym.core.metrics import BSLD_BOUND_S


@kernel
def copy_settings(sim: Sim, plan: Sim, rule: int, weight: Float, n_coming: int) -> None:
    """Set up the copy `plan`: an empty machine, and a queue in the order of a rule.

    Scores under the rule do not change with time; its parameters have shape (N_WEIGHTS,).
    `n_coming` jobs are still to come. Writes all of the copy but what it holds of the jobs present.
    """
    set_rules(plan, sim.setting, sim.weight, sim.backfill_parameter)
    plan.n_jobs = sim.next_job + n_coming
    plan.base_rule = rule
    plan.order_rule = s.BY_BASE
    plan.decide = s.DECIDE_NEVER
    # A copy records no users, keeps no reward, and neither predicts nor corrects.
    plan.keep_reward = plan.check = 0
    plan.keep_history, plan.predict, plan.correct = s.HISTORY_NOT, s.PREDICT_NOT, s.CORRECT_NOT
    for column in range(s.N_WEIGHTS):
        plan.weight[s.BASE_ORDER, column] = weight[column]
    clear_machine(plan, sim.log_largest)
    plan.now, plan.free, plan.next_job = sim.now, sim.free, sim.next_job
    plan.n_overdue, plan.next_overdue = sim.n_overdue, sim.next_overdue
    plan.waiting_processors, plan.waiting_area = sim.waiting_processors, sim.waiting_area
    plan.n_started = sim.next_job - sim.n_waiting
    for job in range(sim.next_job, plan.n_jobs):
        plan.start_time[job] = -1
        plan.flag[job] = 0
    plan.phase = s.PHASE_PASS
    plan.pass_due = 1


@kernel
def copy_running(jobs: Jobs, sim: Sim, plan: Sim) -> None:
    """Copy the running jobs, which end when their forecast run times have passed, or now.

    Writes both lists of running jobs of the copy, and `start_time` of all jobs that its threshold
    may still look at.
    """
    n = sim.n_releases
    plan.n_releases = n
    plan.n_running = n
    for position in range(n):
        job = sim.release_job[position]
        plan.release_job[position] = job
        plan.release_time[position] = sim.release_time[position]
        plan.start_time[job] = sim.start_time[job]
        end = max(sim.start_time[job] + jobs.run_time[job], sim.now)
        # Insertion sort: forecasts and estimates give nearly the same order.
        put_in_turn(plan.ending_time, plan.ending_job, position, end, job)
    # The threshold still looks at these jobs, and must know which of them have started.
    for job in range(sim.next_overdue, sim.next_job):
        plan.start_time[job] = sim.start_time[job]


@kernel
def copy_expected(jobs: Jobs, sim: Sim, plan: Sim, job: int) -> None:
    """Copy a waiting job's terms and regressors; the copy updates the terms no more.

    Writes the job's rows of `expected`, `expected_at`, `regressed_at` and `regressor` in the copy,
    and in the simulation what `expect` writes.
    """
    expect(jobs, sim, job)
    entry = entry_of(plan, job)
    # The copy completes no jobs of users, so `expect` never finds these terms out of date.
    plan.expected_at[entry] = plan.history_completed[jobs.user[job]]
    plan.regressed_at[entry] = -1
    for column in range(s.N_TERMS):
        plan.expected[entry, column] = sim.expected[entry_of(sim, job), column]
    if is_expected(sim, s.EXPECT_BY_REGRESSION):
        for column in range(s.N_REGRESSORS):
            plan.regressor[entry, column] = sim.regressor[entry_of(sim, job), column]


@kernel
def copy_queue(jobs: Jobs, sim: Sim, plan: Sim, n: int) -> None:
    """Copy the first `n` jobs of `scratch`, all that wait, into the queues of the copy's rules.

    Writes the copy's entries, keys, queues and regression, and what `copy_expected` writes.
    """
    copy_regression(sim, plan)
    for position in range(n):
        job = sim.scratch[position]
        entry = take_entry(plan, job)
        if len(sim.inverse) > 0:
            plan.inverse[entry] = sim.inverse[entry_of(sim, job)]
        if is_expected(sim, s.EXPECT_BY_RECORDS):
            copy_expected(jobs, sim, plan, job)
        score_alone(jobs, plan, s.BASE_ORDER, job)
        put_in(jobs, plan, s.BASE_ORDER, job)
        if plan.backfill_order_is_static == 1:
            score_alone(jobs, plan, s.BACKFILL_ORDER, job)
            put_in(jobs, plan, s.BACKFILL_ORDER, job)


@kernel
def roll_out(jobs: Jobs, sim: Sim, plan: Sim, rule: int, weight: Float, n_coming: int) -> int:
    """Copy the simulation, run the copy to its end under a rule, and return the number waiting now.

    The simulation is at a decision, and at least one job waits. `jobs` has forecast run times, and
    behind the jobs submitted so far `n_coming` others. `plan` is another simulation, as large, and
    its content is lost. The rule is as in `copy_settings`. Writes `plan`, what `expect` writes, and
    into `scratch` the waiting jobs in base order.
    """
    copy_settings(sim, plan, rule, weight, n_coming)
    copy_running(jobs, sim, plan)
    n = list_jobs(sim, s.BASE_ORDER, sim.scratch)
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
    for position in range(n):
        job = sim.scratch[position]
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
