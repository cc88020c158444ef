"""Which parts of a simulation go together: each says what it demands of others, and what it lacks.

Parts are the backfilling mode, the events, the orders, the values of other settings, and the
machine. Two go together unless one lacks a word that the other demands. Refusals, the table on
docs/backfilling.md and the drawn tests of pairs all come from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from hpcgym.base.errors import PolicyError
from hpcgym.core.backfill import as_mode
from hpcgym.core.events import as_events
from hpcgym.core.policy import AnyPolicy, as_policy

if TYPE_CHECKING:
    from hpcgym.core.setting_list import SettingList
    from hpcgym.machine import Machine

DEMANDS = {
    "backfilling": "needs a backfilling mode",
    "instants": "sees all events of an instant at once, and needs event_semantics 'batch'",
    "an order": "orders the queue",
    "a backfill order": "is the order in which jobs are tried as backfill",
    "limits": "needs passes that know limits",
    "outages": "needs passes that know outages",
    "outages of nodes": "needs passes that know outages of nodes",
    "held jobs": "needs passes that know jobs that are held back",
    "passes": "makes the passes",
    "attempts": "has jobs start several times, each by one estimate",
    "trials": "takes jobs off the machine by its own rules",
    "restart": "has jobs wait anew (restart), whose age is then not known",
    "overhead": "takes processors for a time after kills (overhead)",
    "waits": "has jobs wait out of sight",
    "counts": "counts processors",
    "nodes": "is about machines of nodes",
    "no events": "plans without events",
    "no memory": "plans with a backfill that keeps nothing from pass to pass",
    "no records": "plans with a backfill order that needs no users' records",
    "no expectations": "plans with a backfill order that expects nothing by users' records",
    "a compiled order": "chooses at other instants than a formula in Python is asked at",
}
"""What a part may demand of those beside it, as messages say it."""


class Part(NamedTuple):
    """A part of a simulation."""

    text: str  # what messages call it
    # Words of `DEMANDS`, each with what messages say; "" = what stands there.
    demands: Mapping[str, str]
    lacks: Mapping[str, str]  # words that it cannot meet, each with what messages add; "" = nothing


def why_not(part: Part, other: Part) -> str:
    """Return why a part cannot be beside another of which it demands something; "" = it can."""
    for word, said in part.demands.items():
        if word in other.lacks:
            more = other.lacks[word]
            told = f"{part.text} {said or DEMANDS[word]}; got {other.text}"
            return f"{told}, {more}" if more else told
    return ""


def refuse(pairs: Iterable[tuple[Part, Part]]) -> None:
    """Refuse pairs of which the first demands what the other lacks.

    Raises:
        PolicyError: The first such pair, with what the one demands and the other lacks.
    """
    for part, other in pairs:
        if why := why_not(part, other):
            raise PolicyError(why)


def parts_of(settings: SettingList) -> list[Part]:
    """Return the parts that settings name, the mode first."""
    mode, order = as_mode(settings.backfill), as_policy(settings.policy)
    parts = [Part(f"backfill '{mode}'", mode.demands, mode.lacks)]
    ordered = {} if order.name == "FCFS" else {"an order": ""}
    parts.append(Part(f"policy '{order.name}'", order.demands | ordered, order.lacks))
    if settings.backfill_order is not None:
        parts.append(_backfill_order(settings.backfill_order))
    makers: set[str] = set()
    for event in as_events(settings.events):
        demands, lacks = event.demands, event.lacks
        if type(event).__module__ in makers:  # one part makes the passes of both
            demands, lacks = demands | {}, lacks | {}
            demands.pop("passes", None), lacks.pop("passes", None)
        makers.add(type(event).__module__)
        parts.append(Part(f"event '{event}'", demands, lacks))
    return [*parts, *_others(settings)]


def _backfill_order(given: AnyPolicy) -> Part:
    """Return the order in which jobs are tried as backfill."""
    order = as_policy(given)
    lacks = order.lacks
    if order.is_python:
        lacks["a compiled order"] = "which is one; register it by keys instead"
    if order.needs_history:
        lacks["no records"] = ""
    if order.needs_history and order.expects:
        lacks["no expectations"] = ""
    return Part(f"backfill_order '{order.name}'", order.demands | {"a backfill order": ""}, lacks)


def _others(settings: SettingList) -> list[Part]:
    """Return the other settings, where they are not what goes with all."""
    parts, asks = [], getattr(settings.estimates, "ask", None) or callable(settings.estimates)
    if settings.event_semantics != "batch":
        alone = dict.fromkeys(("instants", "waits"), "which has a pass for each; choose 'batch'")
        counts = {"counts": "counts processors, as 'batch' does not"}
        parts.append(Part(f"event_semantics '{settings.event_semantics}'", counts, alone))
    if settings.correction != "none":
        once = {"attempts": "which gives one; choose 'none'"}
        parts.append(Part(f"correction '{settings.correction}'", {}, once))
    if settings.dependencies != "ignore":
        parts.append(Part(f"dependencies '{settings.dependencies}'", {"waits": ""}, {}))
    if asks:
        parts.append(Part("a predictor", {}, {"waits": "which is your own"}))
    return parts


def ground(machine: Machine | None) -> Part:
    """Return the machine as a part; None = processors are counted."""
    if machine is None:
        return Part("counted processors", {}, {"nodes": ""})
    return Part("a machine of nodes", {}, {"counts": "", "restart": ""})
