"""Trial runs: waiting jobs use what is idle for minutes, and young jobs may give way.

Most jobs end long before their request, and nobody knows which. So a job is started where
processors idle, and taken off again if it has not ended within the limit. It waits all the while: a
pass takes the processors of trials for idle, and starts a job on trial where it is. A *guaranteed*
trial has processors that running jobs gave up for it, and keeps them for a while.

After the pass of `hpcgym.core.parts.cost_benefit` an instant has these steps:

1. Trials that began last end where starts of the pass need their processors.
2. Trials whose limit is over end.
3. Jobs go on trial on what is idle, smallest requested area first, those that had no luck no more.
4. Where no job is overdue, one never tried takes processors of young jobs that requested long.

Cost, for n waiting and m running jobs: O(n) for a pass after which processors idle, and O(n + m)
where young jobs may give way; O(trials) for an instant. Where those may, or observations show
running jobs, O(m) for each job that leaves the machine (`hpcgym.core.parts.young_jobs`).

Source: Specification, section 15. Perkovic and Keleher 2000; Chiang et al. 2002.
"""

import math
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core.backfill import is_number, is_whole, shortest
from hpcgym.core.compiler.by_address import ask_nodes, has_nodes
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.compiler.struct import Column
from hpcgym.core.engine import calendar
from hpcgym.core.engine.life import (
    begins_at,
    end_guarantee,
    enter,
    evict,
    is_guaranteed,
    is_on_trial,
    note_attempt,
    promote,
    put_on_trial,
    some_are_overdue,
    take_back,
)
from hpcgym.core.engine.moments import more_ahead
from hpcgym.core.kernels.env.cluster import log_time
from hpcgym.core.kernels.queue.btree import size_class_of
from hpcgym.core.kernels.queue.selection import take_first
from hpcgym.core.kernels.types import Counter, IntTable, IntVector, Jobs, empty
from hpcgym.core.observation_fields import TrialField
from hpcgym.core.part_text import text_of_part
from hpcgym.core.parts import cap, cost_benefit, restart, trial_fields, waiting_cost
from hpcgym.core.parts.candidates import list_candidates, may_try
from hpcgym.core.parts.cost_benefit import CostBenefitSim
from hpcgym.core.parts.young_jobs import (
    N_ROW_COLUMNS,
    add_row,
    count_young,
    list_victims,
    may_be_killed,
    remove_row,
)
from hpcgym.core.workload import WEEK_S, Workload

HEARS = (
    s.ON_SUBMIT | s.ON_START | s.ON_RELEASE | s.MUST_PLAN | s.ALL_FIT | s.SHOW
    | s.NEXT_INSTANT | s.ON_INSTANT | s.ON_TRIAL_END | s.AFTER_PASS | s.SHOW_TRIALS
)  # fmt: skip

REQUEUES = True
"""Jobs may have several attempts, so that a simulation keeps what is known of each job's."""


@dataclass(frozen=True)
class Trial:
    """Which waiting jobs run where processors idle, for how long, and who gives way to them.

    Source: Specification, section 15, "Trials" and "Young jobs give way".
    """

    NAME: ClassVar[str] = "trial"

    limit: int = 300  # how long a trial lasts, s
    kills: int = 2  # trials of a job that may end in vain
    young: int = 0  # age up to which a running job gives way, s; 0 = none does
    request: int = 7200  # request that such a job exceeds, s
    times: int = 2  # how often a job gives way
    share: float = 0.25  # of the machine, how much guaranteed trials may hold
    guarantee: int = 300  # how long a trial is guaranteed that others gave way to, s
    victim: float = math.inf  # share of the machine up to which a job gives way; `math.inf` = all
    overhead: int = 0  # s before a trial or a restart runs usefully, and after a kill at the limit
    restart: int = 0  # s from a kill until the job waits again, the last; 0 = jobs are promoted
    users: float = 1  # share of the users whose jobs may be killed, drawn anew for each week
    seed: int = 0  # of the drawing

    def __post_init__(self) -> None:
        least = {"limit": 1, "kills": 1, "times": 1, "guarantee": 1}
        whole = "limit", "kills", "young", "request", "times", "guarantee", "overhead", "restart"
        for key in (*whole, "seed"):
            value, low = getattr(self, key), least.get(key, 0)
            is_count = key in ("kills", "times")
            if not is_whole(value, low) or (is_count and value > s.MOST_KILLS):
                what = f"a number from {low} to {s.MOST_KILLS}" if is_count else f"seconds >= {low}"
                raise PolicyError(f"trial: {key} must be whole, {what}, got {value!r}")
            object.__setattr__(self, key, int(value))
        for key in ("share", "victim", "users"):
            value = getattr(self, key)
            if not is_number(value, 0) or (key != "victim" and value > 1):
                what = ">= 0 or inf" if key == "victim" else "from 0 to 1"
                raise PolicyError(f"trial: {key} must be a share {what}, got {value!r}")
            object.__setattr__(self, key, value if value == math.inf else shortest(value))

    def __str__(self) -> str:
        """Return the text, which `hpcgym.core.backfill.as_mode` reads behind a "+"."""
        return text_of_part(self)

    @property
    def demands(self) -> dict[str, str]:
        """Return what a mode demands that runs them, `hpcgym.core.pairs`."""
        restart = {"restart": ""} if self.restart else {}
        overhead = {"overhead": ""} if self.overhead else {}
        return {"attempts": "", "trials": ""} | restart | overhead

    def requeueable(self, workload: Workload) -> NDArray[np.int64]:
        """Return which jobs may be killed, shape (n_jobs,), 1 = may be; empty = all."""
        if self.users == 1 and workload.requeue is None:
            return np.empty(0, dtype=np.int64)
        drawn = self._draw_users(workload)
        return drawn if workload.requeue is None else drawn * workload.requeue

    def _draw_users(self, workload: Workload) -> NDArray[np.int64]:
        """Return 1 for each job whose user is drawn for the week of its submission, else 0."""
        # A hash of what the log says, so that no draw depends on other jobs, or on how it is cut.
        week = (workload.time_offset + workload.submit_time) // WEEK_S
        pairs = np.stack([week, workload.user_index])
        _, first, of_job = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
        named = zip(week[first].tolist(), workload.named("user")[first].tolist(), strict=True)
        digests = (sha256(f"{self.seed} {number} {name}".encode()) for number, name in named)
        luck = [int.from_bytes(each.digest()[:6], "big") / 2**48 for each in digests]
        drawn = np.array(luck) < self.users
        return drawn[of_job.ravel()].astype(np.int64)

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels read in `Sim.backfill_parameter`."""
        ages = self.overhead, self.limit, self.kills, self.young, self.request, self.times
        return tuple(map(float, (*ages, self.share, self.guarantee, self.victim, self.restart)))


class TrialSim(CostBenefitSim):
    """What trials add to a simulation."""

    limit: Annotated[float, Column("backfill_parameter", 9)]
    most_tried: Annotated[float, Column("backfill_parameter", 10)]
    young: Annotated[float, Column("backfill_parameter", 11)]
    long_request: Annotated[float, Column("backfill_parameter", 12)]
    most_times: Annotated[float, Column("backfill_parameter", 13)]
    share: Annotated[float, Column("backfill_parameter", 14)]
    guarantee: Annotated[float, Column("backfill_parameter", 15)]
    victim: Annotated[float, Column("backfill_parameter", 16)]
    in_pass: Counter  # 1 while a pass is made
    kept: Counter  # idle processors that no trial takes, by an action of trials
    trial_room: Counter  # processors that trials may take now
    young_processors: Counter  # processors of running jobs that may give way now
    young_room: Counter  # processors that jobs may take which were never tried
    n_rows: Counter  # of `row_of_running`

    busy_until: IntVector = empty("releases")  # when processors are cleared, descending, s
    busy_job: IntVector = empty("releases")  # the job that held them
    row_of_running: IntTable = empty("running", N_ROW_COLUMNS)  # of jobs off trial
    victim_job: IntVector = empty("trial")  # running jobs that may give way, within a pass


@kernel(inlined=True)
def idle(sim: TrialSim) -> int:
    """Return the processors on which nothing runs."""
    return sim.free - sim.on_trial


@kernel(inlined=True)
def on_submit(sim: TrialSim, job: int) -> None:
    """Write that a newcomer has not been tried; one that was taken off is what it was."""
    if sim.flag[job] & s.FLAG_EVICTED == 0:
        sim.ran[job] = sim.wasted[job] = sim.n_tried[job] = sim.n_gave_way[job] = 0
        sim.killed_at[job] = sim.cleared_at[job] = -1


@kernel(inlined=True)
def on_start(jobs: Jobs, sim: TrialSim, job: int) -> int:
    """List a job that starts anew; return its flag, and count it, as `cap.on_start`."""
    if not is_on_trial(sim, job):
        sim.taken[job] = sim.now
        if sim.in_pass == 1:
            sim.begun_job[sim.n_begun] = job
            sim.n_begun += 1
    if sim.show_trials == 1:
        sim.log_request[job] = log_time(float(jobs.requested_time[job]))
    add_row(jobs, sim, job, begins_at(sim, job))
    return cap.on_start(jobs, sim, job)


@kernel
def next_over(sim: TrialSim) -> int:
    """Return the next instant at which a trial is over or processors are cleared, s."""
    instant = restart.next_restart(sim)
    for position in range(sim.n_trials):
        instant = min(instant, sim.over[sim.job_on_trial[position]])
    if sim.n_busy > 0:
        instant = min(instant, sim.busy_until[sim.n_busy - 1])
    return instant


@kernel
def on_instant(jobs: Jobs, sim: TrialSim) -> None:
    """Free what is cleared now, let jobs start again and guarantees end; write counts."""
    while sim.n_busy > 0 and sim.busy_until[sim.n_busy - 1] == sim.now:
        sim.n_busy -= 1
        job = sim.busy_job[sim.n_busy]
        calendar.remove_release(sim, job, sim.now)
        sim.busy -= jobs.processors[job]
        sim.free += jobs.processors[job]
        if has_nodes(jobs):
            ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_CLEARED, job)
    restart.let_start_again(sim)
    for position in range(sim.n_trials):
        job = sim.job_on_trial[position]
        if sim.over[job] == sim.now and is_guaranteed(sim, job):
            end_guarantee(jobs, sim, job)


@kernel
def postpone(jobs: Jobs, sim: TrialSim, job: int) -> None:
    """Let a job that starts now run usefully later by the overhead; write lists and its start."""
    since = sim.start_time[job]
    calendar.remove_running(sim, job)
    calendar.remove_release(sim, job, since + jobs.estimate[job])
    later = since + int(sim.overhead)
    sim.start_time[job] = later
    remove_row(sim, job)
    add_row(jobs, sim, job, later)
    calendar.add_running(sim, job, later + jobs.run_time[job])
    calendar.add_release(sim, job, later + jobs.estimate[job])
    if sim.keep_reward == 1:
        waiting_cost.postpone(jobs, sim, job, since)
    if sim.show_controls == 1:
        sim.expected_end[job] += sim.overhead


@kernel
def end_last_trial(jobs: Jobs, sim: TrialSim) -> int:
    """End the trial that began last of those not guaranteed; return the processors it held."""
    position = sim.n_trials - 1
    while is_guaranteed(sim, sim.job_on_trial[position]):
        position -= 1
    job = sim.job_on_trial[position]
    take_back(jobs, sim, job, s.TRIAL_EVICTED)
    restart.send_away(jobs, sim, job)
    return int(jobs.processors[job])


@kernel
def make_room(jobs: Jobs, sim: TrialSim) -> None:
    """End trials where the starts of the pass, in turn, need their processors."""
    room = idle(sim)
    for position in range(sim.n_begun):
        room += jobs.processors[sim.begun_job[position]]
    for position in range(sim.n_begun):
        job = sim.begun_job[position]
        evicts = room < jobs.processors[job]
        while room < jobs.processors[job]:
            room += end_last_trial(jobs, sim)
        room -= jobs.processors[job]
        if evicts and sim.overhead > 0.0:
            postpone(jobs, sim, job)


@kernel
def trial_pass(jobs: Jobs, sim: TrialSim, contested: bool) -> bool:
    """Make a pass that takes trials for idle; return False if the picked job ended it."""
    sim.n_begun = 0
    sim.in_pass = 1
    finished = cost_benefit.cost_benefit_pass(jobs, sim, contested)
    sim.in_pass = 0
    make_room(jobs, sim)
    return finished


@kernel
def end_trials(jobs: Jobs, sim: TrialSim) -> None:
    """End the trials whose limit is over; write counts of processors, and those being cleared."""
    for position in range(sim.n_trials - 1, -1, -1):
        job = sim.job_on_trial[position]
        if sim.over[job] > sim.now:
            continue
        take_back(jobs, sim, job, s.TRIAL_OVER)
        restart.send_away(jobs, sim, job)
        if sim.overhead > 0.0:
            cleared = sim.now + int(sim.overhead)
            sim.wasted[job] += int(sim.overhead)
            sim.free -= jobs.processors[job]
            sim.busy += jobs.processors[job]
            calendar.add_release(sim, job, cleared)
            calendar.put_in_turn(sim.busy_until, sim.busy_job, sim.n_busy, cleared, job)
            sim.n_busy += 1
            if has_nodes(jobs):
                ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_CLEAR, job)


@kernel
def try_idle(jobs: Jobs, sim: TrialSim) -> None:
    """Try waiting jobs on what is idle; write what `put_on_trial` writes, and `scratch`."""
    room = idle(sim) - sim.kept - more_ahead(jobs, sim, int(sim.limit))
    if room <= 0:
        return
    n = list_candidates(jobs, sim, room, False)
    since = sim.now + int(sim.overhead)
    if has_nodes(jobs) and n > 0:
        ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_IDLE, since + int(sim.limit))
    for taken in range(n):
        job = take_first(sim, s.PASS_ORDER, n - taken, taken)
        # Where there are nodes, this places the job on what idles of them.
        if jobs.processors[job] <= room and (
            not has_nodes(jobs) or ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_TRY, job) == 1
        ):
            put_on_trial(jobs, sim, job, since, since + int(sim.limit), False)
            room -= jobs.processors[job]
            if room == 0:
                break
    if has_nodes(jobs) and n > 0:
        ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_IDLE, 0)


@kernel
def give_way(jobs: Jobs, sim: TrialSim, job: int) -> None:
    """Take a young job off the machine; it waits anew, and what `evict` and `enter` write."""
    sim.since[job] = sim.start_time[job]
    note_attempt(sim, job, s.GAVE_WAY)
    sim.n_gave_way[job] += 1
    listed = sim.scratch[0]  # a key may be made there
    evict(jobs, sim, job)
    enter(jobs, sim, job)
    restart.send_away(jobs, sim, job)
    sim.scratch[0] = listed


@kernel
def look_for_room(jobs: Jobs, sim: TrialSim) -> None:
    """Count what trials may take now, and what young jobs give up for them while none is overdue.

    Writes `trial_room`, `young_room` and `young_processors`.
    """
    room = idle(sim) - sim.kept
    sim.trial_room = room - more_ahead(jobs, sim, int(sim.limit))
    sim.young_room = sim.young_processors = 0
    if sim.young > 0.0 and not some_are_overdue(sim):
        sim.young_processors = count_young(sim)
        room += sim.young_processors - more_ahead(jobs, sim, int(sim.guarantee))
        sim.young_room = min(room, int(sim.share * sim.machine_processors) - sim.guaranteed)


@kernel
def guarantee_trial(jobs: Jobs, sim: TrialSim, job: int, first: int) -> int:
    """Put a job on a guaranteed trial; listed young jobs, from place `first` on, give way to it.

    They are listed here if `first` is -1. Return the place of the next one, -1 if none is listed.
    """
    room = idle(sim) - sim.kept - more_ahead(jobs, sim, int(sim.guarantee))
    since = sim.now + int(sim.overhead)
    if room < jobs.processors[job]:
        since += int(sim.overhead)
        if first < 0:
            list_victims(jobs, sim, -1, sim.machine_processors)
            first = 0
    while room < jobs.processors[job]:
        room += jobs.processors[sim.victim_job[first]]
        give_way(jobs, sim, sim.victim_job[first])
        first += 1
    put_on_trial(jobs, sim, job, since, since + int(sim.guarantee), True)
    return first


@kernel
def make_way(jobs: Jobs, sim: TrialSim) -> None:
    """Have young jobs give way to jobs that were never tried, where none is overdue."""
    look_for_room(jobs, sim)
    if sim.young_room <= 0:
        return
    n = list_candidates(jobs, sim, sim.young_room, True)
    first = -1
    for taken in range(n):
        job = take_first(sim, s.PASS_ORDER, n - taken, taken)
        if jobs.processors[job] <= sim.young_room:
            first = guarantee_trial(jobs, sim, job, first)
            # What idles, or young jobs would give up, is less by this job, and so is the share.
            sim.young_room -= jobs.processors[job]


@kernel(inlined=True)
def may_be_lent(jobs: Jobs, sim: TrialSim, job: int) -> bool:
    """Tell whether a waiting job may go on trial now, after `look_for_room`."""
    q = jobs.processors[job]
    return (q <= sim.trial_room and may_try(jobs, sim, job, False)) or (
        q <= sim.young_room and may_try(jobs, sim, job, True)
    )


@kernel
def after_pass(jobs: Jobs, sim: TrialSim) -> None:
    """Do what follows a pass that ran to its end: end trials that lost, and try jobs."""
    if sim.n_waiting == 0:
        return
    end_trials(jobs, sim)
    try_idle(jobs, sim)
    if sim.young > 0.0 and not has_nodes(jobs):
        make_way(jobs, sim)


@kernel
def show_processors(jobs: Jobs, sim: TrialSim) -> None:
    """Write `shown_trials`, the order of `row_of_running`, and what `look_for_room` writes."""
    trial_fields.show_running(jobs, sim)
    look_for_room(jobs, sim)
    shown, machine = sim.shown_trials, sim.machine_processors
    shown[TrialField.IDLE_PROCESSORS] = np.float32(idle(sim) / machine)
    shown[TrialField.TRIAL_PROCESSORS] = np.float32((sim.on_trial + sim.guaranteed) / machine)
    shown[TrialField.GUARANTEED_PROCESSORS] = np.float32(sim.guaranteed / machine)
    shown[TrialField.YOUNG_PROCESSORS] = np.float32(sim.young_processors / machine)


@kernel
def show_attempts(jobs: Jobs, sim: TrialSim, n: int) -> None:
    """Write `shown_attempts` of the first n jobs in `scratch`, after `show_processors`."""
    limit = int(sim.limit)
    sim.limit_class = size_class_of(limit)
    share = trial_fields.share_within(sim, 0)
    widest = max(sim.trial_room if limit > 0 else 0, sim.young_room)  # of jobs without an attempt
    for position in range(n):
        job = sim.scratch[position]
        if trial_fields.was_attempted(sim, job) or is_on_trial(sim, job):
            trial_fields.show_attempt(
                jobs, sim, position, limit, share, may_be_lent(jobs, sim, job)
            )
        else:
            lent = (jobs.processors[job] <= widest) & may_be_killed(jobs, job)
            trial_fields.show_no_attempt(jobs, sim, position, limit, share, lent)


@kernel
def all_fit(sim: TrialSim) -> bool:
    """Tell whether all waiting jobs may start together, in any order with the same result."""
    # The first of the starts that end trials is the later for it.
    plain = sim.overhead == 0.0 or sim.n_trials == 0
    return cap.all_fit(sim) and plain and not restart.some_are_away(sim)


def work(jobs: Jobs, sim: TrialSim, task: int, argument: int) -> int:
    """Do a task for a simulation; `argument` is a job, a shadow time, or what a pass goes by."""
    if task == s.MAKE_PASS:
        return int(trial_pass(jobs, sim, argument == 1))
    if task == s.NEXT_INSTANT:
        return next_over(sim)
    if task == s.ON_INSTANT:
        on_instant(jobs, sim)
    elif task == s.ON_SUBMIT:
        on_submit(sim, argument)
    elif task == s.ON_START:
        return on_start(jobs, sim, argument)
    elif task == s.ON_RELEASE:
        remove_row(sim, argument)
        cap.on_release(jobs, sim, argument)
    elif task == s.ON_END:
        trial_fields.record_run_time(jobs, sim, argument)
    elif task == s.ON_TRIAL_END:
        promote(jobs, sim, argument, False)
    elif task == s.AFTER_PASS:
        after_pass(jobs, sim)
    elif task == s.MUST_PLAN:
        return int(sim.guaranteed > 0)
    elif task == s.ALL_FIT:
        return int(all_fit(sim))
    elif task == s.SHOW:
        cost_benefit.show_controls(jobs, sim, argument)
    elif task == s.SHOW_TRIALS:
        show_processors(jobs, sim)
        show_attempts(jobs, sim, argument)
    return 0
