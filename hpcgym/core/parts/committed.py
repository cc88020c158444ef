"""The committed pick: the first job is chosen once, and waited for until it starts.

A pass takes the first job of the queue. If it fits, it starts, and the pass takes the next one. If
not, the pass is committed to it: nothing else is chosen before it has started, whoever comes
meanwhile. Its shadow time is found as in EASY, once, when it is chosen.

With `fill="before"` other jobs may start meanwhile, tried in order of submission at every pass:
each that fits now and ends by its estimate before that shadow time. There are no extra processors.
Jobs that end early do not move the shadow time, so the chosen job may be delayed beyond what EASY
allows. Once the shadow time has come, nothing more starts.

An agent decides only while no job is chosen. The start of a chosen job ends the pass, so that the
next decision is at the same instant.

Cost, with n waiting jobs: that of EASY without backfilling; with it, O(n) a pass.

Source: Zhang, Dai, He, Bao and Xie 2020 (RLScheduler); Specification, section 8, "Committed".
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from hpcgym.base.errors import PolicyError, unknown_name
from hpcgym.core import constants as s
from hpcgym.core.backfill import Backfill
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.compiler.struct import Column
from hpcgym.core.engine.life import start_waiting
from hpcgym.core.kernels.passes.easy import reserve, start_in_order
from hpcgym.core.kernels.passes.easy_dynamic import make_primary_order
from hpcgym.core.kernels.queue.ordered_queue import list_jobs, some_job_fits
from hpcgym.core.kernels.queue.selection import take_first
from hpcgym.core.kernels.types import Counter, Jobs, Sim

HEARS = s.MUST_PLAN | s.HAS_CHOSEN


@dataclass(frozen=True)
class Committed(Backfill):
    """The first job is chosen once, and waited for until it starts.

    Source: Zhang et al. 2020 (RLScheduler); specification, section 8, "Committed".
    """

    NAME: ClassVar[str] = "committed"

    keeps_state: ClassVar[bool] = True

    # What may start meanwhile. "nothing"; or "before": jobs that fit, and end before the shadow
    # time that the job had when it was chosen.
    fill: str = "nothing"

    def __post_init__(self) -> None:
        allowed = ("nothing", "before")
        if self.fill not in allowed:
            text = unknown_name("fill", self.fill, allowed)
            raise PolicyError(f"backfill {self.NAME!r}: {text}")

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels read in `Sim.backfill_parameter`."""
        return (float(self.fill == "before"),)


class CommittedSim(Sim):
    """What a commitment adds to a simulation."""

    fills: Annotated[float, Column("backfill_parameter", 0)]
    chosen: Counter  # 1 more than the job that is waited for, 0 = none
    chosen_shadow: Counter  # its shadow time as it was chosen, s


@kernel(inlined=True)
def choose(jobs: Jobs, sim: CommittedSim, contested: bool) -> int:
    """Start jobs from the front of the queue while they fit, and choose the first that does not.

    Return that, or as `start_in_order` does. Writes `chosen`, `chosen_shadow`, and `scratch`.
    """
    head = s.NO_HEAD
    if not contested:
        head = start_in_order(jobs, sim)
    else:
        primary = make_primary_order(jobs, sim, list_jobs(sim, s.BASE_ORDER, sim.scratch))
        taken = 0
        while sim.n_waiting > 0:
            job = take_first(sim, primary, sim.n_waiting, taken)
            if jobs.processors[job] > sim.free:
                head = job
                break
            start_waiting(jobs, sim, job, False)
            if job == sim.pick:
                return s.PICK_STARTED
            taken += 1
    if head >= 0:
        reserve(jobs, sim, head)
        sim.chosen = head + 1
        sim.chosen_shadow = sim.shadow
    return head


@kernel(inlined=True)
def fill_up(jobs: Jobs, sim: CommittedSim) -> None:
    """Start what fits and ends before the shadow time, in order of submission; write `scratch`."""
    n = 0
    for position in range(list_jobs(sim, s.BASE_ORDER, sim.scratch)):
        job = sim.scratch[position]
        fits = job != sim.chosen - 1 and jobs.processors[job] <= sim.free
        if not fits or sim.now + jobs.estimate[job] >= sim.chosen_shadow:
            continue
        # Insertion sort: few jobs are as short.
        spot = n
        while spot > 0 and sim.scratch[spot - 1] > job:
            sim.scratch[spot] = sim.scratch[spot - 1]
            spot -= 1
        sim.scratch[spot] = job
        n += 1
    for position in range(n):
        job = sim.scratch[position]
        if jobs.processors[job] <= sim.free:
            start_waiting(jobs, sim, job, True)


@kernel
def committed_pass(jobs: Jobs, sim: CommittedSim, contested: bool) -> bool:
    """Make a pass; return False if the chosen or the picked job started: another pass follows."""
    if sim.chosen == 0:
        if choose(jobs, sim, contested) == s.PICK_STARTED:
            return False
    elif jobs.processors[sim.chosen - 1] <= sim.free:
        start_waiting(jobs, sim, sim.chosen - 1, False)
        sim.chosen = 0
        return sim.n_waiting == 0
    if sim.chosen > 0 and sim.fills == 1.0 and some_job_fits(sim):
        fill_up(jobs, sim)
    return True


def work(jobs: Jobs, sim: CommittedSim, task: int, argument: int) -> int:
    """Do a task for a simulation; `argument` says of a pass what it goes by."""
    if task == s.MUST_PLAN:
        return int(sim.chosen == 0)
    if task == s.HAS_CHOSEN:
        return int(sim.chosen > 0)
    return int(committed_pass(jobs, sim, argument == 1))
