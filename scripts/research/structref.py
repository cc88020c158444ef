"""Time numba's structref beside hpcgym's structs: 40 arrays, read three calls deep.

cd scripts; python -m research.structref
"""

import time
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.experimental import structref
from numpy.typing import NDArray

from hpcgym.core.compiler.struct import Array, Struct, opener

NAMES = [f"a{k}" for k in range(40)]
TURNS = 5_000_000
REPEATS = 5

Table = Annotated[NDArray[np.int64], Array("int64", 2)]
Fields: Any = NamedTuple("Fields", [(name, Table) for name in NAMES])  # type: ignore[misc]
open_fields = opener(Fields)


@structref.register
class ReferenceType(types.StructRef):
    """Type of a structref with these fields."""


class Reference(structref.StructRefProxy):
    """The same arrays, as a structref."""


structref.define_proxy(Reference, ReferenceType, NAMES)


@njit(inline="never")
def leaf(sim: Any, k: int) -> Any:
    sim.a3[1, k] += sim.a5[2, k] & 7
    return sim.a7[0, k]


@njit(inline="never")
def middle(sim: Any, k: int) -> Any:
    if sim.a9[0, k] > 10_000:
        sim.a1[0, 0] = 1
    return leaf(sim, k) + sim.a11[3, k]


@njit
def turns(sim: Any, n: int) -> Any:
    total = 0
    for turn in range(n):
        total += middle(sim, turn % 1_000)
        sim.a2[0, turn % 1_000] = total & 15
    return total


@njit
def with_struct(address: int, n: int) -> Any:
    return turns(open_fields(address), n)


@njit
def with_structref(sim: Any, n: int) -> Any:
    return turns(sim, n)


def seconds(function: Any, sim: Any, n: int) -> float:
    """Return the processor time of a call."""
    begun = time.process_time()
    function(sim, n)
    return time.process_time() - begun


def main() -> None:
    """Print what each costs to compile and to use."""
    arrays = [np.arange(4_000).reshape(4, 1_000) for _ in NAMES]
    struct = Struct(Fields(*arrays))
    for name, function, sim in (
        ("struct", with_struct, struct.address),
        ("structref", with_structref, structref.StructRefProxy.__new__(Reference, *arrays)),
    ):
        first = seconds(function, sim, 1)
        turn = min(seconds(function, sim, TURNS) for _ in range(REPEATS)) / TURNS
        print(f"{name}: first call {first:.2f} s, a turn {turn * 1e9:.1f} ns")


if __name__ == "__main__":
    main()
