"""The life of a job: submit, hold, enter, start, end; or evict, and wait again.

| step | the job before it | the job after it |
|---|---|---|
| `submit` | is the next of the log | waits: it has an entry and keys, and is in no queue |
| `hold` | was submitted | waits out of sight until an instant; the calendar has the end |
| `admit` | is held until now | is eligible |
| `enter` | was submitted, and is in no queue | is in the queues, held or not |
| `start` | fits, and is in no queue | runs; its entry is given back |
| `end` | runs until now | has ended, and its processors are free |
| `evict` | runs, and would run on | waits anew, as after `submit`; its work is lost |

`start_waiting` takes a job out of the queues first. What parts of the scheduler do at these steps
is in `hpcgym.core.engine.moments`.

Source: Specification, section 1, "One instant".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.calendar import add_held, add_running, remove_release, remove_running
from hpcgym.core.engine.moments import (
    at_end,
    at_evict,
    at_leave,
    at_release,
    at_start,
    at_submit,
    at_vacate,
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
    at_submit(jobs, sim, job)


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
def start(jobs: Jobs, sim: Sim, job: int, backfilled: bool) -> None:
    """Start a submitted job that fits and is in no queue.

    `backfilled` says whether it starts ahead of a job before it in queue order that keeps waiting.
    Writes the job's entry, start and flags, both running lists, counts, and what parts write.
    """
    flag = s.FLAG_BACKFILLED if backfilled else 0
    if is_overdue(sim, job):
        flag |= s.FLAG_THRESHOLDED
        sim.n_overdue -= 1
    flag |= at_leave(jobs, sim, job)
    leave_entry(sim, job)
    sim.start_time[job] = sim.now
    sim.flag[job] = flag
    sim.free -= jobs.processors[job]
    sim.n_started += 1
    sim.waiting_processors -= jobs.processors[job]
    sim.waiting_area -= jobs.processors[job] * jobs.estimate[job]
    add_running(jobs, sim, job)
    at_start(jobs, sim, job)


@kernel
def start_waiting(jobs: Jobs, sim: Sim, job: int, backfilled: bool) -> None:
    """Start a job that fits from the queues; write the queues and what `start` writes."""
    take_out(jobs, sim, s.BASE_ORDER, job)
    if sim.backfill_order_is_static == 1:
        take_out(jobs, sim, s.BACKFILL_ORDER, job)
    start(jobs, sim, job, backfilled)


@kernel(inlined=True)
def end(jobs: Jobs, sim: Sim) -> None:
    """End the next running job.

    Writes both running lists, `free`, `n_events`, and what parts write. `replan` becomes 1 if the
    job was not estimated to end now.
    """
    last = sim.n_running - 1
    job = sim.ending_job[last]
    sim.n_running = last
    sim.n_events += 1
    at_vacate(jobs, sim, job)
    # With `pyss` semantics its processors may be free already (`release_estimated`).
    if remove_release(jobs, sim, job):
        sim.free += jobs.processors[job]
        at_release(jobs, sim, job)
        if sim.start_time[job] + jobs.estimate[job] != sim.now:
            sim.replan = 1
    at_end(jobs, sim, job)


@kernel
def evict(jobs: Jobs, sim: Sim, job: int) -> None:
    """Take a running job off the machine; it waits anew, and its key is one of this instant.

    The caller lets it `enter`, and sees to it that a pass is made. Writes both running lists,
    `free`, what `wait` writes, and what parts write; `replan` becomes 1.
    """
    remove_running(jobs, sim, job)
    at_vacate(jobs, sim, job)
    if remove_release(jobs, sim, job):
        sim.free += jobs.processors[job]
        at_release(jobs, sim, job)
    at_evict(jobs, sim, job)
    sim.replan = 1
    sim.settled_head = -1
    sim.n_started -= 1
    sim.flag[job] = 0
    sim.keeps_summary = 0  # it links jobs by age, the youngest last; this one is older
    wait(jobs, sim, job)
    if is_overdue(sim, job):
        sim.n_overdue += 1
        sim.key[s.BASE_ORDER, entry_of(sim, job)] = -float("inf")
        sim.key[s.BACKFILL_ORDER, entry_of(sim, job)] = -float("inf")


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
        at_release(jobs, sim, sim.release_job[last])
        last -= 1
    sim.n_releases = last + 1
