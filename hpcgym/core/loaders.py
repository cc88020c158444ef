"""Names of policies, modes and kinds of action, and how each is loaded.

`hpcgym/simulators.py` and `hpcgym/policies/registration.py` add theirs when hpcgym is imported. An
object is loaded when its name is first used, so that the import stays quick.
"""

from collections import UserDict
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar, cast

T = TypeVar("T")


class ByName(UserDict[str, T]):
    """Objects by name, each of which may be given as the text "module:name"."""

    def __init__(self, given: Mapping[str, T | str] | None = None) -> None:
        super().__init__(cast("Mapping[str, T]", given or {}))

    def __getitem__(self, name: str) -> T:
        """Return an object, and load it where it is a text yet."""
        known: T | str = self.data[name]
        if isinstance(known, str):
            self.data[name] = load(known)
        return self.data[name]


def load(text: str) -> Any:
    """Load what a text "module:name" names."""
    module, _, name = text.partition(":")
    return getattr(import_module(module), name)


SIMULATORS: ByName[type[Any]] = ByName()
"""Subclasses of `hpcgym.core.backfill.OwnSimulator`."""

BACKFILLS: dict[str, type[Any]] = {}
"""Modes that a user has registered with `hpcgym.register_backfill`."""

EVENTS: ByName[type[Any]] = ByName({"outage": "hpcgym.core.parts.outages:Outage"})
"""Subclasses of `hpcgym.core.events.Event`, by the name their text begins with."""

SHIPPED_EVENTS = tuple(EVENTS)
"""Names of the events that are no user's."""

PARTS = [
    "hpcgym.core.parts.depth",
    "hpcgym.core.parts.conservative",
    "hpcgym.core.parts.multi_queue",
    "hpcgym.core.parts.look_ahead",
    "hpcgym.core.parts.relaxed",
    "hpcgym.core.parts.slack",
    "hpcgym.core.parts.cost_benefit",
    "hpcgym.core.parts.trials",
    "hpcgym.core.parts.outages",
    "hpcgym.core.parts.dependencies",
    "hpcgym.core.parts.node_outages",
]
"""Modules of the kernels of backfilling modes and of events; the place here is part of a number."""

ORDERS: dict[str, tuple[str, ...]] = {
    "hpcgym.core.orders.tang:wfp3": ("WFP3",),
    "hpcgym.core.orders.tang:unicef": ("UNICEF",),
    "hpcgym.core.orders.learned:learned": ("F1", "F2", "F3", "F4"),
    "hpcgym.core.orders.multifactor:multifactor": ("MULTIFACTOR",),
    "hpcgym.core.orders.smith:smith": ("SMITH",),
    "hpcgym.core.orders.smith:index": (
        *("SPF-RECENT", "SAF-RECENT", "SMITH-RECENT"),
        *("SPF-HISTORY", "SAF-HISTORY", "SMITH-HISTORY"),
        *("SPF-REGRESSION", "SAF-REGRESSION", "SMITH-REGRESSION"),
    ),
    "hpcgym.core.orders.smith:urgent": ("SMITH-URGENT",),
}
"""Functions that score jobs, as "module:name", each with the policies of its module that go by it;
the place here is part of a rule's number."""

POLICIES: ByName[Any] = ByName(
    {
        name: f"{order.partition(':')[0]}:{name.replace('-', '_')}"
        for order, names in ORDERS.items()
        for name in names
    }
)
"""Objects of `hpcgym.core.policy.Policy`, in the order in which `policy_names` lists them."""

ACTIONS: ByName[type[Any]] = ByName(
    {
        "index": "hpcgym.core.actions.index:Index",
        "weights": "hpcgym.core.actions.weights:Weights",
        "policy": "hpcgym.core.actions.policy:PolicyChoice",
        "order": "hpcgym.core.actions.order:Order",
        "job": "hpcgym.core.actions.job:Job",
        "controls": "hpcgym.core.actions.controls:Controls",
        "trials": "hpcgym.core.actions.trials:Trials",
        "lend": "hpcgym.core.actions.lend:TrialChoice",
    }
)
"""Kinds of action; those that a user has registered come behind."""

SHIPPED_ACTIONS = tuple(ACTIONS)
"""Names of the kinds that are no user's."""

NODES = "hpcgym.core.kernels.nodes.work"
"""Module of the kernels of machines of nodes."""


def place_of(name: str) -> int:
    """Return the place of a part, which is listed if it was not, as one of a user's own."""
    if name not in PARTS:
        PARTS.append(name)
    return PARTS.index(name)


def module(name: str) -> ModuleType:
    """Load a part by its name."""
    return import_module(name)
