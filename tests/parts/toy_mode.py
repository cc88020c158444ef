"""A backfilling mode in one file: each job that fits starts, in queue order, whomever it delays.

It is what docs/extending.md shows: the class, its parameter as kernels read it, and its kernels, a
pass for counted processors and one for machines of nodes.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import hpcgym
from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core.backfill import Backfill, is_count
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.compiler.struct import Column
from hpcgym.core.engine.life import start_waiting
from hpcgym.core.kernels.nodes.nodes_pass import (
    has_placement_on_free,
    list_by_tier,
    place_in_fact,
    take_nodes,
)
from hpcgym.core.kernels.passes.easy_dynamic import list_in_order
from hpcgym.core.kernels.types import Jobs, Sim

HEARS = s.PASS_ON_NODES


@hpcgym.register_backfill
@dataclass(frozen=True)
class FirstFit(Backfill):
    """Whatever fits starts, in queue order, at most `most` jobs a pass."""

    NAME: ClassVar[str] = "first-fit"
    KNOWS: ClassVar[tuple[str, ...]] = ("nodes",)

    most: float = 10

    def __post_init__(self) -> None:
        """Refuse what is no number of jobs."""
        if not is_count(self.most):
            raise PolicyError(f"backfill 'first-fit': most must be >= 1 or inf, got {self.most!r}")


class FirstFitSim(Sim):
    """What the mode reads of a simulation."""

    most: Annotated[float, Column("backfill_parameter", 0)]


@kernel
def first_fit_pass(jobs: Jobs, sim: FirstFitSim, contested: bool) -> bool:
    """Start whatever fits; return False if the picked job started."""
    some_wait, started = False, 0
    for place in range(list_in_order(jobs, sim, contested)):
        job = sim.scratch[place]
        if jobs.processors[job] > sim.free or started >= sim.most:
            some_wait = True
            continue
        start_waiting(jobs, sim, job, some_wait)
        started += 1
    return True


@kernel
def first_fit_on_nodes(jobs: Jobs, sim: FirstFitSim, contested: bool) -> bool:
    """Start whatever has a placement now, higher tiers first."""
    n, started = list_in_order(jobs, sim, contested), 0
    list_by_tier(jobs, sim, n, s.LIMIT_RANK)
    for place in range(n):
        job = sim.component_walk[place]
        if started < sim.most and has_placement_on_free(jobs, sim, job):
            take_nodes(jobs, sim, job, place_in_fact(jobs, sim, job), place > started)
            started += 1
    return True


def work(jobs: Jobs, sim: FirstFitSim, task: int, argument: int) -> int:
    """Make a pass, the only task."""
    if len(jobs.capacity) > 0:
        return int(first_fit_on_nodes(jobs, sim, argument == 1))
    return int(first_fit_pass(jobs, sim, argument == 1))
