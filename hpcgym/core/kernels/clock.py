"""The clock: go from event to event, and make one scheduling pass at each instant.

An instant is handled in this order: completions, submissions, ends of delays, one pass. With `pyss`
semantics each event has a pass of its own. `run` stops for a decision of an agent and for
predictions made in Python; the next call goes on from there.

Three shortcuts save work. A full pass would start the same jobs:

- A pass that cannot start a job is not made (`hpcgym.core.kernels.schedule_pass`).
- While `settled_head` is set, every waiting job has been refused under that head and reservation.
  Since then `free`, `extra` and the time left until the shadow time have only fallen, so each would
  be refused again. Only a newcomer needs a test.
- A newcomer that starts at once enters no queue.

Cost of an event, with n waiting and k running jobs: O(log n + NODE_CHILDREN) to put a job into a
kept order or remove it. The lists of running jobs shift by at most k entries. A pass visits each
group of some 700 waiting jobs, and the blocks that may hold a job to start. Where an order that
changes with time matters, a pass scores all n jobs, and each job it tries costs O(log n). Modes
with more reservations state their own costs. A prediction costs O(1) at the submission, a
correction a shift of at most k entries.

Source: Specification, section 1, "One instant"; section 10, "Decision epochs".
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.env.reward import accrue, begin_cost
from hpcgym.core.kernels.invariants import find_violation
from hpcgym.core.kernels.passes.easy import backfills, charge_extra, reserve
from hpcgym.core.kernels.passes.multi_queue_delay import admit_job, hold_job, is_held, next_eligible
from hpcgym.core.kernels.queue.entries import entry_of, take_entry
from hpcgym.core.kernels.queue.ordered_queue import precedes, put_in, take_out
from hpcgym.core.kernels.running_jobs import (
    complete_job,
    next_completion,
    next_release,
    release_estimated,
    start_job,
)
from hpcgym.core.kernels.schedule_pass import count_pass, is_contested, make_pass
from hpcgym.core.kernels.scoring.estimates import (
    asks_python,
    correct_releases,
    predict_recent,
    write_prediction,
)
from hpcgym.core.kernels.scoring.score import first_key
from hpcgym.core.kernels.scoring.user_history import meet_user
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    AT_PASS,
    AT_SUBMISSIONS,
    BACKFILL,
    BACKFILL_EASY,
    BACKFILL_MULTI_QUEUE,
    BASE,
    BATCH,
    BETWEEN,
    CHECK,
    CHECKED_HEAD,
    CORRECT,
    DECIDE,
    DECIDE_CONTESTED,
    DECIDE_EVENT,
    DECIDE_INTERVAL,
    DECIDE_SECONDS,
    DECISION,
    DONE,
    FILL,
    FILL_KEEPS,
    FIRST_UNPLANNED,
    FREE,
    FULL_PASSES,
    HISTORY_FOR_KEYS,
    HISTORY_FOR_VIEWS,
    KEEP_HISTORY,
    KEEP_REWARD,
    N_EVENTS,
    N_JOBS,
    N_OVERDUE,
    N_STARTED,
    N_WAITING,
    NEVER,
    NEXT_DECISION,
    NEXT_JOB,
    NEXT_OVERDUE,
    NOW,
    ORDERED,
    PASS_DUE,
    PHASE,
    PICK,
    PREDICT,
    PREDICT_RECENT,
    PREDICTION,
    SEMANTICS,
    SETTLED_HEAD,
    SHADOW,
    THRESHOLD,
    WAITING_AREA,
    WAITING_PROCESSORS,
)


@kernel(inlined=True)
def submit_job(jobs: Jobs, sim: Sim) -> None:
    """Submit the next job, without putting it into the queues yet.

    Writes its entry and keys, counts and reward rate, and where they are used its prediction, its
    user's history and its delay.
    """
    job = sim.counter[NEXT_JOB]
    entry = take_entry(sim, job)
    sim.counter[NEXT_JOB] = job + 1
    sim.counter[N_EVENTS] += 1
    # The prediction comes first: keys, areas and delays depend on it.
    if sim.setting[PREDICT] == PREDICT_RECENT:
        write_prediction(jobs, job, predict_recent(jobs, sim, job))
    if sim.setting[KEEP_HISTORY] == HISTORY_FOR_KEYS:
        meet_user(jobs, sim, job)
    sim.key[BASE, entry] = first_key(jobs, sim, BASE, job)
    if sim.setting[FILL_KEEPS] == 1:
        sim.key[FILL, entry] = first_key(jobs, sim, FILL, job)
    sim.counter[WAITING_PROCESSORS] += jobs.processors[job]
    sim.counter[WAITING_AREA] += jobs.processors[job] * jobs.estimate[job]
    if sim.setting[KEEP_REWARD] == 1:
        begin_cost(jobs, sim, job)
    if sim.setting[BACKFILL] == BACKFILL_MULTI_QUEUE:
        hold_job(jobs, sim, job)


@kernel(inlined=True)
def next_submission(jobs: Jobs, sim: Sim) -> int:
    """Return the instant of the next submission, s; `NEVER` if all jobs have been submitted."""
    if sim.counter[NEXT_JOB] == sim.setting[N_JOBS]:
        return NEVER
    return jobs.submit_time[sim.counter[NEXT_JOB]]


@kernel
def cross_threshold(jobs: Jobs, sim: Sim, first: int) -> bool:
    """Move waiting jobs beyond the starvation threshold to the front of every order.

    `first` is the first job that is in no queue yet. Return whether a job moved. Writes keys,
    queues, `n_overdue` and `next_overdue`.
    """
    threshold = sim.setting[THRESHOLD]
    if threshold < 0:
        return False
    moved = False
    # Jobs are numbered by submission, so those beyond the threshold are the first ones of all. Each
    # job is looked at once.
    job = sim.counter[NEXT_OVERDUE]
    while job < first and sim.counter[NOW] - jobs.submit_time[job] > threshold:
        if sim.start_time[job] < 0:
            # The queue finds the job by its old key. Equal keys order by index: overdue jobs go
            # FCFS.
            take_out(jobs, sim, BASE, job)
            sim.key[BASE, entry_of(sim, job)] = -float("inf")
            put_in(jobs, sim, BASE, job)
            if sim.setting[FILL_KEEPS] == 1:
                take_out(jobs, sim, FILL, job)
                sim.key[FILL, entry_of(sim, job)] = -float("inf")
                put_in(jobs, sim, FILL, job)
            sim.counter[N_OVERDUE] += 1
            moved = True
        job += 1
    sim.counter[NEXT_OVERDUE] = job
    return moved


@kernel(inlined=True)
def queue_jobs(jobs: Jobs, sim: Sim, first: int) -> None:
    """Put the jobs submitted now, from `first` on, into the queues.

    Writes what is known of their users, where only observations read it.
    """
    for job in range(first, sim.counter[NEXT_JOB]):
        if sim.setting[KEEP_HISTORY] == HISTORY_FOR_VIEWS:
            meet_user(jobs, sim, job)
        put_in(jobs, sim, BASE, job)
        if sim.setting[FILL_KEEPS] == 1:
            put_in(jobs, sim, FILL, job)


@kernel(inlined=True)
def is_settled(sim: Sim, newcomer: int) -> bool:
    """Tell whether the newcomer is the only job that may start now."""
    head = sim.counter[SETTLED_HEAD]
    # A newcomer before the head would be the head. A running job past its estimate moves the shadow
    # time along with the clock, which may let a refused job in.
    return (
        head >= 0
        and not precedes(sim, BASE, newcomer, head)
        and next_release(sim) > sim.counter[NOW]
    )


@kernel(inlined=True)
def pass_newcomer(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Make the pass for the only newcomer, in no queue yet, if it is the only job concerned.

    Return False, with nothing done, if a full pass or a decision is due. Writes what a pass writes.
    """
    if sim.setting[FULL_PASSES] == 1 or sim.setting[DECIDE] > DECIDE_CONTESTED:
        return False
    fits = jobs.processors[job] <= sim.counter[FREE] and not is_held(sim, job)
    # Alone, a job that fits and is not held starts in every mode. `n_waiting` counts it already.
    if sim.counter[N_WAITING] == 1:
        if not fits:
            return False
        count_pass(sim)
        sim.counter[CHECKED_HEAD] = -1
        # It starts at once and needs no reservation.
        sim.counter[FIRST_UNPLANNED] = sim.counter[NEXT_JOB]
        start_job(jobs, sim, job, False)
        return True
    if not is_settled(sim, job):
        return False
    count_pass(sim)
    if fits and sim.setting[BACKFILL] == BACKFILL_EASY:
        # An earlier pass needed no reservation if no job could have used it.
        if sim.counter[SHADOW] < 0:
            reserve(jobs, sim, sim.counter[SETTLED_HEAD])
        if backfills(jobs, sim, job):
            charge_extra(jobs, sim, job)
            start_job(jobs, sim, job, True)
            return True
    queue_jobs(jobs, sim, job)
    return True


@kernel(inlined=True)
def advance_clock(jobs: Jobs, sim: Sim) -> None:
    """Go to the next instant, and handle its completions unless `pyss` semantics apply.

    Writes `now`, what completions change, `pass_due`, and `settled_head` = -1 if a job ended.
    """
    now = min(next_submission(jobs, sim), next_completion(sim), next_eligible(sim))
    if sim.setting[DECIDE] == DECIDE_INTERVAL:
        now = min(now, sim.counter[NEXT_DECISION])
    # Costs accrue at the rate up to now, before any event changes that rate.
    if sim.setting[KEEP_REWARD] == 1:
        accrue(jobs, sim, now)
    sim.counter[NOW] = now
    sim.counter[PASS_DUE] = 0
    if sim.setting[SEMANTICS] == BATCH:
        while next_completion(sim) == now:
            complete_job(jobs, sim)
            sim.counter[SETTLED_HEAD] = -1
            sim.counter[PASS_DUE] = 1


@kernel(inlined=True)
def take_submissions(jobs: Jobs, sim: Sim) -> None:
    """Handle submissions and ends of delays, then correct estimates that have run out.

    With `pyss` semantics, handle one event: a submission, else the end of a delay, else a
    completion. Writes what events change, `pass_due`, and `settled_head` = -1 where a refused job
    may start now.
    """
    now = sim.counter[NOW]
    events = sim.counter[N_EVENTS]
    first = sim.counter[NEXT_JOB]
    if sim.setting[SEMANTICS] == BATCH:
        while next_submission(jobs, sim) == now:
            submit_job(jobs, sim)
        while next_eligible(sim) == now:
            admit_job(sim)
    # One event, then a pass. The clock finds the other events of this instant in the next rounds.
    elif next_submission(jobs, sim) == now:
        submit_job(jobs, sim)
    elif next_eligible(sim) == now:
        admit_job(sim)
    elif next_completion(sim) == now:
        complete_job(jobs, sim)
    if sim.counter[N_EVENTS] > events:
        sim.counter[PASS_DUE] = 1
    # Corrections come before releases: a corrected job keeps its processors.
    if sim.setting[CORRECT] != 0 and next_release(sim) <= now:
        correct_releases(jobs, sim)
    if sim.counter[PASS_DUE] == 1:
        release_estimated(jobs, sim)
    if cross_threshold(jobs, sim, first):
        sim.counter[SETTLED_HEAD] = -1
    if sim.counter[NEXT_JOB] == first + 1 and pass_newcomer(jobs, sim, first):
        sim.counter[PASS_DUE] = 0
    else:
        queue_jobs(jobs, sim, first)


@kernel(inlined=True)
def decision_due(sim: Sim) -> bool:
    """Tell whether the agent decides before this pass.

    Writes `next_decision` where decisions are due at fixed intervals.
    """
    decide = sim.setting[DECIDE]
    if decide == DECIDE_CONTESTED:
        # Where the order cannot matter, the agent is not asked.
        return sim.counter[PASS_DUE] == 1 and is_contested(sim)
    if decide == DECIDE_EVENT:
        return sim.counter[PASS_DUE] == 1 and sim.counter[N_WAITING] > 0
    if decide == DECIDE_INTERVAL and sim.counter[NOW] == sim.counter[NEXT_DECISION]:
        sim.counter[NEXT_DECISION] += sim.setting[DECIDE_SECONDS]
        return True
    return False


@kernel
def run(jobs: Jobs, sim: Sim) -> int:
    """Run to the next decision, or until every job has started.

    Return `DECISION`, `DONE`, `PREDICTION` if Python must predict the jobs submitted now, or a
    negative number that names a broken invariant. After a decision, the caller sets the order of
    this pass before it calls again.
    """
    while sim.counter[N_STARTED] < sim.setting[N_JOBS]:
        if sim.counter[PHASE] == BETWEEN:
            advance_clock(jobs, sim)
            sim.counter[PHASE] = AT_SUBMISSIONS
        if sim.counter[PHASE] == AT_SUBMISSIONS:
            # The phase is stored, so the next call resumes here, with the predictions given.
            if asks_python(jobs, sim):
                return PREDICTION
            take_submissions(jobs, sim)
            sim.counter[PHASE] = AT_PASS
            if decision_due(sim):
                return DECISION
        finished = sim.counter[PASS_DUE] == 0 or make_pass(jobs, sim)
        sim.counter[ORDERED] = 0
        sim.counter[PICK] = -1
        if finished:
            sim.counter[PHASE] = BETWEEN
        if sim.setting[CHECK] == 1:
            violation = find_violation(jobs, sim, finished)
            if violation < 0:
                return violation
        # The picked job started and the pass stopped: the agent may pick again at the same instant.
        if not finished and decision_due(sim):
            return DECISION
    return DONE
