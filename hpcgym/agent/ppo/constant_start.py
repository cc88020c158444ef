"""A search for the constant action that a network begins at, by evolution on training weeks.

One action for whole weeks is easier to find than a network, and on new weeks it may do as well: a
few numbers cannot learn weeks by heart. So a training tries constants first. The network begins at
what they come to, as the bias of its output, and PPO goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.evolution import XNES
from hpcgym.agent.network import NetworkSpec
from hpcgym.agent.weights import ConstantAction

COPIES = 3
"""Jittered copies of each training week, besides the original, on which constants are compared."""

SHARE = 1 / 3
"""Share of a training's minutes after which the search tries no more."""

FURTHEST = 0.95
"""How far from 0 a constant is, of what the network can reach: at its bound nothing is learned."""

FEWEST = 16
"""Constants of a generation, and so the fewest that a search tries."""

_STEP_SIZE, _OUTSIDE = 0.3, 0.1

Floats = NDArray[np.float32]


def search_constant(
    spec: NetworkSpec,
    value_of: Callable[[ConstantAction], float],
    n_constants: int,
    generator: np.random.Generator,
    goes_on: Callable[[], bool] = lambda: True,
) -> Floats:
    """Search the numbers that a network's output begins at, shape (n_outputs,).

    Whole generations are tried, the first one in any case. The mean of the last is returned: it
    depends less on the weeks that were lucky for one candidate than the best candidate does.

    Args:
        spec: The network, whose actions are vectors of numbers that correct a start.
        value_of: Value of an action on the training weeks, lower is better.
        n_constants: How many may be tried.
        generator: Source of the candidates.
        goes_on: Whether there is time for another generation.

    Source: Specification, section 10, "Learnability kit".
    """
    reach = min(FURTHEST * spec.bound, 1.0)
    search = XNES(np.zeros(spec.n_outputs), _STEP_SIZE, generator, candidates=FEWEST)
    for generation in range(max(n_constants // FEWEST, 1)):
        if generation and not goes_on():
            break
        asked = search.ask()
        inside = asked.clip(-reach, reach)
        actions = (spec.head_start + inside).tolist()
        values = [value_of(ConstantAction(tuple(action))) for action in actions]
        search.tell(np.array(values) + _OUTSIDE * np.abs(asked - inside).sum(axis=1))
    return search.mean.clip(-reach, reach).astype(np.float32)


def bias_of(constant: Floats, spec: NetworkSpec) -> Floats:
    """Return the bias of the output under which a network adds a constant to its start."""
    return np.asarray(np.arctanh(constant / np.float32(spec.bound)), dtype=np.float32)
