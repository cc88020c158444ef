"""How the scheduler works, and which combinations of settings are refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.core.backfill import Backfill, Easy, Mode, as_backfill, as_mode, order_refused
from hpcgym.core.events import Event, as_events
from hpcgym.core.policy import Chooser, Policy, as_policy
from hpcgym.core.predictor import CORRECTIONS, Predictor, as_predictor
from hpcgym.core.requests import PLACEMENTS
from hpcgym.core.setting_list import Dependence, EventSemantics, SettingList
from hpcgym.errors import LARGEST_WHOLE, PolicyError, unknown_name
from hpcgym.keywords import documented

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
        """Refuse what cannot be simulated, naming what is allowed."""
        self._read_simulator()
        for key in ("policy", "backfill_order"):
            given = getattr(self, key)
            chosen = None if given is None else as_policy(given)
            is_family = isinstance(given, str) and chosen is not None and chosen.is_own_order
            if isinstance(given, Chooser) or callable(given) or is_family:
                object.__setattr__(self, key, chosen)  # so that it shows its name, and is read once
        mode = as_mode(self.backfill)
        object.__setattr__(self, "backfill", mode)
        object.__setattr__(self, "events", as_events(self.events))
        if self.events and not (isinstance(mode, Backfill) and self.event_semantics == "batch"):
            raise PolicyError(
                f"event '{self.events[0]}' needs a backfilling mode and event_semantics 'batch'; "
                f"got '{mode}' and '{self.event_semantics}'"
            )
        if self.kept and not (isinstance(mode, Backfill) and self.event_semantics == "batch"):
            raise PolicyError(
                f"policy {self._keeping[0].name!r} needs a backfilling mode and event_semantics "
                f"'batch'; got '{mode}' and '{self.event_semantics}'"
            )
        makers = {event.number: event for event in as_events(self.events) if event.MAKES_PASSES}
        if len(makers) > 1:
            first, second, *_ = makers.values()
            raise PolicyError(
                f"events '{first}' and '{second}' both make the passes; leave one of them out"
            )
        for event in as_events(self.events):
            event.check_mode(mode)
            if event.requeues and self.correction != "none":
                raise PolicyError(
                    f"event '{event}' has jobs start several times, each by one estimate; choose "
                    f"correction 'none', got {self.correction!r}"
                )
        if self.backfill_order is not None and not mode.TAKES_ORDER:
            raise PolicyError(order_refused(mode))
        mode.check_policy(as_policy(self.policy).name)
        self._refuse_choosers(mode)
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
        at_once = (isinstance(mode, Easy) and mode.part) or getattr(mode, "BATCH_ONLY", False)
        if self.event_semantics != "batch" and at_once:
            raise PolicyError(
                f"backfill '{mode}' sees all events of an instant at once, and event_semantics "
                f"{self.event_semantics!r} has a pass for each; choose 'batch'"
            )
        if isinstance(mode, Easy) and mode.trial is not None:
            self._refuse_with_trials(mode)
        if self.dependencies != "ignore" and self.no_waits:
            raise PolicyError(
                f"dependencies {self.dependencies!r} let jobs wait out of sight, and "
                f"{self.no_waits} cannot be beside them; choose 'ignore'"
            )
        predictor = self.predictor
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
        falls_short = predictor is None or predictor.online
        if self.event_semantics == "pyss" and not (
            self.kill_at_limit and (self.correction != "none" or not falls_short)
        ):
            raise PolicyError(
                "event_semantics 'pyss' counts a job's processors as free at its estimated end, so "
                "it needs kill_at_limit=True and, where a job may outlive its estimate, a "
                f"correction; got estimates {self.estimates!r}, kill_at_limit={self.kill_at_limit}"
            )

    def _refuse_with_trials(self, mode: Easy) -> None:
        """Refuse what has no meaning where jobs go on trial, or has none yet."""
        if self.correction != "none":
            raise PolicyError(
                f"backfill '{mode}' starts a job several times, each by one estimate; choose "
                f"correction 'none', got {self.correction!r}"
            )
        given = (each for each in (self.policy, self.backfill_order) if each is not None)
        orders = [as_policy(each) for each in given]
        moving = [order for order in orders if order.is_python or not order.is_static]
        if mode.trial.restart and moving:
            raise PolicyError(
                f"policy {moving[0].name!r} changes with time, and backfill '{mode}' has jobs wait "
                "anew (restart), whose age is then not known; choose one like 'FCFS' or 'SAF'"
            )
        if self.kept:
            raise PolicyError(
                f"policy {self._keeping[0].name!r} knows no trials; got backfill '{mode}'"
            )
        unable = [event for event in as_events(self.events) if not event.KNOWS_TRIALS]
        if unable:
            raise PolicyError(
                f"backfill '{mode}' takes jobs off the machine by its own rules; got event "
                f"'{unable[0]}' beside it, which knows no trials"
            )

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

    def _refuse_choosers(self, mode: Mode) -> None:
        """Refuse a chooser where it cannot choose."""
        policy = as_policy(self.policy)
        backfill_policy = None if self.backfill_order is None else as_policy(self.backfill_order)
        if backfill_policy is not None and backfill_policy.chooser is not None:
            raise PolicyError(
                f"{backfill_policy.name} chooses the primary order, not a backfill order"
            )
        if policy.chooser is None:
            return
        if policy.chooser.plans and self.events:
            raise PolicyError(f"{policy.name} plans without events; got '{self.events[0]}'")
        if backfill_policy is not None and backfill_policy.is_python:
            raise PolicyError(
                f"{policy.name} chooses at other instants than the formula of the backfill order "
                f"{backfill_policy.name!r} is asked at; register that by keys instead"
            )
        can_plan = isinstance(mode, Backfill) and not mode.keeps_state
        if policy.chooser.plans and (not can_plan or self.event_semantics != "batch"):
            raise PolicyError(
                f"{policy.name} plans with a backfill that keeps nothing from pass to pass (none, "
                "easy, depth, conservative, look-ahead) and event_semantics 'batch'; got "
                f"'{mode}' and '{self.event_semantics}'"
            )
        asks = (
            backfill_policy is not None
            and backfill_policy.needs_history
            and (backfill_policy.expects or policy.expects)
        )
        if backfill_policy is not None and policy.chooser.plans and asks:
            raise PolicyError(
                f"{policy.name} plans with a backfill order that needs no users' records; got "
                f"{backfill_policy.name}"
            )

    @property
    def no_waits(self) -> str:
        """Name what cannot be where jobs wait for others or are held; "" = nothing."""
        mode, predictor = as_mode(self.backfill), self.predictor
        if not isinstance(mode, Backfill):
            return f"backfill '{mode}', a simulator of its own,"
        if mode.number == s.BACKFILL_OWN:
            return f"backfill '{mode}', whose passes are made in Python,"
        if self.event_semantics != "batch":
            return f"event_semantics {self.event_semantics!r}"
        known = [event for event in as_events(self.events) if event.KNOWS_JOBS]
        if known:
            return f"event '{known[0]}', which may know jobs by position,"
        if as_policy(self.policy).chooser is not None:
            return f"policy {as_policy(self.policy).name}, which chooses as it goes,"
        return "a predictor of your own" if predictor is not None and predictor.ask else ""

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

    @property
    def parts(self) -> tuple[int, ...]:
        """Return the numbers of the backfilling mode and of the events."""
        events = [event.number for event in (*as_events(self.events), *self.kept)]
        return (as_backfill(self.backfill).number, *events)

    @property
    def moves_estimates(self) -> bool:
        """Tell whether estimates are predicted or corrected while the simulation runs."""
        predictor = self.predictor
        return self.correction != "none" or (predictor is not None and predictor.online)
