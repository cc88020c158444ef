"""Index policies: weighted sums of logarithms of what is known and expected of a job."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.core.policy import Policy
from hpcgym.core.state import N_NETWORK, N_WEIGHTS, RULE_INDEX
from hpcgym.errors import PolicyError

TERMS = (
    "processors",
    "request",
    "share",
    "speed",
    "network_share",
    "network_speed",
    "regressed_share",
    "regressed_speed",
    "recent_share",
)
"""What orders weigh, the logarithms of: processors; the request, at least tau (s); the expected
share of it that the job runs, at least tau; the expected reciprocal of that, both by means over the
user's records; both by a network; both by the regression; and the share by the user's last two
jobs. Weights of an index apply to the first six."""

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
        weights: Weights of the first six `TERMS`, shape (6,).
        network: Parameters of a network that expects share and speed, shape (N_NETWORK,), layer by
            layer, weights before biases; None where the last two weights are 0.
        name: What tables call it; default a text that tells it from every other.
        source: Where it comes from.

    Returns:
        The policy.

    Raises:
        PolicyError: Not six numbers, not N_NETWORK of them, one that is NaN or beyond LARGEST, or
            the last two weights without a network.

    Source:
        Smith 1956; specification, section 10, "Information".

    Example:
        >>> index_policy([1, 2, 1, -1, 0, 0], name="MINE")
        Policy('MINE')
    """
    chosen = np.asarray(weights, dtype=np.float64)
    if chosen.shape != (N_WEIGHTS,) or not (abs(chosen) <= LARGEST).all():
        raise PolicyError(
            f"an index needs {N_WEIGHTS} weights from -{LARGEST:g} to {LARGEST:g}, of "
            f"{', '.join(TERMS[:N_WEIGHTS])}; got {chosen}"
        )
    if network is None:
        if chosen[4:].any():
            raise PolicyError("weights of network_share and network_speed need a network")
        return Policy(name or _name_of(chosen), RULE_INDEX, chosen.copy(), source)
    parameters = np.array(network, dtype=np.float64)
    if parameters.shape != (N_NETWORK,) or not (abs(parameters) <= LARGEST).all():
        raise PolicyError(
            f"a network has {N_NETWORK} parameters from -{LARGEST:g} to {LARGEST:g}; got shape "
            f"{parameters.shape}, {int((~(abs(parameters) <= LARGEST)).sum())} beyond that"
        )
    called = name or f"{_name_of(chosen)}#{hashlib.sha256(parameters.tobytes()).hexdigest()[:8]}"
    return Policy(called, RULE_INDEX, chosen.copy(), source, network=parameters)


def _name_of(weights: NDArray[np.float64]) -> str:
    """Return the weights as text."""
    named = zip(TERMS[:N_WEIGHTS], weights, strict=True)
    shown = [f"{term}={weight:g}" for term, weight in named if weight]
    return f"index:{','.join(shown)}"
