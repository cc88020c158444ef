"""How often the interval of a gap closed holds it, where weeks are drawn and the truth is known."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hpcgym.evaluation.gap import gap_closed
from research.interval_coverage import Row, row

STATIC, AGENT, CLAIRVOYANT = (-0.2, 0.3), (-0.1, 0.2), (-0.9, 0.4)
"""Mean and spread of the logarithm of a week's ratio to SAF, of the agent's to the static one, and
of the clairvoyant one's to it: about as the test weeks of `many-weeks` have them."""

SAF, TIE = 0.8, -0.3
"""Spread of the logarithm of a week's mean bounded slowdown under SAF, by which it counts there,
and its correlation with the clairvoyant one's: knowing is worth more in heavy weeks."""

MANY = 400_000
WEEKS = (3, 10, 20, 40, 60, 160, 300)


def drawn(n: int, chance: np.random.Generator) -> NDArray[np.float64]:
    """Return the values of weeks: static, agent and clairvoyant ones, and SAF's, shape (4, n)."""
    heavy, alone = chance.normal(size=(2, n))
    tied = TIE * heavy + (1 - TIE**2) ** 0.5 * alone
    static, agent = (mean + spread * chance.normal(size=n) for mean, spread in (STATIC, AGENT))
    knows = static + CLAIRVOYANT[0] + CLAIRVOYANT[1] * tied
    values: NDArray[np.float64] = np.exp([static, static + agent, knows, SAF * heavy])
    return values


@cache
def truth_of() -> float:
    """Return the gap closed in very many weeks."""
    static, agent, clairvoyant, saf = drawn(MANY, np.random.default_rng(1))
    return float(((static - agent) * saf).sum() / ((static - clairvoyant) * saf).sum())


def held(n: int, draws: int) -> float:
    """Return how often the interval from n weeks holds it, of the draws that show a gap."""
    chance, hits, shown = np.random.default_rng(0), 0, 0
    for _ in range(draws):
        ends = gap_closed(*drawn(n, chance)).ends()
        if ends is not None:
            shown += 1
            hits += ends[0] <= truth_of() <= ends[1]
    return hits / shown


def gap_rows(draws: int) -> Iterator[Row]:
    """Yield the row of the table, in %."""
    yield row("generated weeks", "gap closed", {n: held(n, draws) for n in WEEKS})
