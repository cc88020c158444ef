"""Names of policies and modes, and how each is loaded.

`hpcgym/simulators.py` and `hpcgym/policies/registration.py` add theirs when hpcgym is imported. An
object is loaded when its name is first used, so that the import stays quick.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar, cast

T = TypeVar("T")


class ByName(Mapping[str, T]):
    """Objects by name, each of which may be given as the text "module:name"."""

    def __init__(self, given: Mapping[str, T | str] | None = None) -> None:
        self._given = dict(given or {})

    def add(self, given: Mapping[str, T | str]) -> None:
        """Add objects by name, behind the others."""
        self._given |= given

    def __getitem__(self, name: str) -> T:
        """Return an object, and load it where it is a text yet."""
        found = self._given[name]
        if isinstance(found, str):
            module, _, key = found.partition(":")
            self._given[name] = found = cast(T, getattr(import_module(module), key))
        return found

    def __iter__(self) -> Iterator[str]:
        """Go through the names, without loading anything."""
        return iter(self._given)

    def __len__(self) -> int:
        """Count the names."""
        return len(self._given)


POLICIES: ByName[Any] = ByName()
"""Objects of `hpcgym.core.policy.Policy`, in the order in which `policy_names` lists them."""

SIMULATORS: ByName[type[Any]] = ByName()
"""Subclasses of `hpcgym.core.backfill.OwnSimulator`."""

BACKFILLS: dict[str, type[Any]] = {}
"""Modes that a user has registered with `hpcgym.register_backfill`."""

PARTS = [
    "hpcgym.core.parts.depth",
    "hpcgym.core.parts.conservative",
    "hpcgym.core.parts.multi_queue",
    "hpcgym.core.parts.look_ahead",
    "hpcgym.core.parts.relaxed",
    "hpcgym.core.parts.slack",
    "hpcgym.core.parts.cost_benefit",
]
"""Modules of the kernels of backfilling modes; the place here is part of a mode's number."""

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
