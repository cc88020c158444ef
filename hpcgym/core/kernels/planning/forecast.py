"""What a planner foresees: run times, what waiting costs, and jobs that may come.

All of it is written into a job table of the planner's own, which rollouts run on. Without samples
a job is foreseen to run as long as its user's records say on average, and one that has outlived
that to run as long again as it has run. In a sample it runs as long as one of these records, drawn
with the weight that it has in that average, among those that outlast it so far; and jobs come,
those of the last day once more: the submissions of the day, put on a circle and turned, so that
their bursts stay. The numbers that chance takes are drawn outside. Of no job is anything read that
a scheduler does not know at this instant.

Foreseeing costs a look at each of at most RING_JOBS records, three to nine times over, for each job
that waits, runs or comes.
"""

import math

from hpcgym.core.history import RING_JOBS
from hpcgym.core.jit import kernel
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
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.state import (
    BASE,
    N_FEATURES,
    N_RELEASES,
    N_TERMS,
    N_WAITING,
    NEXT_JOB,
    NEXT_OVERDUE,
    NOW,
    RULE_INDEX,
    RULE_KEYS,
    RULE_SUBMIT,
    RUN_TIME_RATIO,
    E,
    Float,
    Int,
)

FIRST_ORDER = 2
"""Column of a planner's `keys` that holds its first order; those before are as in the job table."""


@kernel
def copy_job(jobs: Jobs, job: int, planned: Jobs, to: int, submit_time: int) -> None:
    """Copy what a scheduler knows of a job into another table.

    Args:
        jobs: The job table.
        job: Index of a submitted job.
        planned: The other table.
        to: Its row there.
        submit_time: When it comes there, s.

    Writes:
        The row of `planned`, but for run time, rate and keys of orders.

    Source:
        House rule: what the scheduler must not know is not copied.
    """
    planned.submit_time[to] = submit_time
    planned.estimate[to] = jobs.estimate[job]
    planned.requested_time[to] = jobs.requested_time[job]
    planned.processors[to] = jobs.processors[job]
    planned.size_class[to] = jobs.size_class[job]
    planned.user[to] = jobs.user[job]
    for column in range(N_FEATURES):
        planned.feature[to, column] = jobs.feature[job, column]
    for column in range(FIRST_ORDER):
        planned.keys[to, column] = jobs.keys[job, column]


@kernel
def foreseen_run_time(jobs: Jobs, job: int, term: Float) -> int:
    """Return how long a job is foreseen to run.

    Args:
        jobs: The job table.
        job: Index of a submitted job.
        term: What is expected of it, shape (N_TERMS,).

    Returns:
        The expected bounded run time, rounded, s; at least 1 and at most its estimate, as made at
        its submission.

    Source:
        Specification, section 10, "Information".
    """
    run_time = int(bounded_estimate(jobs, job) * math.exp(term[RUN_TIME_RATIO]) + 0.5)
    return max(min(run_time, int(jobs.feature[job, E])), 1)


@kernel
def drawn_run_time(jobs: Jobs, sim: Sim, job: int, elapsed: int, chance: float) -> int:
    """Draw how long a job runs from its user's records.

    Their weights are those of `expect_by_records`, so that the drawn share is the expected one on
    average: records of the same request and processors first, then of the same request, then all,
    at last the estimate.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a submitted job.
        elapsed: How long it has run, s, -1 = not started; records not above that do not count.
        chance: A number in [0, 1).

    Returns:
        s; at least 1 and at most the estimate, of a job that has not started that of its
        submission.

    Source:
        Efron and Morris 1975; specification, section 10, "Information".
    """
    user = jobs.user[job]
    completed = sim.history_completed[user]
    most = jobs.estimate[job] if elapsed >= 0 else int(jobs.feature[job, E])
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
def foresee_waiting(
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
    """Write down what is foreseen of a job that waits or will.

    Args:
        jobs: The job table.
        job: Index of a submitted job.
        planned: The planner's table.
        to: Its row there.
        submit_time: When it comes there, s.
        run_time: How long it runs there, s.
        term: What is expected of it, shape (N_TERMS,).
        rule: Rules of the orders, shape (n_orders,): weights that leave out the wait, the submit
            time, or an index.
        weight: Their parameters, shape (n_orders, N_WEIGHTS).

    Writes:
        The row of `planned`, its estimate that of the job's submission; a second of waiting costs
        1/D, D the foreseen run time, at least tau.

    Source:
        Specification, section 10, "Reward": the bounded slowdown grows by 1/D a second.
    """
    copy_job(jobs, job, planned, to, submit_time)
    planned.estimate[to] = int(jobs.feature[job, E])
    planned.run_time[to] = run_time
    foreseen = float(foreseen_run_time(jobs, job, term))
    planned.reward_rate[to] = 1.0 / max(foreseen, BSLD_BOUND_S)
    for which in range(len(rule)):
        if rule[which] == RULE_SUBMIT:
            key = weight[which, 0] * submit_time
        else:
            own = weight[which]
            features = (own[0], own[1], own[2], own[3], own[4], own[5])
            if rule[which] == RULE_INDEX:
                key = weigh_terms((*features, own[6], own[7], own[8]), term)
            else:
                key = mixed_score(jobs, features, job, 0.0)
        planned.keys[to, FIRST_ORDER + which] = key


@kernel
def foresee_running(jobs: Jobs, sim: Sim, planned: Jobs, chance: Float) -> None:
    """Write down what is foreseen of the running jobs.

    Args:
        jobs: The job table.
        row: The simulation.
        planned: The planner's table.
        chance: As `foresee` takes it.

    Writes:
        Their rows of `planned`. Without chance a job that has outlived what was foreseen of it is
        foreseen to run twice as long as it has, at most to its estimate; `thought`.

    Source:
        House rule, after the heavy tails of run times: what has lasted goes on to last.
    """
    term = sim.activations
    for place in range(sim.counter[N_RELEASES]):
        job = sim.release_job[place]
        copy_job(jobs, job, planned, job, jobs.submit_time[job])
        elapsed = sim.counter[NOW] - sim.start_time[job]
        if len(chance) > 0:
            run_time = drawn_run_time(jobs, sim, job, elapsed, chance[place])
        else:
            expect_by_records(jobs, sim, job, term)
            run_time = foreseen_run_time(jobs, job, term)
            if run_time <= elapsed:
                run_time = min(2 * elapsed, jobs.estimate[job])
        planned.run_time[job] = run_time


@kernel
def foresee_arrivals(
    jobs: Jobs, sim: Sim, planned: Jobs, rule: Int, weight: Float, drawn: Int, chance: Float
) -> int:
    """Write down jobs that may come: those of the last while, turned on a circle.

    Args:
        jobs: The job table.
        row: The simulation.
        planned: The planner's table, with room behind the jobs submitted so far.
        rule: Rules of the orders, shape (n_orders,).
        weight: Their parameters, shape (n_orders, N_WEIGHTS).
        drawn: How long the while is, s; by how much it is turned, s, below that; for how long jobs
            come, s.
        chance: Numbers in [0, 1), one for each job that may come; empty = none does.

    Returns:
        How many come.

    Writes:
        Their rows of `planned`, by submit time; `thought`.

    Source:
        Circular block bootstrap: Politis and Romano 1992.
    """
    if len(chance) == 0:
        return 0
    length, shift, horizon = drawn[0], drawn[1], drawn[2]
    now, end = sim.counter[NOW], sim.counter[NEXT_JOB]
    first = end
    while first > 0 and jobs.submit_time[first - 1] > now - length:
        first -= 1
    turn = first  # the first job that the turn brings round to now
    while turn < end and jobs.submit_time[turn] - (now - length) + shift <= length:
        turn += 1
    term = sim.activations
    n = 0
    for place in range(end - first):
        job = turn + place
        delay = shift - length
        if job >= end:
            job += first - end
            delay = shift
        delay += jobs.submit_time[job] - (now - length)
        if delay > horizon or n == len(chance):
            break
        for column in range(N_TERMS):
            term[column] = 0.0
        write_known(jobs, job, term)
        expect_by_records(jobs, sim, job, term)
        run_time = drawn_run_time(jobs, sim, job, -1, chance[n])
        foresee_waiting(jobs, job, planned, end + n, now + delay, run_time, term, rule, weight)
        n += 1
    return n


@kernel
def foresee(
    jobs: Jobs, sim: Sim, planned: Jobs, rule: Int, weight: Float, drawn: Int, chance: Float
) -> int:
    """Write down what is foreseen of the jobs at hand and to come.

    Args:
        jobs: The job table.
        row: The simulation, at a decision.
        planned: The planner's table.
        rule: Rules of the orders, shape (n_orders,).
        weight: Their parameters, shape (n_orders, N_WEIGHTS).
        drawn: As `foresee_arrivals` takes it.
        chance: Numbers in [0, 1), one for each running job, by estimated end, the latest first, for
            each waiting one in base order, and for each that may come; empty = run times as
            expected, and no job comes.

    Returns:
        How many jobs are to come.

    Writes:
        `planned`, what `expect` writes, `scratch`, `thought`.

    Source:
        Specification, section 10, "Information".
    """
    for job in range(sim.counter[NEXT_OVERDUE], sim.counter[NEXT_JOB]):
        planned.submit_time[job] = jobs.submit_time[job]
    n_running = sim.counter[N_RELEASES]
    foresee_running(jobs, sim, planned, chance[:n_running])
    for place in range(list_jobs(sim, BASE, sim.scratch)):
        job = sim.scratch[place]
        expect(jobs, sim, job)
        term = sim.expected[entry_of(sim, job)]
        if len(chance) > 0:
            run_time = drawn_run_time(jobs, sim, job, -1, chance[n_running + place])
        else:
            run_time = foreseen_run_time(jobs, job, term)
        submit_time = jobs.submit_time[job]
        foresee_waiting(jobs, job, planned, job, submit_time, run_time, term, rule, weight)
    left = chance[n_running + sim.counter[N_WAITING] :]
    return foresee_arrivals(jobs, sim, planned, rule, weight, drawn, left)


@kernel
def cost_of_plan(planned: Jobs, sim: Sim, plan: Sim, weight: Float, n_coming: int) -> float:
    """Predict what waiting costs in all under an order.

    Args:
        planned: The planner's table.
        row: The simulation, at a decision.
        plan: Another row with room for the jobs to come; what it held is lost.
        weight: Parameters of `RULE_KEYS`, shape (N_WEIGHTS,): the column of the order's keys.
        n_coming: How many jobs are to come.

    Returns:
        The wait of each job that waits or comes, from its submission on, times what a second of it
        costs, summed.

    Writes:
        `plan`; the simulation's `scratch`.

    Source:
        Specification, section 8, "dynP"; Smith 1956.
    """
    n = roll_out(planned, sim, plan, RULE_KEYS, weight, n_coming)
    total = 0.0
    for place in range(n):
        job = sim.scratch[place]
        total += (plan.start_time[job] - planned.submit_time[job]) * planned.reward_rate[job]
    first = sim.counter[NEXT_JOB]
    for job in range(first, first + n_coming):
        total += (plan.start_time[job] - planned.submit_time[job]) * planned.reward_rate[job]
    return total
