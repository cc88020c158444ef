"""Rules as agents: a constant choice among the ordering policies of the environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.base import Observation, batch_size
from hpcgym.agent.training_weeks import Training
from hpcgym.base.errors import CardError, unknown_name
from hpcgym.base.keywords import refuse_unknown
from hpcgym.core.backfill import as_mode
from hpcgym.core.policy import AnyPolicy, Policy, as_policy
from hpcgym.core.setting_list import settings_of_rules
from hpcgym.core.settings import SchedulerSettings

if TYPE_CHECKING:
    from hpcgym.env.scenario.episodes import Episodes

_STATED = settings_of_rules("environment", "parameters")
_Stated: Any = make_dataclass("_Stated", [(name, Any, None) for name in _STATED], frozen=True)


@dataclass(frozen=True, init=False)
class RuleAgent(_Stated):  # type: ignore[misc]  # which settings, their list says
    """An agent that always chooses the same ordering policy.

    An evaluation runs it by `hpcgym.simulate`. Through the environment it makes the same schedule,
    to the second. It may state settings, which are attributes, None = the scenario's. Which, says
    `of_rules` of `hpcgym.core.setting_list.Setting`.

    Attributes:
        name: What tables call it.
        policy: The policy it chooses.
        policies: What the environment offers to choose from, `policy` among them.
        training: As of `NamedAgent`, as the next.
        ended_at_start: Whether it is what a search began at.

    Raises:
        PolicyError: An unknown policy, backfilling mode or predictor.
        CardError: The policy is not among those offered.

    Source: Specification, section 10, "Action semantics".

    Example:
        >>> RuleAgent("SAF", policies=["FCFS", "SAF"]).predict({"cluster": np.zeros(4)})
        (array(1), None)
    """

    name: str
    policy: Policy
    policies: tuple[Policy, ...]
    training: Training | None
    ended_at_start: bool = field(default=False, compare=False, repr=False)

    def __init__(
        self,
        policy: AnyPolicy,
        *,
        policies: Sequence[AnyPolicy] | None = None,
        name: str | None = None,
        training: Training | None = None,
        ended_at_start: bool = False,
        **stated: Any,
    ) -> None:
        refuse_unknown("setting of a rule", stated, _STATED)
        stated = {key: value for key, value in stated.items() if value is not None}
        chosen = as_policy(policy)
        offered = (chosen,) if policies is None else tuple(map(as_policy, policies))
        names = [each.name for each in offered]
        if chosen.name not in names:
            raise CardError(unknown_name("choice of policy", chosen.name, names))
        object.__setattr__(self, "name", chosen.name if name is None else name)
        object.__setattr__(self, "policy", offered[names.index(chosen.name)])
        object.__setattr__(self, "policies", offered)
        for key, read in (("backfill", as_mode), ("backfill_order", as_policy)):
            if key in stated:
                stated[key] = read(stated[key])
        for key in _STATED:
            object.__setattr__(self, key, stated.get(key))
        object.__setattr__(self, "training", training)
        object.__setattr__(self, "ended_at_start", ended_at_start)
        self.settings(SchedulerSettings())

    @property
    def env_keywords(self) -> dict[str, Any]:
        """Keywords of `HPCBatch-v0` under which its action means its policy.

        Raises:
            CardError: It states estimates, which the environment takes from the scenario alone.
        """
        stated = self.stated
        if stated.keys() & settings_of_rules("parameters"):
            raise CardError(
                f"{self.name} plans with estimates of its own, and HPCBatch-v0 with the "
                "scenario's; hpcgym.evaluate runs it, and so does hpcgym.simulate"
            )
        if self.backfill is not None:
            stated["backfill"] = self.backfill.kept_as  # specs of environments are written as JSON
        return {"action": "policy", "policies": self.policies, **stated}

    def settings(self, scenario: SchedulerSettings) -> SchedulerSettings:
        """Return a scenario's settings with what the rule states in their place.

        The scenario's backfill order is left out where the rule's mode takes none.

        Source: Specification, section 10, "Episodes".

        Example:
            >>> RuleAgent("FCFS", backfill_order="SPF").settings(SchedulerSettings()).threshold
        """
        if self.backfill is not None and not self.backfill.TAKES_ORDER:
            scenario = replace(scenario, backfill_order=None)
        return replace(scenario, policy=self.policy, **self.stated)

    @property
    def choices(self) -> tuple[RuleAgent, ...]:
        """The rules that it may follow, in one week or another."""
        return (self,)

    def in_week(self, episodes: Episodes, index: int) -> RuleAgent:
        """Return the rule that it follows in the episode at a position."""
        return self

    @property
    def stated(self) -> dict[str, Any]:
        """What the rule states of the scheduler besides its policy."""
        return {name: getattr(self, name) for name in _STATED if getattr(self, name) is not None}

    def predict(
        self,
        observation: Observation,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[np.int64], tuple[NDArray[Any], ...] | None]:
        """Choose the index of the rule's policy among `policies`, shape () or (n_envs,).

        Only the batch axis of the observation is read. Arguments and results as
        `hpcgym.agent.base.Agent.predict`.
        """
        n_envs = batch_size(observation)
        shape = () if n_envs is None else (n_envs,)
        return np.full(shape, self.policies.index(self.policy), dtype=np.int64), state
