"""Backfilling modes: which jobs may start ahead of others that wait. A mode is an object or text.

The text is the mode's name, then a colon and the parameters that differ from their defaults:
`"easy"`, `"easy:cap=0.97,long=7200"`, `"depth:k=3"`, `"conservative:compress=shift"`,
`"multi-queue:bounds=60/3600,delay=600"`.

Text may also name a mode that has its own simulator (`OwnSimulator`). A new backfilling mode is a
class here, listed in `MODES`, and a pass in `hpcgym/core/kernels/passes`.
`hpcgym.core.kernels.schedule_pass` calls the pass by the mode's number.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.errors import PolicyError, unknown_name

if TYPE_CHECKING:
    from hpcgym.core.settings import SchedulerSettings
    from hpcgym.core.workload import Workload

LARGEST_FACTOR = 1000
"""Largest wait in units of a job's estimate; it keeps sums of times whole numbers."""


@dataclass(frozen=True)
class Mode:
    """What `backfill` names in settings; its fields are its parameters.

    Each mode refuses a value that is not allowed with a PolicyError.

    Attributes:
        NAME: What the text of the mode begins with.
        TAKES_ORDER: Whether candidates may be tried in another order than that of the queue.
    """

    NAME: ClassVar[str]
    TAKES_ORDER: ClassVar[bool] = False

    def check_policy(self, name: str) -> None:
        """Raise a PolicyError where the mode cannot run a policy."""

    @property
    def kept_as(self) -> str | Mode:
        """Return what settings keep of it: its text, or the mode itself where it is your own."""
        return str(self)

    def __str__(self) -> str:
        """Return the text of the mode, which `as_mode` reads back."""
        stated = [
            f"{one.name}={_text_of(getattr(self, one.name))}"
            for one in fields(self)
            if getattr(self, one.name) != one.default
        ]
        return ":".join([self.NAME, ",".join(stated)] if stated else [self.NAME])


@dataclass(frozen=True)
class OwnSimulator(Mode, ABC):
    """A mode with its own simulator, which schedules whole workloads and takes no decisions.

    Attributes:
        REASON: What its jobs do that a pass cannot, for messages: "lets jobs ...".
    """

    REASON: ClassVar[str]

    @abstractmethod
    def simulate(self, workload: Workload, settings: SchedulerSettings) -> Any:
        """Schedule a whole workload; returns a `hpcgym.schedule.Schedule`."""


@dataclass(frozen=True)
class Backfill(Mode):
    """A backfilling mode, which a pass of the kernels runs.

    Attributes:
        NUMBER: What `Sim.setting` holds for the mode.
    """

    NUMBER: ClassVar[int]

    @property
    def number(self) -> int:
        """Return what `Sim.setting` holds for the mode."""
        return self.NUMBER

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels read in `Sim.backfill_parameter`."""
        return tuple(float(getattr(self, one.name)) for one in fields(self))

    @property
    def expects(self) -> int:
        """Return the expectations that its passes read, bits of `EXPECT_*`."""
        return s.EXPECT_NOTHING

    @property
    def keeps_reservations(self) -> bool:
        """Tell whether a reservation made at one pass still holds at the next."""
        return False

    @property
    def keeps_state(self) -> bool:
        """Tell whether a pass depends on more than the waiting and running jobs."""
        return self.keeps_reservations

    def row(self) -> NDArray[np.float64]:
        """Return the parameters, then zeros, shape (N_BACKFILL_PARAMETERS,)."""
        row = np.zeros(s.N_BACKFILL_PARAMETERS)
        row[: len(self.parameters)] = self.parameters
        return row


@dataclass(frozen=True)
class NoBackfill(Backfill):
    """Nothing starts ahead of a job that waits."""

    NAME: ClassVar[str] = "none"
    NUMBER: ClassVar[int] = s.BACKFILL_NONE


@dataclass(frozen=True)
class Easy(Backfill):
    """The first job that does not fit has a reservation; what does not delay it may start.

    Under a cap, jobs that are expected to run longer than `long` may hold a share of the machine at
    most, unless one of them runs alone.

    Attributes:
        cap: The share, >= 0; `math.inf` = no cap.
        long: Expected run time that such jobs exceed, s.
        overdue: "guarded": jobs beyond the threshold are neither capped nor counted. "open": they
            are treated as all others.

    Source: Mu'alem and Feitelson 2001; specification, section 1, "EASY pass"; section 8, "Cap".
    """

    NAME: ClassVar[str] = "easy"
    NUMBER: ClassVar[int] = s.BACKFILL_EASY
    TAKES_ORDER: ClassVar[bool] = True

    cap: float = math.inf
    long: float = 7200
    overdue: str = "guarded"

    def __post_init__(self) -> None:
        """Refuse what is no cap, and what says more about a cap that is not there."""
        for key, what in (("cap", "a share of the machine >= 0 or inf"), ("long", "seconds >= 0")):
            value = getattr(self, key)
            if not _is_number(value, 0) or (key == "long" and value == math.inf):
                raise PolicyError(f"backfill {self.NAME!r}: {key} must be {what}, got {value!r}")
            object.__setattr__(self, key, value if value == math.inf else _shortest(value))
        allowed = ("guarded", "open")
        if self.overdue not in allowed:
            raise PolicyError(
                f"backfill {self.NAME!r}: {unknown_name('overdue', self.overdue, allowed)}"
            )
        guards = self.overdue == "open" and not self.expects
        if self.cap == math.inf and (self.long != Easy.long or guards):
            raise PolicyError(
                f"backfill {self.NAME!r}: {'overdue' if guards else 'long'} is about a cap; it "
                "needs cap too, as in cap=0.97"
            )

    @property
    def number(self) -> int:
        """Return what `Sim.setting` holds for the mode."""
        return s.BACKFILL_COST_BENEFIT if self.expects else s.BACKFILL_EASY

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels read in `Sim.backfill_parameter`."""
        if not self.expects:
            return ()
        # Without a cap no job is long, so that none needs an expectation at its start.
        long = math.inf if self.cap == math.inf else self.long
        log_long = math.log(long) if long > 0 else -math.inf
        kappa = getattr(self, "kappa", 0)
        return float(self.cap), float(long), log_long, float(kappa), float(self.overdue == "open")

    @property
    def expects(self) -> int:
        """Return the expectations that its passes read, bits of `EXPECT_*`."""
        return s.EXPECT_NOTHING if self.cap == math.inf else s.EXPECT_BY_REGRESSION

    @property
    def keeps_state(self) -> bool:
        """Tell whether a pass depends on more than the waiting and running jobs."""
        return bool(self.expects)


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
    NUMBER: ClassVar[int] = s.BACKFILL_COST_BENEFIT

    kappa: float = 0.25

    def __post_init__(self) -> None:
        """Refuse what is no weight or no cap."""
        super().__post_init__()
        if not _is_number(self.kappa, 0) or self.kappa == math.inf:
            raise PolicyError(f"backfill {self.NAME!r}: kappa must be >= 0, got {self.kappa!r}")
        object.__setattr__(self, "kappa", _shortest(self.kappa))

    @property
    def expects(self) -> int:
        """Return the expectations that its passes read, bits of `EXPECT_*`."""
        return s.EXPECT_BY_REGRESSION


@dataclass(frozen=True)
class Depth(Backfill):
    """The first k jobs that do not fit have reservations; what delays none of them may start.

    k is >= 1, or `math.inf` for all waiting jobs; 1 is EASY.

    Source: Specification, section 8, "Reservation depth k".
    """

    NAME: ClassVar[str] = "depth"
    NUMBER: ClassVar[int] = s.BACKFILL_DEPTH
    TAKES_ORDER: ClassVar[bool] = True

    k: float

    def __post_init__(self) -> None:
        """Refuse what is no number of jobs."""
        if not _is_count(self.k):
            raise PolicyError(
                f"backfill 'depth': k must be a whole number >= 1 or inf, got {self.k!r}; "
                "no reservation at all is backfill 'none'"
            )
        object.__setattr__(self, "k", _shortest(self.k))

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels read in `Sim.backfill_parameter`."""
        return (float(self.k), math.inf)


@dataclass(frozen=True)
class Conservative(Backfill):
    """Every waiting job has a reservation; what delays none of them may start.

    When a job ends early, compress="rebuild" makes all reservations anew at each pass, in queue
    order. "shift" keeps them, and moves each job in queue order to an earlier hole if there is one.

    On a machine of nodes a pass looks at the first `planned` jobs of each component only; the
    others wait. Where processors are counted it looks at all.

    Source: Specification, section 4, "Conservative"; Mu'alem and Feitelson 2001.
    """

    NAME: ClassVar[str] = "conservative"

    compress: str = "rebuild"
    planned: float = math.inf

    def __post_init__(self) -> None:
        """Refuse another way."""
        allowed = ("rebuild", "shift")
        if self.compress not in allowed:
            raise PolicyError(
                f"backfill 'conservative': {unknown_name('compress', self.compress, allowed)}"
            )
        if not _is_count(self.planned):
            raise PolicyError(
                "backfill 'conservative': planned must be a whole number >= 1 or inf, got "
                f"{self.planned!r}"
            )
        object.__setattr__(self, "planned", _shortest(self.planned))

    @property
    def number(self) -> int:
        """Return what `Sim.setting` holds for the mode; "rebuild" is depth without a limit."""
        return s.BACKFILL_SHIFT if self.keeps_reservations else s.BACKFILL_DEPTH

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels read in `Sim.backfill_parameter`."""
        return () if self.keeps_reservations else (math.inf, float(self.planned))

    @property
    def keeps_reservations(self) -> bool:
        """Tell whether a reservation made at one pass still holds at the next."""
        return self.compress == "shift"


@dataclass(frozen=True)
class MultiQueue(Backfill):
    """The first job of each class by estimate has a reservation; what delays none may start.

    With a delay, jobs of the last class are held. Until the delay after its submission is over,
    such a job is no pivot, has no reservation and cannot start. Let r be the relative change, from
    one batch of completed jobs to the next, of the mean slowdown of jobs of the first class. After
    each batch the delay changes by r times the first delay, if |r| exceeds the tolerance.

    Attributes:
        bounds: Largest estimate of each class but the last, s, ascending; in text parted by "/".
        delay: The first delay of jobs of the last class (D_1), s; 0 = they are never held.
        batch: Jobs of a batch.
        tolerance: Relative change up to which the delay stays.
        delta1: What the first batch does: "none", nothing; "printed", as the paper prints it, it
            changes the delay by the mean slowdown itself.

    Source: Lawson, Smirni, Puiu 2002, sections 3.2 and 4.2; specification, section 7.
    """

    NAME: ClassVar[str] = "multi-queue"
    NUMBER: ClassVar[int] = s.BACKFILL_MULTI_QUEUE

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
    def keeps_state(self) -> bool:
        """Tell whether a pass depends on more than the waiting and running jobs."""
        return True

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels read in `Sim.backfill_parameter`."""
        adapts = (self.delay, self.batch, self.tolerance, self.delta1 == "printed")
        return tuple(float(one) for one in (len(self.bounds) + 1, *adapts, *self.bounds))


@dataclass(frozen=True)
class LookAhead(Backfill):
    """The head has a reservation as in EASY; the jobs behind it that fill the machine most start.

    They are chosen from the `window` jobs behind the head in queue order; `math.inf`, all of them,
    costs little more. Jobs that do not fit now count in the window, too: where many of them wait, a
    narrow window leaves processors idle that EASY would use.

    Source: Shmueli and Feitelson 2003; specification, section 8, "LOS, lookahead".
    """

    NAME: ClassVar[str] = "look-ahead"
    NUMBER: ClassVar[int] = s.BACKFILL_LOOK_AHEAD

    window: float = 50

    def __post_init__(self) -> None:
        """Refuse what is no number of jobs."""
        if not _is_count(self.window):
            raise PolicyError(
                f"backfill 'look-ahead': window must be a whole number >= 1 or inf, "
                f"got {self.window!r}"
            )
        object.__setattr__(self, "window", _shortest(self.window))


@dataclass(frozen=True)
class Relaxed(Backfill):
    """The head may be delayed beyond its reservation, by omega times its estimate at most.

    Its limit is the earliest shadow time it has had since it became head, plus that; see
    `hpcgym.core.kernels.passes.relaxed`. Omega is 0, which is EASY, to 1000, or `math.inf`.

    Source: Ward, Mahood and West 2002; specification, section 8, "Relaxed".
    """

    NAME: ClassVar[str] = "relaxed"
    NUMBER: ClassVar[int] = s.BACKFILL_RELAXED
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
    def keeps_state(self) -> bool:
        """Tell whether a pass depends on more than the waiting and running jobs."""
        return True


@dataclass(frozen=True)
class Slack(Backfill):
    """Every job has a promise, its first reservation and some slack, which no other job may break.

    The slack is c times the job's estimate, c from 0 to 1000. `hpcgym.core.kernels.passes.slack`
    says how the plan is rearranged. Unlike the paper's, the slack is the same for all jobs, without
    priorities or costs of schedules.

    Source: Talby and Feitelson 1999; specification, section 8, "Slack-based".
    """

    NAME: ClassVar[str] = "slack"
    NUMBER: ClassVar[int] = s.BACKFILL_SLACK

    c: float

    def __post_init__(self) -> None:
        """Refuse what is no number of estimates."""
        if not _is_number(self.c, 0) or self.c > LARGEST_FACTOR:
            raise PolicyError(
                f"backfill 'slack': c must be a number from 0 to {LARGEST_FACTOR}, got {self.c!r}"
            )
        object.__setattr__(self, "c", _shortest(self.c))

    @property
    def keeps_reservations(self) -> bool:
        """Tell whether a reservation made at one pass still holds at the next."""
        return True


_CLASSES = (
    *(NoBackfill, Easy, Depth, Conservative, MultiQueue),
    *(LookAhead, Relaxed, Slack, CostBenefit),
)
MODES: dict[str, type[Backfill]] = {mode.NAME: mode for mode in _CLASSES}
"""Backfilling modes by the name their text begins with; `hpcgym.core.loaders` has the others."""


def as_mode(mode: object) -> Backfill | OwnSimulator:
    """Read a mode from its text; a mode is returned as it is, and a class is called.

    Raises:
        PolicyError: An unknown name, key or value; the message names what is allowed.

    Example:
        >>> as_mode("depth:k=3"), as_mode("look-ahead")
        (Depth(k=3), LookAhead(window=50))
        >>> str(as_mode("multi-queue:delay=2500,bounds=60/3600"))
        'multi-queue:bounds=60/3600,delay=2500'
        >>> as_mode("conservativ")
        Traceback (most recent call last):
        hpcgym.errors.PolicyError: unknown backfill 'conservativ'; did you mean 'conservative'? ...
    """
    if isinstance(mode, (Backfill, OwnSimulator)):
        return mode
    parts: tuple[Any, str, str] = mode.partition(":") if isinstance(mode, str) else (mode, "", "")
    name, colon, rest = parts
    made = _class_of(name)
    given = _parameters_of(name, rest, [one.name for one in fields(made)]) if colon else {}
    missing = [one.name for one in fields(made) if one.default is MISSING and one.name not in given]
    if missing:
        raise PolicyError(
            f"backfill {made.NAME!r} needs {missing[0]}: '{made.NAME}:{missing[0]}=...'"
        )
    return made(**given)


def _class_of(name: Any) -> type[Backfill | OwnSimulator]:
    """Return the class of a mode by its name; a class is returned as it is."""
    if isinstance(name, type) and issubclass(name, (Backfill, OwnSimulator)):
        return name
    known = (*MODES, *loaders.SIMULATORS, *loaders.BACKFILLS)
    if not isinstance(name, str) or name not in known:
        raise PolicyError(unknown_name("backfill", name, known))
    if name in loaders.SIMULATORS:
        own_simulator: type[OwnSimulator] = loaders.SIMULATORS[name]()
        return own_simulator
    return MODES[name] if name in MODES else loaders.BACKFILLS[name]


def as_backfill(mode: object) -> Backfill:
    """Read a mode that a pass of the kernels can run.

    Raises:
        PolicyError: As `as_mode`, or a mode with its own simulator.
    """
    chosen = as_mode(mode)
    if isinstance(chosen, Backfill):
        return chosen
    raise PolicyError(
        f"backfill '{chosen}' {chosen.REASON}: hpcgym.simulate runs it; the simulator, the "
        "environment and simulate_many do not"
    )


def order_refused(mode: Mode) -> str:
    """Return the message that a mode takes no backfill order, and which modes take one."""
    takers = ", ".join(name for name, made in MODES.items() if made.TAKES_ORDER)
    return f'backfill_order contradicts backfill = "{mode}"; modes that take one: {takers}'


def _parameters_of(name: str, text: str, allowed: list[str]) -> dict[str, Any]:
    """Read the text behind the colon."""
    given: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if key not in allowed:
            raise PolicyError(unknown_name(f"parameter of backfill {name!r}", key, allowed))
        if not equals or not value or key in given:
            raise PolicyError(
                f"backfill {name!r}: write key=value, each key once; got {text!r}. "
                f"Allowed keys: {', '.join(allowed)}"
            )
        given[key] = _value_of(value)
    return given


def _value_of(text: str) -> int | float | str | tuple[Any, ...]:
    """Read a value: a number where it is one, several where they are parted by "/"."""
    if "/" in text:
        return tuple(_value_of(part) for part in text.split("/"))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _text_of(value: object) -> str:
    """Write a value as `_value_of` reads it."""
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _shortest(value: float) -> float:
    """Return a whole number as an int, so that its text is short."""
    return int(value) if value % 1 == 0 else float(value)


def _is_number(value: object, least: float) -> bool:
    """Tell whether a value is a number that is not too small."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and bool(value >= least)  # type: ignore[operator]


def _is_whole(value: Any, least: int) -> bool:
    """Tell whether a value is a whole number that is not too small."""
    return _is_number(value, least) and value < math.inf and value % 1 == 0


def _is_count(value: object) -> bool:
    """Tell whether a value is a whole number >= 1 or infinite."""
    return value == math.inf or _is_whole(value, 1)
