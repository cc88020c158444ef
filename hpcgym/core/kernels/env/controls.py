"""What observations show for an action `controls`: who may occupy, who may delay, whom it costs.

An observation costs one look at each waiting and each running job more. Expected ends are those of
the jobs' starts, so nothing is read of a run time before its end.

Source: Specification, section 10, "Controls".
"""

import math

import numpy as np

from hpcgym.core.constants import BASE_ORDER
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.env.observation import LOG_MONTH, squash
from hpcgym.core.kernels.queue.ordered_queue import list_jobs
from hpcgym.core.kernels.running_jobs import is_capped
from hpcgym.core.kernels.scoring.user_estimates import expected_rate
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.observation_fields import ControlsField

HORIZONS_S = (3_600, 10_800, 43_200)
"""How far ahead the processors that are expected to be free are shown, s."""

LARGEST_RATE = 0.01
"""Summed expected 1/D, 1/s, that is shown as 1/2."""


@kernel
def log_time(seconds: float) -> np.float32:
    """Map a time >= 0 s into [0, 1], a month to 1."""
    return np.float32(min(math.log(1.0 + seconds / 60.0) / LOG_MONTH, 1.0))


@kernel
def show_expected_free(jobs: Jobs, sim: Sim) -> None:
    """Write what capped jobs hold, and what is expected to be free at each horizon."""
    machine = sim.machine_processors
    shown = sim.shown_controls
    shown[ControlsField.CAPPED_PROCESSORS] = np.float32(sim.capped / machine)
    for ahead in range(len(HORIZONS_S)):
        free = sim.free
        until = float(sim.now + HORIZONS_S[ahead])
        for place in range(sim.n_running):
            job = sim.ending_job[place]
            if sim.expected_end[job] <= until:
                free += jobs.processors[job]
        shown[ControlsField.EXPECTED_FREE_IN_3600_S + ahead] = np.float32(free / machine)


@kernel
def show_misfits(jobs: Jobs, sim: Sim) -> None:
    """Write what waits of long jobs, and of those wider than what is free; writes `scratch`."""
    machine = float(sim.machine_processors)
    long, wide, rate, longest = 0, 0, 0.0, 0
    for place in range(list_jobs(sim, BASE_ORDER, sim.scratch)):
        job = sim.scratch[place]
        q = jobs.processors[job]
        if is_capped(jobs, sim, job):
            long += q
        if q > sim.free:
            wide += q
            rate += expected_rate(jobs, sim, job)
            longest = max(longest, sim.now - jobs.submit_time[job])
    shown = sim.shown_controls
    shown[ControlsField.LONG_PROCESSORS] = squash(float(long), machine)
    shown[ControlsField.WIDE_PROCESSORS] = squash(float(wide), machine)
    shown[ControlsField.WIDE_RATE] = squash(rate, LARGEST_RATE)
    shown[ControlsField.WIDE_LOG_WAIT_TIME] = log_time(float(longest))


@kernel
def show_controls(jobs: Jobs, sim: Sim, shadow: int) -> None:
    """Write `shown_controls`; `shadow` as of `observation.shadow_of_base`.

    Writes `scratch` and what `expect_now` writes.
    """
    show_expected_free(jobs, sim)
    show_misfits(jobs, sim)
    left, time_left = sim.free, 0
    if shadow >= 0:
        left, time_left = sim.extra, max(shadow - sim.now, 0)
    shown = sim.shown_controls
    shown[ControlsField.LOG_TIME_TO_SHADOW] = log_time(float(time_left))
    shown[ControlsField.EXTRA_PROCESSORS] = np.float32(left / sim.machine_processors)
