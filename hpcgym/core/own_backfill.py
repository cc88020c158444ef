"""Backfilling modes of your own, in plain Python: the contract, and what a mode sees at a pass.

A mode is a class with one method, `start`. At each pass it gets the queue in order, the idle
processors and the running jobs, and returns the jobs to start. Its cost is that of Python: 0.05 ms
a pass and more for long queues, where a compiled pass takes about 1 us.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.core.backfill import MODES, Backfill, Mode, list_own


class WaitingJob(NamedTuple):
    """A job in the queue; `row` is its row in the workload. Times are s.

    `is_overdue` says that it has waited beyond the threshold.
    """

    row: int
    job_id: int
    user: int
    submit_time: int
    processors: int
    estimate: int
    is_overdue: bool


class RunningJob(NamedTuple):
    """A job on the machine. Times are s.

    `release_time` is its estimated end, in the past where it outlives its estimate.
    """

    row: int
    job_id: int
    user: int
    processors: int
    start_time: int
    release_time: int


class Profile:
    """Processors free from now on, by estimates, less the reservations made in it.

    A running job past its estimate counts as free from now on. So a hole may begin now though too
    few processors are idle; `fits` and `reserve` take care of that.

    Source: Mu'alem and Feitelson 2001; specification, section 4, "Conservative".
    """

    def __init__(self, now: int, idle: int, running: Iterable[RunningJob]) -> None:
        self.now, self.idle = now, idle
        self._time, self._free = [now], [idle]  # so many are free from then until the next step
        for job in running:
            free = self._free[-1] + job.processors
            if job.release_time > self._time[-1]:
                self._time.append(job.release_time)
                self._free.append(free)
            else:
                self._free[-1] = free

    def earliest(self, job: WaitingJob) -> int:
        """Return the start of the earliest hole in which a job fits for its whole estimate, s."""
        start = self.now
        for step, free in enumerate(self._free[:-1]):
            if free < job.processors:
                start = self._time[step + 1]
            elif self._time[step + 1] - start >= job.estimate:
                break
        return start

    def fits(self, job: WaitingJob) -> bool:
        """Tell whether a job can start now without delaying a reservation."""
        return job.processors <= self.idle and self.earliest(job) == self.now

    def reserve(self, job: WaitingJob, start: int) -> bool:
        """Reserve a job's processors from an instant on, for its estimate.

        Returns:
            Whether the job can start now: its reservation begins now, and its processors are idle.
        """
        first, after = self._step_at(start), self._step_at(start + job.estimate)
        for step in range(first, after):
            self._free[step] -= job.processors
        can_start = start == self.now and job.processors <= self.idle
        self.idle -= job.processors if can_start else 0
        return can_start

    def _step_at(self, instant: int) -> int:
        """Return the step that begins at an instant, inserted where there is none."""
        step = bisect_left(self._time, instant)
        if step == len(self._time) or self._time[step] != instant:
            self._time.insert(step, instant)
            self._free.insert(step, self._free[step - 1])
        return step


@dataclass(frozen=True)
class OwnPass:
    """What a mode of your own sees at a pass. Times are s."""

    now: int  # the clock
    machine_processors: int
    free_processors: int  # those that are idle now
    # The waiting jobs in order. Jobs beyond the threshold come first, first come first served, and
    # are flagged; nothing else enforces the threshold.
    queue: tuple[WaitingJob, ...]
    running: tuple[RunningJob, ...]  # the running jobs, by estimated end

    def profile(self) -> Profile:
        """Return the profile of the running jobs, to make reservations in."""
        return Profile(self.now, self.free_processors, self.running)


@dataclass(frozen=True, eq=False)
class OwnBackfill(Backfill, ABC):
    """A backfilling mode of your own: a subclass with `start`.

    `backfill=` takes an object of it in `simulate`, settings, rules and the environment, and its
    text once it is registered (`register_backfill`). Parameters in the text, `"mine:k=3"`, are the
    fields of a frozen dataclass.

    Each simulation works on a copy of the object as you made it. What `start` keeps in `self` thus
    lasts from pass to pass of one run, and no further.

    A pass is made after the submissions and ends of an instant where jobs wait, and at no other
    time: a reservation alone wakes nobody. The machine counts processors, not nodes. Policies that
    plan, `simulate_many`, moldable jobs, vector environments and action "job" need compiled modes,
    and refuse it.

    Attributes:
        NAME: What its text begins with; the name of the class unless it says another.

    Example:
        >>> import hpcgym
        >>> class FirstFit(OwnBackfill):
        ...     def start(self, now):
        ...         profile = now.profile()
        ...         return [j for j in now.queue if profile.fits(j) and profile.reserve(j, now.now)]
        >>> hpcgym.simulate(hpcgym.load_workload("tiny"), backfill=FirstFit()).complete
        True
    """

    NAME: ClassVar[str] = "own"
    part: ClassVar[str] = ""
    number: ClassVar[int] = s.BACKFILL_OWN
    guards: ClassVar[None] = None
    parameters: ClassVar[tuple[()]] = ()
    keeps_reservations: ClassVar[bool] = True  # it may

    def __init_subclass__(cls, **keywords: object) -> None:
        """Name the mode after its class, unless the class says a name."""
        super().__init_subclass__(**keywords)
        if "NAME" not in cls.__dict__:
            cls.NAME = cls.__name__

    @abstractmethod
    def start(self, now: OwnPass) -> Iterable[WaitingJob]:
        """Return which jobs of the queue start now, in any order.

        A job that is returned twice or does not wait, or more processors than are idle, end the
        simulation with a PolicyError that names the job.
        """

    @property
    def lacks(self) -> dict[str, str]:
        """Return what it cannot be beside: jobs that change their positions, too."""
        return super().lacks | {"waits": "whose passes are made in Python"}

    @property
    def kept_as(self) -> Mode:
        """Return what specs keep of it: the object."""
        return self


AMode = TypeVar("AMode", bound=Backfill)


def register_backfill(mode: type[AMode]) -> type[AMode]:
    """Let `backfill=` take a mode of your own by its text; usable as a decorator.

    A mode of yours that has the name already is replaced. A compiled mode is a subclass of
    `hpcgym.core.backfill.Backfill` in a file with its kernels, as `hpcgym.core.parts` says.

    Raises:
        PolicyError: No mode in Python and none whose file has kernels; or a name that is malformed
            or not yours.

    Example:
        >>> @register_backfill
        ... class Patient(OwnBackfill):
        ...     NAME = "patient"
        ...     def start(self, now):
        ...         return now.queue if len(now.queue) == 1 and not now.running else ()
        >>> from hpcgym.core.backfill import as_mode
        >>> as_mode("patient").NAME
        'patient'
    """
    list_own("backfill", mode, Backfill)
    loaders.BACKFILLS.register(mode.NAME, mode, (*MODES, *loaders.SIMULATORS))
    return mode


def refuse_own(mode: Mode, where: str, instead: str) -> None:
    """Refuse a mode in Python where only compiled passes can be made.

    Raises:
        PolicyError: It is one; the message says `instead` what to do.
    """
    if isinstance(mode, OwnBackfill):
        raise PolicyError(
            f"backfill '{mode}' makes its passes in Python, which {where} cannot run; {instead}"
        )
