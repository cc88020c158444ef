"""Slurm's two schedulers: the main one at each pass, and cycles of backfilling beside it.

The main scheduler starts jobs in queue order until one does not fit. A cycle tests jobs in queue
order. Each takes the earliest hole in the profile beside those before it: it starts if that is
now, else it has a reservation within the cycle, rounded to a grid of time.

A cycle is due a while after the one before, once something has changed. The clock stops for it only
where a waiting job fits. Cycles at which none fits are not made: `pass_by` and `next_cycle` only
note that they were. So an event costs a constant, and no time passes in intervals.

Cost of a cycle, with n waiting and m running jobs of which t are tested: O(n) to list, O(m) for the
profile, O(m + t) for each tested job. A pass without a cycle costs what one without
backfilling does.

Source: Specification, section 16, "Slurm's backfilling".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core.backfill import SLURM_ON_NODES, Backfill, is_count, is_whole, shortest
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.compiler.struct import Column
from hpcgym.core.engine.life import start_waiting
from hpcgym.core.engine.moments import has_limits, is_withheld
from hpcgym.core.kernels.passes.easy_dynamic import start_front, start_within
from hpcgym.core.kernels.passes.profile import (
    change_profile,
    find_start,
    find_step,
    make_profile,
    take_interval,
)
from hpcgym.core.kernels.queue.ordered_queue import list_jobs, some_job_fits
from hpcgym.core.kernels.queue.selection import take_first
from hpcgym.core.kernels.types import Counter, IntVector, Jobs, Sim, empty
from hpcgym.core.parts.depth import count_narrow
from hpcgym.machine.files.scheduling import read_backfilling

HEARS = s.NEXT_INSTANT


@dataclass(frozen=True)
class Slurm(Backfill):
    """Every job that a cycle tests has a reservation; cycles come now and then, as Slurm's.

    Its text may name a slurm.conf, or what "scontrol show config" prints: "slurm:slurm.conf".
    """

    NAME: ClassVar[str] = "slurm"
    KNOWS: ClassVar[tuple[str, ...]] = ("limits", "nodes", "outages of nodes")
    keeps_state: ClassVar[bool] = True
    part_on_nodes: ClassVar[str] = SLURM_ON_NODES

    max_job_test: float = 500  # jobs that a cycle tests, bf_max_job_test; `math.inf` = all
    # Jobs of each user among them, bf_max_job_user; `math.inf` = all.
    max_job_user: float = math.inf
    # How far ahead reservations are made, in minutes, bf_window; `math.inf` = any time.
    window: float = 1440
    resolution: int = 60  # grid of times of reservations, s, bf_resolution
    interval: int = 30  # seconds from one cycle to the next, at the least, bf_interval
    # Jobs of each partition among those tested, bf_max_job_part; `math.inf` = all.
    max_job_part: float = math.inf

    def __post_init__(self) -> None:
        for parameter in fields(self):
            key, value = parameter.name, getattr(self, parameter.name)
            if key in ("resolution", "interval"):
                if not is_whole(value, 1):
                    raise PolicyError(
                        f"backfill 'slurm': {key} must be whole seconds >= 1, got {value!r}"
                    )
            elif not is_count(value):
                what = "whole minutes" if key == "window" else "a whole number"
                raise PolicyError(
                    f"backfill 'slurm': {key} must be {what} >= 1 or inf, got {value!r}"
                )
            object.__setattr__(self, key, value if value == math.inf else shortest(value))

    @classmethod
    def read(cls, text: str) -> Slurm:
        """Return the mode that a file of a Slurm means.

        Raises:
            MachineError: The file cannot be read, or states what is not modelled.
        """
        return cls(**read_backfilling(text))

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers that kernels read in `Sim.backfill_parameter`."""
        # `Sim.depth` and `Sim.planned`, which kernels of nodes read: any number of reservations.
        return (math.inf, math.inf, *super().parameters)

    @property
    def demands(self) -> dict[str, str]:
        """Return what it demands: of the machine that it has the partitions of its limit."""
        about = "has max_job_part, which is about partitions of machines of nodes"
        limited = {"nodes": about} if self.max_job_part < math.inf else {}
        return super().demands | {"instants": ""} | limited


class SlurmSim(Sim):
    """What cycles add to a simulation."""

    max_job_test: Annotated[float, Column("backfill_parameter", 2)]
    max_job_user: Annotated[float, Column("backfill_parameter", 3)]
    bf_window: Annotated[float, Column("backfill_parameter", 4)]  # minutes
    resolution: Annotated[float, Column("backfill_parameter", 5)]  # s
    bf_interval: Annotated[float, Column("backfill_parameter", 6)]  # s
    earliest_cycle: Counter  # no cycle comes before, s
    changes_at_cycle: Counter  # what `count_changes` gave when the last one began
    changes_seen: Counter  # what it gave when the clock moved last
    nodes_changed: Counter  # nodes that have gone down, and that have come back, by outages

    tested: IntVector = empty("users")  # jobs of each user that this cycle has tested


@kernel(inlined=True)
def count_changes(sim: SlurmSim) -> int:
    """Return how many jobs have come, become eligible, started and ended, and nodes changed."""
    return sim.n_events + sim.n_started + sim.nodes_changed


@kernel(inlined=True)
def begin_cycle(sim: SlurmSim) -> None:
    """Note that a cycle begins now; write `earliest_cycle` and `changes_at_cycle`."""
    sim.changes_at_cycle = count_changes(sim)
    sim.earliest_cycle = sim.now + int(sim.bf_interval)


@kernel(inlined=True)
def pass_by(sim: SlurmSim) -> None:
    """Note a cycle that was due since the instant before, and for which the clock did not stop."""
    if sim.changes_seen != sim.changes_at_cycle and sim.earliest_cycle < sim.now:
        sim.changes_at_cycle = sim.changes_seen
        sim.earliest_cycle += int(sim.bf_interval)


@kernel(inlined=True)
def is_due(sim: SlurmSim) -> bool:
    """Tell whether a cycle is due now."""
    return sim.earliest_cycle <= sim.now and count_changes(sim) != sim.changes_at_cycle


@kernel
def next_cycle(sim: SlurmSim) -> int:
    """Return the instant of the next cycle that may start a job, s; this instant is over."""
    pass_by(sim)
    if is_due(sim):  # no job fitted, so no pass was made
        begin_cycle(sim)
    sim.changes_seen = count_changes(sim)
    waits = sim.changes_seen != sim.changes_at_cycle and some_job_fits(sim)
    return sim.earliest_cycle if waits else s.NEVER


@kernel(inlined=True)
def grid_of(jobs: Jobs, sim: SlurmSim, job: int, start: int) -> tuple[int, int]:
    """Return when the reservation of a job planned at `start` begins and ends, on the grid, s."""
    resolution = int(sim.resolution)
    begin = max(start // resolution * resolution, sim.now)
    return begin, (start + jobs.estimate[job]) // resolution * resolution


@kernel
def hold_hole(jobs: Jobs, sim: SlurmSim, job: int, start: int) -> None:
    """Reserve the hole that begins at `start` for a job, on the grid; write the profile."""
    begin, end = grid_of(jobs, sim, job, start)
    left = sim.profile_free[find_step(sim, start)] - jobs.processors[job]
    if end > start:
        change_profile(sim, start, end, -jobs.processors[job])
    # Until the job starts, running jobs hold the processors that it does not leave to others.
    until = min(start, end)
    if begin < until:
        first = find_step(sim, begin)
        for step in range(first, find_step(sim, until)):
            sim.profile_free[step] = min(sim.profile_free[step], left)


@kernel(inlined=True)
def is_left_out(jobs: Jobs, sim: SlurmSim, job: int) -> bool:
    """Tell whether a cycle leaves out a job; count one that it tests in `tested`."""
    if is_withheld(jobs, sim, job):
        return True
    if sim.max_job_user == math.inf:
        return False
    if sim.tested[jobs.user[job]] >= sim.max_job_user:
        return True
    sim.tested[jobs.user[job]] += 1
    return False


@kernel
def make_cycle(jobs: Jobs, sim: SlurmSim, primary: int) -> None:
    """Test waiting jobs in order `primary`, start those whose hole is now, reserve for others.

    Writes the profile, `scratch`, `tested` and what `start_waiting` writes.
    """
    n = list_jobs(sim, s.BASE_ORDER, sim.scratch)
    narrow, free = count_narrow(jobs, sim, 0, n), sim.free
    if sim.max_job_user < math.inf:
        for position in range(n):
            sim.tested[jobs.user[sim.scratch[position]]] = 0
    make_profile(jobs, sim)
    n_tested, taken, some_wait = 0, 0, False
    # Reservations end with the cycle, so behind the last job that may start none is needed.
    while narrow > 0 and n_tested < sim.max_job_test and some_job_fits(sim):
        if primary == s.BASE_ORDER:
            job = sim.scratch[taken]
        else:
            job = take_first(sim, primary, n - taken, taken)
        taken += 1
        narrow -= int(jobs.processors[job] <= free)
        if is_left_out(jobs, sim, job):
            some_wait = True
            continue
        n_tested += 1
        start = find_start(sim, jobs.processors[job], jobs.estimate[job])
        if start == sim.now and jobs.processors[job] <= sim.free:
            take_interval(jobs, sim, job, start)
            # It counts as backfilled if one before it in queue order keeps waiting.
            start_waiting(jobs, sim, job, some_wait)
            continue
        some_wait = True
        if start - sim.now <= 60 * sim.bf_window:
            hold_hole(jobs, sim, job, start)


@kernel
def slurm_pass(jobs: Jobs, sim: SlurmSim, contested: bool) -> bool:
    """Start jobs in order, then make a cycle if it is due; return False if a pick ended the pass.

    Writes what `make_cycle` and `begin_cycle` write.
    """
    pass_by(sim)
    if has_limits(sim):
        primary, head, _ = start_within(jobs, sim, contested)
    else:
        primary, head = start_front(jobs, sim, contested)
    if head == s.PICK_STARTED:
        return False
    if is_due(sim):
        begin_cycle(sim)
        if head != s.NO_HEAD:
            make_cycle(jobs, sim, primary)
    return True


def work(jobs: Jobs, sim: SlurmSim, task: int, argument: int) -> int:
    """Do a task for a simulation; `argument` says of a pass what it goes by."""
    if task == s.NEXT_INSTANT:
        return next_cycle(sim)
    if task == s.MAKE_PASS:
        return int(slurm_pass(jobs, sim, argument == 1))
    return 0
