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
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import LARGEST_WHOLE, PolicyError, unknown_name
from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.core.part_text import make_part, read_part, text_of_part

if TYPE_CHECKING:
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
        READS_ONLY: Whether `read` makes it of all that stands behind the colon.
        ASKED: Words of `hpcgym.core.pairs` that it lacks unless it knows them.
        KNOWS: Those that it knows.
    """

    NAME: ClassVar[str]
    TAKES_ORDER: ClassVar[bool] = False
    READS_ONLY: ClassVar[bool] = False
    ASKED: ClassVar[tuple[str, ...]] = ()
    KNOWS: ClassVar[tuple[str, ...]] = ()

    @property
    def knows(self) -> tuple[str, ...]:
        """Return the words of `hpcgym.core.pairs` that it knows with its parameters."""
        return self.KNOWS

    @property
    def demands(self) -> dict[str, str]:
        """Return `hpcgym.core.pairs.Part.demands`; what knows no nodes counts processors."""
        return {} if "nodes" in self.knows else {"counts": ""}

    @property
    def lacks(self) -> dict[str, str]:
        """Return `hpcgym.core.pairs.Part.lacks`."""
        return {word: "" for word in self.ASKED if word not in self.knows}

    @property
    def requeues(self) -> bool:
        """Tell whether it takes jobs off the machine, which then wait again."""
        return False

    @property
    def kept_as(self) -> str | Mode:
        """Return what specs keep of it: its text, or the mode itself where it is your own."""
        return str(self)

    def __str__(self) -> str:
        """Return the text of the mode, which `as_mode` reads back."""
        return text_of_part(self)


@dataclass(frozen=True)
class OwnSimulator(Mode, ABC):
    """A mode with its own simulator, which schedules whole workloads and takes no decisions.

    Attributes:
        REASON: What its jobs do that a pass cannot, for messages: "lets jobs ...".
    """

    REASON: ClassVar[str]

    @property
    def lacks(self) -> dict[str, str]:
        """Return what it cannot be beside: all that happens in passes, and any other order."""
        runs_alone = "a simulator of its own"
        unordered = "which orders nothing: the policy must be FCFS"
        return super().lacks | {
            **dict.fromkeys(("backfilling", "waits", "no memory"), runs_alone),
            **dict.fromkeys(("an order", "a backfill order"), unordered),
        }

    @abstractmethod
    def simulate(self, workload: Workload, settings: Any) -> Any:
        """Schedule a workload by `SchedulerSettings`; returns a `hpcgym.Schedule`."""


@dataclass(frozen=True)
class Backfill(Mode):
    """A backfilling mode, which a pass of the kernels runs.

    The class of a mode stands in the file of its kernels, a part of the scheduler:
    `hpcgym.core.parts` says what such a file holds. A class may have `read`, which makes a mode of
    what stands behind the colon where that has no "=".
    """

    ASKED: ClassVar[tuple[str, ...]] = ("limits", "outages", "outages of nodes", "held jobs")

    @property
    def demands(self) -> dict[str, str]:
        """Return what it demands: what knows no nodes counts processors, and says who does not."""
        others = "none, easy, cost-benefit, depth, conservative and slurm do not"
        made = super().demands
        return made | ({"counts": f"counts processors ({others})"} if made else {})

    @property
    def lacks(self) -> dict[str, str]:
        """Return what it does not know, a backfill order, and memory that planning cannot have."""
        lacking = super().lacks
        if not self.TAKES_ORDER:
            lacking["a backfill order"] = f"which takes none; these do: {', '.join(_takers())}"
        if self.keeps_state:
            lacking["no memory"] = (
                "which keeps some; none, easy, depth, conservative and look-ahead do not"
            )
        return lacking

    @property
    def guards(self) -> bool | None:
        """Tell whether behind a head beyond the threshold nothing starts that EASY would refuse.

        Nor may the mode hold such a job back. None where only the mode's author can know.
        """
        return False

    @property
    def part_on_nodes(self) -> str:
        """Name the module that passes of nodes ask in place of `part`; "" = they ask that one."""
        return ""

    def requeueable(self, workload: Workload) -> NDArray[np.int64]:
        """Return which jobs it may kill, shape (n_jobs,), 1 = it may; empty = all."""
        return np.empty(0, dtype=np.int64)

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

    def asked(self, on_nodes: bool) -> tuple[int, int]:
        """Return `number` and `hears` of the part that makes passes, or that those of nodes ask."""
        if not on_nodes or not self.part_on_nodes:
            return self.number, self.hears
        part = loaders.module(self.part_on_nodes)
        return s.BACKFILL_PART + loaders.place_of(part.__name__), part.HEARS

    @property
    def broken(self) -> dict[int, str]:
        """Return what its part's checks of debug runs find, by their negative answers."""
        messages: dict[int, str] = loaders.module(self.part).BROKEN
        return messages

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels read in `Sim.backfill_parameter`."""
        return tuple(float(getattr(self, parameter.name)) for parameter in fields(self))

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
    KNOWS: ClassVar[tuple[str, ...]] = (*Backfill.ASKED, "nodes")
    part: ClassVar[str] = ""
    number: ClassVar[int] = s.BACKFILL_NONE
    guards: ClassVar[bool] = True


@dataclass(frozen=True)
class Easy(Backfill):
    """The first job that does not fit has a reservation; what does not delay it may start.

    Under a cap, jobs that are expected to run longer than `long` may hold a share of the machine at
    most, unless one of them runs alone. With `trial`, its text behind a "+", waiting jobs are tried
    where processors idle.

    Attributes:
        cap: The share, >= 0; `math.inf` = no cap.
        long: Run time that such jobs exceed, s.
        overdue: "guarded": jobs beyond the threshold are neither capped nor counted. "open": they
            are treated as all others.
        by: "expectation": long are jobs that are expected to run so long. "request": that request
            so much.
        widest: Share of the machine up to which the cap binds a job; `math.inf` = all.
        pressed: The cap binds while waiting jobs ask for at least this share of the machine.
        trial: How they are, `hpcgym.core.parts.trials.Trial`; None = they are not.

    Source: Mu'alem and Feitelson 2001; specification, section 1, "EASY pass"; section 8, "Cap";
        section 15.
    """

    NAME: ClassVar[str] = "easy"
    TAKES_ORDER: ClassVar[bool] = True

    cap: float = math.inf
    long: float = 7200
    overdue: str = "guarded"
    by: str = "expectation"
    widest: float = math.inf
    pressed: float = 0
    trial: Any = None

    def __post_init__(self) -> None:
        share = "a share of the machine >= 0"
        for key, what in (
            ("cap", f"{share} or inf"),
            ("long", "seconds >= 0"),
            ("widest", f"{share} or inf"),
            ("pressed", share),
        ):
            value = getattr(self, key)
            is_finite = key in ("long", "pressed")
            if not is_number(value, 0) or (is_finite and value == math.inf):
                raise PolicyError(f"backfill {self.NAME!r}: {key} must be {what}, got {value!r}")
            object.__setattr__(self, key, value if value == math.inf else shortest(value))
        for key, allowed in (("overdue", ("guarded", "open")), ("by", ("expectation", "request"))):
            if getattr(self, key) not in allowed:
                text = unknown_name(key, getattr(self, key), allowed)
                raise PolicyError(f"backfill {self.NAME!r}: {text}")
        if self.trial is not None and getattr(self.trial, "NAME", "") != "trial":
            raise PolicyError(
                f"backfill {self.NAME!r}: trial must be a hpcgym.core.parts.trials.Trial or None, "
                f"got {self.trial!r}; as text: '{self.NAME}+trial:limit=300'"
            )
        about = ["long", "by", "widest", "pressed", *["overdue"] * (type(self) is Easy)]
        stated = [key for key in about if getattr(self, key) != getattr(Easy, key)]
        if self.cap == math.inf and stated:
            raise PolicyError(
                f"backfill {self.NAME!r}: {stated[0]} is about a cap; it needs cap too, as in "
                "cap=0.97"
            )

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.trial is None else f"{text}+{self.trial}"

    def requeueable(self, workload: Workload) -> NDArray[np.int64]:
        """Return which jobs may be tried and give way, as the base class says."""
        if self.trial is None:
            return super().requeueable(workload)
        permitted: NDArray[np.int64] = self.trial.requeueable(workload)
        return permitted

    @property
    def part(self) -> str:
        """Name the module whose kernels make its passes; without a cap the engine makes them."""
        if self.trial is not None:
            return TRIALS
        return CAPPED if self.weighs else ""

    @property
    def weighs(self) -> bool:
        """Tell whether passes ask about a cap, or about costs."""
        return bool(self.expects) or self.cap < math.inf

    @property
    def number(self) -> int:
        """Return what `Sim.setting` holds for the mode."""
        return super().number if self.part else s.BACKFILL_EASY

    @property
    def part_on_nodes(self) -> str:
        """Name the module that passes of nodes ask about a cap, costs or trials."""
        if not self.part:
            return ""
        return CAPPED_ON_NODES if self.trial is None else TRIALS_ON_NODES

    def asked(self, on_nodes: bool) -> tuple[int, int]:
        """Return `number` and `hears`; passes of nodes ask a cap whom it blocks."""
        number, hears = super().asked(on_nodes)
        return number, hears | (s.IS_BLOCKED if on_nodes and self.weighs else 0)

    @property
    def guards(self) -> bool:
        """Tell whether nothing delays a head beyond the threshold."""
        return self.overdue == "guarded"

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels read in `Sim.backfill_parameter`."""
        if not self.part:
            return ()
        # Without a cap no job is long, so that none needs an expectation at its start.
        long = math.inf if self.cap == math.inf else self.long
        log_long = math.log(long) if long > 0 else -math.inf
        kappa = getattr(self, "kappa", 0)
        numbers = (self.cap, long, log_long, kappa, self.overdue == "open", self.by == "request")
        lent = () if self.trial is None else self.trial.parameters
        return tuple(map(float, (*numbers, self.widest, self.pressed, *lent)))

    @property
    def expects(self) -> int:
        """Return the expectations that its passes read, bits of `EXPECT_*`."""
        asks = self.cap < math.inf and self.by == "expectation"
        return s.EXPECT_BY_REGRESSION if asks else s.EXPECT_NOTHING

    @property
    def keeps_state(self) -> bool:
        """Tell whether a pass depends on more than the waiting and running jobs."""
        return bool(self.part)

    @property
    def knows(self) -> tuple[str, ...]:
        """Return what it knows; with a cap or trials, which are a part of their own, less."""
        outages = "outages", "outages of nodes", "nodes"
        return outages if self.part else (*outages, "limits", "held jobs")

    @property
    def demands(self) -> dict[str, str]:
        """Return what it demands, and what its trials do."""
        at_once = {"instants": ""} if self.part else {}
        return super().demands | at_once | ({} if self.trial is None else self.trial.demands)

    @property
    def requeues(self) -> bool:
        """Tell whether it takes jobs off the machine, which then wait again."""
        return self.trial is not None


# Parts that try waiting jobs where processors idle, and that make passes under a cap; then those
# that passes of nodes ask about a cap, and costs, and about trials; and that make Slurm's there.
TRIALS, CAPPED = "hpcgym.core.parts.trials", "hpcgym.core.parts.cost_benefit"
CAPPED_ON_NODES = "hpcgym.core.parts.cost_on_nodes"
TRIALS_ON_NODES = "hpcgym.core.parts.trials_on_nodes"
SLURM_ON_NODES = "hpcgym.core.parts.slurm_on_nodes"

MODES: loaders.ByName[type[Backfill]] = loaders.ByName(
    "backfill",
    PolicyError,
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
        "slurm": "hpcgym.core.parts.slurm:Slurm",
        "committed": "hpcgym.core.parts.committed:Committed",
    },
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
        hpcgym.base.errors.PolicyError: unknown backfill 'conservativ'; did you mean ...
    """
    if isinstance(mode, (Backfill, OwnSimulator)):
        return mode
    made: Backfill | OwnSimulator
    if isinstance(mode, type) and issubclass(mode, (Backfill, OwnSimulator)):
        made = make_part("backfill", mode, {})
    else:
        text, plus, lent = mode.partition("+") if isinstance(mode, str) else (mode, "", "")
        made = read_part("backfill", text, (MODES, loaders.SIMULATORS, loaders.BACKFILLS))
        if plus:
            made = _with_trial(made, lent)
    return made


def _with_trial(mode: Backfill | OwnSimulator, text: str) -> Backfill:
    """Add to a mode what the text behind its "+" says."""
    trial = read_part("what follows '+'", text, ({"trial": loaders.load(f"{TRIALS}:Trial")},))
    if not isinstance(mode, Easy):
        raise PolicyError(
            f"backfill '{mode}' runs no trials, got '+{text}'; easy and cost-benefit do, with a "
            "cap or without"
        )
    return replace(mode, trial=trial)


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


def _takers() -> list[str]:
    """Return the names of the modes that take a backfill order."""
    return [name for name in MODES if MODES[name].TAKES_ORDER]


def list_own(what: str, part: Any, kind: type[Any]) -> None:
    """List the file of a part of somebody's own that `register_*` takes, if it has kernels.

    Raises:
        PolicyError: No subclass of a kind, or one whose file has no kernels.
    """
    is_kind = isinstance(part, type) and issubclass(part, kind)
    if is_kind and hasattr(sys.modules[part.__module__], "HEARS"):
        loaders.place_of(part.__module__)
    elif not is_kind or not hasattr(part, "start"):
        in_python = " of OwnBackfill, or one" if what == "backfill" else ""
        raise PolicyError(
            f"register_{what} takes a subclass{in_python} of {kind.__name__} whose file has "
            f"kernels and HEARS; got {part!r}"
        )


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
