"""Registers the policies of this room by name; each is loaded when its name is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcgym.core import loaders

if TYPE_CHECKING:
    from hpcgym.core.policy import Policy


def _dynp() -> Policy:
    """Load dynP."""
    from hpcgym.policies.dynp import DYNP

    return DYNP


def _planner() -> Policy:
    """Load the planner."""
    from hpcgym.policies.planner import PLANNER

    return PLANNER


def _epsilon_greedy() -> Policy:
    """Load the bandit that explores by chance."""
    from hpcgym.policies.bandit import bandit_policy

    return bandit_policy("epsilon-greedy")


def _ucb() -> Policy:
    """Load the bandit that explores by upper confidence bounds."""
    from hpcgym.policies.bandit import bandit_policy

    return bandit_policy("ucb")


def _exp3() -> Policy:
    """Load the bandit that explores by weights."""
    from hpcgym.policies.bandit import bandit_policy

    return bandit_policy("exp3")


loaders.POLICIES.update(
    {
        "DYNP": _dynp,
        "PLANNER": _planner,
        "BANDIT-EPSILON-GREEDY": _epsilon_greedy,
        "BANDIT-UCB": _ucb,
        "BANDIT-EXP3": _exp3,
    }
)
