"""Events: what happens beside the jobs, such as processors that come later. Each is one file.

The text of an event is its name, then a colon and its parameters, as that of a backfilling mode.
The file has its class, a subclass of `Event`; `HEARS`, the moments of jobs that it hears of, bits
of `ON_SUBMIT`, `ON_START`, `ON_END`, `ON_LOSE` and `ON_EVICT`; a subclass of `Sim` for the numbers
that it adds, if any; and `work(jobs, sim, task, argument)`, which returns 0 for tasks that it does
not know.

| task | when | argument | returns |
|---|---|---|---|
| `NEXT_INSTANT` | before the clock moves | | when it happens next, s, not past; `NEVER` |
| `ON_INSTANT` | an event happens now: after completions, before submissions | | 1 = a pass is due |
| `ON_SUBMIT` and the other four | `hpcgym.core.engine.moments` | the job | |

An event may make the passes in place of EASY and none, while it keeps `Sim.looks_ahead` at its
place plus 1. Modes with a cap or trials make theirs, on its profile. It is then asked these, too:

| task | argument | returns |
|---|---|---|
| `MAKE_PASS`, `ALL_FIT` | as a mode is asked, `hpcgym.core.parts` | |
| `FITS_AHEAD` | a waiting job | 1 = it may start if it is tried first |
| `RESERVE_AHEAD` | a waiting job that may not | nothing; it writes `shadow` and `extra` |
| `FREE_AHEAD` | an instant, s, not past | the processors free then |
| `LOOK_AHEAD` | | nothing; it makes the profile of this pass, which the next three go by |
| `FREE_UNTIL_END` | a waiting job | 1 = its processors are free until its estimated end |
| `TAKE_AHEAD` | a waiting job that starts now | nothing |
| `HOLD_AHEAD` | the head | nothing; it reserves for the job, and writes `shadow` |
| `MORE_AHEAD` | an instant, s | processors that the event takes before it, beyond those of now |

A file whose event takes jobs off the machine says so by `REQUEUES`, as that of a mode does. It has
a job `lose` where `Jobs.requeue` is 0 (`hpcgym.core.engine.life`), and `evict` all others.
`moments.event_number(jobs, sim, k)` is number k of `Event.numbers`, and column
`Jobs.known_first[sim.event]` of `Jobs.known` is the first of `Event.of_jobs`. At a reset all
numbers that a part adds are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.core.backfill import Mode, list_own
from hpcgym.core.down_nodes import NodeOutage, changes_of, lacking_nodes
from hpcgym.core.part_text import read_part

if TYPE_CHECKING:
    from hpcgym.core.workload import Workload


@dataclass(frozen=True)
class Event(Mode):
    """Something that happens at instants of its own; its fields are its parameters.

    Each event refuses a value that is not allowed with a PolicyError, as a mode does.

    It may know "nodes"; "trials", where jobs wait and run at once; and "waits", where jobs change
    their positions.
    """

    ASKED: ClassVar[tuple[str, ...]] = ("trials", "waits")

    MAKES_PASSES: ClassVar[bool] = False  # whether it may make the passes, by `Sim.looks_ahead`

    WITHHOLDS: ClassVar[bool] = False
    """Whether waiting jobs may be out of sight of observations, by `IS_BLOCKED`."""

    SHARED: ClassVar[bool] = False  # whether its kernels are called once for all events of its kind

    @property
    def makes_passes(self) -> bool:
        """Tell whether it may, as it is stated."""
        return self.MAKES_PASSES

    @property
    def demands(self) -> dict[str, str]:
        """Return what it demands: of modes and semantics that there are passes."""
        more = {"passes": ""} if self.makes_passes else {}
        starts = {"attempts": ""} if self.requeues else {}
        return super().demands | {"backfilling": "", "instants": ""} | more | starts

    @property
    def lacks(self) -> dict[str, str]:
        """Return what it cannot be beside: planning, and another event that makes the passes."""
        reasons = {"trials": "which knows no trials", "waits": "which may know jobs by position"}
        lacking = {word: reasons.get(word, "") for word in super().lacks} | {"no events": ""}
        return lacking | ({"passes": "which makes them, too"} if self.makes_passes else {})

    def outages(self, workload: Workload) -> Sequence[Sequence[int]]:
        """Return rows of `Jobs.outage`, on the clock of the workload."""
        return ()

    def node_outages(self, workload: Workload) -> Sequence[NodeOutage]:
        """Return the nodes that it takes down, on the clock of the workload."""
        return ()

    def numbers(self, workload: Workload) -> Sequence[int]:
        """Return the whole numbers that its kernels read, for the jobs of an episode."""
        return [int(each) for each in astuple(self)]

    def of_jobs(self, workload: Workload) -> NDArray[np.int64]:
        """Return the whole numbers of each job that its kernels read, a row for each."""
        return np.empty((len(workload), 0), dtype=np.int64)

    def measure(self, workload: Workload, start: Any, run_time: Any) -> dict[str, float]:
        """Return metrics of its own of a schedule, by starts, -1 = none, and run times, s."""
        return {}

    def n_shares(self, workload: Workload) -> int:
        """Return how many shares of the machine its kernels keep, besides one for each event."""
        return 0

    @property
    def number(self) -> int:
        """Return what `Jobs.event_pass` holds for the event."""
        return s.BACKFILL_PART + loaders.place_of(type(self).__module__)

    @property
    def requeues(self) -> bool:
        """Tell whether it takes jobs off the machine, which then wait again."""
        return bool(getattr(loaders.module(type(self).__module__), "REQUEUES", False))

    @property
    def hears(self) -> int:
        """Return the moments that its part hears of."""
        return int(loaders.module(type(self).__module__).HEARS) | s.ON_INSTANT


AnEvent = TypeVar("AnEvent", bound=Event)


def may_lose(events: str | Sequence[str | Event], workload: Workload) -> bool:
    """Tell whether events take jobs off the machine of which some must not be started again."""
    stated = workload.requeue
    return (
        stated is not None
        and not stated.all()
        and any(event.requeues for event in as_events(events))
    )


def as_event(event: object) -> Event:
    """Read an event from its text; an event is returned as it is.

    Raises:
        PolicyError: An unknown name, key or value; the message names what is allowed.
    """
    if isinstance(event, Event):
        return event
    text = event.strip() if isinstance(event, str) else event
    made = read_part("event", text, [loaders.EVENTS])
    assert isinstance(made, Event)
    return made


def as_events(events: str | Sequence[str | Event]) -> tuple[Event, ...]:
    """Read events from a text that parts them by ";", or from a sequence; "" = none."""
    given = filter(str.strip, events.split(";")) if isinstance(events, str) else events
    return tuple(map(as_event, given))


def register_event(event: type[AnEvent]) -> type[AnEvent]:
    """Let `events=` take an event of your own by its text; usable as a decorator.

    One of yours that has the name already is replaced.

    Raises:
        PolicyError: No event whose file has kernels, or a malformed name.
    """
    list_own("event", event, Event)
    loaders.EVENTS.register(event.NAME, event)
    return event


def measured(schedule: Any) -> dict[str, float]:
    """Return what the events of a `hpcgym.Schedule` measure of it."""
    made: dict[str, float] = {}
    for event in schedule.events:
        made |= event.measure(schedule.workload, schedule.start_time, schedule.run_time)
    return made


def columns_of_events(events: Sequence[Event], workload: Workload | None) -> dict[str, Any]:
    """Return the columns of `Jobs` about events; only where there are none, without jobs."""
    data: list[Sequence[int]] = []
    outages: list[Sequence[int]] = []
    of_nodes: list[NodeOutage] = []
    called: list[int] = []
    of_jobs: list[NDArray[np.int64]] = []
    for event in events:
        assert workload is not None
        outages.extend(event.outages(workload))
        of_nodes.extend(event.node_outages(workload))
        if not event.SHARED or event.number not in called:
            called.append(event.number)
            data.append(event.numbers(workload))
            of_jobs.append(event.of_jobs(workload))
    if workload is not None:
        _refuse_below_zero(outages, workload)
        outages.extend(lacking_nodes(of_nodes, workload.machine))
    columns = (
        called,
        np.cumsum([0, *map(len, data)])[:-1],
        [number for numbers in data for number in numbers],
        np.reshape(outages, (-1, s.N_OUTAGE_COLUMNS)),
    )
    named = zip(("event_pass", "event_first", "event_data", "outage"), columns, strict=True)
    made = {name: np.array(column, dtype=np.int64) for name, column in named}
    if any(table.shape[1] for table in of_jobs):
        made["known_first"] = np.cumsum([0, *(table.shape[1] for table in of_jobs)])[:-1]
        made["known"] = np.concatenate(of_jobs, axis=1)
    return made | {"node_change": changes_of(of_nodes)}


def most_outages(outage: NDArray[np.int64]) -> int:
    """Return at how many instants outages begin, at most; their columns are `OUTAGE_*`."""
    if (outage[:, s.OUTAGE_NODE] < 0).any():
        return len(outage)
    return len(np.unique(outage[:, s.OUTAGE_FROM]))


def _refuse_below_zero(outages: Sequence[Sequence[int]], workload: Workload) -> None:
    """Refuse outages that together take more processors than the machine has."""
    for at in (row[s.OUTAGE_FROM] for row in outages):
        down = sum(
            row[s.OUTAGE_PROCESSORS]
            for row in outages
            if row[s.OUTAGE_FROM] <= at < row[s.OUTAGE_TO]
        )
        if down > workload.machine_processors:
            raise PolicyError(
                f"outages take {down} processors at {at + workload.time_offset} s; "
                f"{workload.name} has {workload.machine_processors}"
            )
