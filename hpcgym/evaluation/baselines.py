"""Lines to read a table by: what is achieved today, and what knowing the future would give.

Clairvoyant orders know run times; EASY still plans with requests, so that they say what the right
order alone would be worth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.search import W_TRAIN
from hpcgym.agent.weights import weights_agent
from hpcgym.core.episode import SchedulerSettings, executed_run_time
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.policy import Policy
from hpcgym.core.state import N_WEIGHTS, RULE_KEYS
from hpcgym.core.workload import Workload
from hpcgym.scenario.episodes import Episodes

Kind = Literal["achievable", "hindsight", "clairvoyant"]
"""Whether a scheduler could be it: "hindsight" has seen the very week before, "clairvoyant" knows
run times."""

RULES = (
    "FCFS",
    "SPF",
    "SAF",
    "F1",
    "EASY-PLUS-PLUS",
    "MULTI-QUEUE-ADAPTIVE-DELAY",
    "DYNP",
)
"""Agents of the shelf that every table shows."""

TRAINED = "w*train"
HINDSIGHT = "w*"
HINDSIGHT_ON_COPIES = "w* on copies"
"""Weights found on a week's original, and what they are worth on its jittered copies."""

HINDSIGHT_EVALUATIONS = 600
"""Weight vectors that are tried on each week."""

FloatArray = NDArray[np.float64]


def _shortest(q: FloatArray, p: FloatArray) -> FloatArray:
    """Return the run time."""
    return p


def _smallest(q: FloatArray, p: FloatArray) -> FloatArray:
    """Return the area."""
    return q * p


def _smith(q: FloatArray, p: FloatArray) -> FloatArray:
    """Return work over weight, where waiting costs 1 / max(p, 10 s) per second."""
    return q * p * np.maximum(p, BSLD_BOUND_S)


_CLAIRVOYANT: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "clairvoyant SPF": _shortest,
    "clairvoyant SAF": _smallest,
    "clairvoyant SMITH": _smith,
}

UNACHIEVABLE = (HINDSIGHT, HINDSIGHT_ON_COPIES, *_CLAIRVOYANT)
"""Names that say that no scheduler could be it."""

REFERENCES = (*RULES, TRAINED, HINDSIGHT, *_CLAIRVOYANT)
"""Every line of reference, by name; `w*` brings `w* on copies` along."""


def clairvoyant(name: str, settings: SchedulerSettings) -> RuleAgent:
    """Return an agent that orders by run times.

    Args:
        name: "clairvoyant SPF", "clairvoyant SAF", or "clairvoyant SMITH", the index q p max(p, 10
            s).
        settings: Whether jobs are killed at their requests.

    Returns:
        The agent; like any rule it plans with the scenario's estimates.

    Source:
        Specification, section 10, "Information" and "Evaluation protocol", step 5.

    Example:
        >>> clairvoyant("clairvoyant SPF", SchedulerSettings()).name
        'clairvoyant SPF'
    """
    keys = partial(_keys_of, name=name, killed=settings.kill_at_limit)
    policy = Policy(name, RULE_KEYS, np.zeros(N_WEIGHTS), "run times as executed", keys=keys)
    return RuleAgent(policy)


def _keys_of(workload: Workload, *, name: str, killed: bool) -> FloatArray:
    """Return what a clairvoyant order sorts by, of run times as executed."""
    p = executed_run_time(workload, killed)
    return _CLAIRVOYANT[name](workload.processors.astype(np.float64), p.astype(np.float64))


def best_of_week(episodes: Episodes, number: int, seed: int) -> RuleAgent:
    """Search the weights that are best on one week, having seen it.

    Args:
        episodes: The weeks.
        number: Number of the week.
        seed: Seed of the search.

    Returns:
        The agent.

    Source:
        RR-9212, section 7.1: w*.
    """
    week = [episodes.select(str(number))]
    generator = np.random.default_rng([seed, number])
    weights = replace(W_TRAIN, evaluations=HINDSIGHT_EVALUATIONS).search(week, generator)
    agent = weights_agent(weights, week, name=HINDSIGHT)
    assert isinstance(agent, RuleAgent)
    return agent
