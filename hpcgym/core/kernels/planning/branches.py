"""Branches of a simulation: copies that take another option at one decision, and then go on alike.

A branch runs beside its base, the copy that takes no option. At every `CHECK_S` the two are
compared. A branch whose state equals the base's has merged: from then on it makes the same
schedule, so it need not run on.

Python copies the states and passes the addresses of jobs and simulations, the base's first. A run
costs what any simulation costs. A comparison looks at each running and each waiting job. Where the
rules read users' records, it looks at each record, too, but only if all else is equal.

Source: Specification, section 10, "Counterfactuals".
"""

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.clock import run
from hpcgym.core.history import RING_JOBS
from hpcgym.core.kernels.env.actions import order_by_rule, rank_waiting
from hpcgym.core.kernels.planning.forecast import drawn_run_time
from hpcgym.core.kernels.queue.entries import entry_of, is_overdue
from hpcgym.core.kernels.queue.ordered_queue import list_jobs
from hpcgym.core.kernels.types import Float, Int, Jobs, Sim, open_jobs, open_sim

FIRST, LAST, RULE = 0, 1, 2  # options: a job goes first, or last; or a rule orders the waiting jobs

RUNS, ENDED = -1, -2
"""In place of the instant at which a branch merged: it runs on, or all of its jobs have started."""

CHECK_S = 900  # time between two comparisons, s


@kernel
def own_order(sim: Sim, weight: Float) -> int:
    """Return the rule of the primary order; write its parameters, shape (N_WEIGHTS,)."""
    is_static = sim.order_rule == s.BY_BASE
    which = s.BASE_ORDER if is_static else s.PASS_ORDER
    for column in range(s.N_WEIGHTS):
        weight[column] = sim.weight[which, column]
    return sim.base_rule if is_static else sim.order_rule


@kernel
def take_option(jobs: Jobs, sim: Sim, kind: int, job: int, rule: int, weight: Float) -> None:
    """Order this pass as an option says; `rule` and `weight` are those of a `RULE`.

    Jobs beyond the threshold go first whatever it says. Writes keys of `PASS_ORDER`, `ordered` and
    `scratch`.
    """
    own_weight = np.empty(s.N_WEIGHTS)
    own_rule = own_order(sim, own_weight)
    if kind == RULE:
        order_by_rule(jobs, sim, rule, weight)
    else:
        rank_waiting(jobs, sim, own_rule, own_weight, 0.0)
        if not is_overdue(sim, job):
            key = -1.0 if kind == FIRST else float(sim.n_waiting)
            sim.key[s.PASS_ORDER, entry_of(sim, job)] = key
    # The keys stand until the pass is made. Later passes go by the own rule again.
    if sim.order_rule != s.BY_BASE:
        for column in range(s.N_WEIGHTS):
            sim.weight[s.PASS_ORDER, column] = own_weight[column]


@kernel
def begin_branch(
    jobs: Jobs, sim: Sim, kind: int, job: int, rule: int, weight: Float, end: int
) -> int:
    """Take an option at this pass, and at contested ones before `end`, s, while its job waits.

    Returns what `run` returns; the simulation is at a pass that is still to be made, or at its end.
    """
    sim.decide = s.DECIDE_CONTESTED
    status = s.STATUS_DECISION
    while status == s.STATUS_DECISION:
        take_option(jobs, sim, kind, job, rule, weight)
        if end <= sim.now:
            break
        status = run(jobs, sim)
        if sim.now >= end or (kind != RULE and sim.start_time[job] >= 0):
            break
    return status


@kernel
def run_until(jobs: Jobs, sim: Sim, instant: int) -> int:
    """Run to the pass of an instant, s, or until every job has started; return what `run` returns.

    Writes `decide`, too: no decision but this one is due.
    """
    sim.decide = s.DECIDE_INTERVAL
    sim.decide_seconds = CHECK_S
    sim.next_decision = instant
    return run(jobs, sim)


@kernel
def same_machine(jobs: Jobs, sim: Sim, other_jobs: Jobs, other: Sim) -> bool:
    """Tell whether two simulations of one episode at one instant run the same jobs alike."""
    if (
        sim.free != other.free
        or sim.next_job != other.next_job
        or sim.n_running != other.n_running
        or sim.n_waiting != other.n_waiting
        or sim.n_overdue != other.n_overdue
        or sim.n_releases != other.n_releases
        or sim.pass_due != other.pass_due
    ):
        return False
    for position in range(sim.n_running):
        job = sim.ending_job[position]
        if (
            job != other.ending_job[position]
            or sim.ending_time[position] != other.ending_time[position]
            or sim.start_time[job] != other.start_time[job]
            or jobs.estimate[job] != other_jobs.estimate[job]
            or (sim.flag[job] ^ other.flag[job]) & s.FLAG_CAPPED != 0
        ):
            return False
    for position in range(sim.n_releases):
        if sim.release_time[position] != other.release_time[position]:
            return False
    return True


@kernel
def same_queue(jobs: Jobs, sim: Sim, other_jobs: Jobs, other: Sim) -> bool:
    """Tell whether the same jobs wait, by the same keys, estimates and frozen expectations.

    Writes `scratch` of both.
    """
    n = list_jobs(sim, s.BASE_ORDER, sim.scratch)
    list_jobs(other, s.BASE_ORDER, other.scratch)
    for position in range(n):
        job = sim.scratch[position]
        if job != other.scratch[position]:
            return False
        entry, other_entry = entry_of(sim, job), entry_of(other, job)
        if (
            sim.key[s.BASE_ORDER, entry] != other.key[s.BASE_ORDER, other_entry]
            or jobs.estimate[job] != other_jobs.estimate[job]
            or jobs.feature[job, s.FEATURE_ESTIMATE] != other_jobs.feature[job, s.FEATURE_ESTIMATE]
        ):
            return False
        if sim.backfill_order_is_static == 1 and (
            sim.key[s.BACKFILL_ORDER, entry] != other.key[s.BACKFILL_ORDER, other_entry]
        ):
            return False
        if len(sim.inverse) > 0 and sim.inverse[entry] != other.inverse[other_entry]:
            return False
    return True


@kernel
def same_records(sim: Sim, other: Sim) -> bool:
    """Tell whether users' records and the regression are equal, as far as rules read them.

    When a user's latest job ended, only observations read.
    """
    if sim.keep_history != s.HISTORY_FOR_KEYS and sim.keep_history != s.HISTORY_FOR_PREDICTIONS:
        return True
    if sim.expect & s.EXPECT_BY_REGRESSION == s.EXPECT_BY_REGRESSION:
        for which in range(len(sim.coefficient)):
            for column in range(s.N_REGRESSORS):
                if (
                    sim.coefficient[which, column] != other.coefficient[which, column]
                    or sim.squares[which, column] != other.squares[which, column]
                ):
                    return False
    for user in range(len(sim.history_completed)):
        completed = sim.history_completed[user]
        if completed != other.history_completed[user]:
            return False
        for spot in range(min(completed, RING_JOBS)):
            if (
                sim.history_run_time[user, spot] != other.history_run_time[user, spot]
                or sim.history_processors[user, spot] != other.history_processors[user, spot]
            ):
                return False
            requested_time = other.history_requested_time[user, spot]
            if sim.history_requested_time[user, spot] != requested_time:
                return False
    return True


@kernel
def have_merged(jobs: Jobs, sim: Sim, other_jobs: Jobs, other: Sim) -> bool:
    """Tell whether two simulations at one instant make the same schedule from now on.

    Their modes keep nothing from pass to pass but what `FLAG_CAPPED` says. Writes `scratch` of
    both.
    """
    return (
        same_machine(jobs, sim, other_jobs, other)
        and same_queue(jobs, sim, other_jobs, other)
        and same_records(sim, other)
    )


@kernel
def run_branches(
    jobs: Int,
    sims: Int,
    kind: Int,
    job: Int,
    rule: Int,
    weight: Float,
    end: int,
    limit: int,
    merges: bool,
    merged_at: Int,
) -> int:
    """Run a base and its branches, all copies of one simulation at a decision.

    `jobs` and `sims` have addresses, the base's first, shape (1 + n_branches,). Each branch has an
    option: `kind`, `job`, `rule`, shape (n_branches,), and `weight`, shape (n_branches, N_WEIGHTS).
    Options last until `end`, s. All stop at `limit`, s, -1 = none; and if `merges`, a branch stops
    where it has merged. Writes `merged_at`, s, shape (n_branches,), `RUNS` or `ENDED`. Returns 0,
    or what a run returned that broke off.
    """
    base_jobs, base = open_jobs(jobs[0]), open_sim(sims[0])
    n_left = len(merged_at)
    check = base.now
    for row in range(len(merged_at)):
        merged_at[row] = RUNS
        branch_jobs, branch = open_jobs(jobs[row + 1]), open_sim(sims[row + 1])
        status = begin_branch(branch_jobs, branch, kind[row], job[row], rule[row], weight[row], end)
        if status < 0:
            return status
        if status == s.STATUS_DONE:
            merged_at[row] = ENDED
            n_left -= 1
    while n_left > 0 and check != limit:
        check = check + CHECK_S if merges else s.NEVER
        if limit >= 0:
            check = min(check, limit)
        base_status = run_until(base_jobs, base, check)
        if base_status < 0:
            return base_status
        for row in range(len(merged_at)):
            branch = open_sim(sims[row + 1])
            # A branch whose option lasts has run ahead.
            if merged_at[row] != RUNS or branch.now >= check:
                continue
            branch_jobs = open_jobs(jobs[row + 1])
            status = run_until(branch_jobs, branch, check)
            if status < 0:
                return status
            if status == s.STATUS_DONE:
                merged_at[row] = ENDED
            elif (
                merges
                and base_status == s.STATUS_DECISION
                and have_merged(base_jobs, base, branch_jobs, branch)
            ):
                merged_at[row] = check
            n_left -= merged_at[row] != RUNS
    # What has not merged may differ from the base to the last job.
    is_open = len(merged_at) == 0
    for row in range(len(merged_at)):
        is_open = is_open or merged_at[row] < 0
    if is_open and check != limit:
        return min(run_until(base_jobs, base, limit if limit >= 0 else s.NEVER), 0)
    return 0


@kernel
def draw_run_times(jobs: int, sim: int, listed: Int, chance: Float, run_time: Int) -> None:
    """Draw run times, s, of listed jobs by users' records; `chance` is uniform in [0, 1).

    All have shape (n_listed,). A job that runs, runs longer than it has. Writes `run_time`.
    """
    opened, simulation = open_jobs(jobs), open_sim(sim)
    for position in range(len(listed)):
        job = listed[position]
        started = simulation.start_time[job]
        elapsed = simulation.now - started if started >= 0 else -1
        run_time[position] = drawn_run_time(opened, simulation, job, elapsed, chance[position])


@kernel
def take(jobs: int, sim: int, kind: int, job: int, rule: int, weight: Float) -> None:
    """Take an option at this pass: `take_option`."""
    take_option(open_jobs(jobs), open_sim(sim), kind, job, rule, weight)


@kernel
def rank_now(jobs: int, sim: int, listed: Int, rank: Float) -> None:
    """List the waiting jobs in base order, and their ranks in the primary order of this instant.

    Both have shape (n_waiting,). Jobs beyond the threshold have rank -inf. Writes what
    `rank_waiting` writes.
    """
    opened, simulation = open_jobs(jobs), open_sim(sim)
    weight = np.empty(s.N_WEIGHTS)
    rank_waiting(opened, simulation, own_order(simulation, weight), weight, 0.0)
    list_jobs(simulation, s.BASE_ORDER, listed)
    for position in range(len(listed)):
        rank[position] = simulation.key[s.PASS_ORDER, entry_of(simulation, listed[position])]
