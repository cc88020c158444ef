"""What an agent sees: the visible jobs and the state of the cluster, by estimates only.

Every number lies in [-1, 1]; `hpcgym.core.observation_fields` gives the formulas. No run time of a
job that has not ended is read here. Fields that do not change are computed before the episode
(`Jobs.field`) or at the submission (`history_field`), expectations when a job of the user ends. Two
logarithms per visible job remain.

A queue that is long beside the slots is not walked. Its first jobs come from the base order, the
oldest from the links by age, and what is shown of the others from the summaries of the base queue's
nodes (`hpcgym.core.kernels.queue.summary`). A short queue is listed, which costs less. So is each
where limits hold, since jobs beyond one are out of sight.

Source: Specification, section 10, "Observation".
"""

import math

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import (
    ask_mode,
    ask_nodes,
    has_nodes,
    show_of_cluster,
    show_of_job,
)
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.moments import ask_ahead, has_limits, tell_events
from hpcgym.core.engine.schedule_pass import fits_now, list_within, reserve_for
from hpcgym.core.kernels.queue.entries import YOUNGER, entry_of, is_held, is_overdue, link_youngest
from hpcgym.core.kernels.queue.ordered_queue import list_first, list_jobs, precedes
from hpcgym.core.kernels.queue.selection import SHORT_LIST, sort_listed
from hpcgym.core.kernels.queue.summary import first_wider, forget_all, range_of_areas
from hpcgym.core.kernels.scoring.user_estimates import expect_now, urgent_score, weight_of_width
from hpcgym.core.kernels.scoring.user_history import MONTH_MINUTES
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.observation_fields import (
    N_HISTORY_FIELDS,
    N_STATIC_FIELDS,
    N_TRIAL_FIELDS,
    ClusterField,
    ControlsField,
    JobField,
    JobTrialField,
    SmallField,
)

N_FIELDS = len(JobField)  # numbers shown of each visible job

HORIZONS_S = (300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400)
"""How far ahead the free processors are shown, s."""

N_CLUSTER = len(ClusterField)  # numbers shown of the cluster

N_CONTROLS, N_TRIALS, N_JOB_TRIALS = len(ControlsField), N_TRIAL_FIELDS, len(JobTrialField)
"""Numbers shown of it for controls and about trials, and about those of each visible job."""

N_WITH_TRIALS = N_FIELDS + N_JOB_TRIALS
"""Numbers shown of each visible job where those about trials are the only further ones."""

SMALL_HORIZONS_S = (3_600, 14_400, 43_200)
"""How far ahead a small observation shows the free processors, s."""

CLASSES_S = (900, 3_600, 14_400, 43_200)
"""Largest estimates of the classes by which it counts waiting jobs, s; the last has no bound."""

OLDEST_SHARE = 4  # one slot in this many shows a job that has waited longest

LOG_MONTH = math.log(1.0 + MONTH_MINUTES)
LOG_RATIO = math.log(10_000.0)
"""Divisors of the logarithms of a wait, in minutes (a month) and over the estimate (10^4)."""

HOUR_S = 3_600
DAY_S = 86_400
WEEK_S = 604_800

Floats = NDArray[np.float32]


@kernel
def count_visible(slot: NDArray[np.int64]) -> int:
    """Count the slots that hold a job; these are the first ones."""
    visible = 0
    while visible < len(slot) and slot[visible] >= 0:
        visible += 1
    return visible


@kernel(inlined=True)
def fill_slot(slot: NDArray[np.int64], mask: Floats, position: int, job: int) -> None:
    """Put a job into a slot, and clear the slot's mask if it held another job."""
    # Mask 1 means that the observation holds this job's unchanging fields in this slot.
    if slot[position] != job:
        slot[position] = job
        mask[position] = np.float32(0.0)


@kernel
def list_oldest(sim: Sim, n_first: int, most: int) -> int:
    """List jobs behind the `n_first` listed ones, oldest first, up to `most` in all.

    The first ones in base order are listed in `scratch`, and more than `most` jobs wait. Return
    `most`. Costs `most` steps. Writes `scratch`.
    """
    last = sim.scratch[n_first - 1]
    n = n_first
    job = sim.oldest
    while n < most:
        if job != last and not precedes(sim, s.BASE_ORDER, job, last):
            sim.scratch[n] = job
            n += 1
        job = sim.age[entry_of(sim, job), YOUNGER]
    return n


@kernel
def begin_summaries(sim: Sim) -> None:
    """Link the waiting jobs by age, and keep links and summaries from now on.

    Costs O(n log n) with n waiting jobs. Writes keys of `PASS_ORDER`, which no decision has set
    yet, `scratch`, `age`, summaries and `keeps_summary`.
    """
    n = list_jobs(sim, s.BASE_ORDER, sim.scratch)
    for position in range(n):  # equal keys order by index, so by submission
        sim.key[s.PASS_ORDER, entry_of(sim, sim.scratch[position])] = 0.0
    sort_listed(sim, s.PASS_ORDER, n)
    sim.oldest = sim.youngest = -1
    for position in range(n):
        link_youngest(sim, sim.scratch[position], entry_of(sim, sim.scratch[position]))
    forget_all(sim)
    sim.keeps_summary = 1


@kernel
def list_shown(sim: Sim, n_slots: int) -> int:
    """List the waiting jobs in `scratch` in base order, and return their number.

    Of a long queue list those only that are shown: the first ones, and then the oldest.
    """
    longest = max(n_slots, SHORT_LIST)
    if sim.n_waiting <= longest:
        # A queue that grows and shrinks about this length does not begin each time anew.
        if sim.n_waiting <= longest // 2:
            sim.keeps_summary = 0
        return list_jobs(sim, s.BASE_ORDER, sim.scratch)
    if sim.keeps_summary == 0:
        begin_summaries(sim)
    n_first = n_slots - n_slots // OLDEST_SHARE
    return list_oldest(sim, list_first(sim, s.BASE_ORDER, sim.scratch, n_first), n_slots)


@kernel
def fill_slots(sim: Sim, slot: NDArray[np.int64], mask: Floats, before: int, listed: int) -> int:
    """Choose the visible jobs, and return their number.

    Three quarters of the slots show the first jobs in base order, as listed in `scratch`. Of the
    other listed jobs, those that have waited longest have the other slots, oldest first. `before`
    is the number of jobs in `slot` so far. Writes `slot` and `mask`.
    """
    n_slots = len(slot)
    if sim.shows_anew == 1:
        sim.shows_anew = 0
        mask[:before] = np.float32(0.0)
    n_first = min(n_slots - n_slots // OLDEST_SHARE, listed)
    for position in range(n_first):
        fill_slot(slot, mask, position, sim.scratch[position])
    # Of the other jobs keep the oldest, by insertion: jobs are numbered by submission, so the
    # smaller index has waited longer.
    shown = n_first
    for position in range(n_first, listed):
        job = sim.scratch[position]
        if shown < n_slots:
            shown += 1
        elif shown == n_first or slot[n_slots - 1] < job:
            continue  # no slot for old jobs, or only older ones in them
        other = shown - 1
        while other > n_first and slot[other - 1] > job:
            fill_slot(slot, mask, other, slot[other - 1])
            other -= 1
        fill_slot(slot, mask, other, job)
    for empty in range(shown, before):
        slot[empty] = -1
    return shown


@kernel
def shadow_of_base(jobs: Jobs, sim: Sim, n_slots: int, listed: int) -> int:
    """Return the shadow time, s, of the first job in base order that does not fit; -1 if all fit.

    Writes `shadow` and `extra`, which the pass computes again.
    """
    free = sim.free
    is_whole = listed == sim.n_waiting - sim.n_withheld
    n_first = listed if is_whole else n_slots - n_slots // OLDEST_SHARE
    for position in range(n_first):
        job = sim.scratch[position]
        if jobs.processors[job] > free or (sim.looks_ahead > 0 and not fits_now(jobs, sim, job)):
            reserve_for(jobs, sim, job)
            return sim.shadow
    head = -1 if is_whole else first_wider(jobs, sim, free)
    if head >= 0:
        reserve_for(jobs, sim, head)
        return sim.shadow
    return -1


@kernel(inlined=True)
def show_submission(jobs: Jobs, sim: Sim, job: int, shown: Floats, first: int) -> None:
    """Write the fields of a waiting job that do not change, from place `first` of `shown` on."""
    for column in range(N_STATIC_FIELDS):
        shown[first + column] = jobs.field[job, column]
    entry = entry_of(sim, job)
    for column in range(N_HISTORY_FIELDS):
        shown[first + JobField.USER_LOG_COMPLETED + column] = sim.history_field[entry, column]


@kernel(inlined=True)
def show_wait(jobs: Jobs, sim: Sim, job: int, shadow: int, shown: Floats, first: int) -> None:
    """Write the fields of a waiting job that change with time; `shadow` as of `shadow_of_base`."""
    now = sim.now
    wait = now - jobs.feature[job, s.FEATURE_SUBMIT]  # scores read `feature`, so it is in the cache
    estimate = jobs.feature[job, s.FEATURE_ESTIMATE]
    waited = -1.0
    shown[first + JobField.LOG_WAIT_TIME] = np.float32(0.0)
    if wait > 0.0:
        shown[first + JobField.LOG_WAIT_TIME] = np.float32(
            min(math.log(1.0 + wait / 60.0) / LOG_MONTH, 1.0)
        )
        waited = max(min(math.log(wait / estimate) / LOG_RATIO, 1.0), -1.0)
    shown[first + JobField.LOG_WAIT_BY_ESTIMATE] = np.float32(waited)
    held = sim.n_held > 0 and is_held(sim, job)
    fits = jobs.feature[job, s.FEATURE_PROCESSORS] <= sim.free and not held
    shown[first + JobField.FITS_NOW] = np.float32(fits)
    shown[first + JobField.ENDS_BEFORE_SHADOW] = np.float32(shadow < 0 or now + estimate <= shadow)
    is_thresholded = sim.n_overdue > 0 and is_overdue(sim, job)
    shown[first + JobField.IS_THRESHOLDED] = np.float32(is_thresholded)


@kernel(inlined=True)
def show_expected(jobs: Jobs, sim: Sim, job: int, shown: Floats, first: int) -> None:
    """Write the fields that change when a job of the user ends or, by regression, any job."""
    term = sim.expected[expect_now(jobs, sim, job)]
    run_time_ratio, speed = term[s.TERM_RUN_TIME_RATIO], term[s.TERM_SPEED]
    if sim.show_expected != s.EXPECT_BY_RECORDS:
        run_time_ratio, speed = term[s.TERM_REGRESSED_RUN_TIME_RATIO], term[s.TERM_REGRESSED_SPEED]
    log_largest = sim.log_largest
    index = term[s.TERM_PROCESSORS] + 2.0 * term[s.TERM_REQUEST] + run_time_ratio - speed
    if sim.show_expected == s.EXPECT_URGENCY:
        wait = sim.now - jobs.feature[job, s.FEATURE_SUBMIT]
        width = weight_of_width(sim, s.USUAL_URGENCY)
        index = max(urgent_score(jobs, sim, s.USUAL_URGENCY, job, wait, width), 0.0)
    largest_index = 2.0 * log_largest + math.log(sim.machine_processors)
    shown[first + JobField.LOG_EXPECTED_RUN_TIME_RATIO] = np.float32(
        max(run_time_ratio / log_largest, -1.0)
    )
    shown[first + JobField.LOG_EXPECTED_SPEED] = np.float32(min(speed / log_largest, 1.0))
    shown[first + JobField.LOG_EXPECTED_INDEX] = np.float32(min(index / largest_index, 1.0))


@kernel
def show_nodes(jobs: Jobs, sim: Sim, job: int, shown: Floats, first: int) -> None:
    """Write the fields of a waiting job that depend on nodes, over two that `show_wait` wrote."""
    bits = ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_SHOW_JOB, job)
    shown[first + JobField.FITS_NOW] = np.float32((bits & s.NODES_FITS) != 0)
    shown[first + JobField.ENDS_BEFORE_SHADOW] = np.float32(
        (bits & s.NODES_ENDS_BEFORE_SHADOW) != 0
    )
    for column in range(s.N_NODES_FIELDS):
        shown[first + N_FIELDS + column] = sim.shown_job[column]


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
def show_free(jobs: Jobs, sim: Sim, shown: Floats, first: int, horizons: tuple[int, ...]) -> None:
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
def show_hidden(jobs: Jobs, sim: Sim, slot: NDArray[np.int64], shown: Floats, listed: int) -> None:
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
def show_submitted(jobs: Jobs, sim: Sim, shown: Floats, first: int) -> None:
    """Write how many jobs were submitted in the last hour and day, from place `first` on."""
    sim.hour_ago = first_since(jobs, sim, sim.hour_ago, HOUR_S)
    sim.day_ago = first_since(jobs, sim, sim.day_ago, DAY_S)
    shown[first] = squash(float(sim.next_job - sim.hour_ago), 10.0)
    shown[first + 1] = squash(float(sim.next_job - sim.day_ago), 100.0)


@kernel
def show_angle(sim: Sim, shown: Floats, first: int, period: int) -> None:
    """Write sine and cosine of where in a day or week of `period` s now is, from `first` on."""
    angle = 2.0 * math.pi * ((sim.week_start + sim.now) % period) / period
    shown[first] = np.float32(math.sin(angle))
    shown[first + 1] = np.float32(math.cos(angle))


@kernel
def log_time(seconds: float) -> np.float32:
    """Map a time >= 0 s into [0, 1], a month to 1."""
    if seconds == 0.0:
        return np.float32(0.0)
    return np.float32(min(math.log(1.0 + seconds / 60.0) / LOG_MONTH, 1.0))


@kernel
def show_waiting(jobs: Jobs, sim: Sim, shown: Floats, listed: int) -> None:
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
def show_small(jobs: Jobs, sim: Sim, shown: Floats) -> None:
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
def show_cluster(jobs: Jobs, sim: Sim, slot: NDArray[np.int64], shown: Floats, listed: int) -> None:
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


@kernel(inlined=True)
def show_jobs(
    jobs: Jobs,
    sim: Sim,
    slot: NDArray[np.int64],
    shown_jobs: Floats,
    mask: Floats,
    shown: int,
    before: int,
    shadow: int,
    n_fields: int,
) -> None:
    """Write the fields of the jobs in the first `shown` slots, and clear those up to `before`."""
    for position in range(shown):
        if mask[position] == 0.0:
            show_submission(jobs, sim, slot[position], shown_jobs, position * n_fields)
            mask[position] = np.float32(1.0)
        show_wait(jobs, sim, slot[position], shadow, shown_jobs, position * n_fields)
        if sim.show_expected != s.EXPECT_NOTHING:
            show_expected(jobs, sim, slot[position], shown_jobs, position * n_fields)
    if sim.looks_ahead > 0:  # apart: a call of what is not known slows the loop above
        for position in range(shown):
            fits = shown_jobs[position * n_fields + JobField.FITS_NOW] > 0.0
            fits = fits and fits_now(jobs, sim, slot[position])
            shown_jobs[position * n_fields + JobField.FITS_NOW] = np.float32(fits)
    if before > shown:
        shown_jobs[shown * n_fields : before * n_fields] = np.float32(0.0)
        mask[shown:before] = np.float32(0.0)


@kernel(inlined=True)
def shows_more(jobs: Jobs) -> bool:
    """Tell whether fields about nodes or of a user's own are shown of each visible job."""
    return has_nodes(jobs) or len(jobs.own_of_job) > 0


@kernel
def show_wider_jobs(
    jobs: Jobs,
    sim: Sim,
    slot: NDArray[np.int64],
    shown_jobs: Floats,
    mask: Floats,
    shown: int,
    before: int,
    shadow: int,
) -> None:
    """Write the fields of the visible jobs where further ones follow: about nodes, or a user's."""
    n_fields = len(shown_jobs) // len(slot)
    show_jobs(jobs, sim, slot, shown_jobs, mask, shown, before, shadow, n_fields)
    if has_nodes(jobs):
        ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_SHOW, 0)
        for position in range(shown):
            show_nodes(jobs, sim, slot[position], shown_jobs, position * n_fields)
    n_own = len(jobs.own_of_job)
    for position in range(shown):
        for column in range(n_own):
            value = show_of_job(jobs.own_of_job[column], jobs, sim, slot[position])
            least, most = jobs.own_bounds[column, 0], jobs.own_bounds[column, 1]
            shown_jobs[(position + 1) * n_fields - n_own + column] = np.float32(
                min(value, most) if value >= least else least  # not NaN
            )


@kernel
def show_trials(
    jobs: Jobs,
    sim: Sim,
    slot: NDArray[np.int64],
    shown_jobs: Floats,
    shown_cluster: Floats,
    shown: int,
) -> None:
    """Write the fields about trials of the cluster, and of the jobs in the first `shown` slots."""
    n_fields = len(shown_jobs) // len(slot)
    for position in range(shown):
        sim.scratch[position] = slot[position]
    ask_mode(jobs.mode_pass, jobs, sim, s.SHOW_TRIALS, shown)
    first = N_CLUSTER + N_CONTROLS * sim.show_controls
    for column in range(N_TRIALS):
        shown_cluster[first + column] = sim.shown_trials[column]
    for position in range(shown):
        begin = position * n_fields + N_FIELDS
        for column in range(N_JOB_TRIALS):
            shown_jobs[begin + column] = sim.shown_attempts[position, column]


@kernel
def observe(
    jobs: Jobs,
    sim: Sim,
    slot: NDArray[np.int64],
    shown_jobs: Floats,
    shown_cluster: Floats,
    mask: Floats,
) -> None:
    """Write an observation over the one before, or over zeros.

    `shown_jobs` has shape (n_slots * n_fields,), row-major, and `shown_cluster` at least
    (N_CLUSTER,). On a machine of nodes a job has N_NODES_FIELDS more; the cluster has those of
    `ControlsField` more where controls are shown, and both have those about trials where these are.
    Fields of a user's own follow, of a job and of the cluster, and then those of `machine`. `slot`
    and `mask`, 1 where a slot holds a job, have shape (n_slots,). A job that keeps its slot keeps
    its unchanging fields, and slots behind the last job keep their zeros. So the cost depends on
    what has changed. Writes these four arrays, `scratch`, `shadow`, `extra`, `hour_ago` and
    `day_ago`, and what `expect_now` and `list_within` write. Where observations are small, all is
    in `shown_cluster`, and slots are empty.
    """
    if sim.show_event == 1:
        tell_events(jobs, sim, s.SHOW, 0)
        for column in range(len(shown_cluster)):
            shown_cluster[column] = sim.shown_event[column]
        return
    if sim.show_small == 1:
        show_small(jobs, sim, shown_cluster)
        return
    listed = list_within(jobs, sim) if has_limits(sim) else list_shown(sim, len(slot))
    before = count_visible(slot)
    shown = fill_slots(sim, slot, mask, before, listed)
    shadow = -1 if has_nodes(jobs) else shadow_of_base(jobs, sim, len(slot), listed)
    show_cluster(jobs, sim, slot, shown_cluster, listed)  # first: what is listed in `scratch` goes
    if len(shown_jobs) == len(slot) * N_FIELDS:
        # As a constant the width of a row costs nothing.
        show_jobs(jobs, sim, slot, shown_jobs, mask, shown, before, shadow, N_FIELDS)
    elif len(shown_jobs) == len(slot) * N_WITH_TRIALS and not shows_more(jobs):
        show_jobs(jobs, sim, slot, shown_jobs, mask, shown, before, shadow, N_WITH_TRIALS)
    else:
        show_wider_jobs(jobs, sim, slot, shown_jobs, mask, shown, before, shadow)
    if sim.show_controls == 1:
        ask_mode(jobs.mode_pass, jobs, sim, s.SHOW, shadow)
        for column in range(len(sim.shown_controls)):
            shown_cluster[N_CLUSTER + column] = sim.shown_controls[column]
    if sim.show_trials == 1:
        show_trials(jobs, sim, slot, shown_jobs, shown_cluster, shown)
    first = len(shown_cluster) - len(sim.shown_machine)
    for column in range(len(sim.shown_machine)):
        shown_cluster[first + column] = sim.shown_machine[column]
    first -= len(jobs.own_of_cluster)
    for column in range(len(jobs.own_of_cluster)):
        value = show_of_cluster(jobs.own_of_cluster[column], jobs, sim)
        bounds = len(jobs.own_of_job) + column
        least, most = jobs.own_bounds[bounds, 0], jobs.own_bounds[bounds, 1]
        shown_cluster[first + column] = np.float32(min(value, most) if value >= least else least)
