"""Choice by replay: in each week the rule that would have served the weeks before it best.

A site keeps its accounting. Before a week begins, each rule schedules what the accounting holds of
the weeks before, and the one with the least sum of mean bounded slowdowns takes the week. A replay
takes for granted that users would have sent the same jobs at the same times under either rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.training_weeks import Training
from hpcgym.base.errors import CardError
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.schedule.simulate import simulate
from hpcgym.trace.split import logged_end_time

_known: WeakKeyDictionary[Workload, dict[tuple[RuleAgent, str], float]] = WeakKeyDictionary()
"""Mean bounded slowdown of a week under a rule and settings."""


@dataclass(frozen=True, init=False)
class ReplayAgent(RuleAgent):
    """Rules, one of which takes each week; as a rule by itself it is the first.

    The first takes weeks before which nothing is known, and those where all rules are equal.

    Raises:
        CardError: Fewer than two rules.

    Source: Specification, section 10, "Choice by replay".
    """

    rules: tuple[RuleAgent, ...] = ()  # the rules, at least two

    def __init__(
        self,
        rules: Sequence[RuleAgent],
        *,
        name: str,
        training: Training | None = None,
        **of_the_first: Any,
    ) -> None:
        if len(rules) < 2:
            raise CardError(f"{name}: a choice by replay needs at least two rules")
        first = rules[0]
        super().__init__(first.policy, policies=first.policies, name=name, **first.stated)
        object.__setattr__(self, "training", training)
        object.__setattr__(self, "rules", tuple(rules))

    @property
    def choices(self) -> tuple[RuleAgent, ...]:
        """The rules it may follow."""
        return self.rules

    def in_week(self, episodes: Episodes, index: int) -> RuleAgent:
        """Return the rule that takes the episode at a position, under the agent's name."""
        begins = episodes.workload(index).time_offset
        past = [_ended(week, begins) for week in episodes.before(index)]
        sums = [sum(_mean_bsld(week, rule, episodes) for week in past) for rule in self.rules]
        return replace(self.rules[int(np.argmin(sums))], name=self.name, training=self.training)


def _ended(week: Workload, instant: int) -> Workload:
    """Return a week without the jobs that had not ended in the log at an instant of it, s."""
    has_ended = week.time_offset + logged_end_time(week) <= instant
    return week if has_ended.all() else week.select(has_ended)


def _mean_bsld(week: Workload, rule: RuleAgent, episodes: Episodes) -> float:
    """Return the mean bounded slowdown of a week under a rule, 0 without jobs; each once."""
    if not len(week):
        return 0.0
    settings = rule.settings(episodes.settings)
    known, key = _known.setdefault(week, {}), (rule, repr(settings))
    if key not in known:
        known[key] = float(simulate(week, **vars(settings)).metrics()["mean_bsld"])
    return known[key]
