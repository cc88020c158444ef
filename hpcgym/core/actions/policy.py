"""Action `policy`: the policy that orders a pass."""

from collections.abc import Iterable, Sequence

from hpcgym.base.errors import ScenarioError
from hpcgym.core.action import Action
from hpcgym.core.kernels.env.actions import go_by_rule, set_rule_parameters
from hpcgym.core.kernels.types import ActionSpec, Int, Jobs, Sim, Single
from hpcgym.core.policy import Policy, as_policy, policy_names, refuse_as_choice

AFTER_V0 = ("SMITH-URGENT",)
"""Policies newer than `HPCBatch-v0`, whose actions stay as they are. They can be named."""


class PolicyChoice(Action):
    """The policy that orders this pass."""

    NAME = "policy"
    SIZE = "len(policies)"
    IS_VECTOR = False
    TAKES = ("policies",)
    LASTS = True

    def policies_of(self, names: Sequence[str] | None) -> list[Policy]:
        """Return the policies to choose among, in the order given.

        Without names these are all that a step can run: those that do not order in Python, but for
        `AFTER_V0`.

        Raises:
            PolicyError: An unknown name, or one that is no choice.
            ScenarioError: There is none.
        """
        if names is None:
            every = [as_policy(name) for name in policy_names() if name not in AFTER_V0]
            return [policy for policy in every if not policy.is_python]
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ScenarioError(f"policies must be a list of names, got {names!r}")
        chosen = [as_policy(name) for name in names]
        refuse_as_choice(chosen)
        if not chosen:
            raise ScenarioError("action 'policy' needs at least one policy to choose among")
        return chosen


def act(
    jobs: Jobs, sim: Sim, action_spec: ActionSpec, slot: Int, index: int, values: Single
) -> None:
    """Order by the rule of the policy with a number."""
    set_rule_parameters(sim, action_spec.rule_weight[index])
    go_by_rule(jobs, sim, action_spec.rule[index])
