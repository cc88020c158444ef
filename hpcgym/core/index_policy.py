"""Index policies: weighted sums of logarithms of what is known and expected; urgency."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core.policy import Policy, as_policy

TERMS = (
    *("processors", "request", "run_time_ratio", "speed", "network_run_time_ratio"),
    *("network_speed", "regressed_run_time_ratio", "regressed_speed", "recent_run_time_ratio"),
)
"""What an index weighs, in the order of the weights: natural logarithms of these.

The first two are the processors and E, the estimate in s, at least tau. A run-time ratio is the
expected D/E, with D the run time, at least tau. A speed is the expected E/D. Means over the user's
records, a network and a regression each give both. The last is the ratio by the user's last two
jobs.
"""

INDEX = "hpcgym.core.orders.smith:index"  # the order of every index
LARGEST = 1e12  # largest weight or parameter, so that no sum of products runs out of numbers


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
    is_row = given.ndim == 1 and 1 <= len(given) <= s.N_WEIGHTS
    if not is_row or not (abs(given) <= LARGEST).all():
        raise PolicyError(
            f"an index needs 1 to {s.N_WEIGHTS} weights from -{LARGEST:g} to {LARGEST:g}, of "
            f"{', '.join(TERMS)}; got {given}"
        )
    chosen = np.zeros(s.N_WEIGHTS)
    chosen[: len(given)] = given
    learns = chosen[s.TERM_REGRESSED_RUN_TIME_RATIO] or chosen[s.TERM_REGRESSED_SPEED]
    expects = s.EXPECT_BY_REGRESSION if learns else s.EXPECT_BY_RECORDS
    made = Policy(name or _name_of(chosen), INDEX, chosen, source, is_static=False, expects=expects)
    if network is None:
        if chosen[s.TERM_NETWORK_RUN_TIME_RATIO] or chosen[s.TERM_NETWORK_SPEED]:
            raise PolicyError("weights of network_run_time_ratio and network_speed need a network")
        return made
    parameters = np.array(network, dtype=np.float64)
    if parameters.shape != (s.N_NETWORK,) or not (abs(parameters) <= LARGEST).all():
        raise PolicyError(
            f"a network has {s.N_NETWORK} parameters from -{LARGEST:g} to {LARGEST:g}; got shape "
            f"{parameters.shape}, {int((~(abs(parameters) <= LARGEST)).sum())} beyond that"
        )
    called = name or f"{made.name}#{hashlib.sha256(parameters.tobytes()).hexdigest()[:8]}"
    expects |= s.EXPECT_BY_NETWORK
    return replace(made, name=called, network=parameters, expects=expects)


def urgent_policy(
    urgency: float = 4.0,
    *,
    after: float = 50_000.0,
    within: float = 150_000.0,
    narrowest: float = 0.1,
    widest: float = 0.6,
    crowding: float = 0.1,
    most_crowding: float = 3.0,
    name: str | None = None,
) -> Policy:
    """Return SMITH-REG with urgency: wide jobs come forward before they are overdue.

    Args:
        urgency: What is taken off a wide job's score for each `within` seconds beyond `after`.
        after: Wait from which such a job becomes urgent, s.
        within: See urgency, s, > 0.
        narrowest: Share of the machine from which on a job is wide.
        widest: Share up to which it is.
        crowding: How much less width counts where many jobs wait.
        most_crowding: Bound of what `crowding` is multiplied by.
        name: What tables call it; default a text of what differs from SMITH-URGENT.

    Raises:
        PolicyError: A number below 0, NaN or beyond LARGEST.

    Source: Specification, section 10, "Urgency".

    Example:
        >>> urgent_policy(2, crowding=0)
        Policy('urgent:urgency=2,crowding=0')
    """
    given = {"urgency": urgency, "after": after, "within": within, "narrowest": narrowest}
    given |= {"widest": widest, "crowding": crowding, "most_crowding": most_crowding}
    for key, value in given.items():
        if not 0 <= value <= LARGEST or (key == "within" and value == 0):
            raise PolicyError(f"{key} must be a number from 0 to {LARGEST:g}, got {value!r}")
    usual = as_policy("SMITH-URGENT")
    row = np.zeros(s.N_WEIGHTS)
    row[: len(given)] = list(given.values())
    differing = [
        f"{key}={value:g}"
        for (key, value), other in zip(given.items(), usual.parameters, strict=False)
        if value != other
    ]
    if not differing and name is None:
        return usual
    return replace(usual, name=name or f"urgent:{','.join(differing)}", parameters=row)


def _name_of(weights: NDArray[np.float64]) -> str:
    named = zip(TERMS, weights, strict=True)
    shown = [f"{term}={weight:g}" for term, weight in named if weight]
    return f"index:{','.join(shown)}"
