"""Contests: whether an agent keeps the threshold, or treats it as it likes.

It follows from the backfilling mode and the estimates that an agent states, never from what a card
says of itself. The order does not matter: under any policy and any action of the environment jobs
beyond the threshold go first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.rule import RuleAgent
from hpcgym.core import backfill as modes
from hpcgym.core.action import kind_of
from hpcgym.core.backfill import Mode
from hpcgym.core.loaders import SIMULATORS
from hpcgym.core.predictor import as_predictor
from hpcgym.core.settings import SchedulerSettings

Contest: TypeAlias = Literal["guarded", "open", "requeue", "-"]
"""Whether jobs beyond the threshold are safe from the agent; "requeue": jobs that run are not.

"-" where it cannot be known.
"""

UNKNOWN: Contest = "-"


def contest_of(agent: RuleAgent | NamedAgent, scenario: SchedulerSettings) -> Contest:
    """Return the contest that an agent takes part in under a scenario's settings.

    Without a threshold there is nothing to guard, and so no contest.
    """
    if scenario.threshold is None:
        return UNKNOWN
    if isinstance(agent, RuleAgent):
        contests = {
            contest_by(choice.backfill or scenario.backfill, choice.estimates)
            for choice in agent.choices
        }
        freest: tuple[Contest, ...] = (UNKNOWN, "requeue", "open", "guarded")
        return next(contest for contest in freest if contest in contests)
    return contest_by(mode_in_env(agent.env_keywords, scenario.backfill))


def mode_in_env(keywords: Mapping[str, Any], scenarios: str | Mode) -> object:
    """Return the backfilling mode of an environment with keywords, given the scenario's."""
    if stated := keywords.get("backfill"):
        return stated  # and no kernels are loaded
    action = keywords.get("action")
    return scenarios if action is None else kind_of(action).usual_mode(scenarios)


def contest_by(backfill: object, estimates: str | None = None) -> Contest:
    """Return the contest of a backfilling mode, under a threshold.

    Args:
        backfill: The mode, or its text.
        estimates: What the agent plans with, where that is not the scenario's. Predictions may be
            too short, and then the head's reservation does not hold.

    Raises:
        PolicyError: No such mode or predictor.

    Source: Specification, section 10, "Contests".
    """
    if str(backfill).partition(":")[0] in SIMULATORS:
        return "open"  # whatever simulates jobs in its own way knows no head; it loads slowly
    mode = modes.as_backfill(backfill)
    if mode.requeues:
        return "requeue"
    guards = mode.guards
    if guards is None:
        return UNKNOWN
    predicts = estimates is not None and as_predictor(estimates).online
    return "guarded" if guards and not predicts else "open"
