"""Action `lend`: the job that goes on trial next, once a pass has ended."""

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.action import Action
from hpcgym.core.actions.trials import Trials, refuse_without_trials
from hpcgym.core.backfill import Backfill, Mode
from hpcgym.core.kernels.types import ActionSpec, Int, Jobs, Single
from hpcgym.core.observation_fields import MAY_BE_LENT
from hpcgym.core.parts.trials import TrialSim, try_chosen


class TrialChoice(Action):
    """The slot of a job that goes on trial after the pass, or n_slots to stop.

    It takes what idles, else what young jobs give up. Decisions follow one another at an instant
    until none may go or the agent stops, in place of the rule. A slot whose job may not go means
    stop and counts in `info["invalid_actions"]`.
    """

    NAME = "lend"
    SIZE = "n_slots + 1"
    IS_VECTOR = False
    TAKES = ("invalid",)
    AFTER_PASS = True
    SHOWS_TRIALS = True
    ON_NODES = False

    @classmethod
    def usual_mode(cls, scenarios: str | Mode) -> str | Mode:
        """Return the scenario's mode if it runs trials, else that of action `trials`."""
        return Trials.usual_mode(scenarios)

    @classmethod
    def refuse(cls, mode: Backfill) -> None:
        """Refuse modes without trials."""
        refuse_without_trials(cls.NAME, mode)

    def masks(self, slot: NDArray[np.int64], jobs: NDArray[np.float32]) -> NDArray[np.int8]:
        """Return 1 for slots that hold a job that may go on trial now; to stop serves always."""
        fields = jobs.reshape(*slot.shape, -1)
        may_go = (fields[..., MAY_BE_LENT] == 1).view(np.int8)
        stop = np.ones((*slot.shape[:-1], 1), dtype=np.int8)
        return np.concatenate([may_go, stop], axis=-1)


def act(
    jobs: Jobs, sim: TrialSim, action_spec: ActionSpec, slot: Int, index: int, values: Single
) -> None:
    """Put the job of a slot on trial, or stop.

    Writes what `try_chosen` writes, `chooses` and `n_invalid`.

    Source: Specification, section 10, "Trials as actions".
    """
    stops = index == len(slot)
    if stops or slot[index] < 0 or not try_chosen(jobs, sim, slot[index]):
        sim.chooses = 0
        sim.n_invalid += int(not stops)
