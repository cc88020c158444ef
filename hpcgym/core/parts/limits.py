"""Limits: what each user, account, QOS or partition may have at once: jobs, processors, GPUs.

A waiting job that would go beyond a limit if it started now is passed over. It does not start, and
no reservation is made for it: it can hold nobody up. Which limit held it last is kept.

Where processors are counted, passes within limits stand in for those of EASY and none, and `slurm`
asks about each job. A pass lists
the waiting jobs and goes through them in order, which costs O(n log n) for n of them, and each job
asks every limit, O(limits). On machines of nodes the pass asks them, as it asks a cap; a job that
ends makes a pass of every component, O(components). A start and an end cost O(limits). Of jobs that
wait or run, the first in submission are within. The job of a group that comes next is looked for
among all jobs behind the last, each at most once for a group.

Source: Specification, section 16, "Limits".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core.backfill import Backfill, Easy, Mode, is_whole
from hpcgym.core.compiler.by_address import has_nodes
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import start_waiting
from hpcgym.core.engine.moments import event_number, tell_events
from hpcgym.core.events import Event
from hpcgym.core.kernels.passes.easy import backfills, charge_extra, reserve
from hpcgym.core.kernels.passes.easy_dynamic import make_backfill_order, make_primary_order
from hpcgym.core.kernels.queue.ordered_queue import list_jobs, some_job_fits
from hpcgym.core.kernels.queue.selection import take_first
from hpcgym.core.kernels.types import Counter, IntVector, Jobs, Sim, empty
from hpcgym.core.workload import Workload
from hpcgym.errors import PolicyError, WorkloadError, unknown_name

HEARS = s.ON_SUBMIT | s.ON_START | s.ON_END | s.ON_LOSE | s.ON_EVICT | s.IS_BLOCKED

MOST_JOBS, MOST_CPUS, MOST_GPUS, MOST_SUBMITTED, N_GROUPS = range(5)
"""Numbers: jobs, processors and GPUs that a group may run, and jobs that may wait or run, -1 = no
limit; groups."""

GROUP, GPUS = 0, 1
"""Columns of `Jobs.known`: the group of each job, -1 = none, and its GPUs."""

SCOPES = ("user", "account", "qos", "partition")
COUNTED = ("jobs", "cpus", "gpus", "submitted")


@dataclass(frozen=True)
class Limit(Event):
    """Each user, or account, QOS or partition, may have so many jobs, processors, GPUs at once.

    Attributes:
        per: Whom it counts: "user", "account", "qos" or "partition".
        jobs: Running jobs at most; None = any number.
        cpus: Their processors at most, likewise.
        gpus: Their GPUs at most, likewise, on a machine of nodes.
        submitted: Jobs that wait or run at most; a further one waits until one of them ends.
        name: Whom alone it holds for, by name; "" = each.
        user: Whose jobs alone it counts, by name; "" = anybody's. So are the other three.

    Raises:
        PolicyError: A value that is not allowed, or none of `COUNTED`.

    Source: Specification, section 16, "Limits".

    Example:
        >>> str(Limit("user", jobs=4, qos="normal"))
        'limit:per=user,jobs=4,qos=normal'
    """

    NAME: ClassVar[str] = "limit"
    KNOWS_JOBS: ClassVar[bool] = False
    COUNTS_PROCESSORS: ClassVar[bool] = False
    MAKES_PASSES: ClassVar[bool] = True
    WITHHOLDS: ClassVar[bool] = True

    per: str
    jobs: int | None = None
    cpus: int | None = None
    gpus: int | None = None
    submitted: int | None = None
    name: str = ""
    user: str = ""
    account: str = ""
    qos: str = ""
    partition: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no limit."""
        if self.per not in SCOPES:
            raise PolicyError(unknown_name("per of event 'limit'", self.per, SCOPES))
        for key in COUNTED:
            given = getattr(self, key)
            if given is not None and not is_whole(given, 1):
                raise PolicyError(f"event 'limit': {key} must be whole, at least 1, got {given!r}")
        if all(getattr(self, key) is None for key in COUNTED):
            raise PolicyError(
                "event 'limit': state jobs, cpus, gpus or submitted, as in per=user,jobs=4"
            )
        for key in ("name", *SCOPES):
            object.__setattr__(self, key, str(getattr(self, key)))

    def check_mode(self, mode: Mode) -> None:
        """Refuse modes whose passes know no limits."""
        is_plain = isinstance(mode, Easy) and not mode.part and mode.trial is None
        if not is_plain and not (isinstance(mode, Backfill) and mode.KNOWS_LIMITS):
            raise PolicyError(
                f"event '{self}': passes know limits under backfill 'easy', 'none' and 'slurm'; "
                f"got '{mode}'"
            )

    def groups(self, workload: Workload) -> NDArray[np.int64]:
        """Return the group of each job that it counts, shape (n_jobs,), -1 = none."""
        named = workload.named(self.per)
        counts = named == self.name if self.name else named != ""
        for scope in SCOPES:
            if getattr(self, scope):
                counts &= workload.named(scope) == getattr(self, scope)
        group: NDArray[np.int64] = np.full(len(workload), -1)
        group[counts] = np.unique(named[counts].astype(str), return_inverse=True)[1]
        return group

    def of_jobs(self, workload: Workload) -> NDArray[np.int64]:
        """Return the group and the GPUs of each job, shape (n_jobs, 2).

        Raises:
            WorkloadError: A job alone is beyond the limit, so that it would wait for ever.
        """
        group, gpus = self.groups(workload), np.zeros(len(workload), dtype=np.int64)
        if workload.gpus is not None and workload.chunks is not None:
            gpus = workload.gpus * workload.chunks
        for what, most, needed in (
            ("processors", self.cpus, workload.processors),
            ("GPUs", self.gpus, gpus),
        ):
            beyond = np.flatnonzero((group >= 0) & (needed > (np.inf if most is None else most)))
            if len(beyond):
                row = int(beyond[0])
                raise WorkloadError(
                    f"{workload.name}: job {workload.job_id[row]} (row {row}) needs "
                    f"{needed[row]} {what}, and '{self}' allows {most}: it would wait for ever "
                    f"({len(beyond)} such jobs)"
                )
        return np.stack([group, gpus], axis=1)

    def numbers(self, workload: Workload) -> Sequence[int]:
        """Return the limits, and the number of groups."""
        stated = (getattr(self, key) for key in COUNTED)
        most = (-1 if each is None else int(each) for each in stated)
        return [*most, self.n_shares(workload)]

    def n_shares(self, workload: Workload) -> int:
        """Return the number of groups."""
        return int(self.groups(workload).max(initial=-1)) + 1


class LimitSim(Sim):
    """What limits add to a simulation."""

    limits_begun: Counter  # events up to which all limits have a place below
    group_places: Counter  # places that they have in all

    group_first: IntVector = empty("shares")  # of each event the place of its first group
    group_jobs: IntVector = empty("shares")  # running jobs of each group
    group_cpus: IntVector = empty("shares")  # their processors
    group_gpus: IntVector = empty("shares")  # their GPUs
    group_within: IntVector = empty("shares")  # jobs that wait or run, within the limit of these
    group_outside: IntVector = empty("shares")  # jobs beyond it, which wait for one of them to end
    group_next: IntVector = empty("shares")  # jobs before this one are not outside
    limited_by: IntVector = empty("jobs")
    """Place of the limit that held each job last, plus 1; 0 = none did."""


@kernel
def begin(jobs: Jobs, sim: LimitSim) -> None:
    """Give the groups of the limit that is asked their places; the first limit makes the passes."""
    if sim.limits_begun == 0:
        for job in range(sim.n_jobs):
            sim.limited_by[job] = 0
        if not has_nodes(jobs):
            sim.looks_ahead = sim.event + 1
    sim.group_first[sim.event] = sim.group_places
    for _ in range(event_number(jobs, sim, N_GROUPS)):
        at = sim.group_places
        sim.group_jobs[at] = sim.group_cpus[at] = sim.group_gpus[at] = 0
        sim.group_within[at] = sim.group_outside[at] = sim.group_next[at] = 0
        sim.group_places += 1
    sim.limits_begun = sim.event + 1


@kernel(inlined=True)
def known_of(jobs: Jobs, sim: LimitSim, job: int, column: int) -> int:
    """Return what the limit that is asked knows of a job."""
    return int(jobs.known[job, jobs.known_first[sim.event] + column])


@kernel(inlined=True)
def row_of_group(jobs: Jobs, sim: LimitSim, job: int) -> int:
    """Return the row of a job's group under the limit that is asked, -1 = it does not count."""
    group = known_of(jobs, sim, job, GROUP)
    return group if group < 0 else sim.group_first[sim.event] + group


@kernel
def exceeds(jobs: Jobs, sim: LimitSim, job: int) -> int:
    """Tell whether a waiting job would go beyond the limit that is asked; write `limited_by`."""
    at = row_of_group(jobs, sim, job)
    if at < 0:
        return 0
    most_jobs = event_number(jobs, sim, MOST_JOBS)
    most_cpus = event_number(jobs, sim, MOST_CPUS)
    most_gpus = event_number(jobs, sim, MOST_GPUS)
    if (
        (most_jobs >= 0 and sim.group_jobs[at] >= most_jobs)
        or (most_cpus >= 0 and sim.group_cpus[at] + jobs.processors[job] > most_cpus)
        or (most_gpus >= 0 and sim.group_gpus[at] + known_of(jobs, sim, job, GPUS) > most_gpus)
        or (event_number(jobs, sim, MOST_SUBMITTED) >= 0 and job >= sim.group_next[at])
    ):
        sim.limited_by[job] = sim.event + 1
        return 1
    return 0


@kernel
def come(jobs: Jobs, sim: LimitSim, job: int) -> None:
    """Count a job that is submitted, within the limit of those that wait or run, or outside.

    Jobs are numbered by submission, so that `group_next` parts those within from those outside.
    """
    at, most = row_of_group(jobs, sim, job), event_number(jobs, sim, MOST_SUBMITTED)
    if at < 0 or most < 0 or job < sim.group_next[at]:  # one that was taken off is within
        return
    if sim.group_within[at] < most:  # then nobody is outside
        sim.group_within[at] += 1
        sim.group_next[at] = job + 1
    else:
        sim.group_outside[at] += 1


@kernel
def let_in(jobs: Jobs, sim: LimitSim, ended: int) -> None:
    """Let the first job outside in where one within has ended."""
    at = row_of_group(jobs, sim, ended)
    if at < 0 or event_number(jobs, sim, MOST_SUBMITTED) < 0:
        return
    if sim.group_outside[at] == 0:
        sim.group_within[at] -= 1
        return
    sim.group_outside[at] -= 1
    job = sim.group_next[at]
    while row_of_group(jobs, sim, job) != at:
        job += 1
    sim.group_next[at] = job + 1


@kernel
def count(jobs: Jobs, sim: LimitSim, job: int, sign: int) -> None:
    """Count a job that starts, or with `sign` -1 one that ends."""
    at = row_of_group(jobs, sim, job)
    if at < 0:
        return
    sim.group_jobs[at] += sign
    sim.group_cpus[at] += sign * jobs.processors[job]
    sim.group_gpus[at] += sign * known_of(jobs, sim, job, GPUS)
    if sign < 0 and has_nodes(jobs):
        sim.due[:] = 1  # those whom it held may wait for other nodes


@kernel(inlined=True)
def is_beyond(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether any limit holds a waiting job."""
    return tell_events(jobs, sim, s.IS_BLOCKED, job) != 0


@kernel
def backfill_within(jobs: Jobs, sim: Sim, which: int, n: int) -> None:
    """Start what may start behind the head and within limits, of n listed jobs."""
    for taken in range(n):
        job = take_first(sim, which, n - taken, taken)
        if backfills(jobs, sim, job) and not is_beyond(jobs, sim, job):
            charge_extra(jobs, sim, job)
            start_waiting(jobs, sim, job, True)


@kernel
def start_within(jobs: Jobs, sim: Sim, contested: bool) -> tuple[int, int, int]:
    """Start jobs in queue order and within limits while they fit.

    Return the primary order; the head, `NO_HEAD` or `PICK_STARTED`; and how many others are listed
    in `scratch`. Writes what `start_waiting` writes, keys of orders that are not kept, and `shadow`
    = -1.
    """
    sim.shadow = sim.checked_head = -1
    n = list_jobs(sim, s.BASE_ORDER, sim.scratch)
    primary = make_primary_order(jobs, sim, n) if contested else s.BASE_ORDER
    taken, head, some_wait = 0, s.NO_HEAD, False
    while taken < n and some_job_fits(sim) and head == s.NO_HEAD:
        job = take_first(sim, primary, n - taken, taken)
        taken += 1
        if is_beyond(jobs, sim, job):
            some_wait = True
            continue
        if jobs.processors[job] > sim.free:
            head = job
            continue
        # It counts as backfilled if one before it in queue order keeps waiting.
        start_waiting(jobs, sim, job, some_wait)
        if job == sim.pick:
            head = s.PICK_STARTED
    return primary, head, n - taken


@kernel
def pass_within(jobs: Jobs, sim: Sim, contested: bool) -> bool:
    """Make a pass within limits; return False if it stopped at the picked job.

    Writes what `start_within` writes, keys of orders that are not kept, `shadow` and `extra`.
    """
    primary, head, n = start_within(jobs, sim, contested)
    if head >= 0 and sim.backfill == s.BACKFILL_EASY:
        reserve(jobs, sim, head)
        backfill_within(jobs, sim, make_backfill_order(jobs, sim, primary, n), n)
    return head != s.PICK_STARTED


@kernel
def free_at(jobs: Jobs, sim: Sim, instant: int) -> int:
    """Return the processors free at an instant, s, not past, by estimates."""
    free = sim.free
    for position in range(sim.n_releases):
        if sim.release_time[position] <= instant:
            free += jobs.processors[sim.release_job[position]]
    return free


def work(jobs: Jobs, sim: LimitSim, task: int, argument: int) -> int:
    """Do a task; `argument` is a job, an instant, or what a pass goes by."""
    if task == s.IS_BLOCKED:
        return exceeds(jobs, sim, argument)
    if task == s.ON_START:
        count(jobs, sim, argument, 1)
    elif task in (s.ON_END, s.ON_LOSE, s.ON_EVICT):
        count(jobs, sim, argument, -1)
        if task != s.ON_EVICT:
            let_in(jobs, sim, argument)
    elif task == s.ON_SUBMIT:
        come(jobs, sim, argument)
    elif task == s.NEXT_INSTANT:
        if sim.limits_begun <= sim.event:  # events are asked in turn
            begin(jobs, sim)
        return s.NEVER
    elif task == s.MAKE_PASS:
        return int(pass_within(jobs, sim, argument == 1))
    elif task == s.FITS_AHEAD:
        return int(jobs.processors[argument] <= sim.free and not is_beyond(jobs, sim, argument))
    elif task == s.RESERVE_AHEAD:
        reserve(jobs, sim, argument)
    elif task == s.FREE_AHEAD:
        return free_at(jobs, sim, argument)
    return 0
