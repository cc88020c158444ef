"""Features of waiting jobs: what weights and formulas score them by."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.base.errors import PolicyError, unknown_name

FEATURES = ("q", "e", "wait", "rho", "exp", "area")
"""What weights apply to: processors, estimate (s), wait (s), e/q, (wait+e)/e, e*q."""


@dataclass(frozen=True)
class Features:
    """Features of jobs at one instant, as a registered formula sees them; arrays (n_jobs,).

    Times are in s; q is processors, e the estimate, wait the wait so far, user a dense index.
    """

    q: NDArray[np.float64]
    e: NDArray[np.float64]
    wait: NDArray[np.float64]
    submit_time: NDArray[np.float64]
    user: NDArray[np.int64]


def weights_of(text: str) -> list[float]:
    """Read weights from text such as "e=1,wait=-0.5"."""
    weights = dict.fromkeys(FEATURES, 0.0)
    seen = set()
    for part in text.split(","):
        feature, _, value = (piece.strip() for piece in part.partition("="))
        if feature not in weights:
            raise PolicyError(unknown_name("feature", feature, FEATURES))
        if feature in seen:
            raise PolicyError(f"weight of {feature} is given twice in {text!r}")
        seen.add(feature)
        try:
            weights[feature] = float(value)
        except ValueError:
            raise PolicyError(f"weight of {feature} must be a number, got {value!r}") from None
    return list(weights.values())


def normalised(weights: ArrayLike) -> NDArray[np.float64]:
    """Return six weights over the sum of their absolute values, or all 0.

    Raises:
        PolicyError: Not six finite numbers.
    """
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        w = np.empty(0)
    with np.errstate(over="ignore"):
        total = float(np.abs(w).sum())
    if w.shape != (6,) or not math.isfinite(total):
        raise PolicyError(
            f"weights must be 6 finite numbers for {', '.join(FEATURES)}, and so must be the sum "
            f"of their absolute values; got {weights!r:.200}"
        )
    return w / (total or 1.0)


def features_of(
    q: NDArray[np.int64],
    e: NDArray[np.int64],
    submit_time: NDArray[np.int64],
    user: NDArray[np.int64],
    now: int,
) -> Features:
    """Return what a formula sees of jobs at one instant; all arrays have shape (n_jobs,).

    Source: RR-9212, section 4.1.
    """
    submit = submit_time.astype(np.float64)
    return Features(q.astype(np.float64), e.astype(np.float64), now - submit, submit, user)
