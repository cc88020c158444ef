"""Conservative backfilling whose reservations are kept, and move to earlier holes as they open.

A newcomer takes the earliest hole beside the reservations of the others. When a job ends before its
estimate, the waiting jobs are swept in queue order, overdue ones first. Each gives its interval
back and takes the earliest hole, never later than before. One move may make room for a job before
it in queue order, so such sweeps are made until no job moves.

A reservation is lost only where a job runs past its estimate: its job takes the earliest hole at
that sweep. Where an estimate is corrected, each job whose reservation no longer fits moves later at
that sweep.

Since no job can move, the earliest reservation is always the estimated end of a running job. So an
event comes with it, and reservations need no events themselves.

Cost of a pass, with n waiting and m running jobs: O(n) to list and start. Where jobs have come, it
is O(n (m + n)) for the profile and O(m + n) for each newcomer. After an early end it is
O(n (m + n)) for each sweep; most such passes need one that moves jobs and one that finds none to
move.

Source: Mu'alem and Feitelson 2001; Specification, section 4, "Conservative" (`compress="shift"`).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from hpcgym.base.errors import PolicyError, unknown_name
from hpcgym.core.backfill import Backfill, is_count, shortest
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import CHECK, CORRECT_NOT, MAKE_PASS, MUST_PLAN, ON_START, ON_SUBMIT
from hpcgym.core.engine.calendar import next_release
from hpcgym.core.engine.life import start_waiting
from hpcgym.core.kernels.passes.easy_dynamic import list_in_order
from hpcgym.core.kernels.passes.profile import give_back_interval, make_profile, take_interval
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Counter, IntVector, Jobs, Sim, empty
from hpcgym.core.parts import depth
from hpcgym.core.parts.depth import reserve_hole

HEARS = ON_SUBMIT | ON_START | MUST_PLAN | CHECK
PLAN_PASSED, PLAN_BROKEN = -6, -7
BROKEN = {
    PLAN_PASSED: "a waiting job did not start at its reservation",
    PLAN_BROKEN: "reservations promise more processors than there are",
}
"""What a negative answer to `CHECK` means."""

UNPLANNED = -2
"""Reservation of a waiting job that has none yet."""


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
        allowed = ("rebuild", "shift")
        if self.compress not in allowed:
            raise PolicyError(
                f"backfill 'conservative': {unknown_name('compress', self.compress, allowed)}"
            )
        if not is_count(self.planned):
            raise PolicyError(
                "backfill 'conservative': planned must be a whole number >= 1 or inf, got "
                f"{self.planned!r}"
            )
        object.__setattr__(self, "planned", shortest(self.planned))

    @property
    def part(self) -> str:
        """Name the module whose kernels make its passes; "rebuild" is depth without a limit."""
        return __name__ if self.keeps_reservations else depth.__name__

    @property
    def knows(self) -> tuple[str, ...]:
        """Return what it knows: where nothing is kept, nodes and their outages."""
        return () if self.keeps_reservations else ("nodes", "outages of nodes")

    @property
    def demands(self) -> dict[str, str]:
        """Return what it demands: of the machine that it has nodes, where a plan is limited."""
        about = {"nodes": "has planned, which needs a machine of nodes"}
        return super().demands | (about if self.planned < math.inf else {})

    @property
    def guards(self) -> bool:
        """Tell whether nothing delays a head beyond the threshold."""
        return not self.keeps_reservations

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels read in `Sim.backfill_parameter`."""
        return () if self.keeps_reservations else (math.inf, float(self.planned))

    @property
    def keeps_reservations(self) -> bool:
        """Tell whether a reservation made at one pass still holds at the next."""
        return self.compress == "shift"


class ConservativeSim(Sim):
    """What kept reservations add to a simulation."""

    n_planned: Counter  # entries with a `planned_start`
    n_unplanned: Counter  # waiting jobs without a reservation

    planned_start: IntVector = empty("planned")
    """Reservation of each waiting job, s; -1 = missed, `UNPLANNED` = none yet."""


@kernel(inlined=True)
def is_planned(sim: ConservativeSim, job: int) -> bool:
    """Tell whether a waiting job has had a reservation."""
    return sim.planned_start[entry_of(sim, job)] != UNPLANNED


@kernel(inlined=True)
def on_submit(sim: ConservativeSim, job: int) -> None:
    """Note that a job has no reservation; write `planned_start`, `n_planned`, `n_unplanned`."""
    sim.planned_start[entry_of(sim, job)] = UNPLANNED
    sim.n_planned = sim.n_entries
    sim.n_unplanned += 1


@kernel(inlined=True)
def on_start(sim: ConservativeSim, job: int) -> None:
    """Note that a job starts that may have started alone, without a reservation."""
    sim.n_unplanned -= int(not is_planned(sim, job))


@kernel(inlined=True)
def plans_are_due(sim: ConservativeSim) -> bool:
    """Tell whether reservations must be made or may have to move at this pass."""
    # An early end or a correction; a newcomer; a job that has not ended when it was estimated to.
    return sim.replan == 1 or sim.n_unplanned > 0 or next_release(sim) <= sim.now


@kernel(inlined=True)
def take_reservations(jobs: Jobs, sim: ConservativeSim, n: int) -> None:
    """Take the kept reservations of n listed jobs out of the profile of the running jobs.

    Writes the profile; for a missed reservation `planned_start` = -1 and `replan` = 1.
    """
    for position in range(n):
        job = sim.scratch[position]
        if not is_planned(sim, job):
            continue
        entry = entry_of(sim, job)
        # It passed without a start: a job ran past its estimate.
        if sim.planned_start[entry] < sim.now:
            sim.planned_start[entry] = -1
            sim.replan = 1
        else:
            take_interval(jobs, sim, job, sim.planned_start[entry])


@kernel(inlined=True)
def shift_reservations(jobs: Jobs, sim: ConservativeSim, n: int) -> bool:
    """Move the reservation of each of n listed jobs, in queue order, to its earliest hole.

    Return True if one moved. Writes the profile and `planned_start`.
    """
    moved = False
    for position in range(n):
        job = sim.scratch[position]
        if not is_planned(sim, job):
            continue
        entry = entry_of(sim, job)
        before = sim.planned_start[entry]
        # It cannot move earlier. After a correction, however, it may not fit any more.
        if before == sim.now and sim.correct == CORRECT_NOT:
            continue
        if before >= 0:
            give_back_interval(jobs, sim, job, before)
        sim.planned_start[entry] = reserve_hole(jobs, sim, job)
        moved = moved or sim.planned_start[entry] != before
    return moved


@kernel
def plan_starts(jobs: Jobs, sim: ConservativeSim, n: int) -> None:
    """Shift the kept reservations of n jobs listed in queue order, then make the newcomers'.

    Writes the profile, `planned_start`, `n_unplanned` and `replan`.
    """
    make_profile(jobs, sim)
    take_reservations(jobs, sim, n)
    while sim.replan == 1:
        sim.replan = int(shift_reservations(jobs, sim, n))
    for position in range(n):
        job = sim.scratch[position]
        if not is_planned(sim, job):
            sim.planned_start[entry_of(sim, job)] = reserve_hole(jobs, sim, job)
    sim.n_unplanned = 0


@kernel(inlined=True)
def start_planned(jobs: Jobs, sim: ConservativeSim, n: int) -> None:
    """Start those of n listed jobs whose reservation is now, in queue order.

    Writes what `start_waiting` writes.
    """
    some_wait = False
    for position in range(n):
        job = sim.scratch[position]
        is_now = sim.planned_start[entry_of(sim, job)] == sim.now
        # A job past its estimate may still hold processors that the plan counts on.
        if is_now and jobs.processors[job] <= sim.free:
            # It counts as backfilled if a job before it in queue order keeps waiting.
            start_waiting(jobs, sim, job, some_wait)
        else:
            some_wait = True


@kernel
def shift_pass(jobs: Jobs, sim: ConservativeSim, contested: bool) -> None:
    """Make a conservative pass with reservations that are kept.

    Writes what `plan_starts` and `start_planned` write.
    """
    n = list_in_order(jobs, sim, contested)
    if plans_are_due(sim):
        plan_starts(jobs, sim, n)
    start_planned(jobs, sim, n)


@kernel
def find_plan_violation(jobs: Jobs, sim: ConservativeSim) -> int:
    """Look for a missed reservation, and for processors reserved twice; write the profile.

    `scratch` lists the waiting jobs.
    """
    # A job past its estimate holds processors that the plan counts as free.
    if next_release(sim) <= sim.now:
        return 0
    make_profile(jobs, sim)
    for position in range(sim.n_waiting):
        job = sim.scratch[position]
        planned = sim.planned_start[entry_of(sim, job)]
        if planned <= sim.now:
            return PLAN_PASSED
        take_interval(jobs, sim, job, planned)
    for step in range(sim.n_profile):
        if sim.profile_free[step] < 0:
            return PLAN_BROKEN
    return 0


@kernel
def keep_plans(jobs: Jobs, sim: ConservativeSim, task: int, argument: int) -> int:
    """Do a task other than a pass, about reservations that are kept; `argument` may be a job."""
    if task == ON_SUBMIT:
        on_submit(sim, argument)
    elif task == ON_START:
        on_start(sim, argument)
    elif task == MUST_PLAN:
        return int(plans_are_due(sim))
    elif argument == 1:
        return find_plan_violation(jobs, sim)
    return 0


def work(jobs: Jobs, sim: ConservativeSim, task: int, argument: int) -> int:
    """Do a task for a simulation; `argument` is a job, or says of a pass what it goes by."""
    if task != MAKE_PASS:
        return keep_plans(jobs, sim, task, argument)
    shift_pass(jobs, sim, argument == 1)
    return 1
