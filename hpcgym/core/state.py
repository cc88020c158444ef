"""Simulations side by side: every array of `Sim` with a leading axis n_envs.

One simulation and sixty-four are thus the same struct of arrays. Kernels see one of them, without
that axis (`sim_of`). `hpcgym.core.kernels.types.Sim` declares the arrays.

What belongs to one simulation lies together in memory, in the order of that declaration, behind the
table that kernels read. So a step of one among thousands waits for few pages of memory.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.core.compiler.struct import (
    IS_COMPILED,
    Struct,
    add_aliases,
    address_of,
    lay_out_block,
    layout_of,
)
from hpcgym.core.kernels.types import Jobs, Sim, additions_of
from hpcgym.core.nodes import NodeSizes, Placement
from hpcgym.core.observation_fields import N_PRICE_FIELDS, N_TRIAL_FIELDS, ControlsField
from hpcgym.core.parts.waiting_cost import STARTED_KEPT

_LAYOUT = layout_of(Sim)

N_SETTINGS = len(_LAYOUT.columns_of("setting"))

_IN_USE = {
    "running": "n_running",
    "releases": "n_releases",
    "entries": "n_entries",
    "planned": "n_planned",
    "held": "n_held",
    "onsets": "n_onsets",
    "attempts": "n_attempts",
    "groups": "n_groups",
    "nodes": "n_nodes",
}
"""Axes of which only the first so many elements mean something."""

_WITHIN_A_PASS = (
    *("kinds of records", "activations", "trial", "reach", "profile", "scratch"),
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

    arrays: dict[str, NDArray[Any]]  # the arrays by name, parts of one block
    # First word of each simulation, shape (n_envs,); None = kernels cannot take them.
    begins: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Refuse arrays that are not those of `Sim`, as a pickle of another version may hold."""
        if differing := set(self.arrays) ^ set(_LAYOUT.arrays):
            raise TypeError(f"a state with other arrays than this version's: {sorted(differing)}")

    @property
    def n_bytes(self) -> int:
        """Return how much memory the simulations take."""
        return sum(array.nbytes for array in self.arrays.values())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays alone, which are checked when they are read."""
        return _packed, (self.arrays,)

    def __getattr__(self, name: str) -> NDArray[Any]:
        """Return an array, or a number of every simulation."""
        if name in _LAYOUT.arrays:
            return self.arrays[name]
        if name in _LAYOUT.columns:
            array, column = _LAYOUT.columns[name]
            return self.arrays[array][:, column]
        raise AttributeError(f"State has no attribute {name!r}")


class Room(NamedTuple):
    """How large an episode is, or an episode that a state has room for."""

    jobs: int = 0
    users: int = 0
    nodes: NodeSizes = NodeSizes()
    present: int | None = None
    """Jobs that wait or run at once, at most; None = all. Only states have a limit."""
    waits: bool = False  # whether jobs wait out of sight for others, or are held
    shares: int = 0  # users and accounts whose usage is kept

    def holds(self, other: Room) -> bool:
        """Tell whether a state with this room has room for an episode of another size."""
        fits = other.jobs <= self.jobs and other.users <= self.users
        fits = fits and other.shares <= self.shares
        return fits and other.nodes.fit(self.nodes) and other.waits <= self.waits

    def grown(self, other: Room) -> Room:
        """Return room for both, rounded up to powers of two, so that a state grows seldom."""
        jobs, users = max(self.jobs, other.jobs), max(self.users, other.users)
        nodes, waits = self.nodes.joined(other.nodes), self.waits or other.waits
        shares = _rounded(max(self.shares, other.shares))
        return Room(_rounded(jobs), _rounded(users), nodes, self.present, waits, shares)


def _rounded(number: int) -> int:
    """Return the next of four sizes an octave."""
    step = 2 ** max((number - 1).bit_length() - 3, 0) if number else 1
    return -(-number // step) * step


KEPT = {
    "history": "users' completed jobs",
    "reward": "a reward",
    "costs by user": "what waiting costs, added up by user",
    "fields": "observations",
    "estimates": "estimates that are predicted or corrected",
    "expectations": "run times that a rule or an observation expects",
    "log": "attempts, one by one",
}
"""What simulations may keep, and do not where nobody asks for it."""


def allocate(
    n_envs: int,
    room: Room,
    machine_processors: int,
    *,
    keeps: Collection[str],
    parts: Collection[int] = (),
    n_queues: int = s.N_QUEUES,
    n_events: int = 0,
) -> State:
    """Allocate the state of `n_envs` simulations, before their reset.

    Arrays have room for the worst case, unless `room.present` limits them. The operating system
    provides a page of memory only when it is first written. Queues and lists are written no further
    than they were ever long.

    Args:
        n_envs: Simulations side by side.
        room: Most jobs and users of an episode; sizes of the machine's nodes and requests.
        machine_processors: Processors of the largest machine; it bounds the running jobs.
        keeps: Which of `KEPT` there is room for.
        parts: Numbers of the backfilling modes and events, some of which need arrays of their own.
        n_queues: Queues that are kept, 1 if no backfill order is.
        n_events: Events of a simulation, each of which may be an outage.
    """
    n_jobs, n_users, sizes, limit, waits, n_shares = room
    if waits:
        parts = {*parts, s.BACKFILL_PART + loaders.place_of("hpcgym.core.parts.dependencies")}
    n_present = n_jobs if limit is None else min(n_jobs, limit)
    n_running = min(2 * machine_processors, n_present)  # pyss: ends of one instant overlap starts
    half = s.NODE_CHILDREN // 2
    # Two neighbours in one group have more than half a node's children. All in all that makes:
    n_blocks = 2 * n_present // (half - 1) + 2
    n_groups = 1 if n_blocks <= s.NODE_CHILDREN else 2 * n_blocks // half + 1
    lengths = {
        "settings": N_SETTINGS,
        "counters": len(_LAYOUT.columns_of("counter")),
        "gauges": len(_LAYOUT.columns_of("gauge")),
        "users": n_users,
        "running": n_running,
        "releases": n_running,
        "groups": n_groups,
        "nodes": n_queues * (n_blocks + n_groups),
        "classes": min(4 * int(machine_processors).bit_length(), s.SIZE_CLASSES),  # four an octave
        "kinds of records": 3,
        "models": 2,
        "parameters": s.N_NETWORK,
        "activations": s.N_NETWORK_INPUTS + s.N_HIDDEN + s.N_LAST + 2,
        "reach": machine_processors + 1,
        # An end each, two steps for each reservation and each outage.
        "profile": n_running + 2 * (n_present + n_events) + 3,
        "onsets": min(n_jobs, 2 * (n_present + STARTED_KEPT)),
        "jobs": n_jobs,
        "shares": n_shares,
        # At one instant an outage takes off running jobs only.
        "attempts": 2 * s.MOST_KILLS * n_jobs + n_events * n_running,
        "fields of controls": len(ControlsField),
        "fields of trials": N_TRIAL_FIELDS,
        "fields of events": N_PRICE_FIELDS,
        "classes of run times": s.SIZE_CLASSES,
    }
    lengths |= dict.fromkeys(("entries", "planned", "held", "trial", "scratch", "walk"), n_present)
    lengths |= sizes.lengths()
    fields = "fields" in keeps
    is_kept = {name: name in keeps for name in KEPT} | {
        "plans": limit is None or any(part >= s.BACKFILL_PART for part in parts),
        "controls": fields and any(part >= s.BACKFILL_PART for part in parts),
        "event fields": fields and len(parts) > 1,
        "attempts": any(
            getattr(loaders.module(loaders.PARTS[part - s.BACKFILL_PART]), "REQUEUES", False)
            for part in parts
            if part >= s.BACKFILL_PART
        ),
        "nodes": sizes.nodes > 0,
        "outages": sizes.changes > 0,
    }

    @cache
    def length(axis: str | int) -> int:
        if isinstance(axis, int):
            return axis
        name, _, needed = axis.partition(" if ")
        return lengths[name] if all(is_kept[each] for each in needed.split(" and ") if each) else 0

    additions = [added for part in parts for added in additions_of(part - s.BACKFILL_PART)]
    for added in additions:
        if not add_aliases(Sim, added):
            raise PolicyError(
                f"{added.__module__} adds {added.__name__} to what a simulation holds, and this "
                "process has begun one without it; import it before the first simulation"
            )
    in_use = {cls for added in additions for cls in added.__mro__}
    shapes = {name: tuple(map(length, axes.lengths)) for name, axes in _LAYOUT.axes.items()}
    for name, part in _LAYOUT.added_by.items():
        if part not in in_use:
            shapes[name] = tuple(
                length if isinstance(length, int) else 0 for length in _LAYOUT.axes[name].lengths
            )
    return _block(n_envs, shapes)


def _block(n_envs: int, shapes: dict[str, tuple[int, ...]]) -> State:
    """Make a state of zeros with arrays of these shapes for each simulation."""
    table, size, places = _laid_out(tuple(shapes.items()))
    # The table goes first: whoever keeps an array keeps the table, too.
    memory = np.zeros(table.nbytes + n_envs * size, dtype=np.uint8)
    memory[: table.nbytes] = table.view(np.uint8)
    data = memory[table.nbytes :].data
    arrays = {
        name: np.ndarray((n_envs, *shapes[name]), element, data, offset, strides)
        for name, element, offset, strides in places
    }
    begins: NDArray[np.int64] = np.ndarray(n_envs, np.int64, data, 0, (size,))
    begins[:] = address_of(memory)
    return State(arrays, begins)


@lru_cache(maxsize=64)
def _laid_out(
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
) -> tuple[NDArray[np.int64], int, list[tuple[str, np.dtype[Any], int, tuple[int, ...]]]]:
    """Return the table of a block, its bytes, and element, offset and strides of each array."""
    table, offset, size = lay_out_block(Sim, dict(shapes))
    places = []
    for name, shape in shapes:
        element = np.dtype(_LAYOUT.arrays[name].element)
        strides = (math.prod(shape[axis + 1 :]) * element.itemsize for axis in range(len(shape)))
        places.append((name, element, offset[name], (size, *strides)))
    return table, size, places


def _packed(arrays: dict[str, NDArray[Any]]) -> State:
    """Return a state with the contents of arrays, as `allocate` lays it out."""
    State(arrays)  # refuses those of another version
    n_envs = len(arrays["counter"])
    state = _block(n_envs, {name: array.shape[1:] for name, array in arrays.items()})
    for name, array in arrays.items():
        state.arrays[name][:] = array
    return state


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
    for axis in _LAYOUT.axes[array].lengths:
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
    """Return one simulation of a state."""
    fields = Sim(array[env] for array in state.arrays.values())
    assert state.begins is not None
    return Struct(fields, address_of(state.begins[env:]))


def addresses_of(state: State) -> NDArray[Any]:
    """Return what kernels take of each simulation, shape (n_envs,); the state must outlive it."""
    begins = state.begins
    assert begins is not None
    if not IS_COMPILED:
        addresses = np.empty(len(begins), dtype=object)
        addresses[:] = [sim_of(state, env).address for env in range(len(begins))]
        return addresses
    return address_of(begins) + begins.strides[0] * np.arange(len(begins))


def row_of(state: State, env: int) -> State:
    """Return one simulation of a state as a state of its own, in the same memory."""
    return State({name: array[env : env + 1] for name, array in state.arrays.items()})


def own_table(table: Jobs, state: State, env: int) -> Jobs:
    """Return the jobs of an episode with the estimates and features of one simulation.

    Jobs are shared among simulations. Where estimates are predicted or corrected, each simulation
    has its own, and kernels read one table all the same.
    """
    if state.estimate.shape[1] == 0:
        return table
    n = len(table.estimate)
    return table._replace(estimate=state.estimate[env, :n], feature=state.feature[env, :n])


def placement_of(
    table: Jobs, state: State, env: int, start_time: NDArray[np.int64], jobs: Any = slice(None)
) -> Placement | None:
    """Return on which nodes each started job of a simulation was placed; None without nodes.

    `jobs` are the numbers of the jobs of `table` and `start_time` in the state.
    """
    if not table.nodes_pass:
        return None
    count = np.where(start_time >= 0, state.placed_on[env, : len(start_time)][jobs], 0)
    first = np.concatenate([[0], np.cumsum(count)])
    at = np.arange(first[-1]) + np.repeat(table.placed_first - first[:-1], count)
    return Placement(first, state.placed_node[env, at], state.placed_chunks[env, at])


class SettingRows:
    """Numbers fixed for an episode by name: one row of `Sim.setting`, or many."""

    def __init__(self, rows: NDArray[np.int64] | None = None) -> None:
        """Take rows, shape (N_SETTINGS,) or (n_rows, N_SETTINGS), or begin one of zeros."""
        given = np.zeros(N_SETTINGS, dtype=np.int64) if rows is None else rows
        self.__dict__["rows"] = given

    def __getattr__(self, name: str) -> Any:
        column = _place_of_setting(name)  # first: an object that is being copied has no rows yet
        return self.rows.T[column]

    def __setattr__(self, name: str, value: Any) -> None:
        self.rows.T[_place_of_setting(name)] = value


def _place_of_setting(name: str) -> int:
    column = _LAYOUT.columns.get(name)
    if column is None or column.place is None or column.array != "setting":
        raise AttributeError(f"no setting {name!r}")
    return column.place
