"""Cost-benefit backfilling, and a cap on what long jobs hold, with EASY's reservation.

A job that is expected to be long may not start while long jobs hold too much of the machine. The
cap *blocks* it: the pass goes on as if it did not wait. What long jobs hold only grows during a
pass, so a blocked job stays blocked, and jobs that start ahead of it count as backfilled.

The head's reservation is EASY's. A job that EASY would let pass may start. Any other that fits may
start if its benefit justifies the expected cost to the wider jobs, which then wait longer. During
the sweep `extra` only falls, which only raises costs, so one sweep suffices.

With `kappa` = 0 and no cap the schedules are EASY's.

Cost, with n waiting jobs: O(n) for a pass at which a job fits, and O(log n) for each job tried.

An observation for an action of controls costs one look at each waiting and each running job more.
Expected ends are those of the jobs' starts, so nothing is read of a run time before its end.

A pass starts jobs that are on trial (`hpcgym.core.parts.trials`), too, where they are.

While an outage is known, what fits and what delays the head go by the outages' profile
(`hpcgym.core.events`). No job starts for its benefit then: what a delay costs is not known where
the head may have to wait for the outage to end.

Source: Specification, section 8, "Cap" and "Cost-benefit"; section 10, "Controls"; section 15.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core.backfill import Easy, is_number, shortest
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.compiler.struct import Column
from hpcgym.core.engine.life import (
    begins_at,
    is_guaranteed,
    is_on_trial,
    is_restart,
    promote,
    start_from,
    start_waiting,
)
from hpcgym.core.engine.moments import ask_ahead
from hpcgym.core.kernels.env.cluster import log_time, squash
from hpcgym.core.kernels.passes.easy import kept_backfill_order, reserve
from hpcgym.core.kernels.passes.easy_dynamic import make_backfill_order, make_primary_order
from hpcgym.core.kernels.queue.ordered_queue import list_jobs, precedes, some_job_fits
from hpcgym.core.kernels.queue.selection import reverse_listed, take_first
from hpcgym.core.kernels.scoring.score import score_listed
from hpcgym.core.kernels.scoring.user_estimates import expected_rate, expected_run_time
from hpcgym.core.kernels.types import Counter, FloatVector, Jobs, Sim, empty
from hpcgym.core.observation_fields import ControlsField
from hpcgym.core.parts.cap import all_fit, is_blocked, is_capped, on_release, on_start

HEARS = s.ON_START | s.ON_RELEASE | s.ALL_FIT | s.SHOW

HORIZONS_S = (3_600, 10_800, 43_200)
"""How far ahead the processors that are expected to be free are shown, s."""

LARGEST_RATE = 0.01
"""Summed expected 1/D, 1/s, that is shown as 1/2."""


@dataclass(frozen=True)
class CostBenefit(Easy):
    """Behind EASY's head also those jobs start that gain more than the wider jobs lose.

    Where overdue="guarded", kappa falls to 0 while the head's wait goes from half the threshold to
    all of it.

    Attributes:
        kappa: What a start's benefit counts for, relative to its cost; 0 = EASY.

    Source: Specification, section 8, "Cost-benefit".
    """

    NAME: ClassVar[str] = "cost-benefit"
    expects: ClassVar[int] = s.EXPECT_BY_REGRESSION

    kappa: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_number(self.kappa, 0) or self.kappa == math.inf:
            raise PolicyError(f"backfill {self.NAME!r}: kappa must be >= 0, got {self.kappa!r}")
        object.__setattr__(self, "kappa", shortest(self.kappa))


class CostBenefitSim(Sim):
    """What a cap, and costs and benefits, add to a simulation."""

    cap: Annotated[float, Column("backfill_parameter", 0)]  # share of long jobs; inf = all
    long: Annotated[float, Column("backfill_parameter", 1)]  # expected run time of these, more than
    log_long: Annotated[float, Column("backfill_parameter", 2)]
    kappa: Annotated[float, Column("backfill_parameter", 3)]  # cost to benefit at most, 0 = EASY
    is_open: Annotated[float, Column("backfill_parameter", 4)]  # 1 = overdue jobs are like others
    by_request: Annotated[float, Column("backfill_parameter", 5)]  # 1 = long by the request
    widest: Annotated[float, Column("backfill_parameter", 6)]  # share that the cap binds; inf = all
    pressed: Annotated[float, Column("backfill_parameter", 7)]  # share that must wait for it to
    binds: Counter  # 1 = the cap binds in this pass
    capped: Counter  # processors of running jobs that counted under the cap when they started

    expected_end: FloatVector = empty("jobs if controls")
    """End of each started job as expected at its start, s."""


@kernel(inlined=True)
def fits(jobs: Jobs, sim: CostBenefitSim, job: int) -> bool:
    """Tell whether a pass has processors for a waiting job; a guaranteed trial has its own."""
    return (jobs.processors[job] <= sim.free or is_guaranteed(sim, job)) and (
        sim.looks_ahead == 0 or ask_ahead(jobs, sim, s.FREE_UNTIL_END, job) == 1
    )


@kernel(inlined=True)
def some_fit(sim: CostBenefitSim) -> bool:
    """Tell whether a pass has processors for some waiting job."""
    return some_job_fits(sim) or sim.guaranteed > 0


@kernel(inlined=True)
def takes_nothing(sim: CostBenefitSim, job: int) -> bool:
    """Tell whether the head's reservation counts on none of a job's processors."""
    return is_guaranteed(sim, job) and sim.over[job] >= sim.shadow


@kernel(inlined=True)
def backfills(jobs: Jobs, sim: CostBenefitSim, job: int) -> bool:
    """Tell whether a waiting job that fits may start without delaying the head."""
    return (
        sim.looks_ahead > 0  # then a job that fits leaves the reservation alone
        or jobs.processors[job] <= sim.extra
        or begins_at(sim, job) + jobs.estimate[job] <= sim.shadow
        or takes_nothing(sim, job)
    )


@kernel(inlined=True)
def charge_extra(jobs: Jobs, sim: CostBenefitSim, job: int) -> None:
    """Take a job that starts behind the head out of `extra`, if it outlasts the shadow time."""
    outlasts = begins_at(sim, job) + jobs.estimate[job] > sim.shadow
    if outlasts and not takes_nothing(sim, job):
        sim.extra -= jobs.processors[job]


@kernel(inlined=True)
def begin(jobs: Jobs, sim: CostBenefitSim, job: int, backfilled: bool) -> None:
    """Start a waiting job that fits, or have it stay where it is on trial.

    Writes what `start_waiting` and `promote` write.
    """
    if sim.looks_ahead > 0:
        ask_ahead(jobs, sim, s.TAKE_AHEAD, job)
    if is_on_trial(sim, job):
        promote(jobs, sim, job, backfilled)
    elif is_restart(sim, job):
        start_from(jobs, sim, job, backfilled, begins_at(sim, job))
    else:
        start_waiting(jobs, sim, job, backfilled)


@kernel
def find_unblocked(jobs: Jobs, sim: CostBenefitSim, n: int) -> int:
    """Return the place of the first of n listed jobs that fits and is not blocked; n if none."""
    for position in range(n):
        job = sim.scratch[position]
        if fits(jobs, sim, job) and not is_blocked(jobs, sim, job):
            return position
    return n


@kernel
def list_unblocked(jobs: Jobs, sim: CostBenefitSim) -> tuple[int, int]:
    """List the unblocked waiting jobs, the last of the base order first, and the blocked behind.

    Return how many are not blocked, and how many are listed; both are 0 if no unblocked one fits.
    """
    listed = list_jobs(sim, s.BASE_ORDER, sim.scratch)
    # Blocked jobs wait for long though they fit. Then passes at which no other does are many.
    first = find_unblocked(jobs, sim, listed)
    if first == listed:
        return 0, 0
    n = 0
    for position in range(listed):
        job = sim.scratch[position]
        was_blocked = position < first and fits(jobs, sim, job)
        if not was_blocked and not is_blocked(jobs, sim, job):
            sim.scratch[position] = sim.scratch[n]
            sim.scratch[n] = job
            n += 1
    reverse_listed(sim, 0, n)
    return n, listed


@kernel(inlined=True)
def take_next(sim: CostBenefitSim, which: int, n: int, taken: int) -> int:
    """Remove the first of n listed jobs in order `which` and return it, as `take_first` does."""
    return sim.scratch[n - 1] if which == s.BASE_ORDER else take_first(sim, which, n, taken)


@kernel(inlined=True)
def is_blocked_now(jobs: Jobs, sim: CostBenefitSim, job: int, held: int) -> bool:
    """Tell whether the cap blocks a job that it did not while long jobs held `held` processors."""
    # The earlier answer holds until a long job starts: what is expected changes at ends only.
    return sim.capped > held and is_blocked(jobs, sim, job)


@kernel(inlined=True)
def exchange_ends(sim: CostBenefitSim, n: int, listed: int) -> None:
    """List the jobs that are listed from place n on first, or as before when done again."""
    for position in range(min(n, listed - n)):
        job = sim.scratch[position]
        sim.scratch[position] = sim.scratch[listed - 1 - position]
        sim.scratch[listed - 1 - position] = job


@kernel
def first_blocked(jobs: Jobs, sim: CostBenefitSim, primary: int, n: int, listed: int) -> int:
    """Return the first of the blocked jobs in the primary order, which are listed from place n on.

    Return -1 if there is none. Writes their keys, unless they are kept or a decision has set them.
    """
    if primary != s.BASE_ORDER and sim.ordered == 0:
        exchange_ends(sim, n, listed)
        score_listed(jobs, sim, primary, sim.order_rule, listed - n)
        exchange_ends(sim, n, listed)
    first = -1
    for position in range(n, listed):
        job = sim.scratch[position]
        if first < 0 or precedes(sim, primary, job, first):
            first = job
    return first


@kernel(inlined=True)
def start_unblocked(
    jobs: Jobs, sim: CostBenefitSim, primary: int, n: int, listed: int, held: int
) -> tuple[int, int]:
    """Start jobs from the front of n listed ones while they fit, and leave out the blocked.

    `n` and `listed` are what `list_unblocked` returned. Return the head, as
    `easy_dynamic.start_first` does, and how many unblocked jobs are still listed. Writes what
    `start_waiting` writes, and `scratch`.
    """
    blocked = -1
    some_wait = False
    taken = 0
    while taken < n and some_fit(sim):
        job = take_next(sim, primary, n - taken, taken)
        taken += 1
        if is_blocked_now(jobs, sim, job, held):
            some_wait = True
            continue
        if not fits(jobs, sim, job):
            return job, n - taken
        # Only a start asks for it, and scores may read what waited before the first one.
        if taken == 1 and listed > n:
            blocked = first_blocked(jobs, sim, primary, n, listed)
        # A job counts as backfilled if one before it in queue order keeps waiting.
        some_wait = some_wait or (blocked >= 0 and precedes(sim, primary, blocked, job))
        begin(jobs, sim, job, some_wait)
        if job == sim.pick:
            return s.PICK_STARTED, n - taken
    return s.NO_HEAD, n - taken


@kernel
def rate_of_wide(jobs: Jobs, sim: CostBenefitSim, free: int) -> float:
    """Return the summed E[1/D] of the waiting jobs on more than `free` processors, 1/s."""
    rate = 0.0
    for at in range(sim.n_groups[s.BASE_ORDER]):
        group = sim.group_order[s.BASE_ORDER, at]
        for child in range(sim.node_size[group]):
            block = sim.node_child[group, child]
            for spot in range(sim.node_size[block]):
                job = sim.node_child[block, spot]
                if jobs.processors[job] > free:
                    rate += expected_rate(jobs, sim, job)
    return rate


@kernel(inlined=True)
def kappa_behind(jobs: Jobs, sim: CostBenefitSim, head: int) -> float:
    """Return what a benefit counts for behind a head: 0, so only EASY's test holds, if overdue."""
    left = sim.threshold - (sim.now - jobs.submit_time[head])
    if sim.is_open == 1.0 or sim.threshold < 0:
        return sim.kappa
    if left <= 0:
        return 0.0
    return sim.kappa * min(2.0 * left / sim.threshold, 1.0)


@kernel(inlined=True)
def delay_of(run_time: float, left: int) -> float:
    """Return by how much a run time with a mean exceeds the time left, s, in the mean."""
    return run_time * math.exp(-float(left) / run_time)  # it is taken to be exponential


@kernel
def pays(jobs: Jobs, sim: CostBenefitSim, job: int, head: int, rate: float, benefit: float) -> bool:
    """Tell whether a job that would delay the head should start all the same.

    `rate` is what waiting costs the wider jobs, and `benefit` what a start now gains for a job with
    E[1/D] = 1. Writes what `expect_now` writes.
    """
    delay = delay_of(expected_run_time(jobs, sim, job), sim.shadow - sim.now)
    lacking = (jobs.processors[job] - sim.extra) / jobs.processors[head]
    return rate * delay * min(lacking, 1.0) <= expected_rate(jobs, sim, job) * benefit


@kernel(inlined=True)
def stakes(
    jobs: Jobs, sim: CostBenefitSim, head: int, free: int, kappa: float
) -> tuple[float, float]:
    """Return the `rate` and `benefit` of `pays`, with `free` processors before the sweep."""
    # Jobs that the sweep has started are not among the wide ones.
    rate = rate_of_wide(jobs, sim, free)
    return rate, kappa * (sim.shadow - sim.now + expected_run_time(jobs, sim, head))


@kernel
def list_fitting(
    jobs: Jobs, sim: CostBenefitSim, head: int, n: int, kappa: float, held: int
) -> tuple[int, float, float]:
    """Keep those of n listed jobs that fit and may start behind the head, and count them.

    A job that may not start now may not later in the sweep either. Return the `stakes` as well, a
    rate of -1 if no job needed them.
    """
    rate, benefit = -1.0, 0.0
    kept = 0
    # But for this: a guaranteed trial may free what it holds sooner once it is promoted.
    may_rise = sim.looks_ahead > 0 and sim.guaranteed > 0
    for position in range(n):
        job = sim.scratch[position]
        if not (may_rise or fits(jobs, sim, job)) or is_blocked_now(jobs, sim, job, held):
            continue
        if not backfills(jobs, sim, job):
            # Without a benefit only EASY's test holds: a cost may round to 0.
            if kappa == 0.0 or is_guaranteed(sim, job):
                continue
            if rate < 0.0:
                rate, benefit = stakes(jobs, sim, head, sim.free, kappa)
            if not pays(jobs, sim, job, head, rate, benefit):
                continue
        sim.scratch[kept] = job
        kept += 1
    return kept, rate, benefit


@kernel
def start_paying(
    jobs: Jobs,
    sim: CostBenefitSim,
    head: int,
    which: int,
    n: int,
    kappa: float,
    rate: float,
    benefit: float,
) -> None:
    """Start what may start behind the head, of the n jobs that `list_fitting` has kept.

    They go in order `which`; `rate` and `benefit` are what it returned.
    """
    held, free = sim.capped, sim.free
    for taken in range(n):
        job = take_next(sim, which, n - taken, taken)
        if not fits(jobs, sim, job) or is_blocked_now(jobs, sim, job, held):
            continue
        if backfills(jobs, sim, job):
            charge_extra(jobs, sim, job)
        elif kappa == 0.0 or is_guaranteed(sim, job):
            continue
        else:
            if rate < 0.0:
                rate, benefit = stakes(jobs, sim, head, free, kappa)
            if not pays(jobs, sim, job, head, rate, benefit):
                continue
        begin(jobs, sim, job, True)
        if not some_fit(sim):
            return


@kernel
def reserve_for_head(jobs: Jobs, sim: CostBenefitSim, head: int) -> float:
    """Reserve for the head, write `shadow` and `extra`, and return what benefits count for."""
    if sim.looks_ahead == 0:
        reserve(jobs, sim, head)
        return kappa_behind(jobs, sim, head)
    ask_ahead(jobs, sim, s.HOLD_AHEAD, head)
    return 0.0


@kernel
def cost_benefit_pass(jobs: Jobs, sim: CostBenefitSim, contested: bool) -> bool:
    """Make a pass under the cap, by costs and benefits; return False if the picked job ended it."""
    held = sim.capped
    sim.binds = int(sim.waiting_processors >= sim.pressed * sim.machine_processors)
    if sim.looks_ahead > 0:
        ask_ahead(jobs, sim, s.LOOK_AHEAD, 0)
    n, listed = list_unblocked(jobs, sim)
    primary = make_primary_order(jobs, sim, n) if contested else s.BASE_ORDER
    head, n = start_unblocked(jobs, sim, primary, n, listed, held)
    if head >= 0 and n > 0 and some_fit(sim):
        kappa = reserve_for_head(jobs, sim, head)
        n, rate, benefit = list_fitting(jobs, sim, head, n, kappa, held)
        if contested:
            which = make_backfill_order(jobs, sim, primary, n)
        else:
            which = kept_backfill_order(sim)
        start_paying(jobs, sim, head, which, n, kappa, rate, benefit)
    return head != s.PICK_STARTED


@kernel
def show_expected_free(jobs: Jobs, sim: CostBenefitSim) -> None:
    """Write what capped jobs hold, and what is expected to be free at each horizon."""
    machine = sim.machine_processors
    shown = sim.shown_controls
    shown[ControlsField.CAPPED_PROCESSORS] = np.float32(sim.capped / machine)
    for ahead in range(len(HORIZONS_S)):
        free = sim.free
        until = float(sim.now + HORIZONS_S[ahead])
        for position in range(sim.n_running):
            job = sim.ending_job[position]
            if not is_on_trial(sim, job) and sim.expected_end[job] <= until:
                free += jobs.processors[job]
        shown[ControlsField.EXPECTED_FREE_IN_3600_S + ahead] = np.float32(free / machine)


@kernel
def show_misfits(jobs: Jobs, sim: CostBenefitSim) -> None:
    """Write what waits of long jobs, and of those wider than what is free; writes `scratch`."""
    machine = float(sim.machine_processors)
    long, wide, rate, longest = 0, 0, 0.0, 0
    for position in range(list_jobs(sim, s.BASE_ORDER, sim.scratch)):
        job = sim.scratch[position]
        q = jobs.processors[job]
        if is_capped(jobs, sim, job):
            long += q
        if q > sim.free:
            wide += q
            rate += expected_rate(jobs, sim, job)
            longest = max(longest, sim.now - jobs.submit_time[job])
    shown = sim.shown_controls
    shown[ControlsField.LONG_PROCESSORS] = squash(float(long), machine)
    shown[ControlsField.WIDE_PROCESSORS] = squash(float(wide), machine)
    shown[ControlsField.WIDE_RATE] = squash(rate, LARGEST_RATE)
    shown[ControlsField.WIDE_LOG_WAIT_TIME] = log_time(float(longest))


@kernel
def show_controls(jobs: Jobs, sim: CostBenefitSim, shadow: int) -> None:
    """Write `shown_controls`; `shadow` as of `observation.shadow_of_base`.

    Writes `scratch` and what `expect_now` writes.
    """
    show_expected_free(jobs, sim)
    show_misfits(jobs, sim)
    left, time_left = sim.free, 0
    if shadow >= 0:
        left, time_left = sim.extra, max(shadow - sim.now, 0)
    shown = sim.shown_controls
    shown[ControlsField.LOG_TIME_TO_SHADOW] = log_time(float(time_left))
    shown[ControlsField.EXTRA_PROCESSORS] = np.float32(left / sim.machine_processors)


def work(jobs: Jobs, sim: CostBenefitSim, task: int, argument: int) -> int:
    """Do a task for a simulation; `argument` is a job, a shadow time, or what a pass goes by."""
    if task == s.ON_START:
        return on_start(jobs, sim, argument)
    if task == s.ON_RELEASE:
        on_release(jobs, sim, argument)
        return 0
    if task == s.ALL_FIT:
        return int(all_fit(sim))
    if task == s.SHOW:
        show_controls(jobs, sim, argument)
        return 0
    return int(cost_benefit_pass(jobs, sim, argument == 1))
