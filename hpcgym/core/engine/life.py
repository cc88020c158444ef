"""The life of a job: submit, hold, enter, start, end; or evict, and wait again; or a trial before.

| step | the job before it | the job after it |
|---|---|---|
| `submit` | is the next of the log | waits: it has an entry and keys, and is in no queue |
| `hold` | was submitted | waits out of sight until an instant; the calendar has the end |
| `admit` | is held until now | is eligible |
| `enter` | was submitted, and is in no queue | is in the queues, held or not |
| `start` | fits, and is in no queue | runs; its entry is given back |
| `end` | runs until now | has ended, and its processors are free |
| `evict` | runs, and would run on | waits anew, as after `submit`; its work is lost |
| `lose` | runs, and would run on | is done, without a useful run |
| `put_on_trial` | waits, and fits what is idle | is on trial: it runs, and waits all the same |
| `promote` | is on trial | runs since its trial began |
| `take_back` | is on trial, not guaranteed | waits, where it waited all along; its work is lost |

`start_waiting` takes a job out of the queues first. What parts of the scheduler do at these steps
is in `hpcgym.core.engine.moments`.

Of the processors, `free` counts those that no job runs on, and that are neither `guaranteed` to a
trial nor `busy` with clearing up. A pass takes from them. Trials that are not guaranteed hold
`on_trial` of them, and end where a start needs their processors.

Source: Specification, section 1, "One instant"; section 15.
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine import moments
from hpcgym.core.engine.calendar import (
    add_held,
    add_release,
    add_running,
    remove_release,
    remove_running,
)
from hpcgym.core.kernels.queue.entries import entry_of, is_overdue, leave_entry, take_entry
from hpcgym.core.kernels.queue.ordered_queue import put_in, take_out
from hpcgym.core.kernels.scoring.estimates import predict_recent, write_prediction
from hpcgym.core.kernels.scoring.score import score_alone
from hpcgym.core.kernels.scoring.user_history import meet_user
from hpcgym.core.kernels.types import Jobs, Sim


@kernel(inlined=True)
def submit(jobs: Jobs, sim: Sim) -> None:
    """Submit the next job, without putting it into the queues yet.

    Writes its entry and keys, counts, its prediction and its user's history where keys use them,
    and what parts write.
    """
    job = sim.next_job
    sim.next_job = job + 1
    sim.n_events += 1
    # The prediction comes first: keys, areas and delays depend on it.
    if sim.predict == s.PREDICT_RECENT:
        write_prediction(jobs, job, predict_recent(jobs, sim, job))
    wait(jobs, sim, job)


@kernel(inlined=True)
def wait(jobs: Jobs, sim: Sim, job: int) -> None:
    """Let a job wait, in no queue yet; write its entry and keys, counts, and what parts write."""
    take_entry(sim, job)
    if sim.keep_history == s.HISTORY_FOR_KEYS:
        meet_user(jobs, sim, job)
    score_alone(jobs, sim, s.BASE_ORDER, job)
    if sim.backfill_order_is_static == 1:
        score_alone(jobs, sim, s.BACKFILL_ORDER, job)
    sim.waiting_processors += jobs.processors[job]
    sim.waiting_area += jobs.processors[job] * jobs.estimate[job]
    moments.at_submit(jobs, sim, job)


@kernel
def hold(sim: Sim, job: int, until: int) -> None:
    """Keep a submitted job out of sight until an instant, s; write its flag and the calendar."""
    add_held(sim, job, until)
    sim.flag[job] = s.FLAG_HELD


@kernel(inlined=True)
def admit(sim: Sim) -> None:
    """Make the job whose hold ends now eligible; write its flag, `n_held` and `n_events`."""
    sim.n_held -= 1
    sim.n_events += 1
    sim.flag[sim.held_job[sim.n_held]] = 0


@kernel(inlined=True)
def enter(jobs: Jobs, sim: Sim, job: int) -> None:
    """Put a submitted job into the queues.

    Writes what is known of its user, where only observations read it.
    """
    if sim.keep_history == s.HISTORY_FOR_OBSERVATIONS:
        meet_user(jobs, sim, job)
    put_in(jobs, sim, s.BASE_ORDER, job)
    if sim.backfill_order_is_static == 1:
        put_in(jobs, sim, s.BACKFILL_ORDER, job)


@kernel(inlined=True)
def stop_waiting(jobs: Jobs, sim: Sim, job: int, backfilled: bool) -> None:
    """Count a job that is in no queue as started; its start is not written yet.

    `backfilled` says whether it starts ahead of a job before it in queue order that keeps waiting.
    Writes the job's entry and flags, counts, and what parts write.
    """
    flag = s.FLAG_BACKFILLED if backfilled else 0
    if is_overdue(sim, job):
        flag |= s.FLAG_THRESHOLDED
        sim.n_overdue -= 1
    flag |= moments.at_leave(jobs, sim, job)
    leave_entry(sim, job)
    sim.flag[job] = flag
    sim.n_started += 1
    sim.waiting_processors -= jobs.processors[job]
    sim.waiting_area -= jobs.processors[job] * jobs.estimate[job]


@kernel(inlined=True)
def start(jobs: Jobs, sim: Sim, job: int, backfilled: bool, since: int) -> None:
    """Start a submitted job that fits and is in no queue; it runs usefully from `since` on, s.

    `backfilled` is as `stop_waiting` has it. Writes what that writes, the job's start, both running
    lists, `free`, and what parts write.
    """
    stop_waiting(jobs, sim, job, backfilled)
    sim.start_time[job] = since
    sim.free -= jobs.processors[job]
    add_running(sim, job, since + jobs.run_time[job])
    add_release(sim, job, since + jobs.estimate[job])
    moments.at_start(jobs, sim, job)


@kernel(inlined=True)
def leave_queues(jobs: Jobs, sim: Sim, job: int) -> None:
    """Take a job out of the queues."""
    take_out(jobs, sim, s.BASE_ORDER, job)
    if sim.backfill_order_is_static == 1:
        take_out(jobs, sim, s.BACKFILL_ORDER, job)


@kernel
def start_from(jobs: Jobs, sim: Sim, job: int, backfilled: bool, since: int) -> None:
    """Start a job that fits from the queues; write the queues and what `start` writes."""
    leave_queues(jobs, sim, job)
    start(jobs, sim, job, backfilled, since)


@kernel(inlined=True)
def start_waiting(jobs: Jobs, sim: Sim, job: int, backfilled: bool) -> None:
    """Start a job that fits from the queues now."""
    start_from(jobs, sim, job, backfilled, sim.now)


@kernel(inlined=True)
def end(jobs: Jobs, sim: Sim) -> None:
    """End the next job to end; one on trial, which still waits, has then run since its trial began.

    Writes both running lists, `free`, `n_events`, `n_ended`, and what parts write. `replan` becomes
    1 if the job was not estimated to end now.
    """
    last = sim.n_running - 1
    job = sim.ending_job[last]
    sim.n_running = last
    sim.n_events += 1
    sim.n_ended += 1
    if sim.start_time[job] < 0:
        moments.at_trial_end(jobs, sim, job)
    moments.at_vacate(jobs, sim, job)
    release = sim.start_time[job] + jobs.estimate[job]
    # With `pyss` semantics its processors may be free already (`release_estimated`).
    if remove_release(sim, job, release):
        sim.free += jobs.processors[job]
        moments.at_release(jobs, sim, job)
        if release != sim.now:
            sim.replan = 1
    moments.at_end(jobs, sim, job)


@kernel
def interrupt(jobs: Jobs, sim: Sim, job: int) -> None:
    """Take a running job off the machine; the caller says what becomes of it.

    Writes both running lists, `free`, and what parts write; `replan` becomes 1.
    """
    remove_running(sim, job)
    moments.at_vacate(jobs, sim, job)
    if remove_release(sim, job, sim.start_time[job] + jobs.estimate[job]):
        sim.free += jobs.processors[job]
        moments.at_release(jobs, sim, job)
    sim.replan = 1
    sim.settled_head = -1


@kernel
def lose(jobs: Jobs, sim: Sim, job: int) -> None:
    """Take a running job off the machine for good; users' records do not learn of it.

    The caller sees to it that a pass is made. Writes what `interrupt` writes, the job's flag, and
    what parts write.
    """
    interrupt(jobs, sim, job)
    sim.flag[job] = s.FLAG_NO_RUN
    moments.at_lose(jobs, sim, job)


@kernel
def evict(jobs: Jobs, sim: Sim, job: int) -> None:
    """Take a running job off the machine; it waits anew, and its key is one of this instant.

    The caller lets it `enter`, and sees to it that a pass is made. Writes what `interrupt` and
    `wait` write.
    """
    interrupt(jobs, sim, job)
    moments.at_evict(jobs, sim, job)
    sim.n_started -= 1
    sim.flag[job] = s.FLAG_EVICTED
    sim.shows_anew = 1  # what is known of its user may be more now
    sim.keeps_summary = 0  # it links jobs by age, the youngest last; this one is older
    wait(jobs, sim, job)
    sim.flag[job] = 0
    if is_overdue(sim, job):
        sim.n_overdue += 1
        sim.key[s.BASE_ORDER, entry_of(sim, job)] = -float("inf")
        sim.key[s.BACKFILL_ORDER, entry_of(sim, job)] = -float("inf")


@kernel(inlined=True)
def is_on_trial(sim: Sim, job: int) -> bool:
    """Tell whether a waiting job is on trial."""
    return sim.n_trials > 0 and sim.flag[job] & s.FLAG_TRIAL != 0


@kernel(inlined=True)
def is_guaranteed(sim: Sim, job: int) -> bool:
    """Tell whether a waiting job is on a trial that is guaranteed."""
    return sim.guaranteed > 0 and sim.flag[job] & s.FLAG_GUARANTEED != 0


@kernel(inlined=True)
def is_restart(sim: Sim, job: int) -> bool:
    """Tell whether a start of a job takes longer, for an attempt of it was in vain."""
    # Where no job is tried, nothing is known of attempts, and the column is another number.
    return sim.hears & s.ON_TRIAL_END != 0 and sim.overhead > 0.0 and sim.killed_at[job] >= 0


@kernel(inlined=True)
def begins_at(sim: Sim, job: int) -> int:
    """Return since when a waiting job would run usefully if a pass started it, s."""
    if is_on_trial(sim, job):
        return sim.since[job]
    return sim.now + int(sim.overhead) if is_restart(sim, job) else sim.now


@kernel
def some_are_overdue(sim: Sim) -> bool:
    """Tell whether a job is overdue that waits, and is not on trial."""
    n = sim.n_overdue
    for position in range(sim.n_trials):
        if is_overdue(sim, sim.job_on_trial[position]):
            n -= 1
    return n > 0


@kernel
def put_on_trial(jobs: Jobs, sim: Sim, job: int, since: int, over: int, guaranteed: bool) -> None:
    """Put a waiting job that fits what is idle on trial.

    It runs usefully from `since` on, and its trial is over at `over`, s. Writes what is known of
    its attempt, the true ends, counts of processors, and what parts write.
    """
    sim.taken[job] = sim.now
    sim.since[job] = since
    sim.over[job] = over
    add_running(sim, job, since + jobs.run_time[job])
    sim.flag[job] |= s.FLAG_TRIAL
    if guaranteed:
        sim.flag[job] |= s.FLAG_GUARANTEED
        sim.free -= jobs.processors[job]
        sim.guaranteed += jobs.processors[job]
        add_release(sim, job, over)
    else:
        sim.on_trial += jobs.processors[job]
    # Those that began last come last; of one instant, the earlier jobs.
    position = sim.n_trials
    sim.n_trials = position + 1
    while (
        position > 0
        and sim.taken[sim.job_on_trial[position - 1]] == sim.now
        and (sim.job_on_trial[position - 1] < job)
    ):
        sim.job_on_trial[position] = sim.job_on_trial[position - 1]
        position -= 1
    sim.job_on_trial[position] = job
    moments.at_trial(jobs, sim, job)


@kernel
def end_guarantee(jobs: Jobs, sim: Sim, job: int) -> None:
    """Let a trial that was guaranteed until now be one like others; write counts of processors."""
    remove_release(sim, job, sim.over[job])
    sim.flag[job] &= 255 - s.FLAG_GUARANTEED
    sim.guaranteed -= jobs.processors[job]
    sim.free += jobs.processors[job]
    sim.on_trial += jobs.processors[job]
    moments.at_guarantee_end(jobs, sim, job)


@kernel
def forget_trial(sim: Sim, job: int) -> None:
    """Take a job off the list of those on trial; write `job_on_trial` and `n_trials`."""
    last = sim.n_trials - 1
    position = last
    while sim.job_on_trial[position] != job:
        position -= 1
    for other in range(position, last):
        sim.job_on_trial[other] = sim.job_on_trial[other + 1]
    sim.n_trials = last


@kernel
def promote(jobs: Jobs, sim: Sim, job: int, backfilled: bool) -> None:
    """Have a job on trial run on as one that started when its trial began.

    Writes the queues, what `stop_waiting` writes, its start, the estimated ends, and `free`.
    """
    if is_guaranteed(sim, job):
        end_guarantee(jobs, sim, job)
    leave_queues(jobs, sim, job)
    stop_waiting(jobs, sim, job, backfilled)
    forget_trial(sim, job)
    sim.start_time[job] = sim.since[job]
    if sim.taken[job] - jobs.submit_time[job] <= sim.threshold:
        sim.flag[job] &= 255 - s.FLAG_THRESHOLDED  # it was within it when it started
    sim.on_trial -= jobs.processors[job]
    sim.free -= jobs.processors[job]
    add_release(sim, job, sim.since[job] + jobs.estimate[job])
    moments.at_promote(jobs, sim, job)


@kernel
def note_attempt(sim: Sim, job: int, reason: int) -> None:
    """Note that an attempt of a job ends now, and its work is lost.

    `since` and `taken` are those of the attempt. Writes what is known of the job's attempts.
    """
    sim.ran[job] = max(sim.ran[job], sim.now - sim.since[job])
    sim.killed_at[job] = sim.now
    sim.wasted[job] += sim.now - sim.taken[job]
    if len(sim.attempt) > 0:
        row = sim.attempt[sim.n_attempts]
        row[s.ATTEMPT_JOB], row[s.ATTEMPT_TAKEN] = job, sim.taken[job]
        row[s.ATTEMPT_SINCE], row[s.ATTEMPT_END] = sim.since[job], sim.now
        row[s.ATTEMPT_REASON] = reason
    sim.n_attempts += 1


@kernel
def take_back(jobs: Jobs, sim: Sim, job: int, reason: int) -> None:
    """End the trial of a job, which is not guaranteed; it waits where it waited.

    An end by an outage is no trial in vain. Writes the true ends, what is known of its attempts,
    `on_trial`, and what parts write.
    """
    remove_running(sim, job)
    forget_trial(sim, job)
    sim.on_trial -= jobs.processors[job]
    note_attempt(sim, job, reason)
    if reason != s.NODE_DOWN:
        sim.n_tried[job] += 1
    moments.at_take_back(jobs, sim, job)
    sim.flag[job] &= 255 - s.FLAG_TRIAL


@kernel(inlined=True)
def release_estimated(jobs: Jobs, sim: Sim) -> None:
    """With `pyss` semantics, free the processors of every running job at its estimated end.

    Writes `n_releases`, `free` and what parts write.
    """
    if sim.semantics != s.SEMANTICS_PYSS:
        return
    last = sim.n_releases - 1
    while last >= 0 and sim.release_time[last] <= sim.now:
        sim.free += jobs.processors[sim.release_job[last]]
        moments.at_release(jobs, sim, sim.release_job[last])
        last -= 1
    sim.n_releases = last + 1
