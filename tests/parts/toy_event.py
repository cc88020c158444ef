"""An event in one file: processors of the machine that come later than the first jobs.

It is what docs/extending.md shows: the class, the state that it adds, and its kernels.
"""

from dataclasses import dataclass
from typing import ClassVar

import hpcgym
from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core.backfill import is_whole
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.moments import event_number
from hpcgym.core.events import Event
from hpcgym.core.kernels.types import Counter, Jobs, Sim

HEARS = 0

PROCESSORS, AT = 0, 1


@hpcgym.register_event
@dataclass(frozen=True)
class LateProcessors(Event):
    """So many processors of the machine come `at` an instant, s."""

    NAME: ClassVar[str] = "late"

    processors: int
    at: int = 3600

    def __post_init__(self) -> None:
        """Refuse what is no number of processors, and no instant."""
        if not (is_whole(self.processors, 1) and is_whole(self.at, 1)):
            raise PolicyError(f"event 'late': whole numbers >= 1, got '{self}'")


class LateSim(Sim):
    """What the event adds to a simulation."""

    n_late: Counter  # processors that are to come, once the simulation has begun


@kernel
def happen(jobs: Jobs, sim: LateSim) -> int:
    """Take the processors away at the beginning, or give them; tell whether a pass is due."""
    processors = event_number(jobs, sim, PROCESSORS)
    if sim.n_late == 0:
        sim.n_late = processors
        sim.free -= processors
        return 0
    sim.free += processors
    return 1


def work(jobs: Jobs, sim: LateSim, task: int, argument: int) -> int:
    """Do a task."""
    at = event_number(jobs, sim, AT)
    if task == s.ON_INSTANT:
        return happen(jobs, sim)
    if task == s.NEXT_INSTANT:
        if sim.n_late == 0:
            return 0
        return at if sim.now < at else s.NEVER
    return 0
