"""Limits: what each user, account, QOS, partition or array may have at once: jobs, cpus, GPUs.

A waiting job that would go beyond a limit if it started now is passed over. It does not start, and
no reservation is made for it: it can hold nobody up. `schedule.held` tells which held it last.

Where processors are counted, passes within limits stand in for those of EASY and none, and `slurm`
asks about each job. A pass lists the waiting jobs and goes through them in order, which costs
O(n log n) for n of them, and each job asks every limit, O(limits). On machines of nodes the pass
asks them, as it asks a cap; a job that ends makes a pass of every component, O(components). A start
and an end cost O(limits). Of jobs that wait or run, the first in submission are within. The job of
a group that comes next is looked for among all jobs behind the last, each at most once for a group.

A site's limits are one event with levels. A job is in one group of a level at most, so it asks as
many as there are levels, not as there are accounts.

Source: Specification, section 16, "Limits".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError, WorkloadError, unknown_name
from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.core.backfill import is_whole
from hpcgym.core.compiler.by_address import has_nodes
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.moments import event_number
from hpcgym.core.events import Event
from hpcgym.core.kernels.passes.easy_dynamic import work_within
from hpcgym.core.kernels.types import Counter, IntVector, Jobs, Sim, empty
from hpcgym.core.workload import Workload
from hpcgym.machine.files.limits import read_limits

HEARS = s.ON_SUBMIT | s.ON_START | s.ON_END | s.ON_LOSE | s.ON_EVICT | s.IS_BLOCKED

N_GROUPS, N_LEVELS = 0, 1  # numbers: groups in all, and levels

GROUP, GPUS, MOST_JOBS, MOST_CPUS, MOST_GPUS, MOST_SUBMITTED, N_KNOWN = range(7)
"""Columns of `Jobs.known`, for each level: the job's group, -1 = none, its GPUs, and what it goes
by: jobs, processors and GPUs that the group may run, jobs that may wait or run, -1 = no limit."""

MOST_MINUTES = N_KNOWN
"""One more column of each level's table: processor minutes. `Jobs.known` has it behind all levels,
only where a limit counts them; the kernels are then those of `MINUTES`."""

MINUTES = "hpcgym.core.parts.minutes"

SCOPES = ("user", "account", "qos", "partition", "array")
COUNTED = ("jobs", "cpus", "gpus", "submitted", "minutes")

IntTable: TypeAlias = NDArray[np.int64]
Names: TypeAlias = Callable[[str], tuple[dict[str, int], NDArray[np.int64]]]
"""Of a column the number of each name, and that of each job; the name "" is not known."""


class LimitingEvent(Event):
    """What limits of all forms share: jobs in groups, at most one on each level."""

    KNOWS: ClassVar[tuple[str, ...]] = ("nodes", "waits")
    MAKES_PASSES: ClassVar[bool] = True
    WITHHOLDS: ClassVar[bool] = True

    def known_at(self, workload: Workload) -> tuple[list[IntTable], list[NDArray[Any]]]:
        """Return the columns of each level, and the limit that counts each job there, by text."""
        return [], []

    @property
    def counts_minutes(self) -> bool:
        """Tell whether a limit of its counts minutes."""
        levels: Any = getattr(self, "levels", ((self,),))
        return any(limit.minutes is not None for level in levels for limit in level)

    @property
    def number(self) -> int:
        """Return what `Jobs.event_pass` holds for the event."""
        counted = self.counts_minutes
        return s.BACKFILL_PART + loaders.place_of(MINUTES) if counted else super().number

    @property
    def demands(self) -> dict[str, str]:
        """Return what it demands: of passes that they know limits."""
        known = "needs passes that know limits, those of backfill 'easy', 'none' and 'slurm'"
        return super().demands | {"limits": known}

    def of_jobs(self, workload: Workload) -> IntTable:
        """Return the columns of `Jobs.known` of all levels.

        Raises:
            WorkloadError: A job alone is beyond a limit, so that it would wait for ever.
        """
        levels, texts = _kept(self, workload)
        for known, text in zip(levels, texts, strict=True):
            asked = [
                ("processors", known[:, MOST_CPUS], workload.processors),
                ("GPUs", known[:, MOST_GPUS], known[:, GPUS]),
            ]
            if self.counts_minutes:
                minutes = -(-workload.processors * workload.requested_time // 60)
                asked.append(("processor minutes", known[:, MOST_MINUTES], minutes))
            for what, most, needed in asked:
                beyond = np.flatnonzero((most >= 0) & (needed > most))
                if len(beyond):
                    row = int(beyond[0])
                    raise WorkloadError(
                        f"{workload.name}: job {workload.job_id[row]} (row {row}) needs "
                        f"{needed[row]} {what}, and '{text[row]}' allows {most[row]}: it would "
                        f"wait for ever ({len(beyond)} such jobs)"
                    )
        none: IntTable = np.empty((len(workload), 0), dtype=np.int64)
        of_minutes = [known[:, MOST_MINUTES:] for known in levels if self.counts_minutes]
        return np.concatenate(
            [none, *(known[:, :N_KNOWN] for known in levels), *of_minutes], axis=1
        )

    def numbers(self, workload: Workload) -> Sequence[int]:
        """Return the number of groups, and of levels."""
        return [self.n_shares(workload), len(_kept(self, workload)[0])]

    def n_shares(self, workload: Workload) -> int:
        """Return the number of groups."""
        last = (int(known[:, GROUP].max(initial=-1)) for known in _kept(self, workload)[0])
        return max(last, default=-1) + 1

    def levels_of(self, workload: Workload) -> list[tuple[IntTable, NDArray[Any]]]:
        """Return of each level its columns of `Jobs.known`, and the limits of jobs, as texts."""
        return list(zip(*_kept(self, workload), strict=True))


_KEPT: WeakKeyDictionary[Workload, dict[Any, Any]] = WeakKeyDictionary()


def _kept(event: LimitingEvent, workload: Workload) -> tuple[list[IntTable], list[NDArray[Any]]]:
    kept = _KEPT.setdefault(workload, {})
    if event not in kept:
        kept[event] = event.known_at(workload)
    known: tuple[list[IntTable], list[NDArray[Any]]] = kept[event]
    return known


@dataclass(frozen=True)
class Limit(LimitingEvent):
    """Each user, or account, QOS, partition or array, may have so many jobs, cpus, GPUs at once.

    Raises:
        PolicyError: A value that is not allowed, or none of `COUNTED`.
    """

    NAME: ClassVar[str] = "limit"

    per: str  # whom it counts: "user", "account", "qos", "partition" or "array"
    # Running jobs at most; None = any number, or of arrays the column `array_limit`.
    jobs: int | None = None
    cpus: int | None = None  # their processors at most, likewise
    gpus: int | None = None  # their GPUs at most, likewise, on a machine of nodes
    # Jobs that wait or run at most; a further one waits until one of them ends.
    submitted: int | None = None
    minutes: int | None = None  # processor minutes that running jobs may still need, by requests
    name: str = ""  # whom alone it holds for, by name; "" = each
    user: str = ""  # whose jobs alone it counts, by name; "" = anybody's. So are the other four
    account: str = ""
    qos: str = ""
    partition: str = ""
    array: str = ""
    below: Any = ()  # accounts that it counts as the one of `name`, by name
    spares: Any = ()  # qualities of service whose jobs it counts, but does not hold, by name

    def __post_init__(self) -> None:
        if self.per not in SCOPES:
            raise PolicyError(unknown_name("per of event 'limit'", self.per, SCOPES))
        for key in COUNTED:
            given = getattr(self, key)
            if given is not None and not is_whole(given, 1):
                raise PolicyError(f"event 'limit': {key} must be whole, at least 1, got {given!r}")
        if self.per != "array" and all(getattr(self, key) is None for key in COUNTED):
            raise PolicyError(
                "event 'limit': state jobs, cpus, gpus, submitted or minutes, as in per=user,jobs=4"
            )
        for key in ("name", *SCOPES):
            object.__setattr__(self, key, str(getattr(self, key)))
        for key in ("below", "spares"):
            given = getattr(self, key)
            names = given if isinstance(given, (tuple, list)) else (given,)
            object.__setattr__(self, key, tuple(map(str, names)))
        if self.below and (self.per != "account" or not self.name):
            raise PolicyError(
                "event 'limit': below names accounts below that of name, as in "
                "per=account,name=physics,below=optics/lasers,cpus=64"
            )
        if self.spares and self.submitted is not None:
            raise PolicyError("event 'limit': submitted spares nobody; leave spares out")

    @property
    def takes_own(self) -> bool:
        """Tell whether each array has its own limit."""
        return self.per == "array" and all(getattr(self, key) is None for key in COUNTED)

    def known_at(self, workload: Workload) -> tuple[list[IntTable], list[NDArray[Any]]]:
        """Return what it knows of each job."""
        return _known_at([[self]], workload, _names_in(workload))

    def known(self, workload: Workload, names: Names) -> tuple[NDArray[np.int64], IntTable]:
        """Return the rows of the jobs that it counts, and their columns of `Jobs.known`.

        Raises:
            WorkloadError: Arrays whose own limits are not known.
        """
        numbers, of_job = names(self.per)
        counts = of_job != numbers.get("", -1)
        if self.name:
            counted = np.zeros(len(numbers), dtype=bool)
            counted[[numbers[each] for each in (self.name, *self.below) if each in numbers]] = True
            counts = counted[of_job]
        for scope in SCOPES:
            if getattr(self, scope):
                numbered, alike = names(scope)
                counts &= alike == numbered.get(getattr(self, scope), -1)
        rows = np.flatnonzero(counts)
        known: IntTable = np.full((len(rows), N_KNOWN + 1), -1)
        grouped = np.unique(of_job[rows], return_inverse=True)[1]
        known[:, GROUP] = 0 if self.below else grouped
        known[:, GPUS] = 0
        if workload.gpus is not None and workload.chunks is not None:
            known[:, GPUS] = workload.gpus[rows] * workload.chunks[rows]
        for column, key in enumerate(COUNTED, start=MOST_JOBS):
            if getattr(self, key) is not None:
                known[:, column] = getattr(self, key)
        if self.takes_own:
            if workload.array_limit is None:
                raise WorkloadError(
                    f"{workload.name}: '{self}' takes each array's own limit, and the jobs have no "
                    "column array_limit; state jobs, as in limit:per=array,jobs=2"
                )
            most = workload.array_limit[rows]
            known[:, MOST_JOBS] = np.where(most > 0, most, -1)
        if self.spares:
            numbered, alike = names("qos")
            spares = [numbered[each] for each in self.spares if each in numbered]
            spared = np.isin(alike[rows], spares)
            known[spared, MOST_JOBS:] = -1
        return rows, known


def _known_at(
    levels: Iterable[Iterable[Limit]], workload: Workload, names: Names
) -> tuple[list[IntTable], list[NDArray[Any]]]:
    """Return what each level knows of each job."""
    tables, texts, first = [], [], 0
    for level in levels:
        table: IntTable = np.full((len(workload), N_KNOWN + 1), -1)
        text: NDArray[Any] = np.full(len(workload), "", dtype=object)
        for limit in level:
            rows, known = limit.known(workload, names)
            known[:, GROUP] += first
            first = max(first, int(known[:, GROUP].max(initial=-1)) + 1)
            table[rows], text[rows] = known, str(limit)
        tables.append(table)
        texts.append(text)
    return tables, texts


def _names_in(workload: Workload) -> Names:
    """Return the names of users, accounts and so on of a workload, each column read once."""
    kept = _KEPT.setdefault(workload, {})

    def names(scope: str) -> tuple[dict[str, int], NDArray[np.int64]]:
        if scope not in kept:
            distinct, of_job = np.unique(workload.named(scope).astype(str), return_inverse=True)
            kept[scope] = {str(name): number for number, name in enumerate(distinct)}, of_job
        numbered: tuple[dict[str, int], NDArray[np.int64]] = kept[scope]
        return numbered

    return names


@dataclass(frozen=True)
class Limits(LimitingEvent):
    """The limits of a site, as its files have them: "limits:assoc.txt,qos.txt"."""

    NAME: ClassVar[str] = "limits"
    READS_ONLY: ClassVar[bool] = True

    files: tuple[str, ...]  # what was read
    # Limits, of which those of a level never count one job twice.
    levels: tuple[tuple[Limit, ...], ...] = field(repr=False)
    # Accounts of each user who has associations, by name.
    accounts: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)

    @classmethod
    def read(cls, text: str) -> Limits:
        """Read files of a Slurm, parted by commas.

        Raises:
            MachineError: A file cannot be read, or states what is not modelled.
        """
        files = tuple(filter(None, map(str.strip, text.split(","))))
        stated = read_limits(*files)
        levels = (tuple(Limit(**keys) for keys in level) for level in stated.levels)
        return cls(files, tuple(levels), tuple(stated.accounts.items()))

    def __str__(self) -> str:
        return f"{self.NAME}:{','.join(self.files)}"

    def known_at(self, workload: Workload) -> tuple[list[IntTable], list[NDArray[Any]]]:
        """Return what each level knows of each job."""
        return _known_at(self.levels, workload, self._names(workload))

    def _names(self, workload: Workload) -> Names:
        """Return the names of a workload; users with one account are in it where none is stated.

        Raises:
            WorkloadError: No account is stated of a user with several.
        """
        names, accounts = _names_in(workload), dict(self.accounts)
        numbers, of_job = names("account")
        users, user_of_job = names("user")
        numbers, of_job = dict(numbers), of_job.copy()
        unknown = of_job == numbers.get("", -1)
        for user, number in users.items():
            lacks = np.flatnonzero(unknown & (user_of_job == number))
            if len(lacks) and len(accounts.get(user, ())) > 1:
                raise WorkloadError(
                    f"{workload.name}: job {workload.job_id[lacks[0]]} (row {lacks[0]}) states no "
                    f"account, and user {user!r} has several: {', '.join(accounts[user])}"
                )
            if len(lacks) and user in accounts:
                of_job[lacks] = numbers.setdefault(accounts[user][0], len(numbers))
        return lambda scope: (numbers, of_job) if scope == "account" else names(scope)


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


@kernel
def begin(jobs: Jobs, sim: LimitSim) -> None:
    """Give the groups of the limit that is asked their places; the first limit makes the passes."""
    if sim.limits_begun == 0 and not has_nodes(jobs):
        sim.looks_ahead = sim.event + 1
    sim.group_first[sim.event] = sim.group_places
    for _ in range(event_number(jobs, sim, N_GROUPS)):
        at = sim.group_places
        sim.group_jobs[at] = sim.group_cpus[at] = sim.group_gpus[at] = 0
        sim.group_within[at] = sim.group_outside[at] = sim.group_next[at] = 0
        sim.group_places += 1
    sim.limits_begun = sim.event + 1


@kernel(inlined=True)
def known_of(jobs: Jobs, sim: LimitSim, job: int, level: int, column: int) -> int:
    """Return what a level of the limit that is asked knows of a job."""
    return int(jobs.known[job, jobs.known_first[sim.event] + level * N_KNOWN + column])


@kernel(inlined=True)
def row_of_group(jobs: Jobs, sim: LimitSim, job: int, level: int) -> int:
    """Return the row of a job's group under the limit that is asked, -1 = it does not count."""
    group = known_of(jobs, sim, job, level, GROUP)
    return group if group < 0 else sim.group_first[sim.event] + group


@kernel
def exceeds_level(jobs: Jobs, sim: LimitSim, job: int, level: int) -> bool:
    """Tell whether a waiting job would go beyond a level of the limit that is asked."""
    at = row_of_group(jobs, sim, job, level)
    if at < 0:
        return False
    most_jobs = known_of(jobs, sim, job, level, MOST_JOBS)
    most_cpus = known_of(jobs, sim, job, level, MOST_CPUS)
    most_gpus = known_of(jobs, sim, job, level, MOST_GPUS)
    gpus = known_of(jobs, sim, job, level, GPUS)
    return (
        (most_jobs >= 0 and sim.group_jobs[at] >= most_jobs)
        or (most_cpus >= 0 and sim.group_cpus[at] + jobs.processors[job] > most_cpus)
        or (most_gpus >= 0 and sim.group_gpus[at] + gpus > most_gpus)
        or (known_of(jobs, sim, job, level, MOST_SUBMITTED) >= 0 and job >= sim.group_next[at])
    )


@kernel
def exceeds(jobs: Jobs, sim: LimitSim, job: int) -> int:
    """Tell whether a waiting job would go beyond the limit that is asked."""
    for level in range(event_number(jobs, sim, N_LEVELS)):
        if exceeds_level(jobs, sim, job, level):
            return 1
    return 0


@kernel
def come(jobs: Jobs, sim: LimitSim, job: int, level: int) -> None:
    """Count a job that is submitted, within the limit of those that wait or run, or outside.

    Jobs are numbered by submission, so that `group_next` parts those within from those outside.
    """
    at = row_of_group(jobs, sim, job, level)
    most = known_of(jobs, sim, job, level, MOST_SUBMITTED)
    if at < 0 or most < 0 or job < sim.group_next[at]:  # one that was taken off is within
        return
    if sim.group_within[at] < most:  # then nobody is outside
        sim.group_within[at] += 1
        sim.group_next[at] = job + 1
    else:
        sim.group_outside[at] += 1


@kernel
def let_in(jobs: Jobs, sim: LimitSim, ended: int, level: int) -> None:
    """Let the first job outside in where one within has ended."""
    at = row_of_group(jobs, sim, ended, level)
    if at < 0 or known_of(jobs, sim, ended, level, MOST_SUBMITTED) < 0:
        return
    if sim.group_outside[at] == 0:
        sim.group_within[at] -= 1
        return
    sim.group_outside[at] -= 1
    job = sim.group_next[at]
    while row_of_group(jobs, sim, job, level) != at:
        job += 1
    sim.group_next[at] = job + 1


@kernel
def count(jobs: Jobs, sim: LimitSim, job: int, level: int, sign: int) -> None:
    """Count a job that starts, or with `sign` -1 one that ends."""
    at = row_of_group(jobs, sim, job, level)
    if at < 0:
        return
    sim.group_jobs[at] += sign
    sim.group_cpus[at] += sign * jobs.processors[job]
    sim.group_gpus[at] += sign * known_of(jobs, sim, job, level, GPUS)
    if sign < 0 and has_nodes(jobs):
        sim.due[:] = 1  # those whom it held may wait for other nodes


@kernel
def count_everywhere(jobs: Jobs, sim: LimitSim, task: int, job: int) -> None:
    """Count a job that comes, starts or leaves, on each level."""
    for level in range(event_number(jobs, sim, N_LEVELS)):
        if task == s.ON_SUBMIT:
            come(jobs, sim, job, level)
        else:
            count(jobs, sim, job, level, 1 if task == s.ON_START else -1)
            if task in (s.ON_END, s.ON_LOSE):
                let_in(jobs, sim, job, level)


def work(jobs: Jobs, sim: LimitSim, task: int, argument: int) -> int:
    """Do a task; `argument` is a job, an instant, or what a pass goes by."""
    if task == s.IS_BLOCKED:
        return exceeds(jobs, sim, argument)
    if task & (s.ON_SUBMIT | s.ON_START | s.ON_END | s.ON_LOSE | s.ON_EVICT) != 0:
        count_everywhere(jobs, sim, task, argument)
    elif task == s.NEXT_INSTANT:
        if sim.limits_begun <= sim.event:  # events are asked in turn
            begin(jobs, sim)
        return s.NEVER
    return work_within(jobs, sim, task, argument)
