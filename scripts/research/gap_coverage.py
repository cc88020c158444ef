"""How often the interval of a gap closed holds it, where weeks are drawn and the truth is known."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from hpcgym.evaluation.gap import gap_closed

STATIC, AGENT, CLAIRVOYANT = (-0.1, 0.25), (-0.1, 0.2), (-0.4, 0.15)
"""Mean and spread of the logarithm of a week's ratio to SAF, of the agent's to the static one, and
of the clairvoyant one's to it: about as test weeks of generated logs have them."""

MANY = 400_000


def drawn(n: int, chance: np.random.Generator) -> NDArray[np.float64]:
    """Return the values of weeks: static, agent and clairvoyant, shape (3, n)."""
    static, agent, clairvoyant = (
        mean + spread * chance.normal(size=n) for mean, spread in (STATIC, AGENT, CLAIRVOYANT)
    )
    return np.exp(np.stack([static, static + agent, static + clairvoyant]))


@cache
def truth_of() -> float:
    """Return the gap closed in very many weeks."""
    static, agent, clairvoyant = drawn(MANY, np.random.default_rng(1))
    return float((static - agent).sum() / (static - clairvoyant).sum())


def held(n: int, draws: int) -> float:
    """Return how often the interval from n weeks holds it."""
    chance, hits = np.random.default_rng(0), 0
    for _ in range(draws):
        low, high = gap_closed(*drawn(n, chance)).ends() or (np.inf, -np.inf)
        hits += low <= truth_of() <= high
    return hits / draws
