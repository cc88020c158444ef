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
from hpcgym.core.kernels.queue.ordered_queue import precedes, put_in, take_out
from hpcgym.core.kernels.queue.waiting_rows import seat_of, take_seat
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
from hpcgym.core.kernels.types import Jobs, Row
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
def submit_job(jobs: Jobs, row: Row) -> None:
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
    job = row.counter[NEXT_JOB]
    seat = take_seat(row, job)
    row.counter[NEXT_JOB] = job + 1
    row.counter[N_EVENTS] += 1
    if row.setting[PREDICT] == PREDICT_RECENT:
        write_prediction(jobs, job, predict_recent(jobs, row, job))
    if row.setting[KEEP_HISTORY] == HISTORY_FOR_KEYS:
        meet_user(jobs, row, job)
    row.key[BASE, seat] = first_key(jobs, row, BASE, job)
    if row.setting[FILL_KEEPS] == 1:
        row.key[FILL, seat] = first_key(jobs, row, FILL, job)
    row.counter[WAITING_PROCESSORS] += jobs.processors[job]
    row.counter[WAITING_AREA] += jobs.processors[job] * jobs.estimate[job]
    if row.setting[KEEP_REWARD] == 1:
        begin_cost(jobs, row, job)
    if row.setting[BACKFILL] == BACKFILL_MULTI_QUEUE:
        hold_job(jobs, row, job)


@kernel(inlined=True)
def next_submission(jobs: Jobs, row: Row) -> int:
    """Return the instant of the next submission.

    Args:
        jobs: The job table.
        row: The simulation.

    Returns:
        s, `NEVER` if all jobs have been submitted.

    Source:
        House rule: one word per thing.
    """
    if row.counter[NEXT_JOB] == row.setting[N_JOBS]:
        return NEVER
    return jobs.submit_time[row.counter[NEXT_JOB]]


@kernel
def cross_threshold(jobs: Jobs, row: Row, first: int) -> bool:
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
    threshold = row.setting[THRESHOLD]
    if threshold < 0:
        return False
    moved = False
    job = row.counter[NEXT_OVERDUE]
    while job < first and row.counter[NOW] - jobs.submit_time[job] > threshold:
        if row.start_time[job] < 0:
            take_out(jobs, row, BASE, job)
            row.key[BASE, seat_of(row, job)] = -float("inf")
            put_in(jobs, row, BASE, job)
            if row.setting[FILL_KEEPS] == 1:
                take_out(jobs, row, FILL, job)
                row.key[FILL, seat_of(row, job)] = -float("inf")
                put_in(jobs, row, FILL, job)
            row.counter[N_OVERDUE] += 1
            moved = True
        job += 1
    row.counter[NEXT_OVERDUE] = job
    return moved


@kernel(inlined=True)
def queue_jobs(jobs: Jobs, row: Row, first: int) -> None:
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
    for job in range(first, row.counter[NEXT_JOB]):
        if row.setting[KEEP_HISTORY] == HISTORY_FOR_VIEWS:
            meet_user(jobs, row, job)
        put_in(jobs, row, BASE, job)
        if row.setting[FILL_KEEPS] == 1:
            put_in(jobs, row, FILL, job)


@kernel(inlined=True)
def is_settled(row: Row, newcomer: int) -> bool:
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
    head = row.counter[SETTLED_HEAD]
    return (
        head >= 0
        and not precedes(row, BASE, newcomer, head)
        and next_release(row) > row.counter[NOW]
    )


@kernel(inlined=True)
def pass_newcomer(jobs: Jobs, row: Row, job: int) -> bool:
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
    if row.setting[FULL_PASSES] == 1 or row.setting[DECIDE] > DECIDE_CONTESTED:
        return False
    fits = jobs.processors[job] <= row.counter[FREE] and not is_held(row, job)
    if row.counter[N_WAITING] == 1:
        if not fits:
            return False
        count_pass(row)
        row.counter[CHECKED_HEAD] = -1
        row.counter[FIRST_UNPLANNED] = row.counter[NEXT_JOB]
        start_job(jobs, row, job, False)
        return True
    if not is_settled(row, job):
        return False
    count_pass(row)
    if fits and row.setting[BACKFILL] == BACKFILL_EASY:
        if row.counter[SHADOW] < 0:
            reserve(jobs, row, row.counter[SETTLED_HEAD])
        if backfills(jobs, row, job):
            charge_extra(jobs, row, job)
            start_job(jobs, row, job, True)
            return True
    queue_jobs(jobs, row, job)
    return True


@kernel(inlined=True)
def advance_clock(jobs: Jobs, row: Row) -> None:
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
    now = min(next_submission(jobs, row), next_completion(row), next_eligible(row))
    if row.setting[DECIDE] == DECIDE_INTERVAL:
        now = min(now, row.counter[NEXT_DECISION])
    if row.setting[KEEP_REWARD] == 1:
        accrue(jobs, row, now)
    row.counter[NOW] = now
    row.counter[PASS_DUE] = 0
    if row.setting[SEMANTICS] == BATCH:
        while next_completion(row) == now:
            complete_job(jobs, row)
            row.counter[SETTLED_HEAD] = -1
            row.counter[PASS_DUE] = 1


@kernel(inlined=True)
def take_submissions(jobs: Jobs, row: Row) -> None:
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
    now = row.counter[NOW]
    events = row.counter[N_EVENTS]
    first = row.counter[NEXT_JOB]
    if row.setting[SEMANTICS] == BATCH:
        while next_submission(jobs, row) == now:
            submit_job(jobs, row)
        while next_eligible(row) == now:
            admit_job(row)
    elif next_submission(jobs, row) == now:
        submit_job(jobs, row)
    elif next_eligible(row) == now:
        admit_job(row)
    elif next_completion(row) == now:
        complete_job(jobs, row)
    if row.counter[N_EVENTS] > events:
        row.counter[PASS_DUE] = 1
    if row.setting[CORRECT] != 0 and next_release(row) <= now:
        correct_releases(jobs, row)
    if row.counter[PASS_DUE] == 1:
        release_estimated(jobs, row)
    if cross_threshold(jobs, row, first):
        row.counter[SETTLED_HEAD] = -1
    if row.counter[NEXT_JOB] == first + 1 and pass_newcomer(jobs, row, first):
        row.counter[PASS_DUE] = 0
    else:
        queue_jobs(jobs, row, first)


@kernel(inlined=True)
def decision_due(row: Row) -> bool:
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
    decide = row.setting[DECIDE]
    if decide == DECIDE_CONTESTED:
        return row.counter[PASS_DUE] == 1 and is_contested(row)
    if decide == DECIDE_EVENT:
        return row.counter[PASS_DUE] == 1 and row.counter[N_WAITING] > 0
    if decide == DECIDE_INTERVAL and row.counter[NOW] == row.counter[NEXT_DECISION]:
        row.counter[NEXT_DECISION] += row.setting[DECIDE_SECONDS]
        return True
    return False


@kernel
def run(jobs: Jobs, row: Row) -> int:
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
    while row.counter[N_STARTED] < row.setting[N_JOBS]:
        if row.counter[PHASE] == BETWEEN:
            advance_clock(jobs, row)
            row.counter[PHASE] = AT_SUBMISSIONS
        if row.counter[PHASE] == AT_SUBMISSIONS:
            if asks_python(jobs, row):
                return PREDICTION
            take_submissions(jobs, row)
            row.counter[PHASE] = AT_PASS
            if decision_due(row):
                return DECISION
        finished = row.counter[PASS_DUE] == 0 or make_pass(jobs, row)
        row.counter[ORDERED] = 0
        row.counter[PICK] = -1
        if finished:
            row.counter[PHASE] = BETWEEN
        if row.setting[CHECK] == 1:
            violation = find_violation(jobs, row, finished)
            if violation < 0:
                return violation
        if not finished and decision_due(row):
            return DECISION
    return DONE
