"""Action `job`: the job that goes first."""

from hpcgym.base.errors import ScenarioError
from hpcgym.core.action import Action
from hpcgym.core.backfill import Backfill
from hpcgym.core.kernels.env.actions import order_picked_first
from hpcgym.core.kernels.types import ActionSpec, Int, Jobs, Sim, Single
from hpcgym.core.own_backfill import refuse_own


class Job(Action):
    """The job that goes first.

    If it starts, the next decision is at the same instant, as long as the pass is contested; if
    not, it holds the reservation in this pass. An empty slot means the first job of the base order
    and counts in `info["invalid_actions"]`.
    """

    NAME = "job"
    SIZE = "n_slots"
    IS_VECTOR = False
    TAKES = ("invalid",)

    @classmethod
    def refuse(cls, mode: Backfill) -> None:
        """Refuse modes in Python, and those whose reservations outlast a pass."""
        refuse_own(mode, "action 'job'", "choose action 'order', 'policy' or 'weights'")
        if mode.keeps_reservations:
            raise ScenarioError(
                f"action 'job' starts or reserves one job at a time, but backfill "
                f"'{mode}' keeps every reservation; choose action 'order', "
                "'policy' or 'weights', or backfill 'conservative'"
            )


def act(
    jobs: Jobs, sim: Sim, action_spec: ActionSpec, slot: Int, index: int, values: Single
) -> None:
    """Put the job of a slot first."""
    order_picked_first(jobs, sim, slot[index], action_spec.base_rule, action_spec.base_weight)
