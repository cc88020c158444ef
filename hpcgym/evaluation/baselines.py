"""Baselines: what agents are compared with, from rules in use today to orders that know the future.

A clairvoyant order knows run times. EASY still plans with requests, so its metrics show what the
right order alone would be worth.
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
from hpcgym.core.constants import N_WEIGHTS
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.policy import KEYS, Policy
from hpcgym.core.prepare import executed_run_time
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes

Kind = Literal["achievable", "hindsight", "clairvoyant"]
"""Whether a scheduler could be it: "hindsight" has seen the very week before, "clairvoyant" knows
run times."""

RULES = ("FCFS", "SPF", "SAF", "F1", "EASY-PLUS-PLUS", "MULTI-DELAY", "DYNP")
"""Baselines that are agents of the shelf."""

TRAINED = "w*train"
HINDSIGHT = "w*"
HINDSIGHT_ON_COPIES = "w* on copies"
"""The best weights of a week's original, and the same weights on its jittered copies."""

HINDSIGHT_EVALUATIONS = 600  # weight vectors that are tried on each week

FloatArray = NDArray[np.float64]


_CLAIRVOYANT: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "KNOWS-SPF": lambda q, p: p,
    "KNOWS-SAF": lambda q, p: q * p,
    "KNOWS-SMITH": lambda q, p: q * p * np.maximum(p, BSLD_BOUND_S),
}
"""Sort keys by processors and run time; SMITH's is work over what a second of waiting costs, 1 /
max(p, 10 s)."""

UNACHIEVABLE = (HINDSIGHT, HINDSIGHT_ON_COPIES, *_CLAIRVOYANT)
"""Baselines that no scheduler could be."""

BASELINES = (*RULES, TRAINED, HINDSIGHT, *_CLAIRVOYANT)
"""Every baseline by name; `w*` adds `w* on copies`."""


def clairvoyant(name: str, settings: SchedulerSettings) -> RuleAgent:
    """Return an agent that orders by run times, and plans with the scenario's estimates.

    Args:
        name: "KNOWS-SPF", "KNOWS-SAF", or "KNOWS-SMITH", the index q p max(p, 10 s).
        settings: Whether jobs are killed at their requests.

    Source: Specification, section 10, "Information" and "Evaluation protocol", step 5.
    """
    keys = partial(_keys_of, name=name, killed=settings.kill_at_limit)
    policy = Policy(name, KEYS, np.zeros(N_WEIGHTS), "run times as executed", keys=keys)
    return RuleAgent(policy)


def _keys_of(workload: Workload, *, name: str, killed: bool) -> FloatArray:
    """Return the sort key of every job, of run times as executed."""
    p = executed_run_time(workload, killed)
    return _CLAIRVOYANT[name](workload.processors.astype(np.float64), p.astype(np.float64))


def best_of_week(episodes: Episodes, number: int, seed: int) -> RuleAgent:
    """Search the weights that are best on one week, given that very week.

    Source: RR-9212, section 7.1: w*.
    """
    week = [episodes.select(str(number))]
    generator = np.random.default_rng([seed, number])
    weights = replace(W_TRAIN, evaluations=HINDSIGHT_EVALUATIONS).search(week, generator)
    agent = weights_agent(weights, week, name=HINDSIGHT)
    assert isinstance(agent, RuleAgent)
    return agent
