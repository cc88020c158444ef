"""Agents that take actions `trials` without looking: controls of the network PPO-TRIALS.

hpcgym cross-validate --all PPO-TRIALS scripts/research/trial_controls.py:even ...
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent import NamedAgent, load_agent
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scheduling import SchedulingEnv

LOGS = ("kth-sp2-weeks", "ctc-sp2-weeks", "sdsc-sp2-weeks")
TRAINED = "PPO-TRIALS"


@cache
def taken() -> NDArray[np.float32]:
    """Return the actions of the network on the validation weeks of its logs, a row each."""
    agent, rows = load_agent(TRAINED), []
    assert isinstance(agent, NamedAgent)
    for log in LOGS:
        weeks = Episodes(log).select("validation")
        env = SchedulingEnv(weeks, **agent.env_keywords)
        for number in weeks.numbers:
            shown, _ = env.reset(options={"episode": number})
            is_over = False
            while not is_over:
                rows.append(agent.predict(shown)[0])
                shown, _, is_over, _, _ = env.step(rows[-1])
    return np.array(rows)


class Blind:
    """Draws actions by chance, which what is shown decides, so that runs can be made again."""

    def __init__(self, of: str) -> None:
        self.of = of

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[np.float32], Any]:
        """Return an action; arguments are those of `hpcgym.agent.base.Agent.predict`."""
        if self.of == "mean":
            return taken().mean(axis=0), state
        chance = np.random.default_rng(observation["cluster"].view(np.uint32))
        if self.of == "even":
            return chance.uniform(-1, 1, 8).astype(np.float32), state
        return taken()[chance.integers(len(taken()))], state


KEYWORDS = {"action": "trials", "n_slots": 8, "decide": 14_400, "expectations": "regression"}

even = NamedAgent("EVEN", Blind("even"), KEYWORDS)
shuffled = NamedAgent("SHUFFLED", Blind("shuffled"), KEYWORDS)
mean = NamedAgent("MEAN", Blind("mean"), KEYWORDS)
