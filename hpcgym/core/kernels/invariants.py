"""Invariants of the simulation, checked after every pass in a debug run."""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.easy import backfills, reserve
from hpcgym.core.kernels.passes.multi_queue import multi_queue_pass
from hpcgym.core.kernels.passes.multi_queue_delay import is_held
from hpcgym.core.kernels.passes.profile import make_profile, take_interval
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.queue.ordered_queue import first_job, list_jobs
from hpcgym.core.kernels.running_jobs import next_release
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    BACKFILL,
    BACKFILL_EASY,
    BACKFILL_MULTI_QUEUE,
    BACKFILL_SHIFT,
    BACKFILL_SLACK,
    BASE,
    BATCH,
    BY_BASE,
    CHECKED_HEAD,
    CHECKED_SHADOW,
    CORRECT,
    DECIDE,
    DECIDE_NEVER,
    EXTRA,
    FREE,
    MACHINE_PROCESSORS,
    MOST_CLASSES,
    N_PROFILE,
    N_RUNNING,
    N_STARTED,
    N_WAITING,
    NEXT_JOB,
    NOW,
    ORDER_RULE,
    SEMANTICS,
    SHADOW,
)

CAPACITY_BROKEN = -1
STARTED_EARLY = -2
COUNT_BROKEN = -3
NOT_MAXIMAL = -4
HEAD_DELAYED = -5
PLAN_PASSED = -6
PLAN_BROKEN = -7
PARTITION_BROKEN = -8


@kernel
def find_violation(jobs: Jobs, sim: Sim, finished: bool) -> int:
    """Look for a broken invariant, in O(n_waiting + n_running) steps.

    Args:
        jobs: The job table.
        row: The simulation, just after a pass.
        finished: Whether the pass ran to its end.

    Returns:
        0, or a negative number that names the invariant.

    Writes:
        CHECKED_HEAD and CHECKED_SHADOW, for the next check; `scratch`.

    Source:
        Specification, section 1, "Invariants".
    """
    used = 0
    for place in range(sim.counter[N_RUNNING]):
        job = sim.ending_job[place]
        used += jobs.processors[job]
        if sim.start_time[job] < jobs.submit_time[job]:
            return STARTED_EARLY
    if sim.setting[SEMANTICS] == BATCH and (
        sim.counter[FREE] < 0 or used + sim.counter[FREE] != sim.setting[MACHINE_PROCESSORS]
    ):
        return CAPACITY_BROKEN
    if (
        sim.counter[N_STARTED] + sim.counter[N_WAITING] != sim.counter[NEXT_JOB]
        or list_jobs(sim, BASE, sim.scratch) != sim.counter[N_WAITING]
    ):
        return COUNT_BROKEN
    if (
        finished
        and (sim.setting[BACKFILL] == BACKFILL_SHIFT or sim.setting[BACKFILL] == BACKFILL_SLACK)
        and next_release(sim) > sim.counter[NOW]
    ):
        return find_plan_violation(jobs, sim)
    has_classes = sim.setting[BACKFILL] == BACKFILL_MULTI_QUEUE
    if has_classes and not are_partitions_whole(sim):
        return PARTITION_BROKEN
    keeps_head = sim.setting[ORDER_RULE] == BY_BASE and sim.setting[DECIDE] == DECIDE_NEVER
    if finished and keeps_head and has_classes:
        return find_multi_queue_violation(jobs, sim)
    if finished and keeps_head and sim.setting[BACKFILL] == BACKFILL_EASY:
        return find_pass_violation(jobs, sim)
    return 0


@kernel
def are_partitions_whole(sim: Sim) -> bool:
    """Tell whether the partitions add up.

    Args:
        row: The simulation, its backfilling mode one with classes.

    Returns:
        True if they have the machine's processors, no fewer idle than 0, and all that are free.

    Source:
        Specification, section 7, "Invariants".
    """
    processors, idle, least = 0, 0, 0
    for number in range(MOST_CLASSES):
        processors += sim.partition[number]
        idle += sim.partition_idle[number]
        occupied = sim.partition[number] - sim.partition_idle[number]
        least = min(least, sim.partition_idle[number], occupied)
    return (
        processors == sim.setting[MACHINE_PROCESSORS] and idle == sim.counter[FREE] and least == 0
    )


@kernel
def find_multi_queue_violation(jobs: Jobs, sim: Sim) -> int:
    """Look for a job that the pass should have started, and for the first one moved later.

    Args:
        jobs: The job table.
        row: The simulation, just after a pass in the base order; `scratch` lists the waiting jobs.

    Returns:
        0, or a negative number that names the invariant.

    Writes:
        CHECKED_HEAD and CHECKED_SHADOW, for the next check; `scratch` and the profile.

    Source:
        Specification, section 7, "Invariants": the oldest eligible job comes first, and its time
        never moves later.
    """
    head = -1
    for place in range(sim.counter[N_WAITING]):
        if head < 0 and not is_held(sim, sim.scratch[place]):
            head = sim.scratch[place]
    started = sim.counter[N_STARTED]
    multi_queue_pass(jobs, sim, False)
    if sim.counter[N_STARTED] != started:
        return NOT_MAXIMAL
    if head < 0:
        sim.counter[CHECKED_HEAD] = -1
        return 0
    later = find_delay(jobs, sim, head)
    sim.counter[SHADOW] = -1
    return HEAD_DELAYED if later else 0


@kernel
def find_delay(jobs: Jobs, sim: Sim, head: int) -> bool:
    """Reserve for the head, and tell whether its reservation is later than at the last check.

    Args:
        jobs: The job table.
        row: The simulation, just after a pass in the base order.
        head: Index of the head.

    Returns:
        True if the head was delayed.

    Writes:
        CHECKED_HEAD and CHECKED_SHADOW, for the next check; SHADOW and EXTRA.

    Source:
        Specification, section 1, "Invariants": the head's shadow time.
    """
    reserve(jobs, sim, head)
    later = sim.counter[CHECKED_HEAD] == head and sim.counter[SHADOW] > max(
        sim.counter[CHECKED_SHADOW], sim.counter[NOW]
    )
    sim.counter[CHECKED_HEAD] = head
    sim.counter[CHECKED_SHADOW] = sim.counter[SHADOW]
    return later


@kernel
def find_pass_violation(jobs: Jobs, sim: Sim) -> int:
    """Look for a job that the pass should have started, and for a head moved later.

    A correction moves the head later, and rightly so; where there are any, that is not looked at.

    Args:
        jobs: The job table.
        row: The simulation, just after a pass in the base order; `scratch` lists the waiting jobs.

    Returns:
        0, or a negative number that names the invariant.

    Writes:
        CHECKED_HEAD and CHECKED_SHADOW, for the next check.

    Source:
        Specification, section 1, "Invariants": maximality; the head's shadow time.
    """
    head = first_job(sim, BASE)
    if head < 0:
        sim.counter[CHECKED_HEAD] = -1
        return 0
    if jobs.processors[head] <= sim.counter[FREE]:
        return NOT_MAXIMAL
    shadow = sim.counter[SHADOW]
    extra = sim.counter[EXTRA]
    later = find_delay(jobs, sim, head)
    for place in range(sim.counter[N_WAITING]):
        job = sim.scratch[place]
        if job != head and backfills(jobs, sim, job):
            return NOT_MAXIMAL
    sim.counter[SHADOW] = shadow
    sim.counter[EXTRA] = extra
    return HEAD_DELAYED if later and sim.setting[CORRECT] == 0 else 0


@kernel
def find_plan_violation(jobs: Jobs, sim: Sim) -> int:
    """Look for a reservation that was missed, and for processors that are promised twice.

    Args:
        jobs: The job table.
        row: The simulation, just after a pass, no job beyond its estimate; `scratch` lists the
            waiting jobs.

    Returns:
        0, or a negative number that names the invariant.

    Writes:
        The profile.

    Source:
        Specification, section 4, "Conservative": every waiting job has a reservation.
    """
    make_profile(jobs, sim)
    for place in range(sim.counter[N_WAITING]):
        job = sim.scratch[place]
        planned = sim.planned_start[entry_of(sim, job)]
        if planned <= sim.counter[NOW]:
            return PLAN_PASSED
        take_interval(jobs, sim, job, planned)
    for step in range(sim.counter[N_PROFILE]):
        if sim.profile_free[step] < 0:
            return PLAN_BROKEN
    return 0
