"""Relaxed backfilling: the head may start later than it could, by a part of its estimate at most.

The head's shadow time is found as in EASY, at passes where a head waits and another job fits now.
Its reference time is the earliest shadow time it has had at such passes since it became head, so
that delays do not add up. Its limit is the reference time plus omega times its estimate, rounded
down. Where jobs have outlived their estimates, the shadow time may be later; then it is the limit.
A candidate starts if it fits now and the head's new shadow time is not beyond the limit.

That is EASY's own test with the limit as the shadow time. Running jobs only give processors back,
so the head can start by the limit if and only if enough processors are free at the limit. A
candidate leaves them free if it ends by then, or needs no more than is left over beside the head.
With omega = 0 the schedules are EASY's.

Cost: that of EASY, and a second walk over the releases up to the limit.

Source: Ward, Mahood and West 2002; Specification, section 8, "Relaxed".
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from hpcgym.base.errors import PolicyError
from hpcgym.core.backfill import LARGEST_FACTOR, Backfill, is_number, shortest
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.compiler.struct import Column
from hpcgym.core.constants import PICK_STARTED
from hpcgym.core.kernels.passes.easy import backfill, free_at, kept_backfill_order, reserve
from hpcgym.core.kernels.passes.easy_dynamic import (
    backfill_first,
    list_candidates,
    make_backfill_order,
    start_front,
)
from hpcgym.core.kernels.queue.ordered_queue import some_job_fits
from hpcgym.core.kernels.types import Counter, Jobs, Sim

HEARS = 0
LONGEST_DELAY_S = 2.0**60  # bound of a delay where omega is infinite; longer than any log


@dataclass(frozen=True)
class Relaxed(Backfill):
    """The head may be delayed beyond its reservation, by omega times its estimate at most.

    Its limit is the earliest shadow time it has had since it became head, plus that; see
    the notes of this file. Omega is 0, which is EASY, to 1000, or `math.inf`.
    """

    NAME: ClassVar[str] = "relaxed"
    TAKES_ORDER: ClassVar[bool] = True
    keeps_state: ClassVar[bool] = True

    omega: float = 1

    def __post_init__(self) -> None:
        is_limit = is_number(self.omega, 0) and self.omega <= LARGEST_FACTOR
        if not is_limit and self.omega != math.inf:
            raise PolicyError(
                f"backfill 'relaxed': omega must be a number from 0 to {LARGEST_FACTOR} or inf, "
                f"got {self.omega!r}"
            )
        object.__setattr__(self, "omega", shortest(self.omega))

    @property
    def guards(self) -> bool:
        """Tell whether nothing delays a head beyond the threshold."""
        return self.omega == 0


class RelaxedSim(Sim):
    """What relaxed backfilling adds to a simulation."""

    # How many of its estimates a head may be delayed by; inf = without limit.
    omega: Annotated[float, Column("backfill_parameter", 0)]
    limited: Counter  # 1 more than the head with a reference time, 0 = none
    reference: Counter  # s, that head's reference time


@kernel(inlined=True)
def find_limit(jobs: Jobs, sim: RelaxedSim, head: int) -> int:
    """Return the latest start the head may be given, s; write `reference` and `limited`."""
    shadow = sim.shadow
    # The reference time follows the shadow time when jobs end early: else omega = 0 would not be
    # EASY. A job is head anew if another was head at the last such pass.
    if sim.limited != head + 1 or sim.reference > shadow:
        sim.reference = shadow
    sim.limited = head + 1
    delay = min(sim.omega * jobs.estimate[head], LONGEST_DELAY_S)
    return max(sim.reference + int(delay), shadow)


@kernel(inlined=True)
def relax(jobs: Jobs, sim: RelaxedSim, head: int) -> None:
    """Reserve for a head that does not fit now, at its limit.

    Writes `shadow`, the limit, and `extra`, the processors left over at that instant; `reference`
    and `limited`. Costs a step for each release up to the limit.
    """
    reserve(jobs, sim, head)
    limit = find_limit(jobs, sim, head)
    if limit > sim.shadow:
        sim.shadow = limit
        sim.extra = free_at(jobs, sim, limit) - jobs.processors[head]


@kernel
def relaxed_pass(jobs: Jobs, sim: RelaxedSim, contested: bool) -> bool:
    """Make a pass that may delay the head; return False if it stopped at the picked job."""
    primary, head = start_front(jobs, sim, contested)
    if head >= 0 and some_job_fits(sim):
        relax(jobs, sim, head)
        if contested:
            n = list_candidates(jobs, sim, sim.n_waiting - 1)
            backfill_first(jobs, sim, make_backfill_order(jobs, sim, primary, n), n, False)
        else:
            backfill(jobs, sim, kept_backfill_order(sim), head)
    return head != PICK_STARTED


def work(jobs: Jobs, sim: RelaxedSim, task: int, argument: int) -> int:
    """Make a pass, the only task."""
    return int(relaxed_pass(jobs, sim, argument == 1))
