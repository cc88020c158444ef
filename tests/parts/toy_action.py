"""A kind of action in one file: the number of the slot whose job goes last in this pass.

It is what docs/extending.md shows: the class, which refuses a mode, and its kernel.
"""

import numpy as np

import hpcgym
from hpcgym.base.errors import ScenarioError
from hpcgym.core import constants as s
from hpcgym.core.action import Action
from hpcgym.core.kernels.env.actions import rank_waiting
from hpcgym.core.kernels.queue.entries import entry_of, is_overdue
from hpcgym.core.kernels.types import ActionSpec, Int, Jobs, Sim, Single


@hpcgym.register_action
class Defer(Action):
    """The job that goes last; the others go in the base order. An empty slot defers none."""

    NAME = "defer"
    SIZE = "n_slots"
    IS_VECTOR = False

    @classmethod
    def refuse(cls, mode):
        """Refuse a mode in which nobody overtakes: to defer a job would hold up all others."""
        if mode.NAME == "none":
            raise ScenarioError("action 'defer' needs a mode that backfills, not 'none'")


def act(
    jobs: Jobs, sim: Sim, action_spec: ActionSpec, slot: Int, index: int, values: Single
) -> None:
    """Rank the waiting jobs by the base rule, and put that of the slot behind all."""
    rank_waiting(jobs, sim, action_spec.base_rule, action_spec.base_weight, 0.0)
    job = slot[index]
    if job >= 0 and not is_overdue(sim, job):
        sim.key[s.PASS_ORDER, entry_of(sim, job)] = np.inf
