"""The cap on what long jobs hold: who counts under it, and whom it blocks.

What long jobs hold only grows during a pass, so a blocked job stays blocked.

Source: Specification, section 8, "Cap".
"""

from typing import Any

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import begins_at
from hpcgym.core.kernels.queue.entries import is_overdue
from hpcgym.core.kernels.scoring.user_estimates import (
    bounded_estimate,
    expect_now,
    expected_run_time,
)
from hpcgym.core.kernels.types import Jobs
from hpcgym.core.parts.restart import is_away


@kernel
def is_capped(jobs: Jobs, sim: Any, job: int) -> bool:
    """Tell whether a waiting job counts under the cap: it is expected, or requests, to be long.

    Writes what `expect_now` writes.
    """
    if sim.by_request == 1.0:
        is_long = jobs.requested_time[job] > sim.long
        return is_long and (sim.is_open == 1.0 or not is_overdue(sim, job))
    # Most requests are short enough to need no expectation.
    if bounded_estimate(jobs, job) <= sim.long or (sim.is_open == 0.0 and is_overdue(sim, job)):
        return False
    term = sim.expected[expect_now(jobs, sim, job)]
    # In logarithms, so that a job expected to run to a request of `long` does not exceed it.
    return term[s.TERM_REQUEST] + term[s.TERM_REGRESSED_RUN_TIME_RATIO] > sim.log_long


@kernel(inlined=True)
def on_release(jobs: Jobs, sim: Any, job: int) -> None:
    """Take a job that leaves the machine out of what counts under the cap; write `capped`."""
    if sim.flag[job] & s.FLAG_CAPPED != 0:
        sim.capped -= jobs.processors[job]


@kernel(inlined=True)
def all_fit(sim: Any) -> bool:
    """Tell whether the cap lets all waiting jobs start, even if all are long."""
    return sim.capped + sim.waiting_processors <= sim.cap * sim.machine_processors


@kernel(inlined=True)
def is_blocked_of(jobs: Jobs, sim: Any, job: int, machine: int) -> bool:
    """Tell whether the cap, a share of so many processors, blocks a waiting job.

    Writes what `expect_now` writes.
    """
    held = sim.capped
    q = jobs.processors[job]
    most = sim.cap * machine
    # One long job may always run, however wide: else it could never start.
    return (
        held > 0
        and held + q > most
        and sim.binds == 1
        and q <= sim.widest * machine
        and is_capped(jobs, sim, job)
    )


@kernel(inlined=True)
def is_blocked(jobs: Jobs, sim: Any, job: int) -> bool:
    """Tell whether a pass goes on as if a job did not wait; writes what `expect_now` writes."""
    return is_away(sim, job) or is_blocked_of(jobs, sim, job, sim.machine_processors)


@kernel
def on_start(jobs: Jobs, sim: Any, job: int) -> int:
    """Count a job that starts now under the cap; return the flag, 0 if it does not count.

    Writes `capped`, `expected_end` where observations show it, and what `expect_now` writes.
    """
    if sim.show_controls == 1:
        sim.expected_end[job] = begins_at(sim, job) + expected_run_time(jobs, sim, job)
    if not is_capped(jobs, sim, job):
        return 0
    sim.capped += jobs.processors[job]
    return s.FLAG_CAPPED
