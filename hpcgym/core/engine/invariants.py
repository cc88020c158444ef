"""Check the invariants of the simulation after every pass of a debug run.

A check costs O(n_waiting + n_running) in EASY and plain passes. Kernels return 0, or a negative
number that names the broken invariant.

Source: Specification, section 1, "Invariants".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import ask_mode, ask_nodes, has_nodes
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import is_on_trial
from hpcgym.core.kernels.passes.easy import backfills, reserve
from hpcgym.core.kernels.queue.ordered_queue import first_job, list_jobs
from hpcgym.core.kernels.types import Jobs, Sim

CAPACITY_BROKEN = -1
STARTED_EARLY = -2
COUNT_BROKEN = -3
NOT_MAXIMAL = -4
HEAD_DELAYED = -5
NODE_BROKEN = -9


@kernel
def find_violation(jobs: Jobs, sim: Sim, finished: bool) -> int:
    """Look for a broken invariant just after a pass; `finished` says whether it ran to its end.

    Writes `checked_head` and `checked_shadow` for the next check, and `scratch`.
    """
    used = 0
    for position in range(sim.n_running):
        job = sim.ending_job[position]
        if is_on_trial(sim, job):
            continue
        used += jobs.processors[job]
        if sim.start_time[job] < jobs.submit_time[job]:
            return STARTED_EARLY
    used += sim.guaranteed + sim.busy
    if sim.semantics == s.SEMANTICS_BATCH and (
        sim.free < sim.on_trial or used + sim.free != sim.machine_processors
    ):
        return CAPACITY_BROKEN
    if (
        sim.n_started + sim.n_waiting != sim.next_job + sim.n_cancelled
        or list_jobs(sim, s.BASE_ORDER, sim.scratch) != sim.n_waiting
    ):
        return COUNT_BROKEN
    if has_nodes(jobs):
        return NODE_BROKEN if ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_CHECK, 0) == 1 else 0
    if sim.hears & s.CHECK != 0:
        return ask_mode(jobs.mode_pass, jobs, sim, s.CHECK, int(finished))
    keeps_head = (
        sim.order_rule == s.BY_BASE and sim.decide == s.DECIDE_NEVER and sim.looks_ahead == 0
    )
    if finished and keeps_head and sim.backfill == s.BACKFILL_EASY:
        return find_pass_violation(jobs, sim)
    return 0


@kernel
def find_delay(jobs: Jobs, sim: Sim, head: int) -> bool:
    """Reserve for the head, and tell whether its reservation is later than at the last check.

    Writes `checked_head`, `checked_shadow`, `shadow` and `extra`.
    """
    reserve(jobs, sim, head)
    # Where a job outlives its estimate the head's time moves with the clock, and a correction
    # moves it later, which are no delays.
    later = sim.checked_head == head and sim.shadow > max(sim.checked_shadow, sim.now)
    later = later and sim.correct == s.CORRECT_NOT
    sim.checked_head = head
    sim.checked_shadow = sim.shadow
    return later


@kernel
def find_pass_violation(jobs: Jobs, sim: Sim) -> int:
    """Look for a job that an EASY pass should have started, and for a head moved later.

    `scratch` lists the waiting jobs. Writes `checked_head` and `checked_shadow`.
    """
    head = first_job(sim, s.BASE_ORDER)
    if head < 0:
        sim.checked_head = -1
        return 0
    if jobs.processors[head] <= sim.free:
        return NOT_MAXIMAL
    # The check must leave the reservation as the pass left it.
    shadow = sim.shadow
    extra = sim.extra
    later = find_delay(jobs, sim, head)
    for position in range(sim.n_waiting):
        job = sim.scratch[position]
        if job != head and backfills(jobs, sim, job):
            return NOT_MAXIMAL
    sim.shadow = shadow
    sim.extra = extra
    return HEAD_DELAYED if later else 0
