"""Index policies: weighted sums of logarithms of what is known and expected of a job."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.core.constants import (
    N_NETWORK,
    N_WEIGHTS,
    RULE_INDEX,
    TERM_NETWORK_RUN_TIME_RATIO,
    TERM_NETWORK_SPEED,
)
from hpcgym.core.policy import Policy
from hpcgym.errors import PolicyError

TERMS = (
    "processors",
    "request",
    "run_time_ratio",
    "speed",
    "network_run_time_ratio",
    "network_speed",
    "regressed_run_time_ratio",
    "regressed_speed",
    "recent_run_time_ratio",
)
"""What an index weighs, in the order of the weights: natural logarithms of these.

The first two are the processors and E, the estimate in s, at least tau. A run-time ratio is the
expected D/E, with D the run time, at least tau. A speed is the expected E/D. Means over the user's
records, a network and a regression each give both. The last is the ratio by the user's last two
jobs.
"""

LARGEST = 1e12
"""Largest weight or parameter, so that no sum of products runs out of numbers."""


def index_policy(
    weights: ArrayLike,
    network: ArrayLike | None = None,
    *,
    name: str | None = None,
    source: str = "",
) -> Policy:
    """Return the policy that orders by an index, lowest first.

    Args:
        weights: Weights of the first of `TERMS`; the rest are 0.
        network: Parameters of a network that expects run-time ratio and speed, shape (N_NETWORK,),
            layer by layer, weights before biases; needed where its terms have weights.
        name: What tables call it; default a text that no other index policy has.
        source: Where it comes from.

    Raises:
        PolicyError: Too few or too many weights, not N_NETWORK parameters, a number that is NaN or
            beyond LARGEST, or weights of a network's terms without one.

    Source: Smith 1956; specification, section 10, "Index policies".

    Example:
        >>> index_policy([1, 2, 1, -1], name="MINE")
        Policy('MINE')
    """
    given = np.asarray(weights, dtype=np.float64)
    is_row = given.ndim == 1 and 1 <= len(given) <= N_WEIGHTS
    if not is_row or not (abs(given) <= LARGEST).all():
        raise PolicyError(
            f"an index needs 1 to {N_WEIGHTS} weights from -{LARGEST:g} to {LARGEST:g}, of "
            f"{', '.join(TERMS)}; got {given}"
        )
    chosen = np.zeros(N_WEIGHTS)
    chosen[: len(given)] = given
    if network is None:
        if chosen[TERM_NETWORK_RUN_TIME_RATIO] or chosen[TERM_NETWORK_SPEED]:
            raise PolicyError("weights of network_run_time_ratio and network_speed need a network")
        return Policy(name or _name_of(chosen), RULE_INDEX, chosen, source)
    parameters = np.array(network, dtype=np.float64)
    if parameters.shape != (N_NETWORK,) or not (abs(parameters) <= LARGEST).all():
        raise PolicyError(
            f"a network has {N_NETWORK} parameters from -{LARGEST:g} to {LARGEST:g}; got shape "
            f"{parameters.shape}, {int((~(abs(parameters) <= LARGEST)).sum())} beyond that"
        )
    called = name or f"{_name_of(chosen)}#{hashlib.sha256(parameters.tobytes()).hexdigest()[:8]}"
    return Policy(called, RULE_INDEX, chosen, source, network=parameters)


def _name_of(weights: NDArray[np.float64]) -> str:
    """Return the weights as text."""
    named = zip(TERMS, weights, strict=True)
    shown = [f"{term}={weight:g}" for term, weight in named if weight]
    return f"index:{','.join(shown)}"
