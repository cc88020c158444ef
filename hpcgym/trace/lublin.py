"""The workload model of Lublin and Feitelson: sizes, run times and a daily cycle of arrivals.

Source: Lublin and Feitelson 2003, constants of m_lublin99.c; specification, section 9,
"Lublin-Feitelson", "Size", "Run" and "Arrivals".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import TraceError
from hpcgym.core.workload import Workload

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

BUCKET_S = 1800
N_BUCKETS = 48
LARGEST_LOG_RUN_TIME = 12.0
LARGEST_LOG_GAP = 13.0
SMALLEST_MACHINE = 32
"""Below this, the model's smallest interactive job would be larger than its median one."""

_MODEL_LOG2_MACHINE = 7  # the constants were fitted for 128 processors
_FIRST_ARRIVAL_BUCKET = 11


@dataclass(frozen=True)
class LublinConstants:
    """Constants of one process of the model, for 128 processors; Gamma(a, b) has mean a * b."""

    serial: float  # probability that a job takes one processor (P_s)
    power_of_two: float  # probability that it takes a power of two (P_2)
    # The two-stage uniform of log2 of the size: (lo, med, hi, probability of the first).
    size: tuple[float, float, float, float]
    run_first: tuple[float, float]  # shape and scale of the first gamma of log run time (a1, b1)
    run_second: tuple[float, float]  # shape and scale of the second one (a2, b2)
    # Slope and intercept of the first one's probability in the size (pa, pb).
    run_choice: tuple[float, float]
    # Shape, its factor in the rush hours, and scale of the gamma of log gaps (aa, ar, ba).
    gap: tuple[float, float, float]
    # Shape and scale of the gamma of the daily cycle, in half hours (an, bn).
    day: tuple[float, float]


COMBINED = LublinConstants(
    serial=0.244,
    power_of_two=0.576,
    size=(0.8, 4.5, 7.0, 0.86),
    run_first=(4.2, 0.94),
    run_second=(312.0, 0.03),
    run_choice=(-0.0054, 0.78),
    gap=(10.2303, 1.0225, 0.4871),
    day=(8.1737, 3.9631),
)
"""One process for all jobs."""

BATCH = LublinConstants(
    serial=0.2927,
    power_of_two=0.6686,
    size=(1.2, 5.0, 7.0, 0.875),
    run_first=(6.57, 0.823),
    run_second=(639.1, 0.0156),
    run_choice=(-0.003, 0.6986),
    gap=(6.0415, 1.0519, 0.8531),
    day=(6.1271, 5.2740),
)
"""The batch process."""

INTERACTIVE = LublinConstants(
    serial=0.1541,
    power_of_two=0.625,
    size=(1.0, 3.0, 5.5, 0.705),
    run_first=(3.8351, 0.6605),
    run_second=(7.073, 0.6856),
    run_choice=(-0.0118, 0.9156),
    gap=(6.5510, 0.9797, 0.6621),
    day=(8.9186, 3.6680),
)
"""The interactive process."""


def lublin_workload(
    n_jobs: int,
    generator: np.random.Generator,
    *,
    machine_processors: int = 128,
    job_types: bool = True,
    name: str = "lublin",
) -> Workload:
    """Draw a workload from the model; its time 0 begins the first half hour of a day.

    The model has no users and no requests: every user is unknown, every request is the run time.
    Set the load afterwards with `hpcgym.trace.scale_load`.

    Args:
        machine_processors: Processors of the machine, >= 32; sizes shift with log2 of it.
        job_types: Whether a batch and an interactive process are merged by their next arrival (the
            model's default), or one combined process draws all jobs.

    Raises:
        TraceError: The machine is smaller than 32 processors, or n_jobs is below 1.

    Example:
        >>> import numpy as np
        >>> lublin_workload(1000, np.random.default_rng(1), machine_processors=256)
        Workload('lublin', 1000 jobs, 256 processors)
    """
    if machine_processors < SMALLEST_MACHINE:
        raise TraceError(
            f"the Lublin-Feitelson model needs {SMALLEST_MACHINE} processors or more, "
            f"got {machine_processors}"
        )
    if n_jobs < 1:
        raise TraceError(f"n_jobs must be at least 1, got {n_jobs}")
    processes = (BATCH, INTERACTIVE) if job_types else (COMBINED,)
    drawn = [_process(n_jobs, generator, p, machine_processors) for p in processes]
    submit, processors, run = (np.concatenate(columns) for columns in zip(*drawn, strict=True))
    if job_types:
        first = np.argsort(submit, kind="stable")[:n_jobs]
        submit, processors, run = submit[first], processors[first], run[first]
    return Workload.from_arrays(
        submit, run, run, processors, machine_processors=machine_processors, name=name
    )


def draw_sizes(
    n_jobs: int,
    generator: np.random.Generator,
    constants: LublinConstants = COMBINED,
    machine_processors: int = 128,
) -> IntArray:
    """Draw the processors of each job, 1 to machine_processors, shape (n_jobs,)."""
    low, medium, high, first_stage = constants.size
    shift = np.log2(machine_processors) - _MODEL_LOG2_MACHINE
    medium, high = medium + shift, high + shift
    kind = generator.random(n_jobs)  # serves both tests below, as in m_lublin99.c
    stage_one = generator.random(n_jobs) <= first_stage
    position = generator.random(n_jobs)
    first, second = low + (medium - low) * position, medium + (high - medium) * position
    log_size = np.where(stage_one, first, second)
    rounded = kind <= constants.serial + constants.power_of_two
    log_size = np.where(rounded, np.floor(log_size + 0.5), log_size)
    size = np.minimum(np.floor(np.exp2(log_size) + 0.5), machine_processors)
    return np.where(kind <= constants.serial, 1, size).astype(np.int64)


def draw_run_times(
    processors: IntArray, generator: np.random.Generator, constants: LublinConstants = COMBINED
) -> IntArray:
    """Draw the run time of each job, s, >= 1, given its processors; both of shape (n_jobs,)."""
    slope, intercept = constants.run_choice
    log_run = np.empty(len(processors))
    wanted = np.arange(len(processors))
    while len(wanted):
        # beyond the limit both are drawn anew: which gamma, and the value
        chance = np.clip(slope * processors[wanted] + intercept, 0, 1)
        from_first = generator.random(len(wanted)) <= chance
        drawn = np.where(
            from_first,
            generator.gamma(*constants.run_first, size=len(wanted)),
            generator.gamma(*constants.run_second, size=len(wanted)),
        )
        log_run[wanted] = drawn
        wanted = wanted[drawn > LARGEST_LOG_RUN_TIME]
    return np.floor(np.exp(log_run)).astype(np.int64)


def draw_arrivals(
    n_jobs: int, generator: np.random.Generator, constants: LublinConstants = COMBINED
) -> IntArray:
    """Draw the submit times, ascending, s, shape (n_jobs,); time 0 begins half hour 0.

    A job takes e^g / 1800 points, and half hour b offers weight[b] of them. Points are carried from
    job to job: a job arrives where the sum of all points so far meets the running sum of the
    weights, linear inside a half hour.
    """
    shape, rush_factor, scale = constants.gap
    log_gap = generator.gamma(shape * rush_factor, scale, size=n_jobs)
    while len(beyond := np.flatnonzero(log_gap > LARGEST_LOG_GAP)):
        log_gap[beyond] = generator.gamma(shape * rush_factor, scale, size=len(beyond))
    points = np.cumsum(np.exp(log_gap) / BUCKET_S)
    offered = np.concatenate(([0.0], np.cumsum(half_hour_weights(constants))))
    days, rest = np.divmod(points, offered[-1])
    buckets = days * N_BUCKETS + np.interp(rest, offered, np.arange(N_BUCKETS + 1))
    return np.floor(buckets * BUCKET_S).astype(np.int64)


def half_hour_weights(constants: LublinConstants = COMBINED) -> FloatArray:
    """Return the arrivals in each half hour of the day relative to their mean, shape (48,)."""
    shape, scale = constants.day
    nodes, node_weights = np.polynomial.legendre.leggauss(16)
    bucket = np.arange(_FIRST_ARRIVAL_BUCKET, _FIRST_ARRIVAL_BUCKET + N_BUCKETS)
    x = bucket[:, np.newaxis] + nodes / 2
    density = np.exp((shape - 1) * np.log(x / scale) - x / scale)  # up to a constant factor
    weights = np.empty(N_BUCKETS)
    weights[(bucket - 1) % N_BUCKETS] = density @ node_weights
    weights /= weights.mean()
    return weights


def _process(
    n_jobs: int, generator: np.random.Generator, constants: LublinConstants, machine_processors: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Draw submit times, sizes and run times of one process."""
    submit = draw_arrivals(n_jobs, generator, constants)
    processors = draw_sizes(n_jobs, generator, constants, machine_processors)
    return submit, processors, draw_run_times(processors, generator, constants)
