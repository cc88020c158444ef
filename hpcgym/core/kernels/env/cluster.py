"""What observations show of the cluster: what is free, who waits, who came, and the time of week.

A small observation shows nothing else, the whole queue included. Of a long queue the other one
shows what has no slot, from summaries of the queue's nodes (`hpcgym.core.kernels.queue.summary`).

Source: Specification, section 10, "Observation".
"""

import math

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.moments import ask_ahead, has_limits
from hpcgym.core.engine.schedule_pass import list_within
from hpcgym.core.kernels.queue.ordered_queue import list_jobs
from hpcgym.core.kernels.queue.summary import range_of_areas
from hpcgym.core.kernels.scoring.user_history import MONTH_MINUTES
from hpcgym.core.kernels.types import Int, Jobs, Sim, Single
from hpcgym.core.observation_fields import ClusterField, JobField, SmallField

HORIZONS_S = (300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400)
"""How far ahead the free processors are shown, s."""

N_CLUSTER = len(ClusterField)  # numbers shown of the cluster

SMALL_HORIZONS_S = (3_600, 14_400, 43_200)
"""How far ahead a small observation shows the free processors, s."""

CLASSES_S = (900, 3_600, 14_400, 43_200)
"""Largest estimates of the classes by which it counts waiting jobs, s; the last has no bound."""

OLDEST_SHARE = 4  # one slot in this many shows a job that has waited longest

LOG_MONTH = math.log(1.0 + MONTH_MINUTES)  # divisor of the logarithms of times in minutes

HOUR_S, DAY_S, WEEK_S = 3_600, 86_400, 604_800


@kernel
def squash(value: float, half: float) -> np.float32:
    """Map a value >= 0 into [0, 1), so that `half` becomes 1/2."""
    return np.float32(value / (value + half))


@kernel
def first_since(jobs: Jobs, sim: Sim, first: int, span: int) -> int:
    """Return the first job submitted after `now` - span; `first` is that of an instant before.

    Both only move on, so all calls of an episode together look at each job once.
    """
    while first < sim.next_job and jobs.submit_time[first] <= sim.now - span:
        first += 1
    return first


@kernel
def show_free(jobs: Jobs, sim: Sim, shown: Single, first: int, horizons: tuple[int, ...]) -> None:
    """Write the fraction of the machine that is free, by estimates, at each horizon, s.

    The first is written to place `first`.
    """
    machine = sim.machine_processors
    free = sim.free
    position = sim.n_releases - 1  # the soonest release is last
    for ahead in range(len(horizons)):
        until = sim.now + horizons[ahead]
        while position >= 0 and sim.release_time[position] <= until:
            free += jobs.processors[sim.release_job[position]]
            position -= 1
        shown[first + ahead] = np.float32(free / machine)
    if sim.looks_ahead > 0:  # jobs that are to be taken off make it less than none
        for ahead in range(len(horizons)):
            free = max(ask_ahead(jobs, sim, s.FREE_AHEAD, sim.now + horizons[ahead]), 0)
            shown[first + ahead] = np.float32(free / machine)


@kernel
def show_hidden(jobs: Jobs, sim: Sim, slot: Int, shown: Single, listed: int) -> None:
    """Write count, total area, least and largest area of the waiting jobs without a slot."""
    waiting = sim.n_waiting - sim.n_withheld
    hidden = waiting - len(slot)
    for column in range(ClusterField.HIDDEN_JOBS, N_CLUSTER):
        shown[column] = np.float32(0.0)
    if hidden <= 0:
        return
    hour_of_machine = float(sim.machine_processors * HOUR_S)
    n_first = len(slot) - len(slot) // OLDEST_SHARE
    # The last slot holds the youngest of the oldest: a job is hidden if it is younger.
    youngest = slot[len(slot) - 1] if n_first < len(slot) else -1
    # While a job waits its estimate stays: all areas less those shown are the hidden ones.
    total = sim.waiting_area - sim.withheld_area
    for column in range(len(slot)):
        total -= jobs.processors[slot[column]] * jobs.estimate[slot[column]]
    least = np.float32(1.0)
    most = np.float32(0.0)
    if listed < waiting:
        least, most = range_of_areas(jobs, sim, n_first, youngest)
    else:
        for column in range(n_first, listed):
            job = sim.scratch[column]
            if job > youngest:
                least = min(least, jobs.field[job, JobField.LOG_AREA])
                most = max(most, jobs.field[job, JobField.LOG_AREA])
    shown[ClusterField.HIDDEN_JOBS] = squash(float(hidden), float(len(slot)))
    shown[ClusterField.HIDDEN_AREA] = squash(float(total), hour_of_machine)
    shown[ClusterField.HIDDEN_LEAST_AREA] = least
    shown[ClusterField.HIDDEN_LARGEST_AREA] = most


@kernel
def show_submitted(jobs: Jobs, sim: Sim, shown: Single, first: int) -> None:
    """Write how many jobs were submitted in the last hour and day, from place `first` on."""
    sim.hour_ago = first_since(jobs, sim, sim.hour_ago, HOUR_S)
    sim.day_ago = first_since(jobs, sim, sim.day_ago, DAY_S)
    shown[first] = squash(float(sim.next_job - sim.hour_ago), 10.0)
    shown[first + 1] = squash(float(sim.next_job - sim.day_ago), 100.0)


@kernel
def show_angle(sim: Sim, shown: Single, first: int, period: int) -> None:
    """Write sine and cosine of where in a day or week of `period` s now is, from `first` on."""
    angle = 2.0 * math.pi * ((sim.week_start + sim.now) % period) / period
    shown[first] = np.float32(math.sin(angle))
    shown[first + 1] = np.float32(math.cos(angle))


@kernel(inlined=True)
def log_time(seconds: float) -> np.float32:
    """Map a time >= 0 s into [0, 1], a month to 1."""
    if seconds == 0.0:
        return np.float32(0.0)
    return np.float32(min(math.log(1.0 + seconds / 60.0) / LOG_MONTH, 1.0))


@kernel
def show_waiting(jobs: Jobs, sim: Sim, shown: Single, listed: int) -> None:
    """Write what `SmallField` says of the waiting jobs, as listed in `scratch`.

    Costs a step for each of them and each class of estimates.
    """
    machine, processors, widest, waited, longest = sim.machine_processors, 0, 0, 0, 0
    least = 0  # estimate of a class, s, exclusive
    for size in range(len(CLASSES_S) + 1):
        most = CLASSES_S[size] if size < len(CLASSES_S) else s.NEVER
        count, area = 0, 0
        for position in range(listed):
            job = sim.scratch[position]
            if least < jobs.estimate[job] <= most:
                q, wait = int(jobs.processors[job]), int(sim.now - jobs.submit_time[job])
                count += 1
                area += q * int(jobs.estimate[job])
                processors += q
                waited += wait
                widest, longest = max(widest, q), max(longest, wait)
        shown[SmallField.JOBS_TO_15_MIN + size] = squash(float(count), 10.0)
        shown[SmallField.AREA_TO_15_MIN + size] = squash(float(area), float(machine * HOUR_S))
        least = most
    shown[SmallField.WAITING_PROCESSORS] = squash(float(processors), float(machine))
    shown[SmallField.WIDEST] = np.float32(widest / machine)
    shown[SmallField.LOG_LONGEST_WAIT_TIME] = log_time(float(longest))
    shown[SmallField.LOG_MEAN_WAIT_TIME] = log_time(waited / max(listed, 1))


@kernel
def show_small(jobs: Jobs, sim: Sim, shown: Single) -> None:
    """Write a small observation, shape (N_SMALL,).

    Writes `scratch`, `hour_ago`, `day_ago` and what `list_within` writes.
    """
    if has_limits(sim):
        listed = list_within(jobs, sim)
    else:
        listed = list_jobs(sim, s.BASE_ORDER, sim.scratch)
    show_waiting(jobs, sim, shown, listed)
    machine = sim.machine_processors
    shown[SmallField.BUSY_PROCESSORS] = np.float32((machine - sim.free) / machine)
    show_free(jobs, sim, shown, SmallField.FREE_IN_1_H, SMALL_HORIZONS_S)
    show_submitted(jobs, sim, shown, SmallField.SUBMITTED_LAST_HOUR)
    show_angle(sim, shown, SmallField.HOUR_OF_DAY_SIN, DAY_S)
    show_angle(sim, shown, SmallField.HOUR_OF_WEEK_SIN, WEEK_S)


@kernel
def show_cluster(jobs: Jobs, sim: Sim, slot: Int, shown: Single, listed: int) -> None:
    """Write the state of the cluster, shape (N_CLUSTER,)."""
    machine = sim.machine_processors
    shown[ClusterField.FREE_PROCESSORS] = np.float32(sim.free / machine)
    show_free(jobs, sim, shown, ClusterField.FREE_PROCESSORS_IN_300_S, HORIZONS_S)
    processors = sim.waiting_processors - sim.withheld_processors
    area = sim.waiting_area - sim.withheld_area
    shown[ClusterField.QUEUED_PROCESSORS] = squash(float(processors), float(machine))
    shown[ClusterField.QUEUED_AREA] = squash(float(area), float(machine * HOUR_S))
    show_submitted(jobs, sim, shown, ClusterField.SUBMITTED_LAST_HOUR)
    show_angle(sim, shown, ClusterField.HOUR_OF_WEEK_SIN, WEEK_S)
    show_hidden(jobs, sim, slot, shown, listed)
