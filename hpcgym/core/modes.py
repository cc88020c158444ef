"""Backfilling modes: which jobs may start ahead of others that wait, as objects.

A new mode is a class here, listed in `hpcgym.core.backfill`, and a pass in `hpcgym/core/kernels`
that `hpcgym.core.kernels.schedule_pass` calls by the mode's number.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import state as s
from hpcgym.errors import PolicyError, unknown_name

LARGEST_FACTOR = 1000
"""How many of its estimates a job may be made to wait; it keeps sums of times whole numbers."""


@dataclass(frozen=True)
class Backfill:
    """A backfilling mode; its fields are its parameters.

    Attributes:
        NAME: What the text of the mode begins with.
        TAKES_ORDER: Whether candidates may be tried in another order than that of the queue.
        SHARES_TIME: Whether jobs take turns on processors, which only `hpcgym.simulate` can run.

    Source:
        House rule: modes are words, never numbers.
    """

    NAME: ClassVar[str]
    TAKES_ORDER: ClassVar[bool] = False
    SHARES_TIME: ClassVar[bool] = False

    @property
    def number(self) -> int:
        """Return what stands in `State.setting` for the mode."""
        raise AssertionError(f"{type(self).__name__} has no number")

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels find in `State.backfill_parameter`."""
        return ()

    @property
    def keeps_reservations(self) -> bool:
        """Return whether a reservation made at one pass still holds at the next."""
        return False

    @property
    def keeps_state(self) -> bool:
        """Return whether a pass depends on more than the waiting and running jobs."""
        return self.keeps_reservations

    def row(self) -> NDArray[np.float64]:
        """Return the parameters as a row of `State.backfill_parameter`.

        Returns:
            The parameters, then zeros, shape (N_BACKFILL_PARAMETERS,).

        Source:
            House rule: normalise at the door.
        """
        row = np.zeros(s.N_BACKFILL_PARAMETERS)
        row[: len(self.parameters)] = self.parameters
        return row

    def __str__(self) -> str:
        """Return the text of the mode, which `as_backfill` reads back."""
        stated = [
            f"{one.name}={_text_of(getattr(self, one.name))}"
            for one in fields(self)
            if getattr(self, one.name) != one.default
        ]
        return ":".join([self.NAME, ",".join(stated)] if stated else [self.NAME])


@dataclass(frozen=True)
class NoBackfill(Backfill):
    """Nothing starts ahead of a job that waits.

    Example:
        >>> str(NoBackfill())
        'none'
    """

    NAME: ClassVar[str] = "none"

    @property
    def number(self) -> int:
        """Return what stands in `State.setting` for the mode."""
        return s.BACKFILL_NONE


@dataclass(frozen=True)
class Easy(Backfill):
    """The first job that does not fit has a reservation; what does not delay it may start.

    Source:
        Mu'alem and Feitelson 2001; specification, section 1, "EASY pass".

    Example:
        >>> str(Easy())
        'easy'
    """

    NAME: ClassVar[str] = "easy"
    TAKES_ORDER: ClassVar[bool] = True

    @property
    def number(self) -> int:
        """Return what stands in `State.setting` for the mode."""
        return s.BACKFILL_EASY


@dataclass(frozen=True)
class Depth(Backfill):
    """The first k jobs that do not fit have reservations; what delays none of them may start.

    Attributes:
        k: Number of reservations, >= 1, or `math.inf` for all waiting jobs; 1 is EASY.

    Raises:
        PolicyError: Another k.

    Source:
        Specification, section 8, "Reservation depth k".

    Example:
        >>> str(Depth(3)), str(Depth(math.inf))
        ('depth:k=3', 'depth:k=inf')
    """

    NAME: ClassVar[str] = "depth"
    TAKES_ORDER: ClassVar[bool] = True

    k: float

    def __post_init__(self) -> None:
        """Refuse what is no number of jobs."""
        if not _is_number(self.k, 1) or (self.k != math.inf and self.k % 1 != 0):
            raise PolicyError(
                f"backfill 'depth': k must be a whole number >= 1 or inf, got {self.k!r}; "
                "no reservation at all is backfill 'none'"
            )
        object.__setattr__(self, "k", self.k if self.k == math.inf else int(self.k))

    @property
    def number(self) -> int:
        """Return what stands in `State.setting` for the mode."""
        return s.BACKFILL_DEPTH

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels find in `State.backfill_parameter`."""
        return (float(self.k),)


@dataclass(frozen=True)
class Conservative(Backfill):
    """Every waiting job has a reservation; what delays none of them may start.

    Attributes:
        compress: What becomes of reservations when others end early: "rebuild", all are made anew
            at each pass, in queue order; "shift", they are kept, and each job in queue order moves
            to an earlier hole if there is one.

    Raises:
        PolicyError: Another way.

    Source:
        Specification, section 4, "Conservative"; Mu'alem and Feitelson 2001.

    Example:
        >>> str(Conservative()), str(Conservative("shift"))
        ('conservative', 'conservative:compress=shift')
    """

    NAME: ClassVar[str] = "conservative"

    compress: str = "rebuild"

    def __post_init__(self) -> None:
        """Refuse another way."""
        allowed = ("rebuild", "shift")
        if self.compress not in allowed:
            raise PolicyError(
                f"backfill 'conservative': {unknown_name('compress', self.compress, allowed)}"
            )

    @property
    def number(self) -> int:
        """Return what stands in `State.setting` for the mode."""
        return s.BACKFILL_SHIFT if self.keeps_reservations else s.BACKFILL_DEPTH

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels find in `State.backfill_parameter`."""
        return () if self.keeps_reservations else (math.inf,)

    @property
    def keeps_reservations(self) -> bool:
        """Return whether a reservation made at one pass still holds at the next."""
        return self.compress == "shift"


@dataclass(frozen=True)
class MultiQueue(Backfill):
    """The first job of each class by estimate has a reservation; what delays none may start.

    With a delay, a job of the last class is held out of sight for so long after its submission: no
    pivot, no reservation, no start. After each batch of completed jobs the delay changes by the
    share by which the mean slowdown of the batch's jobs of the first class has changed, times the
    first delay, where that share is beyond the tolerance.

    Attributes:
        bounds: Largest estimate of each class but the last, s, ascending; in text parted by "/".
        delay: The first delay of jobs of the last class (D_1), s; 0 = they are never held.
        batch: Jobs of a batch.
        tolerance: Share within which the delay stays.
        delta1: What the first batch does: "none", nothing, or "printed", as the paper prints it,
            changes the delay by the mean slowdown itself.

    Raises:
        PolicyError: A value that is not allowed, or one of a delay that there is not.

    Source:
        Lawson, Smirni, Puiu 2002, sections 3.2 and 4.2; specification, section 7.

    Example:
        >>> str(MultiQueue()), str(MultiQueue((60, 3600), delay=2500))
        ('multi-queue', 'multi-queue:bounds=60/3600,delay=2500')
    """

    NAME: ClassVar[str] = "multi-queue"

    bounds: tuple[int, ...] = (100, 1_000, 10_000)
    delay: int = 0
    batch: int = 100
    tolerance: float = 0.25
    delta1: str = "none"

    def __post_init__(self) -> None:
        """Refuse what makes no classes or no delay."""
        bounds = self.bounds if isinstance(self.bounds, (tuple, list)) else (self.bounds,)
        most = s.MOST_CLASSES - 1
        ascending = all(_is_whole(one, 1) for one in bounds) and all(
            one < other for one, other in pairwise(bounds)
        )
        if not ascending or not 1 <= len(bounds) <= most:
            raise PolicyError(
                f"backfill 'multi-queue': bounds must be 1 to {most} whole numbers of seconds >= "
                f"1, ascending, as in 100/1000/10000; got {self.bounds!r}"
            )
        for key, least in (("delay", 0), ("batch", 1)):
            if not _is_whole(getattr(self, key), least):
                raise PolicyError(
                    f"backfill 'multi-queue': {key} must be a whole number >= {least}, "
                    f"got {getattr(self, key)!r}"
                )
        if not _is_number(self.tolerance, 0):
            raise PolicyError(
                f"backfill 'multi-queue': tolerance must be a number >= 0, got {self.tolerance!r}"
            )
        allowed = ("none", "printed")
        if self.delta1 not in allowed:
            raise PolicyError(
                f"backfill 'multi-queue': {unknown_name('delta1', self.delta1, allowed)}"
            )
        for one in fields(self)[2:]:
            if self.delay == 0 and getattr(self, one.name) != one.default:
                raise PolicyError(
                    f"backfill 'multi-queue': {one.name} says how a delay adapts; it needs delay "
                    "too, as in delay=2500"
                )
        object.__setattr__(self, "bounds", tuple(int(one) for one in bounds))
        object.__setattr__(self, "delay", int(self.delay))
        object.__setattr__(self, "batch", int(self.batch))

    @property
    def number(self) -> int:
        """Return what stands in `State.setting` for the mode."""
        return s.BACKFILL_MULTI_QUEUE

    @property
    def keeps_state(self) -> bool:
        """Return whether a pass depends on more than the waiting and running jobs."""
        return True

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels find in `State.backfill_parameter`."""
        adapts = (self.delay, self.batch, self.tolerance, self.delta1 == "printed")
        return tuple(float(one) for one in (len(self.bounds) + 1, *adapts, *self.bounds))


@dataclass(frozen=True)
class LookAhead(Backfill):
    """The head has a reservation as in EASY; the jobs behind it that fill the machine most start.

    Jobs that do not fit now take up room in the window, too: where many of them wait, a narrow
    window leaves processors idle that EASY would use.

    Attributes:
        window: How many jobs behind the head, in queue order, are chosen from, >= 1, or `math.inf`
            for all of them, which costs little more.

    Raises:
        PolicyError: Another window.

    Source:
        Shmueli and Feitelson 2003, "Backfilling with lookahead"; specification, section 8, "LOS,
        lookahead".

    Example:
        >>> str(LookAhead()), str(LookAhead(20))
        ('look-ahead', 'look-ahead:window=20')
    """

    NAME: ClassVar[str] = "look-ahead"

    window: float = 50

    def __post_init__(self) -> None:
        """Refuse what is no number of jobs."""
        if not _is_number(self.window, 1) or (self.window != math.inf and self.window % 1 != 0):
            raise PolicyError(
                f"backfill 'look-ahead': window must be a whole number >= 1 or inf, "
                f"got {self.window!r}"
            )
        object.__setattr__(self, "window", _shortest(self.window))

    @property
    def number(self) -> int:
        """Return what stands in `State.setting` for the mode."""
        return s.BACKFILL_LOOK_AHEAD

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels find in `State.backfill_parameter`."""
        return (float(self.window),)


@dataclass(frozen=True)
class Relaxed(Backfill):
    """The head may be delayed beyond its reservation, by a part of its estimate at most.

    Its limit is the earliest shadow time it has had since it became head, plus omega times its
    estimate; see `hpcgym.core.kernels.passes.relaxed`.

    Attributes:
        omega: How many of its estimates, 0 to 1000, or `math.inf` for no limit; 0 is EASY.

    Raises:
        PolicyError: Another number.

    Source:
        Ward, Mahood and West 2002, "Scheduling jobs on parallel systems using a relaxed backfill
        strategy"; specification, section 8, "Relaxed".

    Example:
        >>> str(Relaxed()), str(Relaxed(0.5))
        ('relaxed', 'relaxed:omega=0.5')
    """

    NAME: ClassVar[str] = "relaxed"
    TAKES_ORDER: ClassVar[bool] = True

    omega: float = 1

    def __post_init__(self) -> None:
        """Refuse what is no number of estimates."""
        is_limit = _is_number(self.omega, 0) and self.omega <= LARGEST_FACTOR
        if not is_limit and self.omega != math.inf:
            raise PolicyError(
                f"backfill 'relaxed': omega must be a number from 0 to {LARGEST_FACTOR} or inf, "
                f"got {self.omega!r}"
            )
        object.__setattr__(self, "omega", _shortest(self.omega))

    @property
    def number(self) -> int:
        """Return what stands in `State.setting` for the mode."""
        return s.BACKFILL_RELAXED

    @property
    def keeps_state(self) -> bool:
        """Return whether a pass depends on more than the waiting and running jobs."""
        return True

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels find in `State.backfill_parameter`."""
        return (float(self.omega),)


@dataclass(frozen=True)
class Slack(Backfill):
    """Every job has a promise, its first reservation and some slack, which no other job may break.

    See `hpcgym.core.kernels.passes.slack` for how the plan is rearranged.

    Attributes:
        c: The slack, in estimates of the job, 0 to 1000.

    Raises:
        PolicyError: Another number.

    Source:
        Talby and Feitelson 1999, "Supporting priorities and improving utilization of the IBM SP
        scheduler using slack-based backfilling", in the simple form of the specification, section
        8, "Slack-based": one slack for all, no priorities, and no costs of schedules.

    Example:
        >>> str(Slack(1.0)), str(Slack(0.5))
        ('slack:c=1', 'slack:c=0.5')
    """

    NAME: ClassVar[str] = "slack"

    c: float

    def __post_init__(self) -> None:
        """Refuse what is no number of estimates."""
        if not _is_number(self.c, 0) or self.c > LARGEST_FACTOR:
            raise PolicyError(
                f"backfill 'slack': c must be a number from 0 to {LARGEST_FACTOR}, got {self.c!r}"
            )
        object.__setattr__(self, "c", _shortest(self.c))

    @property
    def number(self) -> int:
        """Return what stands in `State.setting` for the mode."""
        return s.BACKFILL_SLACK

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels find in `State.backfill_parameter`."""
        return (float(self.c),)

    @property
    def keeps_reservations(self) -> bool:
        """Return whether a reservation made at one pass still holds at the next."""
        return True


@dataclass(frozen=True)
class Gang(Backfill):
    """No backfilling, but gangs: jobs share the machine in time, in rows that take turns.

    Jobs are placed in order of arrival, so the policy must be FCFS; estimates and the threshold
    mean nothing. A step cannot run it: `hpcgym.simulate` does.

    Attributes:
        quantum: Length of a row's turn, whole s >= 1.
        switch: What is lost of it by switching, whole s, less than the quantum.
        rows: Rows there may be, >= 1; infinite = as many as jobs need.

    Raises:
        PolicyError: Another value.

    Source:
        Ousterhout 1982; lecture on batch scheduling; specification, section 4, "Gang scheduling".

    Example:
        >>> str(Gang(quantum=60, rows=2))
        'gang:quantum=60,rows=2'
    """

    NAME: ClassVar[str] = "gang"
    SHARES_TIME: ClassVar[bool] = True

    quantum: int = 600
    switch: int = 0
    rows: float = math.inf

    def __post_init__(self) -> None:
        """Refuse turns that cannot be taken."""
        for key, value, least in (("quantum", self.quantum, 1), ("switch", self.switch, 0)):
            if type(value) is not int or value < least:
                raise PolicyError(f"backfill 'gang': {key} must be whole s >= {least}, got {value}")
        if self.switch >= self.quantum:
            raise PolicyError(
                f"backfill 'gang': a switch of {self.switch} s leaves nothing of a quantum of "
                f"{self.quantum} s"
            )
        is_count = self.rows == math.inf or (type(self.rows) is int and self.rows >= 1)
        if not is_count:
            raise PolicyError(f"backfill 'gang': rows must be >= 1 or inf, got {self.rows!r}")

    @property
    def number(self) -> int:
        """Refuse to be run by kernels."""
        raise PolicyError(
            f"backfill '{self}' lets jobs take turns on processors: hpcgym.simulate runs it; the "
            "simulator, the environment and simulate_many do not"
        )


def _is_number(value: object, least: float) -> bool:
    """Tell whether a value is a number, at least so large."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and bool(value >= least)  # type: ignore[operator]


def _shortest(value: float) -> float:
    """Return a whole number as such, so that its text is short."""
    return int(value) if value % 1 == 0 else float(value)


def _is_whole(value: Any, least: int) -> bool:
    """Tell whether a value is a whole number that is not too small."""
    return _is_number(value, least) and value < math.inf and value % 1 == 0


def _text_of(value: object) -> str:
    """Write a value as `_value_of` reads it."""
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)
