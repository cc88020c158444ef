"""Outages: processors that the machine lacks for a time, announced or not.

An outage that begins takes processors that are free. Where these are too few, jobs are taken off
until they suffice: trials, then guaranteed ones, then the jobs that run; each time those that
started last. Such a job waits again, and its work is lost; or, by its column `requeue`, the job is.
From its announcement on, at the latest from its beginning, an outage is *known*, its end included.
While one is known and not over, passes look ahead: a job may start if, by estimates, its processors
are free until its estimated end. The head reserves the earliest instant from which its own are.

So a pass works on the profile of free processors (`hpcgym.core.kernels.passes.profile`), out of
which known outages are taken. `hpcgym.core.parts.cost_benefit` makes those under a cap and with
trials. At all other times the passes are those of the mode.

Cost: O(outages) for an instant of an outage, O(running jobs) for each job taken off. A pass with n
waiting and m running jobs that looks ahead costs O(n (m + outages)) at most, as
`hpcgym.core.parts.depth`.

Source: Specification, section 15, "Outages".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.core.backfill import is_whole
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.down_nodes import NodeOutage
from hpcgym.core.engine.life import (
    end_guarantee,
    enter,
    evict,
    is_guaranteed,
    is_on_trial,
    lose,
    note_attempt,
    start_waiting,
    take_back,
)
from hpcgym.core.events import Event
from hpcgym.core.kernels.passes.easy_dynamic import make_primary_order
from hpcgym.core.kernels.passes.profile import (
    change_profile,
    find_start,
    is_free_now,
    make_profile,
    take_interval,
)
from hpcgym.core.kernels.queue.ordered_queue import list_jobs, some_job_fits
from hpcgym.core.kernels.queue.selection import take_first
from hpcgym.core.kernels.types import Counter, Jobs, Sim
from hpcgym.core.parts.depth import backfill_others, reserve_hole, starts_now
from hpcgym.machine.downtime import check_instants, names_of

if TYPE_CHECKING:
    from hpcgym.core.workload import Workload

HEARS = 0

NODE_OUTAGES = "hpcgym.core.parts.node_outages"  # part that takes nodes off the machine

REQUEUES = True
"""Jobs may have several attempts, so that a simulation keeps what is known of each job's."""


@dataclass(frozen=True)
class Outage(Event):
    """The machine lacks processors, or nodes, from an instant until another, s on the log's clock.

    Source: Specification, section 15, "Outages" and "Outages of nodes".
    """

    NAME: ClassVar[str] = "outage"
    KNOWS: ClassVar[tuple[str, ...]] = ("trials", "waits", "nodes")
    SHARED: ClassVar[bool] = True

    from_: int  # when it begins; "from" in texts
    to: int  # when the processors are back, later than `from_`
    processors: int = 0  # how many, >= 1; outages that overlap add up. Of a machine of nodes: 0
    # From when on it is known, at most `from_`: then it comes unannounced. By default it is always
    # known.
    announced: int = 0
    # Ids of nodes, ranges of ids and names of groups that are down, in place of `processors`: a
    # text such as "0-3/7/s1" or several texts and numbers.
    nodes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_instants(self, PolicyError)
        if self.nodes != ():
            object.__setattr__(self, "nodes", names_of(self.nodes, PolicyError))
        if self.nodes and self.processors:
            raise PolicyError(
                f"outage: processors or nodes, not both; got processors={self.processors!r} and "
                f"nodes={'/'.join(self.nodes)}"
            )
        if not self.nodes:
            if not is_whole(self.processors, 1):
                raise PolicyError(
                    "outage: processors must be whole, a number >= 1, got "
                    f"{self.processors!r}; on a machine of nodes name them, as in nodes=0-3/7"
                )
            object.__setattr__(self, "processors", int(self.processors))

    @property
    def makes_passes(self) -> bool:
        """Tell whether it may: passes on nodes look ahead themselves."""
        return not self.nodes

    @property
    def demands(self) -> dict[str, str]:
        """Return what it demands: of passes that they know outages, and of the machine its form."""
        modes = "those of backfill 'easy' and 'cost-benefit', with a cap or trials or without"
        if self.nodes:
            where = "names nodes; on counted processors say how many are down, as in processors=64"
            known = (
                f"needs passes that know outages of nodes, {modes}, 'depth', 'conservative', "
                "'slurm', 'none'"
            )
            return super().demands | {"nodes": where, "outages of nodes": known}
        where = "counts processors; of nodes name those that are down, as in nodes=0-3/7"
        known = f"needs passes that know outages, {modes}, and 'none'"
        return super().demands | {"counts": where, "outages": known}

    @property
    def lacks(self) -> dict[str, str]:
        """Return what it cannot be beside: jobs that wait anew, and kills that take time."""
        return super().lacks | {"restart": "", "overhead": ""}

    def outages(self, workload: Workload) -> Sequence[Sequence[int]]:
        """Return its row of `Jobs.outage`, which lasts no time if it is over at time 0."""
        if self.nodes:
            return []
        start, end, announced = self._instants(workload)
        return [(start, end, self.processors, announced, -1)]

    def node_outages(self, workload: Workload) -> Sequence[NodeOutage]:
        """Return its nodes, on the clock of the workload.

        Raises:
            PolicyError: It names nodes that the machine does not have.
        """
        if not self.nodes:
            return []
        assert workload.machine is not None
        nodes = workload.machine.find_nodes(self.nodes, PolicyError)
        return [NodeOutage(*self._instants(workload), nodes)]

    def _instants(self, workload: Workload) -> tuple[int, int, int]:
        """Return from when until when it lasts, and since when it is known, on that clock, s."""
        instants = self.from_, self.to, self.announced
        start, end, announced = (max(instant - workload.time_offset, 0) for instant in instants)
        return start, end, announced

    @property
    def number(self) -> int:
        """Return what `Jobs.event_pass` holds for the event."""
        part = NODE_OUTAGES if self.nodes else __name__
        return s.BACKFILL_PART + loaders.place_of(part)

    def numbers(self, workload: Workload) -> Sequence[int]:
        """Return nothing: kernels read `Jobs.outage`."""
        return []


class OutageSim(Sim):
    """What outages add to a simulation."""

    next_change: Counter  # when an outage is announced, begins or ends next, s; 0 before all
    down: Counter  # processors that outages have taken now


@kernel(inlined=True)
def is_known(jobs: Jobs, sim: Sim, row: int) -> bool:
    """Tell whether an outage is known, and not over."""
    return jobs.outage[row, s.OUTAGE_ANNOUNCED] <= sim.now < jobs.outage[row, s.OUTAGE_TO]


@kernel
def begin(jobs: Jobs, sim: Sim) -> None:
    """Write that no job has been tried, and when the last outage begins."""
    for job in range(sim.n_jobs):
        sim.ran[job] = sim.wasted[job] = 0
        sim.killed_at[job] = sim.taken[job] = -1
    for row in range(len(jobs.outage)):
        sim.last_outage = max(sim.last_outage, jobs.outage[row, s.OUTAGE_FROM])


@kernel(inlined=True)
def taken_off_by(sim: Sim, job: int) -> tuple[int, int, int]:
    """Return what a job on the machine is taken off by, the largest first."""
    if is_on_trial(sim, job):
        return 2 - int(is_guaranteed(sim, job)), sim.since[job], job
    return 0, sim.start_time[job], job


@kernel
def take_off(jobs: Jobs, sim: Sim, job: int) -> None:
    """Take a running job off the machine; it waits again, or is lost."""
    sim.taken[job] = sim.since[job] = sim.start_time[job]
    note_attempt(sim, job, s.NODE_DOWN)
    sim.taken[job] = -1
    if len(jobs.requeue) > 0 and jobs.requeue[job] == s.NOT_AGAIN:
        lose(jobs, sim, job)
        return
    evict(jobs, sim, job)
    enter(jobs, sim, job)


@kernel
def take_off_last(jobs: Jobs, sim: Sim) -> None:
    """Take a job off the machine: a trial, else one that runs; the one that started last."""
    last = sim.ending_job[0]
    for position in range(1, sim.n_running):
        job = sim.ending_job[position]
        if taken_off_by(sim, job) > taken_off_by(sim, last):
            last = job
    if is_on_trial(sim, last):
        if is_guaranteed(sim, last):
            end_guarantee(jobs, sim, last)
        take_back(jobs, sim, last, s.NODE_DOWN)
    else:
        take_off(jobs, sim, last)


@kernel
def change_capacity(jobs: Jobs, sim: OutageSim) -> None:
    """Take what is down from now on out of the machine, or give it back; write counts."""
    down = 0
    for row in range(len(jobs.outage)):
        if jobs.outage[row, s.OUTAGE_FROM] <= sim.now < jobs.outage[row, s.OUTAGE_TO]:
            down += jobs.outage[row, s.OUTAGE_PROCESSORS]
    # Outages that begin may take what others give back at this instant.
    sim.free += sim.down - down
    sim.busy += down - sim.down
    sim.down = down
    while sim.free < sim.on_trial:
        take_off_last(jobs, sim)


@kernel
def on_instant(jobs: Jobs, sim: OutageSim) -> int:
    """Announce, begin and end outages; tell whether a pass is due."""
    now = sim.now
    if sim.next_change > now:
        return 0  # another event happens
    if now == 0:
        begin(jobs, sim)
    change_capacity(jobs, sim)
    is_due = 0
    sim.looks_ahead = 0
    sim.next_change = s.NEVER
    for row in range(len(jobs.outage)):
        if is_known(jobs, sim, row):
            sim.looks_ahead = sim.event + 1
        for column in (s.OUTAGE_FROM, s.OUTAGE_TO, s.OUTAGE_ANNOUNCED):
            instant = jobs.outage[row, column]
            if instant == now:
                is_due = 1
            elif instant > now:
                sim.next_change = min(sim.next_change, instant)
    sim.checked_head = -1  # its reservation may rightly move
    return is_due


@kernel
def known_down(jobs: Jobs, sim: Sim, instant: int) -> int:
    """Return the processors that known outages take at an instant, s."""
    down = 0
    for row in range(len(jobs.outage)):
        begin, end = jobs.outage[row, s.OUTAGE_FROM], jobs.outage[row, s.OUTAGE_TO]
        if begin <= instant < end and is_known(jobs, sim, row):
            down += jobs.outage[row, s.OUTAGE_PROCESSORS]
    return down


@kernel
def look_ahead(jobs: Jobs, sim: OutageSim) -> None:
    """Make the profile of the running jobs and the known outages."""
    make_profile(jobs, sim)
    for step in range(sim.n_profile):
        sim.profile_free[step] += sim.down
    for row in range(len(jobs.outage)):
        if is_known(jobs, sim, row):
            start = max(jobs.outage[row, s.OUTAGE_FROM], sim.now)
            processors = jobs.outage[row, s.OUTAGE_PROCESSORS]
            change_profile(sim, start, jobs.outage[row, s.OUTAGE_TO], -processors)


@kernel(inlined=True)
def free_what_is_held(jobs: Jobs, sim: Sim, job: int, sign: int) -> None:
    """Take what a guaranteed trial holds for free in the profile; with `sign` -1 no more."""
    if is_guaranteed(sim, job):
        change_profile(sim, sim.now, sim.over[job], sign * jobs.processors[job])


@kernel(inlined=True)
def estimated_end(jobs: Jobs, sim: Sim, job: int) -> int:
    """Return when a waiting job would end by its estimate if it started now, at least now, s."""
    since = sim.since[job] if is_on_trial(sim, job) else sim.now
    return max(since + jobs.estimate[job], sim.now)


@kernel
def is_free_until_end(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a waiting job's processors are free until its estimated end, by the profile."""
    duration = estimated_end(jobs, sim, job) - sim.now
    free_what_is_held(jobs, sim, job, 1)
    is_free = is_free_now(sim, jobs.processors[job], duration)
    free_what_is_held(jobs, sim, job, -1)
    return is_free


@kernel
def take_ahead(jobs: Jobs, sim: Sim, job: int) -> None:
    """Take a waiting job that starts now out of the profile."""
    free_what_is_held(jobs, sim, job, 1)
    change_profile(sim, sim.now, estimated_end(jobs, sim, job), -jobs.processors[job])


@kernel
def more_ahead(jobs: Jobs, sim: Sim, until: int) -> int:
    """Return how many processors known outages take before an instant, s, beyond those of now.

    Outages that begin overlap others, so the most is at a beginning.
    """
    most = 0
    for row in range(len(jobs.outage)):
        at = jobs.outage[row, s.OUTAGE_FROM]
        if sim.now < at < until and is_known(jobs, sim, row):
            most = max(most, known_down(jobs, sim, at) - known_down(jobs, sim, sim.now))
    return most


@kernel
def start_in_order(jobs: Jobs, sim: Sim, primary: int, n: int) -> int:
    """Start jobs from the front of n listed ones while they fit by the profile.

    Return the head, which is off the list; `NO_HEAD` if no job fits any more, `PICK_STARTED` if the
    picked job started. Writes the profile, `scratch` and what `start_waiting` writes.
    """
    taken = 0
    while taken < n and some_job_fits(sim):
        job = take_first(sim, primary, n - taken, taken)
        taken += 1
        if not starts_now(jobs, sim, job):
            return job
        take_interval(jobs, sim, job, sim.now)
        start_waiting(jobs, sim, job, False)
        if job == sim.pick:
            return s.PICK_STARTED
    return s.NO_HEAD


@kernel
def pass_ahead(jobs: Jobs, sim: OutageSim, contested: bool) -> bool:
    """Make a pass on the profile; return False if it stopped at the picked job.

    Writes what `start_waiting` writes, keys of orders that are not kept, `shadow` and `extra`.
    """
    sim.shadow = sim.checked_head = -1
    n = list_jobs(sim, s.BASE_ORDER, sim.scratch)
    primary = make_primary_order(jobs, sim, n) if contested else s.BASE_ORDER
    look_ahead(jobs, sim)
    head = start_in_order(jobs, sim, primary, n)
    if head >= 0 and sim.backfill == s.BACKFILL_EASY:
        sim.shadow = reserve_hole(jobs, sim, head)
        backfill_others(jobs, sim, primary, 0, sim.n_waiting - 1)
    return head != s.PICK_STARTED


@kernel
def free_at(sim: Sim, instant: int) -> int:
    """Return the processors free at an instant, s, not past, by the profile."""
    step = 0
    while step + 1 < sim.n_profile and sim.profile_time[step + 1] <= instant:
        step += 1
    return int(sim.profile_free[step])


@kernel
def least_free(sim: Sim) -> int:
    """Return the fewest processors that are free at any instant to come, by the profile."""
    least = sim.free
    for step in range(sim.n_profile):
        least = min(least, sim.profile_free[step])
    return least


def work(jobs: Jobs, sim: OutageSim, task: int, argument: int) -> int:
    """Do a task; `argument` is a job, an instant, or what a pass goes by."""
    if task == s.NEXT_INSTANT:
        return int(sim.next_change)
    if task == s.ON_INSTANT:
        return on_instant(jobs, sim)
    if task == s.MAKE_PASS:
        return int(pass_ahead(jobs, sim, argument == 1))
    if task == s.FREE_UNTIL_END:
        return int(is_free_until_end(jobs, sim, argument))
    if task == s.MORE_AHEAD:
        return more_ahead(jobs, sim, argument)
    if task == s.TAKE_AHEAD:
        take_ahead(jobs, sim, argument)
        return 0
    if task == s.HOLD_AHEAD:
        sim.shadow = reserve_hole(jobs, sim, argument)
        return 0
    look_ahead(jobs, sim)
    if task == s.ALL_FIT:
        return int(sim.waiting_processors <= least_free(sim))
    if task == s.FITS_AHEAD:
        fits = jobs.processors[argument] <= sim.free
        return int(fits and is_free_until_end(jobs, sim, argument))
    if task == s.FREE_AHEAD:
        return free_at(sim, argument)
    if task == s.RESERVE_AHEAD:
        wanted = jobs.processors[argument]
        sim.shadow = find_start(sim, wanted, jobs.estimate[argument])
        sim.extra = free_at(sim, sim.shadow) - wanted
    return 0
