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

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import (
    ask_mode,
    ask_nodes,
    has_nodes,
    show_of_cluster,
    show_of_job,
)
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.moments import has_limits, tell_events
from hpcgym.core.engine.schedule_pass import fits_now, list_within, reserve_for
from hpcgym.core.kernels.env.cluster import (
    N_CLUSTER,
    OLDEST_SHARE,
    log_time,
    show_cluster,
    show_small,
)
from hpcgym.core.kernels.queue.entries import YOUNGER, entry_of, is_held, is_overdue, link_youngest
from hpcgym.core.kernels.queue.ordered_queue import list_first, list_jobs, precedes
from hpcgym.core.kernels.queue.selection import SHORT_LIST, sort_listed
from hpcgym.core.kernels.queue.summary import first_wider, forget_all
from hpcgym.core.kernels.scoring.user_estimates import expect_now, urgent_score, weight_of_width
from hpcgym.core.kernels.types import Int, Jobs, Sim, Single
from hpcgym.core.observation_fields import (
    N_HISTORY_FIELDS,
    N_STATIC_FIELDS,
    N_TRIAL_FIELDS,
    ControlsField,
    JobField,
    JobTrialField,
)

N_FIELDS = len(JobField)  # numbers shown of each visible job

N_CONTROLS, N_TRIALS, N_JOB_TRIALS = len(ControlsField), N_TRIAL_FIELDS, len(JobTrialField)
"""Numbers shown of the cluster for controls, about trials, and about those of each visible job."""

N_WITH_TRIALS = N_FIELDS + N_JOB_TRIALS
"""Numbers shown of each visible job where those about trials are the only further ones."""

LOG_RATIO = math.log(10_000.0)  # divisor of the logarithm of a wait over the estimate


@kernel
def count_visible(slot: Int) -> int:
    """Count the slots that hold a job; these are the first ones."""
    visible = 0
    while visible < len(slot) and slot[visible] >= 0:
        visible += 1
    return visible


@kernel(inlined=True)
def fill_slot(slot: Int, mask: Single, position: int, job: int) -> None:
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
def fill_slots(sim: Sim, slot: Int, mask: Single, before: int, listed: int) -> int:
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
def show_submission(jobs: Jobs, sim: Sim, job: int, shown: Single, first: int) -> None:
    """Write the fields of a waiting job that do not change, from place `first` of `shown` on."""
    for column in range(N_STATIC_FIELDS):
        shown[first + column] = jobs.field[job, column]
    entry = entry_of(sim, job)
    for column in range(N_HISTORY_FIELDS):
        shown[first + JobField.USER_LOG_COMPLETED + column] = sim.history_field[entry, column]


@kernel(inlined=True)
def show_wait(jobs: Jobs, sim: Sim, job: int, shadow: int, shown: Single, first: int) -> None:
    """Write the fields of a waiting job that change with time; `shadow` as of `shadow_of_base`."""
    now = sim.now
    wait = now - jobs.feature[job, s.FEATURE_SUBMIT]  # scores read `feature`, so it is in the cache
    estimate = jobs.feature[job, s.FEATURE_ESTIMATE]
    waited = -1.0
    if wait > 0.0:
        waited = max(min(math.log(wait / estimate) / LOG_RATIO, 1.0), -1.0)
    shown[first + JobField.LOG_WAIT_TIME] = log_time(max(wait, 0.0))
    shown[first + JobField.LOG_WAIT_BY_ESTIMATE] = np.float32(waited)
    held = sim.n_held > 0 and is_held(sim, job)
    fits = jobs.feature[job, s.FEATURE_PROCESSORS] <= sim.free and not held
    shown[first + JobField.FITS_NOW] = np.float32(fits)
    shown[first + JobField.ENDS_BEFORE_SHADOW] = np.float32(shadow < 0 or now + estimate <= shadow)
    is_thresholded = sim.n_overdue > 0 and is_overdue(sim, job)
    shown[first + JobField.IS_THRESHOLDED] = np.float32(is_thresholded)


@kernel(inlined=True)
def show_expected(jobs: Jobs, sim: Sim, job: int, shown: Single, first: int) -> None:
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
def show_nodes(jobs: Jobs, sim: Sim, job: int, shown: Single, first: int) -> None:
    """Write the fields of a waiting job that depend on nodes, over two that `show_wait` wrote."""
    bits = ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_SHOW_JOB, job)
    shown[first + JobField.FITS_NOW] = np.float32((bits & s.NODES_FITS) != 0)
    shown[first + JobField.ENDS_BEFORE_SHADOW] = np.float32(
        (bits & s.NODES_ENDS_BEFORE_SHADOW) != 0
    )
    for column in range(s.N_NODES_FIELDS):
        shown[first + N_FIELDS + column] = sim.shown_job[column]


@kernel(inlined=True)
def show_jobs(
    jobs: Jobs,
    sim: Sim,
    slot: Int,
    shown_jobs: Single,
    mask: Single,
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
def bounded(jobs: Jobs, column: int, value: float) -> np.float32:
    """Return a field of a user's own within its bounds."""
    least, most = jobs.own_bounds[column, 0], jobs.own_bounds[column, 1]
    return np.float32(min(value, most) if value >= least else least)  # not NaN


@kernel
def show_wider_jobs(
    jobs: Jobs,
    sim: Sim,
    slot: Int,
    shown_jobs: Single,
    mask: Single,
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
            at = (position + 1) * n_fields - n_own + column
            shown_jobs[at] = bounded(jobs, column, value)


@kernel
def show_trials(
    jobs: Jobs, sim: Sim, slot: Int, shown_jobs: Single, shown_cluster: Single, shown: int
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
    jobs: Jobs, sim: Sim, slot: Int, shown_jobs: Single, shown_cluster: Single, mask: Single
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
        shown_cluster[first + column] = bounded(jobs, len(jobs.own_of_job) + column, value)
