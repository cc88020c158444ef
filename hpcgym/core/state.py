"""Simulations side by side: every array of `Sim` with a leading axis n_envs.

One simulation and sixty-four are thus the same struct of arrays. Kernels see one of them, without
that axis (`sim_of`). `hpcgym.core.kernels.types.Sim` declares the arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.constants import (
    BACKFILL_LOOK_AHEAD,
    BACKFILL_SLACK,
    N_HIDDEN,
    N_LAST,
    N_NETWORK,
    N_NETWORK_INPUTS,
    N_QUEUES,
    NODE_CHILDREN,
)
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.nodes import NodeSizes
from hpcgym.core.struct import Struct, layout_of

_LAYOUT = layout_of(Sim)

N_SETTINGS = len(_LAYOUT.columns_of("setting"))

_IN_USE = {
    "running": "n_running",
    "releases": "n_releases",
    "entries": "n_entries",
    "planned": "n_planned",
    "held": "n_held",
    "onsets": "n_onsets",
    "groups": "n_groups",
    "nodes": "n_nodes",
}
"""Axes of which only the first so many elements mean something."""

_WITHIN_A_PASS = (
    *("activations", "trial", "reach", "profile", "scratch"),
    *("walk", "plan", "plan of nodes"),
)
"""Axes of arrays that hold nothing between calls."""


_ROOMS = ("row_of_shape", "room_shape", "room_at", "room_total", "room")
"""Arrays about rows of rooms."""


@dataclass(frozen=True)
class State:
    """Simulations side by side.

    Each array of `Sim` is an attribute with a leading axis n_envs. So is each number, as a view of
    shape (n_envs,).
    """

    arrays: dict[str, NDArray[Any]]

    def __post_init__(self) -> None:
        """Refuse arrays that are not those of `Sim`, as a pickle of another version may hold."""
        if differing := set(self.arrays) ^ set(_LAYOUT.arrays):
            raise TypeError(f"a state with other arrays than this version's: {sorted(differing)}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays alone, which are checked when they are read."""
        return State, (self.arrays,)

    def __getattr__(self, name: str) -> NDArray[Any]:
        """Return an array, or a number of every simulation."""
        if name in _LAYOUT.arrays:
            return self.arrays[name]
        if name in _LAYOUT.columns:
            array, place = _LAYOUT.columns[name]
            return self.arrays[array][:, place]
        raise AttributeError(f"State has no attribute {name!r}")


class Room(NamedTuple):
    """How large an episode is, or an episode that a state has room for."""

    jobs: int = 0
    users: int = 0
    nodes: NodeSizes = NodeSizes()

    def holds(self, other: Room) -> bool:
        """Tell whether a state with this room has room for an episode of another size."""
        return other.jobs <= self.jobs and other.users <= self.users and other.nodes.fit(self.nodes)

    def grown(self, other: Room) -> Room:
        """Return room for both, rounded up to powers of two, so that a state grows seldom."""
        jobs, users = max(self.jobs, other.jobs), max(self.users, other.users)
        return Room(
            2 ** (jobs - 1).bit_length() if jobs else 0,
            2 ** (users - 1).bit_length() if users else 0,
            self.nodes.joined(other.nodes),
        )


def allocate(
    n_envs: int,
    room: Room,
    machine_processors: int,
    *,
    history: bool,
    reward: bool,
    fields: bool,
    estimates: bool,
    expectations: bool,
    modes: Collection[int] = (),
) -> State:
    """Allocate the state of `n_envs` simulations, before their reset.

    Arrays have room for the worst case, but the operating system provides a page of memory only
    when it is first written. Queues and lists are written no further than they were ever long.

    Args:
        n_envs: Simulations side by side.
        room: Most jobs and users of an episode; sizes of the machine's nodes and requests.
        machine_processors: Processors of the largest machine; it bounds the running jobs.
        history: Whether users' completed jobs are recorded.
        reward: Whether a reward is kept.
        fields: Whether observations are made.
        estimates: Whether estimates are predicted or corrected.
        expectations: Whether a rule or an observation reads expected run times.
        modes: The backfilling modes, `BACKFILL_*`; some need arrays that others do not.
    """
    n_jobs, n_users, sizes = room
    n_running = min(2 * machine_processors, n_jobs)  # pyss: ends of one instant overlap starts
    half = NODE_CHILDREN // 2
    n_blocks = 2 * n_jobs // half + 1  # a new one takes half a node, each job comes at most twice
    n_groups = n_blocks // half + 1
    lengths = {
        "settings": N_SETTINGS,
        "counters": len(_LAYOUT.columns_of("counter")),
        "gauges": len(_LAYOUT.columns_of("gauge")),
        "users": n_users,
        "running": n_running,
        "releases": n_running,
        "groups": n_groups,
        "nodes": N_QUEUES * (n_blocks + n_groups),
        "models": 2,
        "parameters": N_NETWORK,
        "activations": N_NETWORK_INPUTS + N_HIDDEN + N_LAST + 2,
        "reach": machine_processors + 1,
        "profile": n_running + 2 * n_jobs + 3,  # an end each, two steps for each reservation
    }
    lengths |= dict.fromkeys(
        ("jobs", "entries", "planned", "held", "onsets", "trial", "scratch", "walk"), n_jobs
    )
    lengths |= sizes.lengths()
    is_kept = {
        "history": history,
        "reward": reward,
        "fields": fields,
        "estimates": estimates,
        "expectations": expectations,
        "slack": BACKFILL_SLACK in modes,
        "look-ahead": BACKFILL_LOOK_AHEAD in modes,
        "nodes": sizes.nodes > 0,
    }

    def length(axis: str | int) -> int:
        if isinstance(axis, int):
            return axis
        name, _, needed = axis.partition(" if ")
        return lengths[name] if all(is_kept[each] for each in needed.split(" and ") if each) else 0

    arrays = {}
    for name, array in _LAYOUT.arrays.items():
        axes = getattr(Sim, name)
        make = np.zeros if axes.zeros else np.empty
        arrays[name] = make((n_envs, *map(length, axes.lengths)), dtype=array.element)
    return State(arrays)


def in_use(state: State) -> State:
    """Return views of the elements that mean something at this instant.

    Arrays of jobs and users keep their length. The others are as long as the lists of running jobs,
    or as the entries and nodes used since the reset.
    """
    ends = {axis: int(getattr(state, number).max()) for axis, number in _IN_USE.items()}
    ends |= dict.fromkeys(_WITHIN_A_PASS, 0)
    return State(
        {
            name: array[:, *(slice(ends.get(axis)) for axis in _axes_of(name))]
            for name, array in state.arrays.items()
        }
    )


def _axes_of(array: str) -> Iterator[str]:
    """Go through the names of an array's axes; a fixed one is its length as text."""
    for axis in getattr(Sim, array).lengths:
        yield str(axis).partition(" if ")[0]


def copy_into(larger: State, state: State) -> None:
    """Copy a state into one as large or larger, where each simulation can go on.

    A simulation knows its jobs, users and nodes by numbers, never by place. So a copy costs what
    is in use.
    """
    # More nodes may mean fewer rows of rooms. Then all rows are counted anew.
    has_fewer_rows = larger.room_at.shape[1] < state.room_at.shape[1]
    for name, here in in_use(state).arrays.items():
        if has_fewer_rows and name in _ROOMS:
            continue
        larger.arrays[name][tuple(slice(length) for length in here.shape)] = here
    if has_fewer_rows:
        larger.turn[:] = 0


def sim_of(state: State, env: int) -> Struct[Sim]:
    """Return one simulation of a state, which must outlive it."""
    return Struct(Sim(array[env] for array in state.arrays.values()))


def own_table(table: Jobs, state: State, env: int) -> Jobs:
    """Return the jobs of an episode with the estimates and features of one simulation.

    Jobs are shared among simulations. Where estimates are predicted or corrected, each simulation
    has its own, and kernels read one table all the same.
    """
    if state.estimate.shape[1] == 0:
        return table
    n = len(table.estimate)
    return table._replace(estimate=state.estimate[env, :n], feature=state.feature[env, :n])


class SettingRows:
    """Numbers fixed for an episode by name: one row of `Sim.setting`, or many."""

    def __init__(self, rows: NDArray[np.int64] | None = None) -> None:
        """Take rows, shape (N_SETTINGS,) or (n_rows, N_SETTINGS), or begin one of zeros."""
        given = np.zeros(N_SETTINGS, dtype=np.int64) if rows is None else rows
        self.__dict__["rows"] = given

    def __getattr__(self, name: str) -> Any:
        """Return a number, or that of each row."""
        place = _place_of_setting(name)  # first: an object that is being copied has no rows yet
        return self.rows.T[place]

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a number."""
        self.rows.T[_place_of_setting(name)] = value


def _place_of_setting(name: str) -> int:
    """Return the column of a setting."""
    column = _LAYOUT.columns.get(name)
    if column is None or column.place is None or column.array != "setting":
        raise AttributeError(f"no setting {name!r}")
    return column.place
