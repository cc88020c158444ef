"""What an agent sees: the visible jobs, and the state of the cluster; estimates only.

Every number lies in [-1, 1]; the data sheet in `hpcgym.env.scheduling` gives each formula. What
does not change is worked out before the episode (`JobTable.field`) or at a job's submission
(`Sim.history_field`), what is expected when a job of the user ends; left are two logarithms per
visible job. Run times of jobs that have not ended are read nowhere here.
"""

import math

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.easy import reserve
from hpcgym.core.kernels.passes.multi_queue_delay import is_held
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.queue.ordered_queue import list_jobs
from hpcgym.core.kernels.running_jobs import is_overdue
from hpcgym.core.kernels.scoring.user_estimates import expect_now
from hpcgym.core.kernels.scoring.user_history import MONTH_MINUTES
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    BASE,
    DAY_AGO,
    EXPECT_BY_REGRESSION,
    EXPECT_NOTHING,
    FREE,
    HOUR_AGO,
    LOG_LARGEST,
    MACHINE_PROCESSORS,
    N_HELD,
    N_HISTORY_FIELDS,
    N_OVERDUE,
    N_RELEASES,
    N_STATIC_FIELDS,
    N_WAITING,
    NEXT_JOB,
    NOW,
    PROCESSORS,
    REGRESSED_RUN_TIME_RATIO,
    REGRESSED_SPEED,
    REQUEST,
    RUN_TIME_RATIO,
    SHADOW,
    SHOW_EXPECTED,
    SPEED,
    WAITING_AREA,
    WAITING_PROCESSORS,
    WEEK_START,
    E,
    Q,
)

N_MOVING_FIELDS = 5
N_EXPECTED_FIELDS = 3
N_FIELDS = N_STATIC_FIELDS + N_MOVING_FIELDS + N_HISTORY_FIELDS + N_EXPECTED_FIELDS
"""Numbers shown of each visible job."""

HORIZONS_S = (300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400)
"""How far ahead the free processors are shown, s."""

N_CLUSTER = 19
"""Numbers shown of the cluster."""

OLDEST_SHARE = 4
"""One slot in so many is kept for the jobs that have waited longest."""

LOG_MONTH = math.log(1.0 + MONTH_MINUTES)
LOG_RATIO = math.log(10_000.0)
"""What the logarithms of a wait are divided by: of a month in minutes, and by the estimate."""

HOUR_S = 3_600
DAY_S = 86_400
WEEK_S = 604_800

Floats = NDArray[np.float32]


@kernel
def count_visible(slot: NDArray[np.int64]) -> int:
    """Count the slots that hold a job, which are the first ones.

    Args:
        slot: Job in each slot, shape (n_slots,), -1 = empty.

    Returns:
        How many.

    Source:
        House rule: cost grows with the queue, not with the room for it.
    """
    visible = 0
    while visible < len(slot) and slot[visible] >= 0:
        visible += 1
    return visible


@kernel(inlined=True)
def fill_slot(slot: NDArray[np.int64], mask: Floats, place: int, job: int) -> None:
    """Put a job into a slot, and take the mark off if it is another job than before.

    Args:
        slot: Job in each slot, shape (n_slots,).
        mask: 1 where the observation holds what never changes of the slot's job, shape (n_slots,).
        place: The slot.
        job: Index of a waiting job.

    Writes:
        `slot` and `mask`.

    Source:
        House rule: what is shown already need not be shown anew.
    """
    if slot[place] != job:
        slot[place] = job
        mask[place] = np.float32(0.0)


@kernel
def fill_slots(sim: Sim, slot: NDArray[np.int64], mask: Floats, before: int) -> int:
    """Choose the visible jobs: the first of the base order, then the oldest of the rest.

    Three quarters of the slots go to the first jobs of the base order; of the others, the last
    quarter shows those that have waited longest. The choice costs O(n_waiting).

    Args:
        row: The simulation, its `scratch` a list of the waiting jobs in base order.
        slot: Job in each slot until now, shape (n_slots,), -1 = empty.
        mask: Marks of `fill_slot`, shape (n_slots,).
        before: How many slots hold a job until now.

    Returns:
        Number of visible jobs.

    Writes:
        `slot`: index of the job in each, -1 = empty; `mask`.

    Source:
        Specification, section 10, "Observation": never the first-come ones only.
    """
    n_slots = len(slot)
    n_first = min(n_slots - n_slots // OLDEST_SHARE, sim.counter[N_WAITING])
    for place in range(n_first):
        fill_slot(slot, mask, place, sim.scratch[place])
    shown = n_first
    for place in range(n_first, sim.counter[N_WAITING]):
        job = sim.scratch[place]
        if shown < n_slots:
            shown += 1
        elif shown == n_first or slot[n_slots - 1] < job:
            continue
        other = shown - 1
        while other > n_first and slot[other - 1] > job:
            fill_slot(slot, mask, other, slot[other - 1])
            other -= 1
        fill_slot(slot, mask, other, job)
    for empty in range(shown, before):
        slot[empty] = -1
    return shown


@kernel
def shadow_of_base(jobs: Jobs, sim: Sim) -> int:
    """Find the shadow time of the first job of the base order that does not fit now.

    Args:
        jobs: The job table.
        row: The simulation, its `scratch` a list of the waiting jobs in base order.

    Returns:
        The shadow time, s; -1 if every waiting job fits.

    Writes:
        SHADOW and EXTRA, which the pass works out anew.

    Source:
        Specification, section 10, "Observation": ends before the shadow.
    """
    free = sim.counter[FREE]
    for place in range(sim.counter[N_WAITING]):
        job = sim.scratch[place]
        if jobs.processors[job] > free:
            reserve(jobs, sim, job)
            return sim.counter[SHADOW]
    return -1


@kernel(inlined=True)
def show_newcomer(jobs: Jobs, sim: Sim, job: int, shown: Floats, first: int) -> None:
    """Write the fields of a job that do not change while it waits.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a waiting job.
        shown: Where to, shape (n_slots * n_fields,).
        first: Place of the job's first field there.

    Writes:
        `shown`.

    Source:
        Specification, section 10, "Observation".
    """
    for column in range(N_STATIC_FIELDS):
        shown[first + column] = jobs.field[job, column]
    entry = entry_of(sim, job)
    for column in range(N_HISTORY_FIELDS):
        shown[first + 9 + column] = sim.history_field[entry, column]


@kernel(inlined=True)
def show_wait(jobs: Jobs, sim: Sim, job: int, shadow: int, shown: Floats, first: int) -> None:
    """Write the fields of a job that move.

    The features that a pass has just weighed are at hand, so the job's estimate and processors are
    read there.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a waiting job.
        shadow: Shadow time of the base order's head, s, -1 = every job fits.
        shown: Where to, shape (n_slots * n_fields,).
        first: Place of the job's first field there.

    Writes:
        `shown`.

    Source:
        Specification, section 10, "Observation".
    """
    now = sim.counter[NOW]
    wait = now - jobs.submit_time[job]
    estimate = jobs.feature[job, E]
    waited = -1.0
    shown[first + 4] = np.float32(0.0)
    if wait > 0:
        shown[first + 4] = np.float32(min(math.log(1.0 + wait / 60.0) / LOG_MONTH, 1.0))
        waited = max(min(math.log(wait / estimate) / LOG_RATIO, 1.0), -1.0)
    shown[first + 5] = np.float32(waited)
    held = sim.counter[N_HELD] > 0 and is_held(sim, job)
    shown[first + 6] = np.float32(jobs.feature[job, Q] <= sim.counter[FREE] and not held)
    shown[first + 7] = np.float32(shadow < 0 or now + estimate <= shadow)
    shown[first + 8] = np.float32(sim.counter[N_OVERDUE] > 0 and is_overdue(sim, job))


@kernel(inlined=True)
def show_expected(jobs: Jobs, sim: Sim, job: int, shown: Floats, first: int) -> None:
    """Write the fields of a job that change when a job of its user ends, or any job.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a waiting job.
        shown: Where to, shape (n_slots * n_fields,).
        first: Place of the job's first field there.

    Writes:
        `shown`; what `expect_now` writes.

    Source:
        Specification, section 10, "Information".
    """
    term = sim.expected[expect_now(jobs, sim, job)]
    run_time_ratio, speed = term[RUN_TIME_RATIO], term[SPEED]
    if sim.setting[SHOW_EXPECTED] == EXPECT_BY_REGRESSION:
        run_time_ratio, speed = term[REGRESSED_RUN_TIME_RATIO], term[REGRESSED_SPEED]
    log_largest = sim.gauge[LOG_LARGEST]
    index = term[PROCESSORS] + 2.0 * term[REQUEST] + run_time_ratio - speed
    largest_index = 2.0 * log_largest + math.log(sim.setting[MACHINE_PROCESSORS])
    shown[first + 15] = np.float32(max(run_time_ratio / log_largest, -1.0))
    shown[first + 16] = np.float32(min(speed / log_largest, 1.0))
    shown[first + 17] = np.float32(min(index / largest_index, 1.0))


@kernel
def squash(value: float, half: float) -> np.float32:
    """Map a quantity without bound into [0, 1).

    Args:
        value: The quantity, >= 0.
        half: What becomes 1/2.

    Returns:
        value / (value + half).

    Source:
        House rule: each squashed quantity states what becomes one half.
    """
    return np.float32(value / (value + half))


@kernel
def count_since(jobs: Jobs, sim: Sim, pointer: int, span: int) -> int:
    """Count the submissions of the last `span` seconds, in amortised constant time.

    Args:
        jobs: The job table.
        row: The simulation.
        pointer: Column of `counter` that remembers the first of them.
        span: How far back, s.

    Returns:
        Number of jobs submitted after now - span.

    Writes:
        The pointer.

    Source:
        Specification, section 10, "Observation".
    """
    first = sim.counter[pointer]
    while first < sim.counter[NEXT_JOB] and jobs.submit_time[first] <= sim.counter[NOW] - span:
        first += 1
    sim.counter[pointer] = first
    return sim.counter[NEXT_JOB] - first


@kernel
def show_free(jobs: Jobs, sim: Sim, shown: Floats) -> None:
    """Write the processors free now and at each horizon, by estimates.

    Args:
        jobs: The job table.
        row: The simulation.
        shown: Where to, shape (1 + number of horizons,).

    Writes:
        `shown`: shares of the machine.

    Source:
        Specification, section 10, "Observation".
    """
    machine = sim.setting[MACHINE_PROCESSORS]
    free = sim.counter[FREE]
    shown[0] = np.float32(free / machine)
    place = sim.counter[N_RELEASES] - 1
    for ahead in range(len(HORIZONS_S)):
        until = sim.counter[NOW] + HORIZONS_S[ahead]
        while place >= 0 and sim.release_time[place] <= until:
            free += jobs.processors[sim.release_job[place]]
            place -= 1
        shown[1 + ahead] = np.float32(free / machine)


@kernel
def show_hidden(jobs: Jobs, sim: Sim, slot: NDArray[np.int64], shown: Floats) -> None:
    """Write what is known of the waiting jobs without a slot.

    Args:
        jobs: The job table.
        row: The simulation, its `scratch` a list of the waiting jobs in base order.
        slot: Job in each slot, shape (n_slots,), -1 = empty.
        shown: Where to, shape (4,): count, total area, least area, largest area.

    Writes:
        `shown`.

    Source:
        Specification, section 10, "Observation".
    """
    hidden = sim.counter[N_WAITING] - len(slot)
    for column in range(4):
        shown[column] = np.float32(0.0)
    if hidden <= 0:
        return
    hour_of_machine = float(sim.setting[MACHINE_PROCESSORS] * HOUR_S)
    n_first = len(slot) - len(slot) // OLDEST_SHARE
    youngest = slot[len(slot) - 1] if n_first < len(slot) else -1
    total = 0
    least = np.float32(1.0)
    most = np.float32(0.0)
    for place in range(n_first, sim.counter[N_WAITING]):
        job = sim.scratch[place]
        if job <= youngest:
            continue
        total += jobs.processors[job] * jobs.estimate[job]
        least = min(least, jobs.field[job, 3])
        most = max(most, jobs.field[job, 3])
    shown[0] = squash(float(hidden), float(len(slot)))
    shown[1] = squash(float(total), hour_of_machine)
    shown[2] = least
    shown[3] = most


@kernel
def show_cluster(jobs: Jobs, sim: Sim, slot: NDArray[np.int64], shown: Floats) -> None:
    """Write the state of the cluster.

    Args:
        jobs: The job table.
        row: The simulation, its `scratch` a list of the waiting jobs in base order.
        slot: Job in each slot, shape (n_slots,), -1 = empty.
        shown: Where to, shape (N_CLUSTER,).

    Writes:
        `shown`.

    Source:
        Specification, section 10, "Observation".
    """
    machine = sim.setting[MACHINE_PROCESSORS]
    show_free(jobs, sim, shown[:9])
    shown[9] = squash(float(sim.counter[WAITING_PROCESSORS]), float(machine))
    shown[10] = squash(float(sim.counter[WAITING_AREA]), float(machine * HOUR_S))
    shown[11] = squash(float(count_since(jobs, sim, HOUR_AGO, HOUR_S)), 10.0)
    shown[12] = squash(float(count_since(jobs, sim, DAY_AGO, DAY_S)), 100.0)
    moment = (sim.setting[WEEK_START] + sim.counter[NOW]) % WEEK_S
    angle = 2.0 * math.pi * moment / WEEK_S
    shown[13] = np.float32(math.sin(angle))
    shown[14] = np.float32(math.cos(angle))
    show_hidden(jobs, sim, slot, shown[15:])


@kernel
def observe(
    jobs: Jobs,
    sim: Sim,
    slot: NDArray[np.int64],
    shown_jobs: Floats,
    shown_cluster: Floats,
    mask: Floats,
) -> None:
    """Write an observation, over the one before or over zeros.

    What lies beyond the last visible job is zero already, but for the jobs that were visible before
    and are not any more; and what never changes of a job is there already, if it is in the slot it
    was in. An observation costs what has changed, not what there is room for.

    Args:
        jobs: The job table.
        row: The simulation.
        slot: Job in each slot of the observation before, shape (n_slots,), -1 = empty.
        shown_jobs: Where the jobs' fields go, shape (n_slots * n_fields,), row-major; zeros, or the
            observation before.
        shown_cluster: Where the state of the cluster goes, shape (N_CLUSTER,).
        mask: Which slots hold a job, shape (n_slots,), 1 or 0; zeros, or as `shown_jobs` before.

    Writes:
        The four arrays; `scratch`, which lists the waiting jobs in base order meanwhile.

    Source:
        Specification, section 10, "Observation".
    """
    list_jobs(sim, BASE, sim.scratch)
    before = count_visible(slot)
    shown = fill_slots(sim, slot, mask, before)
    shadow = shadow_of_base(jobs, sim)
    for place in range(shown):
        if mask[place] == 0.0:
            show_newcomer(jobs, sim, slot[place], shown_jobs, place * N_FIELDS)
            mask[place] = np.float32(1.0)
        show_wait(jobs, sim, slot[place], shadow, shown_jobs, place * N_FIELDS)
        if sim.setting[SHOW_EXPECTED] != EXPECT_NOTHING:
            show_expected(jobs, sim, slot[place], shown_jobs, place * N_FIELDS)
    if before > shown:
        shown_jobs[shown * N_FIELDS : before * N_FIELDS] = np.float32(0.0)
        mask[shown:before] = np.float32(0.0)
    show_cluster(jobs, sim, slot, shown_cluster)
