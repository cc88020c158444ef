"""What jobs held: whole nodes, what they were charged, and the fewest processors for all of them.

Source: Specification, section 14, "Request of nodes" and "The machine".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.machine import Machine
from hpcgym.trace.accounting.attempts import codes
from hpcgym.trace.accounting.rows import Block, Ledger

if TYPE_CHECKING:
    import pandas as pd

MOST_THREADS = 4
"""Charges of up to so many times the request may be of cores whose threads go together."""


def find_exclusive(table: Block, machine: Machine | None, ledger: Ledger) -> None:
    """Tell which jobs had whole nodes: charged all cpus of these, more than they asked for.

    Without a machine a node is known by the largest charge for one in its partition alone. So what
    might be whole cores is taken for no whole node, and holds what it was charged.
    """
    nodes, charged, asked = table["nodes"], table["charged"], table["chunks"] * table["cpus"]
    more = (charged > asked) & (nodes > 0)
    if not more.any():
        return
    each = charged / np.maximum(nodes, 1)
    if machine is not None:
        whole = np.isin(each, [node_type.cpus for node_type in machine.nodes])
    else:
        partitions = codes(table["partition"])
        largest = np.zeros(partitions.max() + 1)
        np.maximum.at(largest, partitions[nodes > 0], each[nodes > 0])
        whole = (each == largest[partitions]) & (charged > MOST_THREADS * asked)
    table["exclusive"] = table["exclusive"] | (more & whole)
    ledger.note(
        "charged all cpus of their nodes, more than asked: exclusive", int((more & whole).sum())
    )


def hold_charges(table: Block, machine: Machine | None, ledger: Ledger) -> None:
    """Let jobs of Slurm hold what they were charged, such as both threads of a core.

    Chunks stay as many as were asked for where the charge is a multiple of them. A machine whose
    largest node has fewer cpus than a job was charged for one is not in charged units: its jobs
    hold what they asked for.
    """
    chunks, charged, asked = table["chunks"], table["charged"], table["chunks"] * table["cpus"]
    other = table["by_slurm"] & ~table["exclusive"] & (charged > 0) & (charged != asked)
    if not other.any():
        return
    times = f"{charged[other].sum() / asked[other].sum():.2f} times as many processors"
    if machine is not None:
        most = max(node_type.cpus for node_type in machine.nodes)
        if (table["by_slurm"] & (table["nodes"] > 0) & (charged > most * table["nodes"])).any():
            ledger.note(
                f"charged other than asked, {times}, yet hold what they asked for: charges for a "
                f"node are above the {most} cpus that the largest has",
                int(other.sum()),
                ledger.told,
            )
            return
    ledger.note(
        f"hold what they were charged, not what they asked for, {times}: whole cores, or cpus that "
        "go with memory",
        int(other.sum()),
        ledger.told,
    )
    alike = charged % chunks == 0
    table["cpus"] = np.where(other & alike, charged // chunks, table["cpus"])
    for row in np.flatnonzero(other & ~alike):
        gpus = int(table["gpus"][row] * chunks[row])
        parts = int(np.gcd(charged[row], gpus)) if gpus else int(charged[row])
        memory = int(table["memory_mb"][row] * chunks[row])
        table["cpus"][row], table["spread"][row] = charged[row] // parts, False
        table["gpus"][row], table["memory_mb"][row] = gpus // parts, -(-memory // parts)
        chunks[row] = parts


def fewest_processors(runs: pd.DataFrame) -> int:
    """Return the size of the smallest machine on which runs fit as recorded; ends come first.

    When a run that was suspended held its processors is not known, so it is left out.
    """
    held = held_processors(runs)
    known = ((runs["wait_time"] >= 0) & ~runs["suspended"]).to_numpy()
    start = (runs["submit_time"] + runs["wait_time"]).to_numpy()[known]
    end = start + runs["run_time"].to_numpy()[known]
    times = np.concatenate([start, end])
    change = np.concatenate([held[known], -held[known]])
    order = np.lexsort((change, times))
    return max(int(np.cumsum(change[order]).max(initial=1)), int(held.max()))


def held_processors(runs: pd.DataFrame) -> NDArray[np.int64]:
    """Return how many processors each run holds on a machine that counts them."""
    asked = (runs["chunks"] * runs["cpus"]).to_numpy()
    return np.asarray(np.where(runs["exclusive"], runs["charged"], asked), dtype=np.int64)
