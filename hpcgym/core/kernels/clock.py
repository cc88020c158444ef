"""The clock: completions, submissions, ends of delays, one pass; on to the next decision.

Cost of an event, with n waiting and k running jobs: an order that keeps in O(log n +
NODE_CHILDREN), the running lists in a shift of at most k entries, a pass in a step per group of
some 700 waiting jobs plus the blocks that may hold a job to start. A pass that cannot start
anything is not made, and after an arrival that leaves head, free processors and reservation as they
were only the newcomer is looked at; one that starts at once stands in no queue. Where an order that
changes with time matters, a pass scores all n jobs and costs O(log n) for each that it then tries.
Passes of modes with more reservations than the head's state their own cost.
A prediction costs O(1) at the submission, a correction a shift of at most k entries.
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
    """Let the next job come in; the queues take it in later.

    Args:
        jobs: The job table.
        row: The simulation, its clock at the submission.

    Writes:
        The job's seat and keys, counts and reward rate; its prediction, and what is known of its
        user, if a key needs that; its delay, in modes that have one.

    Source:
        Specification, section 1, "One instant".
    """
    job = sim.counter[NEXT_JOB]
    entry = take_entry(sim, job)
    sim.counter[NEXT_JOB] = job + 1
    sim.counter[N_EVENTS] += 1
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
    """Return the instant of the next submission.

    Args:
        jobs: The job table.
        row: The simulation.

    Returns:
        s, `NEVER` if all jobs have been submitted.

    Source:
        House rule: one word per thing.
    """
    if sim.counter[NEXT_JOB] == sim.setting[N_JOBS]:
        return NEVER
    return jobs.submit_time[sim.counter[NEXT_JOB]]


@kernel
def cross_threshold(jobs: Jobs, sim: Sim, first: int) -> bool:
    """Move waiting jobs that have passed the threshold to the front of every order.

    Args:
        jobs: The job table.
        row: The simulation.
        first: First job that is not queued yet, submitted now or later.

    Returns:
        True if some job was moved.

    Writes:
        Keys and places in the queues, N_OVERDUE, NEXT_OVERDUE; each job is looked at once.

    Source:
        Specification, section 1, "Queue order" and "Threshold scope".
    """
    threshold = sim.setting[THRESHOLD]
    if threshold < 0:
        return False
    moved = False
    job = sim.counter[NEXT_OVERDUE]
    while job < first and sim.counter[NOW] - jobs.submit_time[job] > threshold:
        if sim.start_time[job] < 0:
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
    """Put the jobs submitted now into the queues.

    Args:
        jobs: The job table.
        row: The simulation.
        first: First of them.

    Writes:
        The queues; what is known of the jobs' users, unless a key has asked for it.

    Source:
        Specification, section 1, "One instant".
    """
    for job in range(first, sim.counter[NEXT_JOB]):
        if sim.setting[KEEP_HISTORY] == HISTORY_FOR_VIEWS:
            meet_user(jobs, sim, job)
        put_in(jobs, sim, BASE, job)
        if sim.setting[FILL_KEEPS] == 1:
            put_in(jobs, sim, FILL, job)


@kernel(inlined=True)
def is_settled(sim: Sim, newcomer: int) -> bool:
    """Tell whether a newcomer is the only job that can start now.

    Every other waiting job was refused under the same head and reservation with as many processors
    free, and time has only passed since.

    Args:
        row: The simulation.
        newcomer: Index of the only job submitted now.

    Returns:
        False if a full pass is due.

    Source:
        House rule: no work per event that grows with the queue where it need not.
    """
    head = sim.counter[SETTLED_HEAD]
    return (
        head >= 0
        and not precedes(sim, BASE, newcomer, head)
        and next_release(sim) > sim.counter[NOW]
    )


@kernel(inlined=True)
def pass_newcomer(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Make the pass over the only newcomer, which need not be queued if it starts.

    Args:
        jobs: The job table.
        row: The simulation; the newcomer stands in no queue yet.
        job: Index of the newcomer.

    Returns:
        False, with nothing done, if other jobs or a decision may matter, or the newcomer must wait
        alone. Alone it starts in every mode unless it is held; only EASY and no backfilling settle
        the others.

    Writes:
        What a pass writes.

    Source:
        House rule: equal to a full pass; a test compares them.
    """
    if sim.setting[FULL_PASSES] == 1 or sim.setting[DECIDE] > DECIDE_CONTESTED:
        return False
    fits = jobs.processors[job] <= sim.counter[FREE] and not is_held(sim, job)
    if sim.counter[N_WAITING] == 1:
        if not fits:
            return False
        count_pass(sim)
        sim.counter[CHECKED_HEAD] = -1
        sim.counter[FIRST_UNPLANNED] = sim.counter[NEXT_JOB]
        start_job(jobs, sim, job, False)
        return True
    if not is_settled(sim, job):
        return False
    count_pass(sim)
    if fits and sim.setting[BACKFILL] == BACKFILL_EASY:
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
    """Move to the next instant and handle its completions, but for `pyss` semantics.

    Args:
        jobs: The job table.
        row: The simulation, jobs still to start.

    Writes:
        The clock and everything that completions move; SETTLED_HEAD = -1 and PASS_DUE = 1 if there
        were any, else PASS_DUE = 0.

    Source:
        Specification, section 1, "One instant".
    """
    now = min(next_submission(jobs, sim), next_completion(sim), next_eligible(sim))
    if sim.setting[DECIDE] == DECIDE_INTERVAL:
        now = min(now, sim.counter[NEXT_DECISION])
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
    """Handle submissions and ends of delays, and correct estimates that have run out.

    In `pyss` semantics one event is handled, submissions and ends of delays before completions.

    Args:
        jobs: The job table.
        row: The simulation, its clock at the instant.

    Writes:
        Everything that events move; SETTLED_HEAD = -1 unless nothing but submissions happened;
        PASS_DUE = 0 at an instant without events, or whose pass has been made.

    Source:
        Specification, section 1, "One instant".
    """
    now = sim.counter[NOW]
    events = sim.counter[N_EVENTS]
    first = sim.counter[NEXT_JOB]
    if sim.setting[SEMANTICS] == BATCH:
        while next_submission(jobs, sim) == now:
            submit_job(jobs, sim)
        while next_eligible(sim) == now:
            admit_job(sim)
    elif next_submission(jobs, sim) == now:
        submit_job(jobs, sim)
    elif next_eligible(sim) == now:
        admit_job(sim)
    elif next_completion(sim) == now:
        complete_job(jobs, sim)
    if sim.counter[N_EVENTS] > events:
        sim.counter[PASS_DUE] = 1
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
    """Tell whether the agent is to decide before this pass.

    Args:
        row: The simulation.

    Returns:
        True at a decision epoch.

    Writes:
        NEXT_DECISION, where decisions come at fixed intervals.

    Source:
        Specification, section 10, "Decision epochs".
    """
    decide = sim.setting[DECIDE]
    if decide == DECIDE_CONTESTED:
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

    Args:
        jobs: The job table.
        row: The simulation; at a decision, the order of this pass made.

    Returns:
        `DECISION`, `DONE`, `PREDICTION` where Python is to predict the jobs submitted now, or a
        negative number that names the invariant found broken.

    Writes:
        The simulation.

    Source:
        Specification, section 1.
    """
    while sim.counter[N_STARTED] < sim.setting[N_JOBS]:
        if sim.counter[PHASE] == BETWEEN:
            advance_clock(jobs, sim)
            sim.counter[PHASE] = AT_SUBMISSIONS
        if sim.counter[PHASE] == AT_SUBMISSIONS:
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
        if not finished and decision_due(sim):
            return DECISION
    return DONE
