"""Calls of kernels that few simulations need, through addresses.

The event engine is the same for all. Where it works on nodes, or backfills otherwise than EASY, it
calls one function by an address in `Jobs`. So these kernels are compiled when a simulation first
needs them, each mode's alone, and once for all functions that schedule; others never pay for them.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.ccallback import CFunc
from numba.extending import intrinsic

from hpcgym.core import loaders
from hpcgym.core.compiler.jit import cache_of, kernel
from hpcgym.core.compiler.struct import ADDRESS_OF, IS_COMPILED, StructType
from hpcgym.core.constants import BACKFILL_PART
from hpcgym.core.kernels.types import Jobs, Sim


@cache
def address_of(function: Callable[[Jobs, Sim, int, int], int]) -> int:
    """Compile a function of two structs and two numbers, or load it, and return its address."""
    signature = (StructType(Jobs), StructType(Sim), types.int64, types.int64), types.int64
    compiled: Any = CFunc(function, signature, {}, {"error_model": "numpy"})
    compiled._cache = cache_of(function) or compiled._cache
    compiled.compile()
    return int(compiled.address)


def _typed(
    typing_context: Any, address: Any, jobs: Any, sim: Any, task: Any, argument: Any
) -> tuple[Any, Any]:
    """Type the call, and say how it is compiled."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        function = ir.FunctionType(number, [number] * 4).as_pointer()
        places = [builder.ptrtoint(pointer, number) for pointer in arguments[1:3]]
        return builder.call(builder.inttoptr(arguments[0], function), [*places, *arguments[3:]])

    return types.int64(types.int64, jobs, sim, types.int64, types.int64), generate


_by_address: Any = intrinsic(_typed)


def _caller_of(field: str, name_of: Callable[[int], str]) -> Any:
    """Make what kernels call in place of a module's `work`, whose address is a field of `Jobs`.

    Python sets the field to a number, by which `name_of` names the module. The call takes the
    address, `jobs`, `sim`, a task and a further number, and returns a number.
    """

    def call(number: int, jobs: Jobs, sim: Sim, task: int, argument: int) -> Any:
        return loaders.module(name_of(number)).work(
            jobs, sim, task, argument
        )  # nothing has an address

    ADDRESS_OF[field] = lambda number: address_of(loaders.module(name_of(number)).work)
    return _by_address if IS_COMPILED else call


@kernel(inlined=True)
def has_nodes(jobs: Jobs) -> bool:
    """Tell whether jobs are placed on nodes, and not on counted processors."""
    return jobs.nodes_pass != 0


ask_nodes: Any = _caller_of("nodes_pass", lambda number: loaders.NODES)
"""Have the kernels of nodes do a task `NODES_*`; the further number is a job."""

ask_mode: Any = _caller_of("mode_pass", lambda number: loaders.PARTS[number - BACKFILL_PART])
"""Have the part of a backfilling mode do a task; `hpcgym.core.parts` says which there are."""

ask_event: Any = _caller_of("event_pass", lambda number: loaders.PARTS[number - BACKFILL_PART])
"""Have the part of an event do a task; `hpcgym.core.events` says which there are."""
