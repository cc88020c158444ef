"""What observations show about trials besides counts: chances to end in time, and who runs.

The chance that a job ends within the limit of a trial, given how long it has run, is the share of
its user's last jobs that did, drawn towards that of all completed jobs. Of these only counts by
class of run time are kept (`hpcgym.core.kernels.queue.btree.size_class_of`).

Cost: O(N_CLASSES) at a completion; for an observation O(running jobs), and O(RING_JOBS) for each
visible one.

Source: Specification, section 10, "Trials as actions".
"""

from typing import Any

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import is_on_trial
from hpcgym.core.history import RING_JOBS
from hpcgym.core.kernels.env.cluster import log_time
from hpcgym.core.kernels.queue.btree import size_class_of
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.observation_fields import JobTrialField, RunningField, TrialField
from hpcgym.core.parts.young_jobs import JOB, PROCESSORS, age_at, may_be_killed, put_rows_by_area

N_CLASSES = s.SIZE_CLASSES
FIRST_ROW, N_COLUMNS = len(TrialField), len(RunningField)
DRAWN_AS = 4.0  # the share of all completed jobs weighs as much as so many jobs of the user

# Columns of `Sim.recent`; the run times follow.
OF_COMPLETED, OF_LIMIT, WITHIN, OF_RUNS = range(4)

LONGEST_S = 2**31 - 2
"""Run times and limits in `Sim.recent` are no longer; 2^31 - 1 means that there is none."""

NINTHS = np.array([k / s.MOST_KILLS for k in range(s.MOST_KILLS + 1)], dtype=np.float32)
"""Numbers of attempts as they are shown; a division takes longer."""


@kernel
def record_run_time(jobs: Jobs, sim: Sim, job: int) -> None:
    """Count a job that ends now, before its user's record has it.

    Writes `n_timed`, `ended_up_to` and the user's row of `recent`.
    """
    if sim.n_timed == 0:
        sim.ended_up_to[0, :] = 0
        sim.recent[:, OF_COMPLETED] = -1
    sim.n_timed += 1
    run_time = max(jobs.run_time[job], 1)
    for column in range(size_class_of(run_time), N_CLASSES):
        sim.ended_up_to[0, column] += 1
    recent = sim.recent[jobs.user[job]]
    completed = recent[OF_COMPLETED]
    if completed >= 0:
        recent[OF_RUNS + completed % RING_JOBS] = min(run_time, LONGEST_S)
        recent[OF_COMPLETED], recent[OF_LIMIT] = completed + 1, -1


@kernel
def keep_recent(jobs: Jobs, sim: Sim, user: int) -> None:
    """Write a user's row of `recent`, which `record_run_time` keeps from then on."""
    recent, completed = sim.recent[user], sim.history_completed[user]
    recent[OF_COMPLETED], recent[OF_LIMIT] = completed, -1
    for spot in range(RING_JOBS):
        recent[OF_RUNS + spot] = LONGEST_S + 1
        if spot < completed:
            run_time = max(sim.history_run_time[user, spot], 1)
            recent[OF_RUNS + spot] = min(run_time, LONGEST_S)


@kernel(inlined=True)
def count_up_to(sim: Sim, user: int, most: int) -> int:
    """Count a user's last jobs that ran no longer than `most` s, after `keep_recent`."""
    # Without a branch, so that the compiler compares several run times at once.
    longest = np.int32(min(most, LONGEST_S))
    count = 0
    for spot in range(RING_JOBS):
        count += int(sim.recent[user, OF_RUNS + spot] <= longest)
    return count


@kernel(inlined=True)
def share_within(sim: Sim, ran: int) -> float:
    """Return, of the completed jobs that ran longer than `ran` s, the share within the limit.

    It goes by classes; `limit_class` is that of the limit. One job within and one beyond are added.
    """
    before, n_within = 0, 0
    if sim.n_timed > 0:  # else what is kept is of the last episode
        before = sim.ended_up_to[0, size_class_of(ran)] if ran > 0 else 0
        n_within = sim.ended_up_to[0, sim.limit_class]
    return (n_within - before + 1.0) / (sim.n_timed - before + 2.0)


@kernel(inlined=True)
def chance_to_end(jobs: Jobs, sim: Sim, job: int, ran: int, limit: int, share: float) -> float:
    """Return the chance that a job which runs longer than `ran` ends within `limit`, both in s.

    `share` is `share_within` of jobs that have not run.
    """
    if limit <= ran:
        return 0.0
    user = jobs.user[job]
    if sim.n_timed == 0 or sim.recent[user, OF_COMPLETED] < 0:
        keep_recent(jobs, sim, user)
    if sim.recent[user, OF_LIMIT] != min(limit, LONGEST_S):
        sim.recent[user, OF_LIMIT] = min(limit, LONGEST_S)
        sim.recent[user, WITHIN] = count_up_to(sim, user, limit)
    shorter = 0
    if ran > 0:
        share = share_within(sim, ran)
        shorter = count_up_to(sim, user, ran)
    n_within = sim.recent[user, WITHIN] - shorter
    n = min(sim.recent[user, OF_COMPLETED], RING_JOBS) - shorter
    return (n_within + DRAWN_AS * share) / (n + DRAWN_AS)


@kernel(inlined=True)
def was_attempted(sim: Sim, job: int) -> bool:
    """Tell whether an attempt of a job may have ended in vain; if not, it has not run."""
    # Bytes of many jobs share a line of the cache. Attempts that events end are not counted there.
    return sim.n_tried[job] > 0 or sim.n_gave_way[job] > 0 or sim.events_hear != 0


@kernel(inlined=True)
def show_no_attempt(
    jobs: Jobs, sim: Sim, position: int, limit: int, share: float, may_be_lent: bool
) -> None:
    """Write what `show_attempt` writes, of a job that is not on trial and had no attempt."""
    shown = sim.shown_attempts[position]
    shown[JobTrialField.IS_ON_TRIAL] = shown[JobTrialField.TRIED] = np.float32(0.0)
    shown[JobTrialField.GAVE_WAY] = shown[JobTrialField.LOG_RAN] = np.float32(0.0)
    shown[JobTrialField.MAY_BE_LENT] = np.float32(may_be_lent)
    chance = chance_to_end(jobs, sim, sim.scratch[position], 0, limit, share)
    shown[JobTrialField.CHANCE_TO_END] = np.float32(chance)


@kernel
def show_attempt(
    jobs: Jobs, sim: Sim, position: int, limit: int, share: float, may_be_lent: bool
) -> None:
    """Write the row of `shown_attempts` of the job at a place of `scratch`.

    `limit` and `share` are as of `chance_to_end`.
    """
    job = sim.scratch[position]
    entry, ran = entry_of(sim, job), sim.ran[job] if was_attempted(sim, job) else 0
    shown = sim.shown_attempts[position]
    on_trial = is_on_trial(sim, job)
    if on_trial:
        ran = max(ran, sim.now - sim.since[job])
    if sim.shown_ran[entry] != ran:
        sim.shown_ran[entry] = ran
        sim.log_ran[entry] = log_time(float(ran))
    shown[JobTrialField.LOG_RAN] = sim.log_ran[entry]
    shown[JobTrialField.IS_ON_TRIAL] = np.float32(on_trial)
    shown[JobTrialField.TRIED] = NINTHS[sim.n_tried[job]]
    shown[JobTrialField.GAVE_WAY] = NINTHS[sim.n_gave_way[job]]
    shown[JobTrialField.MAY_BE_LENT] = np.float32(may_be_lent)
    chance = chance_to_end(jobs, sim, job, ran, limit, share)
    shown[JobTrialField.CHANCE_TO_END] = np.float32(chance)


@kernel
def show_running(jobs: Jobs, sim: Any) -> None:
    """Write the rows of `RunningField` behind `TrialField`; rows of no job are zeros.

    Writes the order of `row_of_running`, too.
    """
    put_rows_by_area(sim)
    shown, begin, position = sim.shown_trials, FIRST_ROW, sim.n_rows
    while position > 0 and begin < len(shown):
        position -= 1
        job, age = sim.row_of_running[position, JOB], age_at(sim, position)
        if age < 0 or not may_be_killed(jobs, job):  # below 0 it does not run usefully yet
            continue
        left = max(jobs.estimate[job] - age, 0)
        width = sim.row_of_running[position, PROCESSORS] / sim.machine_processors
        shown[begin + RunningField.RUNNING_PROCESSORS] = np.float32(width)
        shown[begin + RunningField.LOG_AGE] = log_time(float(age))
        shown[begin + RunningField.LOG_TIME_LEFT] = log_time(float(left))
        shown[begin + RunningField.LOG_REQUEST] = sim.log_request[job]
        shown[begin + RunningField.RUNNING_GAVE_WAY] = NINTHS[sim.n_gave_way[job]]
        begin += N_COLUMNS
    for column in range(begin, len(shown)):
        shown[column] = np.float32(0.0)
