"""Action `index`: exponents of what is known and expected of a job, and what a delay may cost."""

from collections.abc import Sequence

import numpy as np

from hpcgym.base.errors import ScenarioError
from hpcgym.core import constants as s
from hpcgym.core.action import Action
from hpcgym.core.backfill import Backfill, Mode, as_mode
from hpcgym.core.kernels.env.actions import go_by_rule, set_rule_parameters
from hpcgym.core.kernels.types import ActionSpec, Int, Jobs, Single
from hpcgym.core.parts.cost_benefit import CostBenefit, CostBenefitSim
from hpcgym.core.policy import Policy, as_policy

NUMBERS = ("processors", "request", "run_time_ratio", "speed", "kappa")
"""What an action sets, in order."""

PROCESSORS, REQUEST, RATIO, SPEED, KAPPA = range(5)  # places of these in an action
AT_ZEROS = (0.5, 1.0, 1.0, 0.0, 1.0)  # exponents and the root of kappa, the best known constant
SAF = (0.5, 0.0, -1.0, 0.0, -1.0)  # the action that is SAF under EASY, with its order of ties

WITHOUT_BENEFIT = "cost-benefit:kappa=0"
"""The mode that an action changes where the scenario's is EASY; as it is, it is EASY."""


class Index(Action):
    """Five numbers that order jobs, and say what a backfilled job may cost the head, by regression.

    A job's score is q^(.5 + x_0) b^(1 + x_1) (expected D / b)^(1 + x_2) (expected b / D)^-x_3 with
    D = max(run time, 10 s), b = max(e, 10 s); it is SAF's at (.5, 0, -1, 0). Kappa is (1 + x_4)^2.
    """

    NAME = "index"
    SIZE = len(NUMBERS)
    LASTS = True
    USUAL_DECIDE = 14_400  # 42 times a week
    ON_NODES = False
    USUAL_SLOTS = 8  # it names none of the jobs, and what a network may learn by heart is less
    # SAF, half of SMITH-REG and all of it, half of SAF-REG and all of it, each with five kappas.
    KNOWN = tuple(
        (0.5, *order, root)
        for order in ((0, -1, 0), (0.5, -0.5, 0.5), (1, 0, 1), (0, -0.5, 0), (0, 0, 0))
        for root in (-1, -0.7, -0.5, -0.3, 0)
    )

    def policies_of(self, names: Sequence[str] | None) -> list[Policy]:
        """Return the index whose weights are set, and what it is where none is."""
        return [as_policy("SMITH-REG"), as_policy("SAF")]

    @classmethod
    def usual_mode(cls, scenarios: str | Mode) -> str | Mode:
        """Return the scenario's mode if it weighs costs, `WITHOUT_BENEFIT` in place of EASY."""
        return WITHOUT_BENEFIT if str(as_mode(scenarios)) == "easy" else scenarios

    @classmethod
    def serves(cls, mode: str | Mode) -> bool:
        """Tell whether a mode has the kappa that an action sets."""
        return as_mode(mode).NAME == CostBenefit.NAME

    @classmethod
    def refuse(cls, mode: Backfill) -> None:
        """Refuse modes that weigh no costs."""
        if not cls.serves(mode):
            raise ScenarioError(
                f"action 'index' sets the kappa of cost-benefit backfilling, which backfill "
                f"'{mode}' does not have; choose {WITHOUT_BENEFIT!r}, or action 'weights'"
            )


def act(
    jobs: Jobs, sim: CostBenefitSim, action_spec: ActionSpec, slot: Int, index: int, values: Single
) -> None:
    """Set what an action says until the next decision.

    Writes what `go_by_rule` writes, the parameters of `PASS_ORDER`, and `kappa`.

    Source: Specification, section 10, "Index".
    """
    root = AT_ZEROS[KAPPA] + np.float64(values[KAPPA])
    sim.kappa = root * root
    moved = 0.0
    for column in range(KAPPA):
        moved += abs(np.float64(values[column]) - SAF[column])
    if moved == 0.0:  # exactly SAF: logarithms would break its ties by how they round
        set_rule_parameters(sim, action_spec.rule_weight[1])
        go_by_rule(jobs, sim, action_spec.rule[1])
        return
    set_rule_parameters(sim, action_spec.rule_weight[0])
    weight = sim.weight[s.PASS_ORDER]
    weight[s.TERM_PROCESSORS] = AT_ZEROS[PROCESSORS] + np.float64(values[PROCESSORS])
    weight[s.TERM_REQUEST] = AT_ZEROS[REQUEST] + np.float64(values[REQUEST])
    weight[s.TERM_REGRESSED_RUN_TIME_RATIO] = AT_ZEROS[RATIO] + np.float64(values[RATIO])
    weight[s.TERM_REGRESSED_SPEED] = AT_ZEROS[SPEED] - np.float64(values[SPEED])
    go_by_rule(jobs, sim, action_spec.rule[0])
