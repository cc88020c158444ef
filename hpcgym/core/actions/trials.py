"""Action `trials`: the numbers of `controls`, and those of trial runs."""

import math

import numpy as np

from hpcgym.base.errors import ScenarioError
from hpcgym.core.actions.controls import CONTROLS, Controls, set_controls
from hpcgym.core.backfill import Backfill, Mode, as_mode
from hpcgym.core.kernels.types import ActionSpec, Int, Jobs, Single
from hpcgym.core.parts.trials import TrialSim

NUMBERS = (*CONTROLS, "limit", "kept", "young", "victim")  # what an action sets, in order

LIMIT, KEPT, YOUNG, VICTIM = range(len(CONTROLS), len(NUMBERS))
"""Places of what controls do not set."""

USUAL_MODE = "cost-benefit:cap=0.97,widest=0.2+trial:young=1800,victim=0.25"
"""The mode that an action changes unless another is named, that of URGENT-YOUNG."""


class Trials(Controls):
    """As `controls`, and how far trial runs go, until the next decision.

    A trial keeps the limit that it began with.
    """

    NAME = "trials"
    SIZE = len(NUMBERS)
    SHOWS_TRIALS = True

    @classmethod
    def usual_mode(cls, scenarios: str | Mode) -> str | Mode:
        """Return the scenario's mode if it runs trials, else `USUAL_MODE`."""
        return scenarios if as_mode(scenarios).requeues else USUAL_MODE

    @classmethod
    def refuse(cls, mode: Backfill) -> None:
        """Refuse modes without trials."""
        if not mode.requeues:
            raise ScenarioError(
                f"action {cls.NAME!r} decides about trial runs, of which backfill '{mode}' knows "
                f"none; choose {USUAL_MODE!r} or 'easy+trial'"
            )


def act(
    jobs: Jobs, sim: TrialSim, action_spec: ActionSpec, slot: Int, index: int, values: Single
) -> None:
    """Set what controls set, and how far trials go, until the next decision.

    Writes what `set_controls` writes, `limit`, `kept`, `young` and `victim`.

    Source: Specification, section 10, "Controls" and "Trials as actions".
    """
    set_controls(sim, action_spec, values)
    middle = action_spec.middle  # limit, young and victim of the mode in places 9, 11 and 16
    limit = 1.0 + np.float64(values[LIMIT])
    young = 1.0 + np.float64(values[YOUNG])
    victim = 1.0 + np.float64(values[VICTIM])
    sim.limit = math.floor(middle[9] * limit * limit)
    sim.kept = math.floor(max(np.float64(values[KEPT]), 0.0) * sim.machine_processors)
    sim.young = middle[11] * young * young
    sim.victim = min(middle[16], 1.0) * victim * victim  # no job is wider than the machine
