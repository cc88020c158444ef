"""Outages of nodes as kernels and metrics read them: what changes when, and what lacks.

A node that several outages take down at once is down once.

Source: Specification, section 15, "Outages of nodes".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.machine import Machine


class NodeOutage(NamedTuple):
    """Nodes that are down on [begin, end), and since when that is known, s on a workload's clock.

    An outage that is over at time 0 lasts no time.
    """

    begin: int
    end: int
    announced: int
    nodes: tuple[int, ...]


def changes_of(outages: Sequence[NodeOutage]) -> NDArray[np.int64]:
    """Return what `Jobs.node_change` holds of outages.

    At one instant beginnings come before ends, so that a node that stays down has no gap.
    """
    rows = [
        (at, sign, node, outage.announced)
        for outage in outages
        if outage.begin < outage.end
        for at, sign in ((outage.begin, -1), (outage.end, 1))
        for node in outage.nodes
    ]
    return np.array(sorted(rows), dtype=np.int64).reshape(-1, s.N_CHANGE_COLUMNS)


def lacking_nodes(outages: Sequence[NodeOutage], machine: Machine | None) -> list[tuple[int, ...]]:
    """Return a row of `Jobs.outage` for each time that a node is down without a break."""
    if machine is None:
        return []
    rows: list[tuple[int, ...]] = []
    since: dict[int, int] = {}
    by: dict[int, int] = {}
    for at, sign, node, _ in changes_of(outages).tolist():
        by[node] = by.get(node, 0) - sign
        if sign < 0 and by[node] == 1:
            since[node] = at
        elif by[node] == 0:
            rows.append((since[node], at, int(machine.node_cpus[node]), 0, node))
    return rows
