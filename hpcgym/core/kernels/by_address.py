"""Calls of kernels that few simulations need, through addresses.

The event engine is the same for all. Where it works on nodes, or backfills otherwise than EASY, it
calls one function by an address in `Jobs`. So these kernels are compiled when a simulation first
needs them, and once for all functions that schedule; others never pay for them.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.ccallback import CFunc
from numba.extending import intrinsic

from hpcgym.core.jit import cache_of
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.struct import ADDRESS_OF, IS_COMPILED


@cache
def address_of(function: Callable[[int, int, int, int], int]) -> int:
    """Compile a function of four numbers, or load it from the cache, and return its address."""
    signature = (types.int64,) * 4, types.int64
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


def _caller_of(field: str, load: Callable[[], Any]) -> Any:
    """Make what kernels call in place of a module's `work`, whose address is a field of `Jobs`.

    It takes the address, `jobs`, `sim`, a task and a further number, and returns a number. The
    module has `call_work` too, which can have an address.
    """

    def call(address: int, jobs: Jobs, sim: Sim, task: int, argument: int) -> Any:
        return load().work(jobs, sim, task, argument)  # without compilation nothing has an address

    ADDRESS_OF[field] = lambda: address_of(load().call_work)
    return _by_address if IS_COMPILED else call


def _load_nodes() -> Any:
    """Return the module of the kernels of nodes."""
    from hpcgym.core.kernels.nodes import work

    return work


def _load_modes() -> Any:
    """Return the module of the backfilling modes other than EASY."""
    from hpcgym.core.kernels.passes import other_modes

    return other_modes


ask_nodes: Any = _caller_of("nodes_pass", _load_nodes)
"""Have the kernels of nodes do a task `NODES_*`; the further number is a job."""

ask_mode: Any = _caller_of("mode_pass", _load_modes)
"""Have a backfilling mode other than EASY do a task `MODE_*`; the further number is a shadow
time."""
