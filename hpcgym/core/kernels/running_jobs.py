"""Running jobs, in order of their true ends and in order of their estimated ends.

The clock follows the true ends, and the scheduler sees the estimated ones. Both lists keep the
soonest end last. A start or an end shifts the entries that end sooner: few where jobs end near
their estimates, at most the number of running jobs.

Source: Specification, section 1, "One instant" and "EASY pass".
"""

from hpcgym.core.constants import (
    BACKFILL_COST_BENEFIT,
    BACKFILL_MULTI_QUEUE,
    BACKFILL_ORDER,
    BASE_ORDER,
    EXPECT_BY_REGRESSION,
    FLAG_BACKFILLED,
    FLAG_CAPPED,
    FLAG_THRESHOLDED,
    HISTORY_NOT,
    NEVER,
    NODES_VACATE,
    SEMANTICS_PYSS,
    TERM_REGRESSED_RUN_TIME_RATIO,
    TERM_REQUEST,
)
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.by_address import ask_nodes
from hpcgym.core.kernels.cost import end_cost
from hpcgym.core.kernels.passes.multi_queue_delay import record_slowdown
from hpcgym.core.kernels.passes.multi_queue_partitions import occupy_partition, vacate_partition
from hpcgym.core.kernels.queue.entries import leave_entry
from hpcgym.core.kernels.queue.ordered_queue import take_out
from hpcgym.core.kernels.scoring.regression_update import learn_from
from hpcgym.core.kernels.scoring.user_estimates import (
    bounded_estimate,
    expect_now,
    expected_run_time,
    is_expected,
)
from hpcgym.core.kernels.scoring.user_history import record_completion
from hpcgym.core.kernels.types import Jobs, Sim


@kernel(inlined=True)
def is_overdue(sim: Sim, job: int) -> bool:
    """Tell whether a waiting job is known to be beyond the starvation threshold."""
    # Jobs cross it in order of submission, so one number divides them. Crossing is noticed at
    # passes only.
    return job < sim.next_overdue


@kernel
def is_capped(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a waiting job counts under the cap: it is expected to be long.

    Writes what `expect_now` writes.
    """
    # Most requests are short enough to need no expectation.
    if bounded_estimate(jobs, job) <= sim.long or (sim.is_open == 0.0 and is_overdue(sim, job)):
        return False
    term = sim.expected[expect_now(jobs, sim, job)]
    # In logarithms, so that a job expected to run to a request of `long` does not exceed it.
    return term[TERM_REQUEST] + term[TERM_REGRESSED_RUN_TIME_RATIO] > sim.log_long


@kernel
def count_expected(jobs: Jobs, sim: Sim, job: int) -> int:
    """Count a job that starts now under the cap; return the flag, 0 if it does not count.

    Writes `capped`, `expected_end` where observations show it, and what `expect_now` writes.
    """
    if sim.show_controls == 1:
        sim.expected_end[job] = sim.now + expected_run_time(jobs, sim, job)
    if not is_capped(jobs, sim, job):
        return 0
    sim.capped += jobs.processors[job]
    return FLAG_CAPPED


@kernel(inlined=True)
def add_running(jobs: Jobs, sim: Sim, job: int) -> None:
    """Enter a job that starts now into both lists; write `ending_*` and `release_*`."""
    now = sim.now
    end = now + jobs.run_time[job]
    place = sim.n_running
    sim.n_running = place + 1
    # Ties: the earlier job ends first; with `pyss` semantics, the one that started first.
    in_turn = sim.semantics == SEMANTICS_PYSS
    while place > 0 and (
        sim.ending_time[place - 1] < end
        or (sim.ending_time[place - 1] == end and (in_turn or sim.ending_job[place - 1] < job))
    ):
        sim.ending_time[place] = sim.ending_time[place - 1]
        sim.ending_job[place] = sim.ending_job[place - 1]
        place -= 1
    sim.ending_time[place] = end
    sim.ending_job[place] = job

    # Ties in estimated ends need no order: reservations count tied releases together.
    release = now + jobs.estimate[job]
    place = sim.n_releases
    sim.n_releases = place + 1
    while place > 0 and sim.release_time[place - 1] < release:
        sim.release_time[place] = sim.release_time[place - 1]
        sim.release_job[place] = sim.release_job[place - 1]
        place -= 1
    sim.release_time[place] = release
    sim.release_job[place] = job


@kernel(inlined=True)
def remove_release(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Remove a running job from the estimated ends; return False if it was removed before.

    Writes `release_*` and `n_releases`.
    """
    release = sim.start_time[job] + jobs.estimate[job]
    last = sim.n_releases - 1
    place = last
    while place >= 0 and (sim.release_time[place] < release or sim.release_job[place] != job):
        # The list descends: a job with this end would have come before this place.
        if sim.release_time[place] > release:
            return False
        place -= 1
    if place < 0:
        return False
    for other in range(place, last):
        sim.release_time[other] = sim.release_time[other + 1]
        sim.release_job[other] = sim.release_job[other + 1]
    sim.n_releases = last
    return True


@kernel(inlined=True)
def start_job(jobs: Jobs, sim: Sim, job: int, backfilled: bool) -> None:
    """Start a submitted job that fits and is in no queue.

    `backfilled` says whether it starts ahead of a job before it in queue order that keeps waiting.
    Writes the job's entry, start and flags, both running lists, partitions, counts, and what
    `count_expected` writes.
    """
    flag = FLAG_BACKFILLED if backfilled else 0
    if is_overdue(sim, job):
        flag |= FLAG_THRESHOLDED
        sim.n_overdue -= 1
    if sim.backfill == BACKFILL_COST_BENEFIT:
        flag |= count_expected(jobs, sim, job)
    leave_entry(sim, job)
    sim.start_time[job] = sim.now
    sim.flag[job] = flag
    sim.free -= jobs.processors[job]
    sim.n_started += 1
    sim.waiting_processors -= jobs.processors[job]
    sim.waiting_area -= jobs.processors[job] * jobs.estimate[job]
    add_running(jobs, sim, job)
    if sim.backfill == BACKFILL_MULTI_QUEUE:
        occupy_partition(jobs, sim, job)
    if sim.keep_reward == 1:
        end_cost(jobs, sim, job)


@kernel
def start_waiting(jobs: Jobs, sim: Sim, job: int, backfilled: bool) -> None:
    """Start a job that fits from the queues; write the queues and what `start_job` writes."""
    take_out(jobs, sim, BASE_ORDER, job)
    if sim.backfill_order_is_static == 1:
        take_out(jobs, sim, BACKFILL_ORDER, job)
    start_job(jobs, sim, job, backfilled)


@kernel(inlined=True)
def next_completion(sim: Sim) -> int:
    """Return the instant at which the next running job ends, s; `NEVER` if none runs."""
    if sim.n_running == 0:
        return NEVER
    return sim.ending_time[sim.n_running - 1]


@kernel(inlined=True)
def next_release(sim: Sim) -> int:
    """Return the next estimated end of a running job, s, perhaps past; `NEVER` if there is none."""
    if sim.n_releases == 0:
        return NEVER
    return sim.release_time[sim.n_releases - 1]


@kernel(inlined=True)
def complete_job(jobs: Jobs, sim: Sim) -> None:
    """Complete the next running job at its end.

    Writes both running lists, `free`, `n_events`, `capped`, partitions, the delay, the user's
    history and the regression. `replan` becomes 1 if the job was not estimated to end now.
    """
    last = sim.n_running - 1
    job = sim.ending_job[last]
    sim.n_running = last
    sim.n_events += 1
    if jobs.nodes_pass != 0:
        ask_nodes(jobs.nodes_pass, jobs, sim, NODES_VACATE, job)
    if sim.flag[job] & FLAG_CAPPED != 0:
        sim.capped -= jobs.processors[job]
    has_classes = sim.backfill == BACKFILL_MULTI_QUEUE
    # With `pyss` semantics its processors may be free already (`release_estimated`).
    if remove_release(jobs, sim, job):
        sim.free += jobs.processors[job]
        if has_classes:
            vacate_partition(jobs, sim, job)
        if sim.start_time[job] + jobs.estimate[job] != sim.now:
            sim.replan = 1
    if has_classes and sim.first_delay > 0.0:
        record_slowdown(jobs, sim, job)
    if sim.keep_history != HISTORY_NOT:
        # The regression learns from what was known of the user before this completion.
        if is_expected(sim, EXPECT_BY_REGRESSION):
            learn_from(jobs, sim, job)
        record_completion(jobs, sim, job)


@kernel(inlined=True)
def release_estimated(jobs: Jobs, sim: Sim) -> None:
    """With `pyss` semantics, free the processors of every running job at its estimated end.

    Writes `n_releases`, `free` and partitions.
    """
    if sim.semantics != SEMANTICS_PYSS:
        return
    last = sim.n_releases - 1
    while last >= 0 and sim.release_time[last] <= sim.now:
        sim.free += jobs.processors[sim.release_job[last]]
        if sim.backfill == BACKFILL_MULTI_QUEUE:
            vacate_partition(jobs, sim, sim.release_job[last])
        last -= 1
    sim.n_releases = last + 1
