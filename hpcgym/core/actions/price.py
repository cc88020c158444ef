"""Action `price`: how much a delay must save, and how much of the machine long jobs hold."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hpcgym.base.errors import ScenarioError
from hpcgym.core.action import Action
from hpcgym.core.events import Event
from hpcgym.core.kernels.types import ActionSpec, Int, Jobs, Single
from hpcgym.core.observation_fields import PriceField
from hpcgym.core.parts.price import PriceSim, set_price_controls
from hpcgym.core.price import Price

KAPPA, CAP = range(2)  # places of the numbers of an action
KAPPA_SPAN = 1.5  # powers of ten by which 1 raises kappa

USUAL_CAP, CAP_SPAN, LEAST_CAP = 0.95, 0.6, 0.3
"""What 0 means, what 1 adds, and the least share of the machine that long jobs may hold."""

USUAL: dict[str, Any] = {"kappa": 100, "power": 0.25, "cap": USUAL_CAP}
"""Parameters of the event whose starts actions of zeros have."""


class PriceChoice(Action):
    """Kappa of the event `price` in powers of 10^1.5, and the cap of long jobs, for an hour.

    Zeros mean `kappa=100,power=0.25,cap=0.95`. The cap is .95 + .6 times the second number, at
    least .3 and at most 1.
    """

    NAME = "price"
    SIZE = 2
    LASTS = True
    ON_NODES = False
    USUAL_DECIDE = 3600
    USUAL_SLOTS = 1
    FIELDS = PriceField

    @classmethod
    def events_of(cls, events: Sequence[Event]) -> tuple[Event, ...]:
        """Have the price hold jobs back, unless it does already.

        Raises:
            ScenarioError: There is no price.
        """
        if not any(isinstance(event, Price) for event in events):
            raise ScenarioError(
                "action 'price' needs the event 'price', as in [scheduler] "
                'events = "price:seed=1"'
            )
        return tuple(
            replace(event, **USUAL) if isinstance(event, Price) and not event.holds else event
            for event in events
        )


def act(
    jobs: Jobs, sim: PriceSim, action_spec: ActionSpec, slot: Int, index: int, values: Single
) -> None:
    """Set what holds until the next hour.

    Writes what `set_price_controls` writes.

    Source: Specification, section 17, "Action".
    """
    kappa = 10.0 ** (KAPPA_SPAN * np.float64(values[KAPPA]))
    cap = USUAL_CAP + CAP_SPAN * np.float64(values[CAP])
    set_price_controls(sim, kappa, min(max(cap, LEAST_CAP), 1.0))
