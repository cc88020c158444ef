"""Multiple-queue backfilling: a reservation for the first eligible job of each class, its pivot.

The paper starts one
job and begins anew: the first pivot that fits now, else the first other job that fits beside the
reservations of all pivots. Here one walk and one sweep start the same jobs:

- A pivot that starts fits beside the pivots before it in queue order, so their reservations stay.
  The next pivot of its class is behind it. So one walk in queue order meets all pivots, and each
  takes the earliest hole beside those before it.
- A job that starts beside all reservations moves none and lets no refused job fit. So one sweep
  over the other jobs suffices.

The queue order is the policy's, overdue jobs first; with FCFS it is the paper's.

*Partitions.* Classes go by estimate. A partition is a count of processors, some of them idle. A
class that starts a job takes what its partition lacks from idle processors of the others, and keeps
them when the job ends. So a job may start wherever processors are free: partitions record who has
them, and refuse no one.

*Delay.* A job of the last class is held from its submission until the delay of that instant is
over. A held job is no pivot, has no reservation and does not start. After each batch of completions
the delay grows if the slowdown of short jobs has grown by more than a tolerance, and it shrinks
likewise.

Cost, with n waiting and m running jobs and c classes: O(n) to list, and O(n log n) where the order
changes with time. If an eligible job is narrow enough to start, the profile costs O(m). Each pivot
met, and each other job that is narrow enough, costs O(m + c).

Source: Lawson, Smirni, Puiu 2002, sections 3.2 and 4.2, metric 4; Specification, section 7,
"Multiple queue" and "Adaptive delay".
"""

import math
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Annotated, ClassVar

from hpcgym.base.errors import PolicyError, unknown_name
from hpcgym.core import constants as s
from hpcgym.core.backfill import Backfill, is_number, is_whole
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.compiler.struct import Column
from hpcgym.core.engine.invariants import HEAD_DELAYED, NOT_MAXIMAL, find_delay
from hpcgym.core.engine.life import hold, start_waiting
from hpcgym.core.kernels.passes.easy_dynamic import make_primary_order
from hpcgym.core.kernels.passes.profile import make_profile
from hpcgym.core.kernels.queue.entries import is_held
from hpcgym.core.kernels.queue.ordered_queue import list_jobs, some_job_fits
from hpcgym.core.kernels.queue.selection import sort_listed
from hpcgym.core.kernels.types import Counter, Gauge, IntVector, Jobs, Sim, zeros
from hpcgym.core.parts.depth import count_narrow, reserve_hole, start_behind, starts_now

HEARS = s.ON_SUBMIT | s.ON_START | s.ON_RELEASE | s.ON_END | s.CHECK
PARTITION_BROKEN = -8
BROKEN = {PARTITION_BROKEN: "partitions do not add up to the machine, or lack processors"}
"""What a negative answer to `CHECK` means."""


@dataclass(frozen=True)
class MultiQueue(Backfill):
    """The first job of each class by estimate has a reservation; what delays none may start.

    With a delay, jobs of the last class are held. Until the delay after its submission is over,
    such a job is no pivot, has no reservation and cannot start. Let r be the relative change, from
    one batch of completed jobs to the next, of the mean slowdown of jobs of the first class. After
    each batch the delay changes by r times the first delay, if |r| exceeds the tolerance.

    Source: Lawson, Smirni, Puiu 2002, sections 3.2 and 4.2; specification, section 7.
    """

    NAME: ClassVar[str] = "multi-queue"
    keeps_state: ClassVar[bool] = True

    # Largest estimate of each class but the last, s, ascending; in text parted by "/".
    bounds: tuple[int, ...] = (100, 1_000, 10_000)
    delay: int = 0  # the first delay of jobs of the last class (D_1), s; 0 = they are never held
    batch: int = 100  # jobs of a batch
    tolerance: float = 0.25  # relative change up to which the delay stays
    # What the first batch does: "none", nothing; "printed", as the paper prints it, it changes the
    # delay by the mean slowdown itself.
    delta1: str = "none"

    def __post_init__(self) -> None:
        bounds = self.bounds if isinstance(self.bounds, (tuple, list)) else (self.bounds,)
        most = s.MOST_CLASSES - 1
        ascending = all(is_whole(bound, 1) for bound in bounds) and all(
            bound < next_bound for bound, next_bound in pairwise(bounds)
        )
        if not ascending or not 1 <= len(bounds) <= most:
            raise PolicyError(
                f"backfill 'multi-queue': bounds must be 1 to {most} whole numbers of seconds >= "
                f"1, ascending, as in 100/1000/10000; got {self.bounds!r}"
            )
        for key, least in (("delay", 0), ("batch", 1)):
            if not is_whole(getattr(self, key), least):
                raise PolicyError(
                    f"backfill 'multi-queue': {key} must be a whole number >= {least}, "
                    f"got {getattr(self, key)!r}"
                )
        if not is_number(self.tolerance, 0):
            raise PolicyError(
                f"backfill 'multi-queue': tolerance must be a number >= 0, got {self.tolerance!r}"
            )
        if self.delta1 not in (allowed := ("none", "printed")):
            unknown = unknown_name("delta1", self.delta1, allowed)
            raise PolicyError(f"backfill 'multi-queue': {unknown}")
        for parameter in fields(self)[2:]:
            if self.delay == 0 and getattr(self, parameter.name) != parameter.default:
                raise PolicyError(
                    f"backfill 'multi-queue': {parameter.name} says how a delay adapts; it needs "
                    "delay too, as in delay=2500"
                )
        object.__setattr__(self, "bounds", tuple(map(int, bounds)))
        object.__setattr__(self, "delay", int(self.delay))
        object.__setattr__(self, "batch", int(self.batch))

    @property
    def guards(self) -> bool:
        """Tell whether nothing delays a head beyond the threshold."""
        return self.delay == 0

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels read in `Sim.backfill_parameter`."""
        adapts = (self.delay, self.batch, self.tolerance, self.delta1 == "printed")
        return tuple(float(number) for number in (len(self.bounds) + 1, *adapts, *self.bounds))


class MultiQueueSim(Sim):
    """What classes, their partitions and the delay add to a simulation."""

    n_classes: Annotated[float, Column("backfill_parameter", 0)]
    first_delay: Annotated[float, Column("backfill_parameter", 1)]  # s, 0 = no delay ever
    batch_jobs: Annotated[float, Column("backfill_parameter", 2)]  # jobs of a batch
    tolerance: Annotated[float, Column("backfill_parameter", 3)]  # change that leaves the delay
    # 1 = the first batch changes the delay by its mean slowdown, as the paper prints it.
    printed_delta: Annotated[float, Column("backfill_parameter", 4)]
    is_divided: Counter  # 1 once the machine is divided; 0 after a reset
    n_batch: Counter  # jobs completed since the delay was last adapted
    n_batch_short: Counter  # jobs among them whose slowdown counts
    delay: Gauge  # of a job of the last class that is submitted now, s
    batch_slowdown: Gauge  # summed slowdown of the `n_batch_short` jobs
    last_slowdown: Gauge  # mean of the last batch that had such jobs, 0 = none yet

    partition: IntVector = zeros(s.MOST_CLASSES)
    """Processors in the partition of each class, idle ones and those of its running jobs."""
    partition_idle: IntVector = zeros(s.MOST_CLASSES)  # the idle ones among them


@kernel(inlined=True)
def class_of(jobs: Jobs, sim: MultiQueueSim, job: int) -> int:
    """Return the class of a job, 0 for the shortest, by its estimate at submission."""
    # The feature keeps the estimate of the submission, whatever is corrected later.
    estimate = jobs.feature[job, s.FEATURE_ESTIMATE]
    last = int(sim.n_classes) - 1
    for number in range(last):
        if estimate <= sim.backfill_parameter[s.FIRST_BOUND + number]:
            return number
    return last


@kernel(inlined=True)
def begin_partitions(sim: MultiQueueSim) -> None:
    """Divide the empty machine evenly, the first classes taking the remainder.

    Writes `partition`, `partition_idle`, `delay` and `is_divided`.
    """
    sim.is_divided = 1
    sim.delay = sim.first_delay
    n = int(sim.n_classes)
    machine = sim.machine_processors
    for number in range(s.MOST_CLASSES):
        size = machine // n + int(number < machine % n) if number < n else 0
        sim.partition[number] = size
        sim.partition_idle[number] = size


@kernel(inlined=True)
def most_idle(sim: MultiQueueSim, taker: int) -> int:
    """Return the other class with most idle processors, ties the lowest."""
    giver = -1
    for number in range(int(sim.n_classes)):
        if number != taker and (
            giver < 0 or sim.partition_idle[number] > sim.partition_idle[giver]
        ):
            giver = number
    return giver


@kernel
def occupy_partition(jobs: Jobs, sim: MultiQueueSim, job: int) -> None:
    """Take the processors of a job that starts from its class's partition, in O(classes).

    As many processors are free. Writes `partition` and `partition_idle`.
    """
    taker = class_of(jobs, sim, job)
    while sim.partition_idle[taker] < jobs.processors[job]:
        giver = most_idle(sim, taker)
        given = min(sim.partition_idle[giver], jobs.processors[job] - sim.partition_idle[taker])
        sim.partition[giver] -= given
        sim.partition_idle[giver] -= given
        sim.partition[taker] += given
        sim.partition_idle[taker] += given
    sim.partition_idle[taker] -= jobs.processors[job]


@kernel(inlined=True)
def vacate_partition(jobs: Jobs, sim: MultiQueueSim, job: int) -> None:
    """Return the processors of a job to its class's partition as idle; write `partition_idle`."""
    sim.partition_idle[class_of(jobs, sim, job)] += jobs.processors[job]


@kernel
def on_submit(jobs: Jobs, sim: MultiQueueSim, job: int) -> None:
    """Hold a newcomer of the last class if there is a delay."""
    is_last = class_of(jobs, sim, job) == int(sim.n_classes) - 1
    if is_last and sim.delay > 0.0:
        hold(sim, job, jobs.submit_time[job] + math.ceil(sim.delay))


@kernel
def record_slowdown(jobs: Jobs, sim: MultiQueueSim, job: int) -> None:
    """Count a completed job into its batch, and close the batch if it is full.

    Writes `n_batch`, `n_batch_short`, `batch_slowdown`, and what `close_batch` writes.
    """
    run_time = jobs.run_time[job]
    # Short jobs are those of the first class. Without a run time a job has no slowdown.
    if run_time > 0 and class_of(jobs, sim, job) == 0:
        wait = sim.start_time[job] - jobs.submit_time[job]
        sim.batch_slowdown += 1.0 + wait / run_time
        sim.n_batch_short += 1
    sim.n_batch += 1
    if sim.n_batch >= sim.batch_jobs:
        close_batch(sim)


@kernel
def close_batch(sim: MultiQueueSim) -> None:
    """Change the delay with the mean slowdown of the batch's short jobs, and begin a new batch.

    Writes `delay`, `last_slowdown` and the sums of the batch.
    """
    # A batch without short jobs changes nothing; the first batch with some counts as the first.
    if sim.n_batch_short > 0:
        slowdown = sim.batch_slowdown / sim.n_batch_short
        last = sim.last_slowdown
        change = 0.0
        if last > 0.0:
            change = (slowdown - last) / max(slowdown, last)  # within [-1, 1]
        elif sim.printed_delta == 1.0:
            change = slowdown  # as the paper prints it for the first batch
        if abs(change) > sim.tolerance:  # else the delay stays
            changed = sim.delay + change * sim.first_delay
            sim.delay = max(changed, 0.0)
        sim.last_slowdown = slowdown
    sim.batch_slowdown = 0.0
    sim.n_batch = 0
    sim.n_batch_short = 0


@kernel(inlined=True)
def drop_held(sim: MultiQueueSim, n: int) -> int:
    """Remove held jobs from n listed ones, keeping the order; return how many are left."""
    left = 0
    for position in range(n):
        job = sim.scratch[position]
        if not is_held(sim, job):
            sim.scratch[left] = job
            left += 1
    return left


@kernel(inlined=True)
def list_eligible(jobs: Jobs, sim: MultiQueueSim, contested: bool) -> int:
    """List the eligible jobs in queue order in `scratch`, and return their number."""
    n = list_jobs(sim, s.BASE_ORDER, sim.scratch)
    primary = make_primary_order(jobs, sim, n) if contested else s.BASE_ORDER
    if sim.n_held > 0:
        n = drop_held(sim, n)
    if primary != s.BASE_ORDER:
        sort_listed(sim, primary, n)
    return n


@kernel(inlined=True)
def walk_pivots(jobs: Jobs, sim: MultiQueueSim, n: int, narrow: int) -> int:
    """Start the pivots that fit now, and reserve for the others (the walk).

    Of n jobs listed in queue order, `narrow` want no more than the free processors. Return how many
    other jobs, listed first now in queue order, may still start; `PICK_STARTED` if the picked job
    started. Writes the profile, `scratch` and what `start_waiting` writes.
    """
    free = sim.free
    waiting = 0  # classes whose pivot waits, a bit each
    left = 0
    for position in range(n):
        job = sim.scratch[position]
        bit = 1 << class_of(jobs, sim, job)
        if waiting & bit != 0:
            sim.scratch[left] = job
            left += 1
            continue
        # A job that starts takes the hole at now; the next of its class becomes pivot.
        start = reserve_hole(jobs, sim, job)
        if start > sim.now or jobs.processors[job] > sim.free:
            waiting |= bit
        else:
            # It counts as backfilled if an eligible job before it keeps waiting; then a pivot does,
            # too.
            start_waiting(jobs, sim, job, waiting != 0)
            if waiting == 0:
                sim.checked_head = -1  # a start ahead of the head may delay it
            if job == sim.pick:
                return s.PICK_STARTED
        narrow -= int(jobs.processors[job] <= free)
        # Jobs set aside above still count as `narrow`, so at 0 none of them can start.
        if narrow == 0 or not some_job_fits(sim):
            return 0
    return left


@kernel
def multi_queue_pass(jobs: Jobs, sim: MultiQueueSim, contested: bool) -> bool:
    """Make a pass with one reservation per class; return False if it stopped at the picked job.

    Writes what `walk_pivots` and `start_behind` write, and keys of `PASS_ORDER`.
    """
    n = list_eligible(jobs, sim, contested)
    narrow = count_narrow(jobs, sim, 0, n)
    if narrow == 0:
        return True
    make_profile(jobs, sim)
    left = walk_pivots(jobs, sim, n, narrow)
    for position in range(left):  # the sweep over the other jobs
        if starts_now(jobs, sim, sim.scratch[position]):
            start_behind(jobs, sim, sim.scratch[position])
    return left >= 0


@kernel
def are_partitions_whole(sim: MultiQueueSim) -> bool:
    """Tell whether partitions sum to the machine, idle processors to `free`, with none below 0."""
    processors, idle, least = 0, 0, 0
    for number in range(s.MOST_CLASSES):
        processors += sim.partition[number]
        idle += sim.partition_idle[number]
        occupied = sim.partition[number] - sim.partition_idle[number]
        least = min(least, sim.partition_idle[number], occupied)
    return processors == sim.machine_processors and idle == sim.free and least == 0


@kernel
def find_multi_queue_violation(jobs: Jobs, sim: MultiQueueSim, finished: bool) -> int:
    """Look for broken partitions, a start that was missed, and a first eligible job moved later.

    `scratch` lists the waiting jobs. Writes `checked_head`, `checked_shadow`, `scratch` and the
    profile.
    """
    if not are_partitions_whole(sim):
        return PARTITION_BROKEN
    if not finished or sim.order_rule != s.BY_BASE or sim.decide != s.DECIDE_NEVER:
        return 0
    head = -1
    for position in range(sim.n_waiting):
        if head < 0 and not is_held(sim, sim.scratch[position]):
            head = sim.scratch[position]
    started = sim.n_started
    # Maximality: a second pass in the same order starts nothing.
    multi_queue_pass(jobs, sim, False)
    if sim.n_started != started:
        return NOT_MAXIMAL
    if head < 0:
        sim.checked_head = -1
        return 0
    return HEAD_DELAYED if find_delay(jobs, sim, head) else 0


def work(jobs: Jobs, sim: MultiQueueSim, task: int, argument: int) -> int:
    """Do a task for a simulation; `argument` is a job, or says of a pass what it goes by."""
    if sim.is_divided == 0:
        begin_partitions(sim)
    if task == s.ON_SUBMIT:
        on_submit(jobs, sim, argument)
    elif task == s.ON_START:
        occupy_partition(jobs, sim, argument)
    elif task == s.ON_RELEASE:
        vacate_partition(jobs, sim, argument)
    elif task == s.ON_END:
        if sim.first_delay > 0.0:
            record_slowdown(jobs, sim, argument)
    elif task == s.CHECK:
        return find_multi_queue_violation(jobs, sim, argument == 1)
    else:
        return int(multi_queue_pass(jobs, sim, argument == 1))
    return 0
