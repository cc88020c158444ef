"""Backfilling modes: which jobs may start ahead of others that wait. A mode is an object or text.

The text is the mode's name, then a colon and the parameters that differ from their defaults:
`"easy"`, `"easy:cap=0.97,long=7200"`, `"depth:k=3"`, `"conservative:compress=shift"`,
`"multi-queue:bounds=60/3600,delay=600"`.

Text may also name a mode that has its own simulator (`OwnSimulator`). A new backfilling mode is a
file in `hpcgym/core/parts`, with its class and its kernels, and a line in `MODES`.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.errors import LARGEST_WHOLE, PolicyError, unknown_name

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
        """Return what specs keep of it: its text, or the mode itself where it is your own."""
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

    The class of a mode stands in the file of its kernels, a part of the scheduler:
    `hpcgym.core.parts` says what such a file holds.

    """

    @property
    def works_on_nodes(self) -> bool:
        """Tell whether its passes place jobs on the nodes of a machine."""
        return False

    @property
    def guards(self) -> bool | None:
        """Tell whether behind a head beyond the threshold nothing starts that EASY would refuse.

        Nor may the mode hold such a job back. None where only the mode's author can know.
        """
        return False

    def refuse_on_counts(self) -> None:
        """Raise a PolicyError where a parameter has a meaning on machines of nodes only."""

    @property
    def part(self) -> str:
        """Name the module whose kernels make its passes; "" = the engine makes them."""
        return type(self).__module__

    @property
    def number(self) -> int:
        """Return what `Sim.setting` holds for the mode."""
        return s.BACKFILL_PART + loaders.place_of(self.part)

    @property
    def hears(self) -> int:
        """Return the moments that its part hears of, bits of `ON_*` and what follows these."""
        return loaders.module(self.part).HEARS if self.part else 0

    @property
    def broken(self) -> dict[int, str]:
        """Return what its part's checks of debug runs find, by their negative answers."""
        found: dict[int, str] = loaders.module(self.part).BROKEN
        return found

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
    part: ClassVar[str] = ""
    number: ClassVar[int] = s.BACKFILL_NONE
    works_on_nodes: ClassVar[bool] = True
    guards: ClassVar[bool] = True


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
    TAKES_ORDER: ClassVar[bool] = True

    cap: float = math.inf
    long: float = 7200
    overdue: str = "guarded"

    def __post_init__(self) -> None:
        """Refuse what is no cap, and what says more about a cap that is not there."""
        for key, what in (("cap", "a share of the machine >= 0 or inf"), ("long", "seconds >= 0")):
            value = getattr(self, key)
            if not is_number(value, 0) or (key == "long" and value == math.inf):
                raise PolicyError(f"backfill {self.NAME!r}: {key} must be {what}, got {value!r}")
            object.__setattr__(self, key, value if value == math.inf else shortest(value))
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
    def part(self) -> str:
        """Name the module whose kernels make its passes; without a cap the engine makes them."""
        return CAPPED if self.expects else ""

    @property
    def number(self) -> int:
        """Return what `Sim.setting` holds for the mode."""
        return super().number if self.expects else s.BACKFILL_EASY

    @property
    def works_on_nodes(self) -> bool:
        """Tell whether its passes place jobs on the nodes of a machine."""
        return not self.expects

    @property
    def guards(self) -> bool:
        """Tell whether nothing delays a head beyond the threshold."""
        return self.overdue == "guarded"

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


CAPPED = "hpcgym.core.parts.cost_benefit"
"""Part that makes passes under a cap."""

MODES: loaders.ByName[type[Backfill]] = loaders.ByName(
    {
        "none": NoBackfill,
        "easy": Easy,
        "depth": "hpcgym.core.parts.depth:Depth",
        "conservative": "hpcgym.core.parts.conservative:Conservative",
        "multi-queue": "hpcgym.core.parts.multi_queue:MultiQueue",
        "look-ahead": "hpcgym.core.parts.look_ahead:LookAhead",
        "relaxed": "hpcgym.core.parts.relaxed:Relaxed",
        "slack": "hpcgym.core.parts.slack:Slack",
        "cost-benefit": f"{CAPPED}:CostBenefit",
    }
)
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
    (home,) = (each for each in (MODES, loaders.SIMULATORS, loaders.BACKFILLS) if name in each)
    return home[name]


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
            value = kind(text)
        except ValueError:
            continue
        return text if math.isinf(value) and "inf" not in text.casefold() else value
    return text


def _text_of(value: object) -> str:
    """Write a value as `_value_of` reads it."""
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)


def shortest(value: float) -> float:
    """Return a whole number as an int, so that its text is short."""
    return int(value) if value % 1 == 0 else float(value)


def is_number(value: object, least: float) -> bool:
    """Tell whether a value is a number that is not too small."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and bool(value >= least)  # type: ignore[operator]


def is_whole(value: Any, least: int) -> bool:
    """Tell whether a value is a whole number that is not too small."""
    return is_number(value, least) and value <= LARGEST_WHOLE and value % 1 == 0


def is_count(value: object) -> bool:
    """Tell whether a value is a whole number >= 1 or infinite."""
    return value == math.inf or is_whole(value, 1)
