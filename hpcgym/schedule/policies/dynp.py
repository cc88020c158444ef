"""dynP: plan the queue under each of some policies, and follow the best plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.base.errors import PolicyError
from hpcgym.core.policy import Chooser, ChooserRun, Policy, checked_candidates, chooser_policy

if TYPE_CHECKING:
    from hpcgym.core.simulator import Simulator

DYNP_CANDIDATES = ("FCFS", "SPF", "LPF")
"""What dynP chooses among: first come, shortest, and longest estimate first."""


@dataclass(frozen=True)
class DynP(Chooser):
    """Plan the queue under each candidate, and take the one whose plan is best.

    At every pass at which jobs wait, `Simulator.predict` rolls the simulation out under each
    candidate; the candidate with the least mean bounded slowdown of the waiting jobs orders this
    pass. Ties keep the candidate of the pass before, or else take the earlier one of the list. A
    plan costs as much as a simulation of the waiting jobs.

    Raises:
        PolicyError: No candidate, or one that is unknown, changes its order with time, or is not
            compiled.

    Source: Streit 2002, A self-tuning job scheduler family with dynamic policy switching (JSSPP);
        specification, section 8, "dynP".
    """

    candidates: tuple[str, ...] = DYNP_CANDIDATES

    plans = True

    @property
    def name(self) -> str:
        """Return the name that tables show."""
        return f"dynP({','.join(self.candidates)})"

    def __post_init__(self) -> None:
        if not self.candidates:
            raise PolicyError("dynP needs at least one candidate, got none")
        checked_candidates(self.candidates)

    def begin(self) -> _DynPRun:
        """Return a run that begins with the first candidate."""
        return _DynPRun(checked_candidates(self.candidates))


class _DynPRun(ChooserRun):
    """dynP in one simulation, with the candidate of the pass before."""

    def __init__(self, candidates: Sequence[Policy]) -> None:
        self.candidates = tuple(candidates)
        self.current = self.candidates[0]

    def choose(self, simulator: Simulator) -> Policy:
        """Choose the policy of this pass."""
        if len(simulator.waiting) < 2:
            return self.current  # every order is the same
        predicted = simulator.predict(self.candidates)
        at = self.candidates.index(self.current)
        if predicted.min() < predicted[at]:
            self.current = self.candidates[int(np.argmin(predicted))]
        return self.current


DYNP = chooser_policy(
    DynP(),
    "DYNP",
    "Streit 2002, A self-tuning job scheduler family with dynamic policy switching (JSSPP)",
)
