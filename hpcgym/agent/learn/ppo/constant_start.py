"""A search for the constant action that a network begins at, by evolution on training weeks.

One action for whole weeks is easier to find than a network, and on new weeks it may do as well. So
a training tries constants first: those that a kind of action knows, then others by evolution. Ten
weeks are few even for five numbers, so known ones are better on new weeks than searched ones. The
network begins at the best of them, as the bias of its output, and PPO goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.evolution import XNES
from hpcgym.agent.network import NetworkSpec
from hpcgym.agent.weights import ConstantAction
from hpcgym.core.action import kind_of

COPIES = 3
"""Jittered copies of each training week, besides the original, on which constants are compared."""

SHARE = 1 / 3  # share of a training's minutes after which the search tries no more

FURTHEST = 0.95
"""How far from 0 a constant is, of what the network can reach: at its bound nothing is learned."""

CANDIDATES = 16  # constants of a generation

_STEP_SIZE, _STEP_SIZE_AT_KNOWN, _OUTSIDE = 0.3, 0.1, 0.1

Floats = NDArray[np.float32]


def search_constant(
    spec: NetworkSpec,
    value_of: Callable[[ConstantAction], float],
    n_constants: int,
    generator: np.random.Generator,
    goes_on: Callable[[], bool] = lambda: True,
) -> Floats:
    """Search the numbers that a network's output begins at, shape (n_outputs,).

    The known ones are tried in any case, and whole generations from the best of these on, one at
    least where none is known. The mean of the last is returned: it depends less on the weeks that
    were lucky for one candidate than the best candidate does.

    Args:
        spec: The network, whose actions are vectors of numbers that correct a start.
        value_of: Value of an action on the training weeks, lower is better.
        n_constants: How many may be tried.
        generator: Source of the candidates.
        goes_on: Whether there is time for another generation.

    Source: Specification, section 10, "Learnability kit".
    """
    reach = min(FURTHEST * spec.bound, 1.0)

    def values_of(constants: NDArray[Any]) -> list[float]:
        actions = (spec.head_start + constants).tolist()
        return [value_of(ConstantAction(tuple(action))) for action in actions]

    known = np.clip(kind_of(spec.action).KNOWN, -reach, reach)
    begin, step_size = np.zeros(spec.n_outputs), _STEP_SIZE
    if len(known):
        begin, step_size = known[np.argmin(values_of(known))], _STEP_SIZE_AT_KNOWN
    n_generations = max(n_constants - len(known), 0) // CANDIDATES
    search = XNES(begin, step_size, generator, candidates=CANDIDATES)
    for generation in range(n_generations if len(known) else max(n_generations, 1)):
        if generation and not goes_on():
            break
        asked = search.ask()
        inside = asked.clip(-reach, reach)
        search.tell(np.array(values_of(inside)) + _OUTSIDE * np.abs(asked - inside).sum(axis=1))
    return search.mean.clip(-reach, reach).astype(np.float32)


def bias_of(constant: Floats, spec: NetworkSpec) -> Floats:
    """Return the bias of the output under which a network adds a constant to its start."""
    return np.asarray(np.arctanh(constant / np.float32(spec.bound)), dtype=np.float32)
