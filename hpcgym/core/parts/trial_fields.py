"""What observations show about trials besides counts: chances to end in time, and who runs.

The chance that a job ends within the limit of a trial, given how long it has run, is the share of
its user's last jobs that did, drawn towards that of all completed jobs. Of these only counts by
class of run time are kept (`hpcgym.core.kernels.queue.btree.size_class_of`).

Cost: O(1) at a completion; for an observation O(N_CLASSES), O(SHOWN_RUNNING) for each running job,
O(RING_JOBS) for each visible one, and for each user that has had an end O(RING_JOBS^2), to sort.

Source: Specification, section 10, "Trials as actions".
"""

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import is_on_trial
from hpcgym.core.history import RING_JOBS
from hpcgym.core.kernels.queue.btree import size_class_of
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.scoring.user_history import past_run_time
from hpcgym.core.kernels.types import Int, Jobs, Sim, Single
from hpcgym.core.observation_fields import SHOWN_RUNNING, JobTrialField, RunningField, TrialField
from hpcgym.core.parts.cost_benefit import log_time

N_CLASSES = s.SIZE_CLASSES
FIRST_ROW, N_COLUMNS = len(TrialField), len(RunningField)
DRAWN_AS = 4.0
"""The share of all completed jobs weighs as much as so many jobs of the user."""

# Columns of `Sim.recent` behind the run times.
OF_COMPLETED, OF_LIMIT, WITHIN = range(RING_JOBS, RING_JOBS + 3)

NINTHS = np.array([k / s.MOST_KILLS for k in range(s.MOST_KILLS + 1)], dtype=np.float32)
"""Numbers of attempts as they are shown; a division takes longer."""


@kernel
def record_run_time(jobs: Jobs, sim: Sim, job: int) -> None:
    """Count a job that has ended by its run time; write `n_timed` and `ended_in_class`."""
    if sim.n_timed == 0:
        sim.ended_in_class[:] = 0
        sim.recent[:, OF_COMPLETED] = -1
    sim.n_timed += 1
    sim.ended_in_class[size_class_of(max(jobs.run_time[job], 1))] += 1


@kernel
def add_up_classes(sim: Sim) -> None:
    """Count the completed jobs up to each class; write `ended_up_to`, which shares are read of."""
    n = 0
    for column in range(N_CLASSES):
        if sim.n_timed > 0:
            n += sim.ended_in_class[column]
        sim.ended_up_to[column] = n


@kernel
def keep_recent(jobs: Jobs, sim: Sim, user: int) -> None:
    """Write a user's row of `recent`: the run times, ascending, and of how many completed jobs."""
    recent, completed = sim.recent[user], sim.history_completed[user]
    for spot in range(min(completed, RING_JOBS)):
        run_time = max(past_run_time(jobs, sim, user, spot), 1)
        position = spot
        while position > 0 and recent[position - 1] > run_time:
            recent[position] = recent[position - 1]
            position -= 1
        recent[position] = run_time
    recent[OF_COMPLETED], recent[OF_LIMIT] = completed, -1


@kernel(inlined=True)
def count_up_to(sim: Sim, user: int, n: int, most: int) -> int:
    """Count a user's last n jobs that ran no longer than `most` s, after `keep_recent`."""
    count = 0
    while count < n and sim.recent[user, count] <= most:
        count += 1
    return count


@kernel(inlined=True)
def chance_to_end(jobs: Jobs, sim: Sim, job: int, ran: int, limit: int) -> float:
    """Return the chance that a job which runs longer than `ran` ends within `limit`, both in s."""
    if limit <= ran:
        return 0.0
    user = jobs.user[job]
    recent, n = sim.recent[user], min(sim.history_completed[user], RING_JOBS)
    # Before the first end of an episode, what is kept is of the last one.
    if sim.n_timed == 0 or recent[OF_COMPLETED] != sim.history_completed[user]:
        keep_recent(jobs, sim, user)
    if recent[OF_LIMIT] != limit:
        recent[OF_LIMIT], recent[WITHIN] = limit, count_up_to(sim, user, n, limit)
    before, shorter = 0, 0
    if ran > 0:
        before = sim.ended_up_to[size_class_of(ran)]
        shorter = count_up_to(sim, user, n, ran)
    n_within = sim.ended_up_to[sim.limit_class] - before
    share = (n_within + 1.0) / (sim.n_timed - before + 2.0)
    return (recent[WITHIN] - shorter + DRAWN_AS * share) / (n - shorter + DRAWN_AS)


@kernel(inlined=True)
def was_attempted(sim: Sim, job: int) -> bool:
    """Tell whether an attempt of a job may have ended in vain; if not, it has not run."""
    # Bytes of many jobs share a line of the cache. Attempts that events end are not counted there.
    return sim.n_tried[job] > 0 or sim.n_gave_way[job] > 0 or sim.events_hear != 0


@kernel(inlined=True)
def show_attempt(jobs: Jobs, sim: Sim, job: int, limit: int, may_be_lent: bool) -> None:
    """Write `shown_attempts` of a waiting job, after `show_running`; `limit` is that of trials."""
    entry, ran = entry_of(sim, job), sim.ran[job] if was_attempted(sim, job) else 0
    shown = sim.shown_attempts[entry]
    on_trial = is_on_trial(sim, job)
    if on_trial:
        ran = max(ran, sim.now - sim.since[job])
    if sim.shown_ran[entry] != ran:
        sim.shown_ran[entry] = ran
        shown[JobTrialField.LOG_RAN] = log_time(float(ran))
    shown[JobTrialField.IS_ON_TRIAL] = np.float32(on_trial)
    shown[JobTrialField.TRIED] = NINTHS[sim.n_tried[job]]
    shown[JobTrialField.GAVE_WAY] = NINTHS[sim.n_gave_way[job]]
    shown[JobTrialField.MAY_BE_LENT] = np.float32(may_be_lent)
    shown[JobTrialField.CHANCE_TO_END] = np.float32(chance_to_end(jobs, sim, job, ran, limit))


@kernel(inlined=True)
def may_be_killed(jobs: Jobs, job: int) -> bool:
    """Tell whether a job may be killed and started again."""
    return len(jobs.requeue) == 0 or jobs.requeue[job] == s.MAY_BE_KILLED


@kernel(inlined=True)
def area_run(jobs: Jobs, sim: Sim, job: int) -> int:
    """Return the processors of a running job times its age, s."""
    return int(jobs.processors[job] * (sim.now - sim.start_time[job]))


@kernel(inlined=True)
def put_by_area(listed: Int, areas: Int, n: int, most: int, job: int, area: int) -> int:
    """Put a job into a list of n by area run, ties by number; return how many are listed.

    The list holds the first `most`. Writes `listed` and `areas`.
    """
    position = n
    if n == most:
        position -= 1
        if areas[position] < area or (areas[position] == area and listed[position] < job):
            return n
    while position > 0 and (
        areas[position - 1] > area or (areas[position - 1] == area and listed[position - 1] > job)
    ):
        listed[position] = listed[position - 1]
        areas[position] = areas[position - 1]
        position -= 1
    listed[position] = job
    areas[position] = area
    return min(n + 1, most)


@kernel
def list_running(jobs: Jobs, sim: Sim, listed: Int, areas: Int) -> int:
    """List the running jobs that have run least, by area, and may be killed; return their number.

    They are SHOWN_RUNNING at most, ties by number. Writes `listed` and `areas`.
    """
    n = 0
    most = min(SHOWN_RUNNING, len(listed))
    for at in range(sim.n_running):
        job = sim.ending_job[at]
        if is_on_trial(sim, job) or not may_be_killed(jobs, job):
            continue
        area = area_run(jobs, sim, job)
        if area >= 0:  # else it does not run usefully yet
            n = put_by_area(listed, areas, n, most, job, area)
    return n


@kernel
def show_running(jobs: Jobs, sim: Sim, shown: Single, listed: Int, areas: Int) -> None:
    """Write the rows of `RunningField` behind `TrialField`, and zeros where no job runs.

    Writes `ended_up_to` for the fields of jobs, too, `listed` and `areas`.
    """
    add_up_classes(sim)
    n = list_running(jobs, sim, listed, areas)
    begin = FIRST_ROW
    for row in range(SHOWN_RUNNING):
        for column in range(N_COLUMNS):
            shown[begin + column] = np.float32(0.0)
        if row < n:
            job = listed[row]
            age = sim.now - sim.start_time[job]
            left = max(jobs.estimate[job] - age, 0)
            width = jobs.processors[job] / sim.machine_processors
            shown[begin + RunningField.RUNNING_PROCESSORS] = np.float32(width)
            shown[begin + RunningField.LOG_AGE] = log_time(float(age))
            shown[begin + RunningField.LOG_TIME_LEFT] = log_time(float(left))
            shown[begin + RunningField.LOG_REQUEST] = sim.log_request[job]
            shown[begin + RunningField.RUNNING_GAVE_WAY] = NINTHS[sim.n_gave_way[job]]
        begin += N_COLUMNS
