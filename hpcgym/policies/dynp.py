"""Choosers: policies that choose, as a simulation goes on, which rule orders the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.core.policy import Chooser, Policy, Run, as_policy, register_policy
from hpcgym.errors import PolicyError

if TYPE_CHECKING:
    from hpcgym.core.simulator import Simulator

DYNP_CANDIDATES = ("FCFS", "SPF", "LPF")
"""What dynP chooses among: first come, shortest, and longest estimate first."""


@dataclass(frozen=True)
class DynP(Chooser):
    """Plan the queue under each candidate, and take the one whose plan is best.

    At every pass at which jobs wait, the simulation is rolled out under each candidate with
    estimates for run times and without further submissions; the candidate with the least mean
    bounded slowdown of the waiting jobs orders this pass. Ties keep the candidate of the pass
    before, or else take the earlier one of the list. A plan costs as much as a simulation of the
    waiting jobs.

    Attributes:
        candidates: Names of policies whose orders keep.

    Raises:
        PolicyError: No candidate, or one that is unknown, changes its order with time, or is not
            compiled.

    Source:
        Streit 2002, A self-tuning job scheduler family with dynamic policy switching (JSSPP);
        specification, section 8, "dynP".

    Example:
        >>> DynP(("FCFS", "SAF")).begin().current
        Policy('FCFS')
    """

    candidates: tuple[str, ...] = DYNP_CANDIDATES

    plans = True

    @property
    def name(self) -> str:
        """Name, as tables show it."""
        return f"dynP({','.join(self.candidates)})"

    def __post_init__(self) -> None:
        """Refuse candidates that cannot be planned with."""
        if not self.candidates:
            raise PolicyError("dynP needs at least one candidate, got none")
        checked_candidates(self.candidates)

    def begin(self) -> _DynPRun:
        """Return what chooses in one simulation."""
        return _DynPRun(checked_candidates(self.candidates))


class _DynPRun(Run):
    """What one simulation chooses by.

    Args:
        candidates: The policies.
    """

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


def checked_candidates(candidates: Sequence[str | Policy]) -> tuple[Policy, ...]:
    """Return policies that a rollout can run.

    Args:
        candidates: Names or policies.

    Returns:
        The policies.

    Raises:
        PolicyError: One is unknown, changes its order with time, needs users' records, or is not
            compiled.

    Source:
        House rule: a rollout keeps its order, so that it costs no more than it must.

    Example:
        >>> checked_candidates(["WFP3"])
        Traceback (most recent call last):
        hpcgym.errors.PolicyError: WFP3 cannot be planned with: a candidate must keep its order ...
    """
    chosen = tuple(as_policy(candidate) for candidate in candidates)
    for policy in chosen:
        if policy.is_python or policy.keys or policy.needs_history or not policy.keeps_order:
            raise PolicyError(
                f"{policy.name} cannot be planned with: a candidate must keep its order from pass "
                "to pass and be compiled, as FCFS, SPF or SAF"
            )
    return chosen


register_policy(
    "DYNP",
    chooser=DynP(),
    source="Streit 2002, A self-tuning job scheduler family with dynamic policy switching (JSSPP)",
)
