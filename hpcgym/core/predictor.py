"""Predictors: what the scheduler takes a job's run time to be at the job's submission.

Some depend on the job alone and are computed beforehand. Others predict while the simulation runs,
from what has ended in it. Whatever is predicted, a job is killed at its request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.base.errors import PolicyError, unknown_name
from hpcgym.core import constants as s
from hpcgym.core.columns import LARGEST_TIME

Correction = Literal["none", "reqtime", "tsafrir", "doubling"]

CORRECTIONS: dict[Correction, int] = {
    "none": s.CORRECT_NOT,
    "reqtime": s.CORRECT_TO_REQUEST,
    "tsafrir": s.CORRECT_BY_STEPS,
    "doubling": s.CORRECT_BY_DOUBLING,
}

ONLINE = {"recent": s.PREDICT_RECENT, "asked": s.PREDICT_ASKED}
"""Kinds that predict while the simulation runs."""


@dataclass(frozen=True, eq=False)
class Submission:
    """A job at its submission, and its user's completed jobs: what a predictor in Python gets.

    Completed are the jobs that have ended in this simulation, after those in the workload's
    history. `run_times` and `requested_times` have the last 20 of them, oldest first, shape
    (min(completed, 20),). `last_end_time` is negative before this workload began, and None if no
    job has ended. Times are s.
    """

    submit_time: int
    requested_time: int
    processors: int
    user: int
    completed: int
    run_times: NDArray[np.int64]
    requested_times: NDArray[np.int64]
    last_end_time: int | None


Ask: TypeAlias = Callable[[Submission], float]
"""A predictor in Python: seconds, >= 1, for a submission; fractions are dropped."""


@dataclass(frozen=True)
class Predictor:
    """The source of the scheduler's estimates.

    Attributes:
        kind: "requested", the users' requests; "exact", the executed run times; "doubled",
            twice the requests; "f-model", run times with noise; "recent", the mean of the user's
            last two; "asked", what a Python function returns.
        f: Range of the noise: "f-model" draws uniformly from p to (f + 1) p.
        seed: Seed of the noise.
        ask: The function; "asked" only.

    Source: Mu'alem and Feitelson 2001 (f-model, doubling); Tsafrir, Etsion and Feitelson 2007
    (recent); specification, sections 4 and 8.
    """

    kind: str
    f: float = 0.0
    seed: int = 0
    ask: Ask | None = None

    @property
    def online(self) -> bool:
        """Whether it predicts while the simulation runs."""
        return self.kind in ONLINE

    def work_out(
        self,
        requested_time: NDArray[np.int64],
        run_time: NDArray[np.int64],
        job_id: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Compute the estimates that depend on the jobs alone, shape (n_jobs,), s, >= 1.

        Online predictors get the requests, which their predictions replace later. Noise depends on
        `job_id`, so a job has the same in any part of a log.

        Example:
            >>> as_predictor("doubled").work_out(*np.array([[60, 5], [7, 0], [1, 2]]))
            array([120,  10])
        """
        if self.kind == "exact":
            return np.maximum(run_time, 1)
        if self.kind == "doubled":
            return np.minimum(2 * requested_time, LARGEST_TIME)
        if self.kind == "f-model":
            choices = np.floor(self.f * run_time) + 1
            drawn = run_time + np.floor(luck_of(job_id, self.seed) * choices)
            estimate: NDArray[np.int64] = np.clip(drawn, 1, LARGEST_TIME).astype(np.int64)
            return estimate
        return requested_time

    def __str__(self) -> str:
        return f"f-model:f={self.f:g},seed={self.seed}" if self.kind == "f-model" else self.kind


Estimates: TypeAlias = "str | Predictor | Ask | ArrayLike"
"""What users may pass as estimates: a kind, a predictor, a function, or one number per job."""

PREDICTORS = {kind: Predictor(kind) for kind in ("requested", "exact", "doubled", "recent")}
"""Predictors without parameters, by name."""

KINDS = (*PREDICTORS, "f-model:f=3,seed=1")
"""An example of each text that names a predictor."""


def as_predictor(estimates: str | Predictor | Ask) -> Predictor:
    """Return the predictor that a name, a text such as "f-model:f=3,seed=1" or a function means.

    Raises:
        PolicyError: Unknown name or parameter, or a value out of range.

    Example:
        >>> as_predictor("Recent").online, str(as_predictor("f-model:f=0.5"))
        (True, 'f-model:f=0.5,seed=0')
    """
    if isinstance(estimates, Predictor):
        return estimates
    if not isinstance(estimates, str):
        return Predictor("asked", ask=estimates)
    name, colon, rest = estimates.strip().casefold().partition(":")
    if name == "f-model":
        return _f_model(estimates, rest)
    if name not in PREDICTORS:
        raise PolicyError(unknown_name("estimates", estimates, KINDS))
    if colon:
        raise PolicyError(f"estimates {name!r} have no parameters, got {rest!r}")
    return PREDICTORS[name]


def _f_model(text: str, parameters: str) -> Predictor:
    given: dict[str, str] = {}
    for part in filter(None, parameters.split(",")):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in ("f", "seed"):
            unknown = unknown_name("parameter", key, ("f", "seed"))
            raise PolicyError(f"estimates {text!r}: {unknown}")
        if key in given:
            raise PolicyError(f"estimates {text!r}: {key} is given twice")
        given[key] = value
    try:
        f, seed = float(given["f"]), int(given.get("seed", "0"))
    except (KeyError, ValueError):
        f, seed = -1.0, 0
    if not (0 <= f <= LARGEST_TIME and 0 <= seed < 2**63):
        raise PolicyError(
            f"estimates {text!r}: f must be a number >= 0, at most {LARGEST_TIME}, and seed a "
            "whole number >= 0, as in 'f-model:f=3,seed=1'"
        )
    return Predictor("f-model", f, seed)


def luck_of(number: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """Return a pseudo-random value in [0, 1) for each number, by that and the seed alone.

    Source: Steele, Lea and Flood 2014 (SplitMix64).
    """
    # A hash, not a stream of random numbers, so that no value depends on others.
    gamma = np.uint64(0x9E3779B97F4A7C15)
    start = _mixed(np.array([seed], dtype=np.uint64) + gamma)
    mixed = _mixed(start + (number.astype(np.uint64) + np.uint64(1)) * gamma)
    return (mixed >> np.uint64(11)) / 2.0**53


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of each number."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
