"""The clock: go from event to event, and make one scheduling pass at each instant.

An instant is handled in this order: completions, submissions, ends of delays, one pass. With `pyss`
semantics each event has its own pass. `run` stops for a decision of an agent, and for
predictions and passes made in Python; the next call goes on from there. Events come between
completions and submissions.

Three shortcuts save work. A full pass would start the same jobs:

- A pass that cannot start a job is not made (`hpcgym.core.engine.schedule_pass`).
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

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import ask_mode
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.calendar import (
    next_completion,
    next_eligible,
    next_instant,
    next_release,
    next_submission,
)
from hpcgym.core.engine.invariants import find_violation
from hpcgym.core.engine.life import admit, end, enter, release_estimated, start, submit
from hpcgym.core.engine.moments import next_event, tell_events
from hpcgym.core.engine.schedule_pass import (
    all_fit,
    count_pass,
    is_contested,
    make_pass,
    some_job_waits,
)
from hpcgym.core.kernels.passes.easy import backfills, charge_extra, reserve
from hpcgym.core.kernels.queue.entries import entry_of, is_held
from hpcgym.core.kernels.queue.ordered_queue import precedes, put_in, take_out
from hpcgym.core.kernels.scoring.estimates import asks_python, correct_releases
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.parts import waiting_cost


@kernel
def cross_threshold(jobs: Jobs, sim: Sim, first: int) -> bool:
    """Move waiting jobs beyond the threshold to the front of every order.

    `first` is the first job that is in no queue yet. Return True if a job moved. Writes keys,
    queues, `n_overdue` and `next_overdue`.
    """
    threshold = sim.threshold
    if threshold < 0:
        return False
    moved = False
    # Jobs are numbered by submission, so those beyond the threshold are the first ones of all. Each
    # job is looked at once.
    job = sim.next_overdue
    while job < first and sim.now - jobs.submit_time[job] > threshold:
        if sim.start_time[job] < 0:
            # The queue finds the job by its old key. Equal keys order by index: overdue jobs go
            # FCFS.
            take_out(jobs, sim, s.BASE_ORDER, job)
            sim.key[s.BASE_ORDER, entry_of(sim, job)] = -float("inf")
            put_in(jobs, sim, s.BASE_ORDER, job)
            if sim.backfill_order_is_static == 1:
                take_out(jobs, sim, s.BACKFILL_ORDER, job)
                sim.key[s.BACKFILL_ORDER, entry_of(sim, job)] = -float("inf")
                put_in(jobs, sim, s.BACKFILL_ORDER, job)
            sim.n_overdue += 1
            moved = True
        job += 1
    sim.next_overdue = job
    return moved


@kernel(inlined=True)
def queue_jobs(jobs: Jobs, sim: Sim, first: int) -> None:
    """Let the jobs submitted now, from `first` on, enter the queues."""
    for job in range(first, sim.next_job):
        enter(jobs, sim, job)


@kernel(inlined=True)
def is_settled(sim: Sim, newcomer: int) -> bool:
    """Tell whether the newcomer is the only job that may start now."""
    head = sim.settled_head
    # A newcomer before the head would be the head. A running job past its estimate moves the shadow
    # time along with the clock, which may let a refused job in.
    return (
        head >= 0
        and not precedes(sim, s.BASE_ORDER, newcomer, head)
        and next_release(sim) > sim.now
    )


@kernel(inlined=True)
def pass_newcomer(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Make the pass for the only newcomer, in no queue yet, if it is the only job concerned.

    Return False, with nothing done, if a full pass or a decision is due. Writes what a pass writes.
    """
    if sim.full_passes == 1 or sim.decide > s.DECIDE_CONTESTED:
        return False
    fits = jobs.processors[job] <= sim.free and not is_held(sim, job)
    # Alone, a job that fits, and is not held, starts in every mode. `n_waiting` counts it already.
    if sim.n_waiting == 1:
        if not fits or not all_fit(jobs, sim):
            return False
        count_pass(sim)
        sim.checked_head = -1
        start(jobs, sim, job, False, sim.now)
        return True
    if not is_settled(sim, job):
        return False
    count_pass(sim)
    if fits and sim.backfill == s.BACKFILL_EASY:
        # An earlier pass needed no reservation if no job could have used it.
        if sim.shadow < 0:
            reserve(jobs, sim, sim.settled_head)
        if backfills(jobs, sim, job):
            charge_extra(jobs, sim, job)
            start(jobs, sim, job, True, sim.now)
            return True
    queue_jobs(jobs, sim, job)
    return True


@kernel(inlined=True)
def advance_clock(jobs: Jobs, sim: Sim) -> None:
    """Go to the next instant, and handle its completions unless `pyss` semantics apply, and events.

    Writes `now`, what completions change, `pass_due`, and `settled_head` = -1 if a job ended.
    """
    # First: the jobs to come may be numbered by the event.
    event = next_event(jobs, sim) if sim.events_hear != 0 else s.NEVER
    now = next_instant(jobs, sim)
    event_due = event < s.NEVER and event <= now
    now = min(now, event)
    mode_due = False
    if sim.hears & s.NEXT_INSTANT != 0:
        instant = ask_mode(jobs.mode_pass, jobs, sim, s.NEXT_INSTANT, 0)
        mode_due = instant <= now
        event_due = event_due and instant >= now
        now = min(now, instant)
    # Costs accrue at the rate up to now, before any event changes that rate.
    if sim.keep_reward == 1:
        waiting_cost.accrue(jobs, sim, now)
    sim.now = now
    sim.pass_due = 0
    if now == s.NEVER:
        return  # nothing is to come, and the end of no job is `NEVER`, too
    if sim.semantics == s.SEMANTICS_BATCH:
        while next_completion(sim) == now:
            end(jobs, sim)
            sim.settled_head = -1
            sim.pass_due = 1
    if mode_due:
        ask_mode(jobs.mode_pass, jobs, sim, s.ON_INSTANT, 0)
        sim.settled_head = -1
        sim.pass_due = 1
    if event_due and tell_events(jobs, sim, s.ON_INSTANT, 0) != 0:
        sim.settled_head = -1
        sim.pass_due = 1


@kernel(inlined=True)
def take_submissions(jobs: Jobs, sim: Sim) -> None:
    """Handle submissions and ends of delays, then correct estimates that have run out.

    With `pyss` semantics, handle one event: a submission, else the end of a delay, else a
    completion. Writes what events change, `pass_due`, and `settled_head` = -1 where a refused job
    may start now.
    """
    now = sim.now
    events = sim.n_events
    first = sim.next_job
    if sim.semantics == s.SEMANTICS_BATCH:
        while next_submission(jobs, sim) == now:
            submit(jobs, sim)
        while next_eligible(sim) == now:
            admit(sim)
    # One event, then a pass. The clock finds the other events of this instant in the next rounds.
    elif next_submission(jobs, sim) == now:
        submit(jobs, sim)
    elif next_eligible(sim) == now:
        admit(sim)
    elif next_completion(sim) == now:
        end(jobs, sim)
    if sim.n_events > events:
        sim.pass_due = 1
    # Corrections come before releases: a corrected job keeps its processors.
    if sim.correct != s.CORRECT_NOT and next_release(sim) <= now:
        correct_releases(jobs, sim)
    if sim.pass_due == 1:
        release_estimated(jobs, sim)
    if cross_threshold(jobs, sim, first):
        sim.settled_head = -1
    if sim.next_job == first + 1 and pass_newcomer(jobs, sim, first):
        sim.pass_due = 0
    else:
        queue_jobs(jobs, sim, first)


@kernel(inlined=True)
def decision_due(jobs: Jobs, sim: Sim) -> bool:
    """Tell whether the agent decides before this pass.

    Writes `next_decision` where decisions are due at fixed intervals.
    """
    decide = sim.decide
    if decide == s.DECIDE_CONTESTED:
        # Where the order cannot matter, the agent is not asked.
        return sim.pass_due == 1 and is_contested(jobs, sim)
    if decide == s.DECIDE_EVENT:
        return sim.pass_due == 1 and some_job_waits(jobs, sim)
    if decide == s.DECIDE_INTERVAL and sim.now == sim.next_decision:
        sim.next_decision += sim.decide_seconds
        return True
    return False


@kernel
def has_room(jobs: Jobs, sim: Sim) -> bool:
    """Tell whether the lists of waiting and running jobs have room for those submitted now."""
    if sim.events_hear & s.COUNT_COMING != 0:
        n_coming = tell_events(jobs, sim, s.COUNT_COMING, 0)
        return sim.n_running + sim.n_waiting + n_coming <= len(sim.scratch)
    coming = sim.next_job
    while coming < sim.n_jobs and jobs.submit_time[coming] == sim.now:
        coming += 1
    return sim.n_running + sim.n_waiting + coming - sim.next_job <= len(sim.scratch)


@kernel
def asks_for_pass(sim: Sim) -> bool:
    """Tell whether Python must make a pass now; write `phase`, `pass_due` and counts of passes."""
    if sim.pass_due == 0 or sim.n_waiting == 0:
        return False
    count_pass(sim)
    sim.phase = s.PHASE_OWN_PASS
    sim.pass_due = 0
    return True


@kernel
def run(jobs: Jobs, sim: Sim) -> int:
    """Run to the next decision, or until every job has started, and no event takes one off again.

    Return `STATUS_DECISION`, `STATUS_DONE`, also where `stopped` ends it, `STATUS_PREDICTION` if
    Python must predict the jobs submitted now, `STATUS_OWN_PASS` if it must start the jobs of this
    pass, `STATUS_FULL` if the state has no room for the jobs submitted now, or a negative number
    that names a broken invariant. After a decision, the caller sets the order of this pass before
    it calls again.
    """
    # A job that runs is not safe from an outage to come.
    while sim.stopped == 0 and (
        sim.n_started < sim.n_jobs or (sim.now < sim.last_outage and sim.n_running > 0)
    ):
        if sim.phase == s.PHASE_BETWEEN:
            advance_clock(jobs, sim)
            if sim.now == s.NEVER:
                return s.STATUS_STUCK
            sim.phase = s.PHASE_SUBMISSIONS
        if sim.phase == s.PHASE_SUBMISSIONS:
            # The phase is stored, so the next call resumes here, with more room or predictions.
            if len(sim.scratch) < sim.n_jobs and not has_room(jobs, sim):
                return s.STATUS_FULL
            if asks_python(jobs, sim):
                return s.STATUS_PREDICTION
            take_submissions(jobs, sim)
            sim.phase = s.PHASE_PASS
            if decision_due(jobs, sim):
                return s.STATUS_DECISION
        if sim.backfill == s.BACKFILL_OWN and sim.phase == s.PHASE_PASS and asks_for_pass(sim):
            return s.STATUS_OWN_PASS
        finished = sim.pass_due == 0 or make_pass(jobs, sim)
        sim.ordered = 0
        sim.n_ahead = 0
        sim.pick = -1
        if finished:
            if sim.pass_due == 1 and sim.hears & s.AFTER_PASS != 0:
                ask_mode(jobs.mode_pass, jobs, sim, s.AFTER_PASS, 0)
            sim.phase = s.PHASE_BETWEEN
        if sim.check == 1:
            violation = find_violation(jobs, sim, finished)
            if violation < 0:
                return violation
        # The picked job started and the pass stopped: the agent may pick again at the same instant.
        if not finished and decision_due(jobs, sim):
            return s.STATUS_DECISION
    return s.STATUS_DONE
