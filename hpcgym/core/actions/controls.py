"""Action `controls`: the numbers of a cap or of cost-benefit backfilling, and the urgency."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hpcgym.base.errors import ScenarioError
from hpcgym.core import constants as s
from hpcgym.core.action import Action
from hpcgym.core.backfill import CAPPED, Backfill, Easy, Mode, as_mode
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.index_policy import urgent_policy
from hpcgym.core.kernels.env.actions import set_rule_parameters
from hpcgym.core.kernels.types import ActionSpec, Int, Jobs, Single
from hpcgym.core.parts.cost_benefit import CostBenefit, CostBenefitSim
from hpcgym.core.policy import Policy, as_policy

CONTROLS = ("kappa", "cap", "long", "urgency")  # what an action sets, in order
KAPPA, CAP, LONG, URGENCY = range(4)  # places of these in an action

CONTROLLED = "cost-benefit:cap=0.97"
"""The mode that controls change unless another is named, that of URGENT-BENEFIT."""

CAP_SPAN, LONG_SPAN = 2.0, 8.0
"""Factors by which controls of 1 raise the cap and the bound of long jobs."""


class Controls(Action):
    """How far long jobs and jobs that delay others are held back, until the next decision.

    The order is that of SMITH-URGENT.
    """

    NAME = "controls"
    SIZE = len(CONTROLS)
    LASTS = True
    SHOWS_CONTROLS = True
    ON_NODES = False

    def policies_of(self, names: Sequence[str] | None) -> list[Policy]:
        """Return the policy whose urgency is set."""
        return [as_policy("SMITH-URGENT")]

    @classmethod
    def usual_mode(cls, scenarios: str | Mode) -> str | Mode:
        """Return the scenario's mode if it weighs costs, else `CONTROLLED`."""
        return scenarios if as_mode(scenarios).NAME == CostBenefit.NAME else CONTROLLED

    @classmethod
    def refuse(cls, mode: Backfill) -> None:
        """Refuse modes that have no numbers to set."""
        if mode.part != CAPPED:
            raise ScenarioError(
                f"action 'controls' sets the numbers of a cap or of cost-benefit backfilling, not "
                f"of backfill '{mode}'; choose {CONTROLLED!r} or 'easy:cap=0.97'"
            )


def controlled(values: Sequence[float], mode: Easy) -> tuple[Policy, Easy]:
    """Return the order and the mode that an action `controls` sets.

    Args:
        values: Numbers for `CONTROLS`, each from -1 to 1; 0 = SMITH-URGENT and the mode itself.
        mode: What controls change.

    Source: Specification, section 10, "Controls".
    """
    kappa, cap, long, urgency = map(float, values)
    changes = {"cap": mode.cap * CAP_SPAN**cap, "long": mode.long * LONG_SPAN**long}
    if mode.cap == math.inf:
        changes = {}
    if isinstance(mode, CostBenefit):
        changes["kappa"] = mode.kappa * (1 + kappa) ** 2
    return urgent_policy(s.USUAL_URGENCY[s.URGENCY] * (1 + urgency)), replace(mode, **changes)


@kernel
def set_controls(sim: CostBenefitSim, action_spec: ActionSpec, values: Single) -> None:
    """Set the order, and the numbers of the mode, until the next decision.

    Writes `order_rule`, the parameters of `PASS_ORDER`, and those of the mode.
    """
    sim.order_rule = action_spec.rule[0]
    set_rule_parameters(sim, action_spec.rule_weight[0])
    sim.weight[s.PASS_ORDER, s.URGENCY] *= 1.0 + np.float64(values[URGENCY])
    middle = action_spec.middle  # cap, long, log_long and kappa of the mode
    kappa = 1.0 + np.float64(values[KAPPA])
    long = np.float64(values[LONG])
    sim.cap = middle[0] * CAP_SPAN ** np.float64(values[CAP])
    sim.long = middle[1] * LONG_SPAN**long
    sim.log_long = middle[2] + long * math.log(LONG_SPAN)
    sim.kappa = middle[3] * kappa * kappa


def act(
    jobs: Jobs, sim: CostBenefitSim, action_spec: ActionSpec, slot: Int, index: int, values: Single
) -> None:
    """Set what an action says until the next decision.

    Source: Specification, section 10, "Controls".
    """
    set_controls(sim, action_spec, values)
