"""Registers the policies of this room by name; each is loaded when its name is first used."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hpcgym.core import loaders

if TYPE_CHECKING:
    from hpcgym.core.policy import Policy
    from hpcgym.policies.bandit import Algorithm


def _dynp() -> Policy:
    """Load dynP."""
    from hpcgym.policies.dynp import DYNP

    return DYNP


def _planner() -> Policy:
    """Load the planner."""
    from hpcgym.policies.planner import PLANNER

    return PLANNER


def _bandit(algorithm: Algorithm) -> Policy:
    """Load the bandit of an algorithm."""
    from hpcgym.policies.bandit import bandit_policy

    return bandit_policy(algorithm)


loaders.POLICIES.update(
    {
        "DYNP": _dynp,
        "PLANNER": _planner,
        "BANDIT-EPSILON-GREEDY": partial(_bandit, "epsilon-greedy"),
        "BANDIT-UCB": partial(_bandit, "ucb"),
        "BANDIT-EXP3": partial(_bandit, "exp3"),
    }
)
