"""Action `weights`: an order by a weighted sum of features."""

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.action import Action
from hpcgym.core.features import FEATURES
from hpcgym.core.kernels.env.actions import go_by_rule
from hpcgym.core.kernels.types import ActionSpec, Int, Jobs, Sim, Single


class Weights(Action):
    """Weights of (q, e, wait, e/q, (wait+e)/e, e q), L1-normalised; zero means FCFS.

    The features are divided by (M, E, T, E, 1 + T/3600, M E) first; T is the threshold, or 3 E
    without one.
    """

    NAME = "weights"
    SIZE = len(FEATURES)
    LASTS = True


def act(
    jobs: Jobs, sim: Sim, action_spec: ActionSpec, slot: Int, index: int, values: Single
) -> None:
    """Order by the rule that the weights make."""
    weight, norm = sim.weight[s.PASS_ORDER], 0.0
    for feature in range(6):
        norm += abs(np.float64(values[feature]))
    if norm == 0.0:
        weight[0] = 1.0
    else:
        for feature in range(6):
            weight[feature] = np.float64(values[feature]) / norm / action_spec.divisor[feature]
    go_by_rule(jobs, sim, s.RULE_SUBMIT if norm == 0.0 else s.RULE_WEIGHTS)
