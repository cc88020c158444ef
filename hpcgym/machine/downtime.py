"""Outages of nodes in files: from when until when, which nodes, and since when that is known.

Source: Specification, section 15, "Outages of nodes".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from hpcgym.base.errors import LARGEST_WHOLE, HpcgymError, MachineError, unknown_name

KEYS = ("from", "to", "nodes", "announced")


@dataclass(frozen=True)
class Downtime:
    """Nodes that are down from an instant until another, s on the log's clock.

    Raises:
        MachineError: A value that is not allowed.
    """

    from_: int  # when they go down; "from" in files
    to: int  # when they are back
    nodes: tuple[str, ...]  # node ids, ranges of them and names of groups, as ("0-3", "7", "s1")
    announced: int = 0  # from when on that is known, at most `from_`; by default it is always known

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", names_of(self.nodes, MachineError))
        if not self.nodes:
            raise MachineError("nodes is empty")
        check_instants(self, MachineError)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Downtime:
        """Read an outage from a table of a file.

        Raises:
            MachineError: An unknown or missing key, or a value that is not allowed.
        """
        for key in table:
            if key not in KEYS:
                hint = "; a machine of nodes names nodes" if key == "processors" else ""
                raise MachineError(unknown_name("key", key, KEYS) + hint)
        for key in KEYS[:3]:
            if key not in table:
                raise MachineError(f"{key} is missing")
        return cls(table["from"], table["to"], table["nodes"], table.get("announced", 0))

    def to_dict(self) -> dict[str, Any]:
        """Return the table that `from_dict` reads."""
        values = self.from_, self.to, list(self.nodes), self.announced
        return dict(zip(KEYS, values, strict=True))


def check_instants(outage: Any, error: type[HpcgymError]) -> None:
    """Refuse instants that are no whole seconds, and an order of them that makes no outage.

    Writes `from_`, `to` and `announced` of the outage as whole numbers.
    """
    for key, least in (("from_", 0), ("to", 1), ("announced", 0)):
        value = getattr(outage, key)
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not least <= value <= LARGEST_WHOLE or value % 1:
            name = key.removesuffix("_")
            raise error(f"outage: {name} must be whole, seconds >= {least}, got {value!r}")
        object.__setattr__(outage, key, int(value))
    if outage.to <= outage.from_:
        raise error(f"outage: to must be later than from, got from={outage.from_}, to={outage.to}")
    if outage.announced > outage.from_:
        raise error(
            "outage: announced must be at most from, since an outage is known once it begins; "
            f"got announced={outage.announced}, from={outage.from_}"
        )


def names_of(nodes: object, error: type[HpcgymError]) -> tuple[str, ...]:
    """Return nodes that are given as a number, a text such as "0-3,7" or several of these."""
    several = nodes if isinstance(nodes, Sequence) and not isinstance(nodes, str) else [nodes]
    names: list[str] = []
    for given in several:
        if not isinstance(given, str | int | np.integer) or isinstance(given, bool):
            raise error(
                f"outage: nodes must be ids, ranges or names of groups, as in 0-3/7, got {nodes!r}"
            )
        names += [name.strip() for name in re.split("[,/]", str(given))]
    return tuple(names)
