"""An event in one file: at some instants all running jobs go back to the queue."""

from dataclasses import dataclass
from typing import ClassVar

import hpcgym
from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import enter, evict
from hpcgym.core.engine.moments import event_number
from hpcgym.core.events import Event
from hpcgym.core.kernels.types import Counter, Jobs, Sim

HEARS = 0

AT, EVERY, TIMES = 0, 1, 2


@hpcgym.register_event
@dataclass(frozen=True)
class Clearing(Event):
    """The machine is cleared `at` an instant, s, and so many `times`, `every` so many seconds."""

    NAME: ClassVar[str] = "clear"
    KNOWS: ClassVar[tuple[str, ...]] = ("nodes",)

    at: int
    every: int = 1
    times: int = 1


class ClearingSim(Sim):
    """What the event adds to a simulation."""

    n_cleared: Counter


@kernel
def clear(jobs: Jobs, sim: ClearingSim) -> None:
    """Send all running jobs back to the queue."""
    sim.n_cleared += 1
    while sim.n_running > 0:
        job = sim.ending_job[0]
        evict(jobs, sim, job)
        enter(jobs, sim, job)


def work(jobs: Jobs, sim: ClearingSim, task: int, argument: int) -> int:
    """Do a task."""
    if task == s.ON_INSTANT:
        clear(jobs, sim)
        return 1
    if task == s.NEXT_INSTANT:
        if sim.n_cleared == event_number(jobs, sim, TIMES):
            return s.NEVER
        return event_number(jobs, sim, AT) + sim.n_cleared * event_number(jobs, sim, EVERY)
    return 0
