"""Ways to read what papers leave open: jobs over their request, ties, the bound of slowdowns."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import EvaluationError, unknown_name
from hpcgym.core import constants as s
from hpcgym.core.features import FEATURES
from hpcgym.core.policy import KEYS, Policy, as_policy
from hpcgym.core.workload import Workload
from hpcgym.schedule.schedule import Schedule

OverLimit = Literal["kill", "keep", "raise", "double", "drop"]

OVER_LIMIT = {
    "kill": "killed at the request",
    "keep": "run on beyond it",
    "raise": "request raised to the run time",
    "double": "request raised to twice the run time, for every job",
    "drop": "left out, and so are run times of 0",
}
"""What may become of jobs that ran longer than they had asked for."""

PURE = {
    "FCFS": ("wait", -1.0),
    "LCFS": ("wait", 1.0),
    "SPF": ("e", 1.0),
    "LPF": ("e", -1.0),
    "SQF": ("q", 1.0),
    "LQF": ("q", -1.0),
    "SAF": ("area", 1.0),
    "LAF": ("area", -1.0),
    "SEXP": ("exp", 1.0),
    "LEXP": ("exp", -1.0),
    "SRF": ("rho", 1.0),
    "LRF": ("rho", -1.0),
}
"""The pure policies of RR-9212: the feature that each orders by, and its weight."""


def with_over_limit(workload: Workload, reading: OverLimit) -> Workload:
    """Return the jobs of a log under a reading of over-limit jobs.

    "kill" and "keep" change no job; they decide `kill_at_limit` of `simulate`. Batsim's converter
    of logs does "double" by default. The simulator of Lelong, Reis and Trystram 2017 needs "drop".

    Raises:
        EvaluationError: The reading is not known.

    Source: Rules of reruns, "Over-limit jobs".

    Example:
        >>> jobs = Workload.from_arrays([0, 0], [9, 5], [6, 6], [1, 1], machine_processors=4)
        >>> with_over_limit(jobs, "double").requested_time
        array([18, 10])
        >>> len(with_over_limit(jobs, "drop"))
        1
    """
    if reading not in OVER_LIMIT:
        raise EvaluationError(unknown_name("reading of over-limit jobs", reading, OVER_LIMIT))
    run, request = workload.run_time, workload.requested_time
    if reading == "drop":
        return workload.select((run > 0) & (run <= request))
    if reading in ("raise", "double"):
        factor = 1 if reading == "raise" else 2
        return replace(workload, requested_time=np.maximum(request, factor * run))
    return workload


def bsld_bounded_by(schedule: Schedule, bound_s: int) -> NDArray[np.float64]:
    """Compute max((w + p) / max(p, bound), 1) of each job, shape (n_jobs,).

    Source: Carastan-Santos et al. 2019, equation 2, with its tau as an argument.
    """
    run = schedule.run_time
    return np.maximum((schedule.wait_time + run) / np.maximum(run, bound_s), 1.0)


def newest_first(name: str) -> tuple[Policy, Policy]:
    """Return primary and backfill order for a pure policy of RR-9212 whose ties go to the latest.

    The simulator of the source keeps waiting jobs in a list, latest first, and sorts it stably.
    Backfill candidates are the rest of that list. The backfill is SPF, with ties in the primary
    order. SEXP and LEXP stay as they are: scores that change with time tie too seldom to matter.

    Raises:
        EvaluationError: The policy is not one of the twelve.

    Source: The simulator of Lelong, Reis and Trystram 2017 (freuk/ocst).
    """
    if name not in PURE:
        raise EvaluationError(unknown_name("pure policy", name, PURE))
    feature, sign = PURE[name]
    moves = feature == "exp"  # jobs of one request have expansion factors in the order of waits
    weights = np.zeros(len(FEATURES))
    weights[FEATURES.index("wait" if moves else feature)] = sign
    primary, backfill = newest_first_of(weights, name)
    return (as_policy(name) if moves else primary), backfill


def newest_first_of(weights: NDArray[np.float64], name: str = "mixed") -> tuple[Policy, Policy]:
    """Return both orders for weights of (q, e, wait, rho, exp, area), shape (6,), that of exp 0.

    Time never changes the order of two jobs, so each order is a fixed key.
    """

    def score(workload: Workload) -> NDArray[np.float64]:
        q = workload.processors.astype(np.float64)
        e = workload.requested_time.astype(np.float64)
        values = (q, e, -workload.submit_time, e / q, np.zeros_like(e), e * q)
        total = np.zeros_like(e)
        for weight, value in zip(weights, values, strict=True):
            if weight:
                total += weight * value
        return total

    def primary(workload: Workload) -> NDArray[np.int64]:
        return _places(score(workload))

    def backfill(workload: Workload) -> NDArray[np.int64]:
        return _places(score(workload), workload.requested_time)

    nothing = np.zeros(s.N_WEIGHTS)
    return (
        Policy(f"{name}, newest first", KEYS, nothing, keys=primary),
        Policy(f"SPF, then {name}", KEYS, nothing, keys=backfill),
    )


def _places(*keys: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each job's place by the last key, then those before it, then the latest first."""
    n_jobs = len(keys[0])
    order = np.lexsort((-np.arange(n_jobs), *keys))
    place = np.empty(n_jobs, dtype=np.int64)
    place[order] = np.arange(n_jobs)
    return place
