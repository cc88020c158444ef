"""Action `order`: a score for each visible job."""

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.action import Action
from hpcgym.core.kernels.env.actions import is_rule_of_base, keeps_orders, rank_waiting
from hpcgym.core.kernels.env.observation import count_visible
from hpcgym.core.kernels.queue.entries import entry_of, is_overdue
from hpcgym.core.kernels.types import ActionSpec, Int, Jobs, Sim, Single


class Order(Action):
    """A score for each visible job.

    Hidden jobs follow in the base order; scores of empty slots are ignored.
    """

    NAME = "order"
    SIZE = "n_slots"


def act(
    jobs: Jobs, sim: Sim, action_spec: ActionSpec, slot: Int, index: int, values: Single
) -> None:
    """Order this pass by scores of the visible jobs; the others follow by the base rule.

    Writes keys of `PASS_ORDER`, `scratch`, and `ordered`, or `n_ahead` where the others are in the
    base order.
    """
    rule, weight, shown = action_spec.base_rule, action_spec.base_weight, count_visible(slot)
    if (
        shown < sim.n_waiting
        and sim.n_overdue == 0
        and keeps_orders(jobs, sim)
        and is_rule_of_base(sim, rule, weight)
    ):
        for position in range(shown):
            sim.scratch[position] = slot[position]
            sim.key[s.PASS_ORDER, entry_of(sim, slot[position])] = np.float64(values[position])
        sim.n_ahead = shown
        return
    if shown < sim.n_waiting:
        rank_waiting(jobs, sim, rule, weight, 2.0)  # scores are at most 1, so these follow
    for position in range(shown):
        job = slot[position]
        sim.key[s.PASS_ORDER, entry_of(sim, job)] = (
            -np.inf if is_overdue(sim, job) else np.float64(values[position])
        )
    sim.ordered = 1
