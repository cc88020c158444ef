"""Names of policies, modes, kinds of action and others, and how each is loaded.

`hpcgym/schedule/registration.py` adds its own when hpcgym is imported. An object is loaded when its
name is first used, so that the import stays quick.
"""

from collections import UserDict
from collections.abc import Collection, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar, cast

from hpcgym.base.errors import HpcgymError, PolicyError, ScenarioError, refuse_unless_new

T = TypeVar("T")


class ByName(UserDict[str, T]):
    """Objects of a kind by name: those that ship, then a user's own.

    Args:
        kind: What they are, for messages.
        error: What is raised where a name is malformed or taken.
        given: Those that ship, each of which may be given as the text "module:name".

    Attributes:
        shipped: Names that are no user's.
    """

    def __init__(
        self, kind: str, error: type[HpcgymError], given: Mapping[str, T | str] | None = None
    ) -> None:
        super().__init__()
        self.kind, self.error = kind, error
        self.shipped: tuple[str, ...] = ()
        self.ship(given or {})

    def ship(self, given: Mapping[str, T | str]) -> None:
        """Add names that are no user's."""
        self.data.update(cast("Mapping[str, T]", given))
        self.shipped = (*self.shipped, *given)

    def register(self, name: str, addition: T, taken: Collection[str] = ()) -> T:
        """Add a user's own, in place of one of the user's of that name; return it.

        Raises:
            HpcgymError: `error`: a malformed name, or one that ships or is among those `taken`.
        """
        refuse_unless_new(self.kind, name, (*self.shipped, *taken), self.error)
        self.data[name] = addition
        return addition

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


SIMULATORS: ByName[type[Any]] = ByName("backfill", PolicyError)
"""Subclasses of `hpcgym.core.backfill.OwnSimulator`."""

BACKFILLS: ByName[type[Any]] = ByName("backfill", PolicyError)
"""Modes that a user has registered with `hpcgym.register_backfill`."""

EVENTS: ByName[type[Any]] = ByName(
    "event",
    PolicyError,
    {
        "outage": "hpcgym.core.parts.outages:Outage",
        "limit": "hpcgym.core.parts.limits:Limit",
        "limits": "hpcgym.core.parts.limits:Limits",
        "price": "hpcgym.core.price:Price",
    },
)
"""Subclasses of `hpcgym.core.events.Event`, by the name their text begins with. Where they have a
`read`, it makes the event of what stands behind the colon."""

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
    "hpcgym.core.parts.cost_on_nodes",
    "hpcgym.core.parts.trials_on_nodes",
    "hpcgym.core.parts.fair_share",
    "hpcgym.core.parts.limits",
    "hpcgym.core.parts.slurm",
    "hpcgym.core.parts.slurm_on_nodes",
    "hpcgym.core.parts.committed",
    "hpcgym.core.parts.price",
    "hpcgym.core.parts.minutes",
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
        *("SPF-REG", "SAF-REG", "SMITH-REG"),
    ),
    "hpcgym.core.orders.smith:urgent": ("SMITH-URGENT",),
    "hpcgym.core.orders.fair_share:fair_share": (),
    "hpcgym.core.orders.priority:priority": (),
    "hpcgym.core.orders.submit_as_wait:submit_as_wait": (),
}
"""Functions that score jobs, as "module:name", each with the policies of its module that go by it;
the place here is part of a rule's number."""

POLICIES: ByName[Any] = ByName(
    "policy",
    PolicyError,
    {
        name: f"{order.partition(':')[0]}:{name.replace('-', '_')}"
        for order, names in ORDERS.items()
        for name in names
    },
)
"""Objects of `hpcgym.core.policy.Policy`, in the order in which `policy_names` lists them."""

FAMILIES: ByName[type[Any]] = ByName(
    "policy",
    PolicyError,
    {
        "fair-share": "hpcgym.core.orders.fair_share:Shares",
        "multifactor": "hpcgym.core.orders.priority:Multifactor",
        "submit-as-wait": "hpcgym.core.orders.submit_as_wait:SubmitAsWait",
    },
)
"""Policies with parameters, by the name that their text begins with. They are dataclasses whose
fields are its keys, as those of a backfilling mode, and whose `policy` is what is meant; or classes
whose `read` makes a policy of what stands behind the colon."""

ACTIONS: ByName[type[Any]] = ByName(
    "action",
    ScenarioError,
    {
        "index": "hpcgym.core.actions.index:Index",
        "weights": "hpcgym.core.actions.weights:Weights",
        "policy": "hpcgym.core.actions.policy:PolicyChoice",
        "order": "hpcgym.core.actions.order:Order",
        "job": "hpcgym.core.actions.job:Job",
        "controls": "hpcgym.core.actions.controls:Controls",
        "trials": "hpcgym.core.actions.trials:Trials",
        "price": "hpcgym.core.actions.price:PriceChoice",
    },
)
"""Kinds of action."""

NODES = "hpcgym.core.kernels.nodes.work"  # module of the kernels of machines of nodes


def place_of(name: str) -> int:
    """Return the place of a part, which is listed if it was not, as one of a user's own."""
    if name not in PARTS:
        PARTS.append(name)
    return PARTS.index(name)


def module(name: str) -> ModuleType:
    """Load a part by its name."""
    return import_module(name)
