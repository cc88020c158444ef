"""What observations show about trials besides counts: chances to end in time, and who runs.

The chance that a job ends within the limit of a trial, given how long it has run, is the share of
its user's last jobs that did, drawn towards that of all completed jobs. Of these only counts by
class of run time are kept (`hpcgym.core.kernels.queue.btree.size_class_of`).

Cost: O(1) at a completion; for an observation O(N_CLASSES), O(SHOWN_RUNNING) for each running job,
and O(RING_JOBS) for each visible one whose user's chance is not known yet.

Source: Specification, section 10, "Trials as actions".
"""

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import is_on_trial
from hpcgym.core.history import RING_JOBS
from hpcgym.core.kernels.queue.btree import size_class_of
from hpcgym.core.kernels.scoring.user_history import past_run_time
from hpcgym.core.kernels.types import Jobs, Sim, Single
from hpcgym.core.observation_fields import SHOWN_RUNNING, RunningField, TrialField
from hpcgym.core.parts.cost_benefit import log_time

N_CLASSES = s.SIZE_CLASSES
FIRST_ROW, N_COLUMNS = len(TrialField), len(RunningField)
DRAWN_AS = 4.0
"""The share of all completed jobs weighs as much as so many jobs of the user."""


@kernel
def record_run_time(jobs: Jobs, sim: Sim, job: int) -> None:
    """Count a job that has ended by its run time; write `n_timed` and `ended_in_class`."""
    if sim.n_timed == 0:
        sim.ended_in_class[:] = 0
        sim.chance_timed[:] = 0
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
def kept_chance(jobs: Jobs, sim: Sim, job: int, ran: int, limit: int) -> float:
    """Return `chance_to_end`; that of jobs that have not run is kept until another job ends."""
    user = jobs.user[job]
    if ran > 0 or sim.n_timed == 0:
        return chance_to_end(jobs, sim, job, ran, limit)
    if sim.chance_timed[user] != sim.n_timed or sim.chance_limit[user] != limit:
        sim.chance_kept[user] = chance_to_end(jobs, sim, job, 0, limit)
        sim.chance_timed[user] = sim.n_timed
        sim.chance_limit[user] = limit
    return sim.chance_kept[user]


@kernel
def chance_to_end(jobs: Jobs, sim: Sim, job: int, ran: int, limit: int) -> float:
    """Return the chance that a job which runs longer than `ran` ends within `limit`, both in s."""
    if limit <= ran:
        return 0.0
    before = sim.ended_up_to[size_class_of(ran)] if ran > 0 else 0
    n_longer = sim.n_timed - before
    n_within = sim.ended_up_to[size_class_of(limit)] - before
    share = (n_within + 1.0) / (n_longer + 2.0)
    own_longer, own_within = 0, 0
    user = jobs.user[job]
    for spot in range(min(sim.history_completed[user], RING_JOBS)):
        run_time = max(past_run_time(jobs, sim, user, spot), 1)
        own_longer += int(run_time > ran)
        own_within += int(ran < run_time <= limit)
    return (own_within + DRAWN_AS * share) / (own_longer + DRAWN_AS)


@kernel(inlined=True)
def may_be_killed(jobs: Jobs, job: int) -> bool:
    """Tell whether a job may be killed and started again."""
    return len(jobs.requeue) == 0 or jobs.requeue[job] == s.MAY_BE_KILLED


@kernel(inlined=True)
def area_run(jobs: Jobs, sim: Sim, job: int) -> int:
    """Return the processors of a running job times its age, s."""
    return int(jobs.processors[job] * (sim.now - sim.start_time[job]))


@kernel
def list_running(jobs: Jobs, sim: Sim) -> int:
    """List the running jobs that have run least, by area, and may be killed; return their number.

    They are SHOWN_RUNNING at most, ties by number. Writes `scratch`.
    """
    n = 0
    most = min(SHOWN_RUNNING, len(sim.scratch))
    for at in range(sim.n_running):
        job = sim.ending_job[at]
        if is_on_trial(sim, job) or not may_be_killed(jobs, job):
            continue
        area = area_run(jobs, sim, job)
        if area < 0:  # it does not run usefully yet
            continue
        position = n
        while position > 0:
            other = sim.scratch[position - 1]
            other_area = area_run(jobs, sim, other)
            if other_area < area or (other_area == area and other < job):
                break
            if position < most:
                sim.scratch[position] = other
            position -= 1
        if position < most:
            sim.scratch[position] = job
            n = min(n + 1, most)
    return n


@kernel
def show_running(jobs: Jobs, sim: Sim, shown: Single) -> None:
    """Write the rows of `RunningField` behind `TrialField`, and zeros where no job runs.

    Writes `ended_up_to` for the fields of jobs, too, and `scratch`.
    """
    add_up_classes(sim)
    n = list_running(jobs, sim)
    begin = FIRST_ROW
    for row in range(SHOWN_RUNNING):
        for column in range(N_COLUMNS):
            shown[begin + column] = np.float32(0.0)
        if row < n:
            job = sim.scratch[row]
            age = sim.now - sim.start_time[job]
            left = max(jobs.estimate[job] - age, 0)
            width = jobs.processors[job] / sim.machine_processors
            shown[begin + RunningField.RUNNING_PROCESSORS] = np.float32(width)
            shown[begin + RunningField.LOG_AGE] = log_time(float(age))
            shown[begin + RunningField.LOG_TIME_LEFT] = log_time(float(left))
            shown[begin + RunningField.LOG_REQUEST] = log_time(float(jobs.requested_time[job]))
            gave_way = sim.n_gave_way[job] / s.MOST_KILLS
            shown[begin + RunningField.RUNNING_GAVE_WAY] = np.float32(gave_way)
        begin += N_COLUMNS
