"""Look-ahead backfilling (LOS): behind the head, start the jobs that together use most processors.

Jobs start in queue order while they fit, and the head gets a reservation, as in EASY. The window is
the first jobs behind the head, whether they fit or not. Of these, the set is started that uses most
processors now. It may use all free processors, and its jobs that outlast the shadow time may use
the extra ones.

In the paper V[i, f, x] is the most processors that the first i jobs can use, of f free and x extra
ones. A job's value is the processors it uses. So jobs that end by the shadow time and jobs that
outlast it are independent but for the sum of their processors. For each of these two kinds,
`reach[kind, p]` is the smallest i for which some of the first i jobs use exactly p processors.
Both rows together give V for every i, without a table of window x free x extra.

Ties between sets are decided by walking back from the last job to the first. A job is left out if
the jobs before it can use all processors that remain to be used, within the extra ones that remain.

Cost, with n jobs waiting, m in the window that may start, f free processors and x extra: O(n) to
list and O(m (f + x)) to choose. If all m may start together, or none, there is nothing to choose.
The list is read no further than until all processors can be used.

Source: Shmueli and Feitelson 2003; Specification, section 8, "LOS, lookahead".
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from hpcgym.base.errors import PolicyError
from hpcgym.core.backfill import Backfill, is_count, shortest
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.compiler.struct import Column
from hpcgym.core.constants import BASE_ORDER, NEVER, PICK_STARTED
from hpcgym.core.engine.life import start_waiting
from hpcgym.core.kernels.passes.easy import charge_extra, fits_behind, reserve
from hpcgym.core.kernels.passes.easy_dynamic import start_front
from hpcgym.core.kernels.queue.ordered_queue import list_jobs, some_job_fits
from hpcgym.core.kernels.queue.selection import reverse_listed, take_first
from hpcgym.core.kernels.types import IntTable, Jobs, Sim, empty

HEARS = 0
BACK, OUTLASTS = 0, 1  # rows of `reach`: jobs that end by the shadow time, and those that do not


@dataclass(frozen=True)
class LookAhead(Backfill):
    """The head has a reservation as in EASY; the jobs behind it that fill the machine most start.

    They are chosen from the `window` jobs behind the head in queue order; `math.inf`, all of them,
    costs little more. Jobs that do not fit now count in the window, too: where many of them wait, a
    narrow window leaves processors idle that EASY would use.
    """

    NAME: ClassVar[str] = "look-ahead"
    guards: ClassVar[bool] = True

    window: float = 50

    def __post_init__(self) -> None:
        if not is_count(self.window):
            raise PolicyError(
                f"backfill 'look-ahead': window must be a whole number >= 1 or inf, "
                f"got {self.window!r}"
            )
        object.__setattr__(self, "window", shortest(self.window))


class LookAheadSim(Sim):
    """What looking ahead adds to a simulation."""

    window: Annotated[float, Column("backfill_parameter", 0)]  # jobs looked at; inf = all

    reach: IntTable = empty(2, "reach")
    """How many jobs of a list it takes to use exactly so many processors, within a pass."""


@kernel(inlined=True)
def put_window_last(sim: LookAheadSim, which: int, n: int, width: int) -> int:
    """Put the first `width` of n listed jobs, in order, at the end; return their first place."""
    for taken in range(width):
        job = take_first(sim, which, n - taken, taken)
        sim.scratch[n - 1 - taken] = job
    reverse_listed(sim, n - width, n)
    return n - width


@kernel(inlined=True)
def list_fitting(jobs: Jobs, sim: LookAheadSim, first: int, width: int) -> int:
    """List the jobs of the window that may start behind the head if alone, and return their number.

    The window is listed in `scratch` from place `first` on; they are listed from place 0 on.
    """
    time_left = sim.shadow - sim.now
    n = 0
    for position in range(first, first + width):
        job = sim.scratch[position]
        if fits_behind(jobs, job, sim.free, sim.extra, time_left):
            sim.scratch[n] = job
            n += 1
    return n


@kernel(inlined=True)
def outlasts(jobs: Jobs, sim: LookAheadSim, job: int) -> int:
    """Return the row of `reach` that a job belongs to."""
    return int(sim.now + jobs.estimate[job] > sim.shadow)


@kernel(inlined=True)
def all_fit(jobs: Jobs, sim: LookAheadSim, n: int) -> bool:
    """Tell whether all n listed jobs may start behind the head together."""
    wanted = 0
    wanted_extra = 0
    for position in range(n):
        job = sim.scratch[position]
        wanted += jobs.processors[job]
        wanted_extra += jobs.processors[job] * outlasts(jobs, sim, job)
    return wanted <= sim.free and wanted_extra <= sim.extra


@kernel
def can_use(sim: LookAheadSim, processors: int, extra: int, n: int) -> bool:
    """Tell whether some of the first n listed jobs use exactly so many processors.

    Jobs that outlast the shadow time use at most `extra` of them.
    """
    for beyond in range(min(extra, processors) + 1):
        if sim.reach[OUTLASTS, beyond] <= n and sim.reach[BACK, processors - beyond] <= n:
            return True
    return False


@kernel
def make_reach(jobs: Jobs, sim: LookAheadSim, extra: int, n: int) -> int:
    """Write `reach` for n listed jobs; return how many of them it takes to use all processors.

    Return n if they cannot use all. At most `extra` processors may be used beyond the shadow time.
    """
    free = sim.free
    for processors in range(1, free + 1):
        sim.reach[BACK, processors] = NEVER
    for processors in range(1, extra + 1):
        sim.reach[OUTLASTS, processors] = NEVER
    sim.reach[BACK, 0] = 0
    sim.reach[OUTLASTS, 0] = 0
    for position in range(n):
        job = sim.scratch[position]
        kind = outlasts(jobs, sim, job)
        wanted = jobs.processors[job]
        # Downwards, so that a job counts once. NEVER is beyond n: no sum reached yet.
        for processors in range(extra if kind == OUTLASTS else free, wanted - 1, -1):
            if sim.reach[kind, processors] == NEVER and sim.reach[kind, processors - wanted] <= n:
                sim.reach[kind, processors] = position + 1
        if can_use(sim, free, extra, position + 1):
            return position + 1
    return n


@kernel(inlined=True)
def find_most(sim: LookAheadSim, extra: int) -> int:
    """Return V[n, free, extra], the most processors that the listed jobs can use, in O(free)."""
    most = 0
    back = sim.free
    for beyond in range(extra + 1):
        if sim.reach[OUTLASTS, beyond] == NEVER:
            continue
        # `back` only falls while `beyond` grows, so each row is walked once.
        while back + beyond > sim.free or sim.reach[BACK, back] == NEVER:
            back -= 1
        most = max(most, back + beyond)
    return most


@kernel
def choose_fullest(jobs: Jobs, sim: LookAheadSim, n: int) -> int:
    """Choose those of n listed jobs that together use most processors.

    Return the place of the first one: the chosen jobs are listed from there to place n - 1.
    """
    if all_fit(jobs, sim, n):
        return 0
    extra = min(sim.extra, sim.free)
    position = make_reach(jobs, sim, extra, n)
    left = find_most(sim, extra)
    first = n
    while left > 0:
        position -= 1
        # The jobs before this one do not suffice, so it is chosen.
        if not can_use(sim, left, extra, position):
            job = sim.scratch[position]
            left -= jobs.processors[job]
            extra -= jobs.processors[job] * outlasts(jobs, sim, job)
            # Chosen jobs gather at the end of the list, behind every place still to be read.
            first -= 1
            sim.scratch[first] = job
    return first


@kernel
def look_ahead_pass(jobs: Jobs, sim: LookAheadSim, contested: bool) -> bool:
    """Make a pass that looks ahead; return False if it stopped at the picked job."""
    primary, head = start_front(jobs, sim, contested)
    if head >= 0 and some_job_fits(sim):
        reserve(jobs, sim, head)
        n = sim.n_waiting - 1
        width = int(min(sim.window, float(n)))
        first = 1  # the head is listed before the others, unless it was taken out of the list
        if contested:
            first = put_window_last(sim, primary, n, width)
        else:
            list_jobs(sim, BASE_ORDER, sim.scratch)
        n = list_fitting(jobs, sim, first, width)
        for position in range(choose_fullest(jobs, sim, n), n):
            charge_extra(jobs, sim, sim.scratch[position])
            start_waiting(jobs, sim, sim.scratch[position], True)
    return head != PICK_STARTED


def work(jobs: Jobs, sim: LookAheadSim, task: int, argument: int) -> int:
    """Make a pass, the only task."""
    return int(look_ahead_pass(jobs, sim, argument == 1))
