"""How the scheduler works, and which combinations of settings are refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, get_args

import numpy as np

from hpcgym.base.errors import LARGEST_WHOLE, PolicyError, unknown_name
from hpcgym.base.keywords import documented
from hpcgym.core import loaders
from hpcgym.core.backfill import as_backfill, as_mode
from hpcgym.core.events import Event, as_events
from hpcgym.core.pairs import ground, parts_of, refuse
from hpcgym.core.policy import Chooser, Policy, as_policy
from hpcgym.core.predictor import CORRECTIONS, Predictor, as_predictor
from hpcgym.core.requests import PLACEMENTS
from hpcgym.core.setting_list import Dependence, EventSemantics, SettingList

if TYPE_CHECKING:
    from hpcgym.machine import Machine


@documented(SettingList)
@dataclass(frozen=True)
class SchedulerSettings(SettingList):
    """How the scheduler works; an agent and the baselines it is compared with share them.

    A mode given as text, and a policy of your own, are kept as the objects that they mean.

    Attributes:
        KEYWORDS

    Raises:
        PolicyError: An unknown name, a threshold below 0 or not whole, or a contradiction.

    Source: Specification, section 1.
    """

    def __post_init__(self) -> None:
        self._read_simulator()
        for key in ("policy", "backfill_order"):
            given = getattr(self, key)
            chosen = None if given is None else as_policy(given)
            is_family = isinstance(given, str) and chosen is not None and chosen.is_own_order
            if isinstance(given, Chooser) or callable(given) or is_family:
                object.__setattr__(self, key, chosen)  # so that it shows its name, and is read once
        object.__setattr__(self, "backfill", as_mode(self.backfill))
        object.__setattr__(self, "events", as_events(self.events))
        self._refuse_unknown()
        refuse(permutations(parts_of(self), 2))
        self._refuse_pyss()

    def _refuse_unknown(self) -> None:
        names = {
            "event_semantics": get_args(EventSemantics),
            "placement": tuple(PLACEMENTS),
            "correction": tuple(CORRECTIONS),
            "dependencies": get_args(Dependence),
        }
        for key, allowed in names.items():
            name = getattr(self, key)
            if not isinstance(name, str) or name not in allowed:
                raise PolicyError(unknown_name(key, name, allowed))
        if self.threshold is not None and not (
            isinstance(self.threshold, (int, float, np.number))
            and not isinstance(self.threshold, bool)
            and 0 <= self.threshold <= LARGEST_WHOLE
            and self.threshold % 1 == 0
        ):
            raise PolicyError(
                f"threshold must be whole seconds from 0 to {LARGEST_WHOLE} or None, got "
                f"{self.threshold!r}"
            )
        order = None if self.backfill_order is None else as_policy(self.backfill_order)
        if order is not None and order.chooser is not None:
            raise PolicyError(f"{order.name} chooses the primary order, not a backfill order")

    def _refuse_pyss(self) -> None:
        """Refuse semantics that count processors as free which are not."""
        predictor = self.predictor
        falls_short = predictor is None or predictor.online
        if self.event_semantics == "pyss" and not (
            self.kill_at_limit and (self.correction != "none" or not falls_short)
        ):
            raise PolicyError(
                "event_semantics 'pyss' counts a job's processors as free at its estimated end, so "
                "it needs kill_at_limit=True and, where a job may outlive its estimate, a "
                f"correction; got estimates {self.estimates!r}, kill_at_limit={self.kill_at_limit}"
            )

    def refuse_on(self, machine: Machine | None) -> None:
        """Refuse what does not go with a machine; None = processors are counted.

        Raises:
            PolicyError: A part that does not.
        """
        on = ground(machine)
        refuse((part, on) for part in parts_of(self))

    def _read_simulator(self) -> None:
        """Take a mode with its own simulator where it stands as the policy, as "recorded" may."""
        given = self.policy
        if not isinstance(given, str) or given.partition(":")[0].lower() not in loaders.SIMULATORS:
            return
        if str(self.backfill) not in ("easy", given.lower()):
            raise PolicyError(
                f"policy {given!r} has no pass to backfill in; leave backfill '{self.backfill}' out"
            )
        object.__setattr__(self, "backfill", given.lower())
        object.__setattr__(self, "policy", "FCFS")

    @property
    def no_waits(self) -> str:
        """Name what cannot be where jobs wait for others or are held; "" = nothing."""
        lacking = [part for part in parts_of(self) if "waits" in part.lacks]
        return f"{lacking[0].text}, {lacking[0].lacks['waits']}," if lacking else ""

    @property
    def predictor(self) -> Predictor | None:
        """Return where the estimates come from, None where they are an array."""
        if isinstance(self.estimates, (str, Predictor)) or callable(self.estimates):
            return as_predictor(self.estimates)
        return None

    @property
    def requeues(self) -> bool:
        """Tell whether jobs may be taken off the machine, and wait again."""
        return as_mode(self.backfill).requeues or any(
            event.requeues for event in as_events(self.events)
        )

    def on(self, machine: Machine | None) -> SchedulerSettings:
        """Return the settings with the outages that a machine of nodes states beside the events.

        Raises:
            PolicyError: Settings that contradict outages.
        """
        events = as_events(self.events)
        kind = loaders.EVENTS["outage"] if machine is not None and machine.outages else None
        stated = [kind(**vars(outage)) for outage in machine.outages] if machine and kind else []
        more = [outage for outage in stated if outage not in events]
        return replace(self, events=(*events, *more)) if more else self

    @property
    def _keeping(self) -> list[Policy]:
        """Return the policies that have what they go by kept."""
        given = (each for each in (self.policy, self.backfill_order) if each is not None)
        return [policy for policy in map(as_policy, given) if policy.keeps is not None]

    @property
    def kept(self) -> tuple[Event, ...]:
        """Return the events that keep what the policies go by.

        Raises:
            PolicyError: Two policies go by what is not the same.
        """
        kept = [policy.keeps for policy in self._keeping]
        if len(kept) > 1 and kept[0] != kept[1]:
            raise PolicyError(
                f"{self._keeping[0].name!r} and {self._keeping[1].name!r} count usage in two ways; "
                "a simulation has one"
            )
        return tuple(event for event in kept[:1] if event is not None)

    def parts(self, on_nodes: bool) -> tuple[int, ...]:
        """Return the numbers of what makes the passes, on nodes or not, and of the events."""
        events = [event.number for event in (*as_events(self.events), *self.kept)]
        return (as_backfill(self.backfill).asked(on_nodes)[0], *events)

    @property
    def moves_estimates(self) -> bool:
        """Tell whether estimates are predicted or corrected while the simulation runs."""
        predictor = self.predictor
        return self.correction != "none" or (predictor is not None and predictor.online)
