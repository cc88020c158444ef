"""Calls of kernels that few simulations need, through addresses.

The event engine is the same for all. Where it works on nodes, or backfills otherwise than EASY, it
calls one function by an address in `Jobs`. So these kernels are compiled when a simulation first
needs them, each mode's alone, and once for all functions that schedule; others never pay for them.
So are observation fields of a user's own.
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
def address_of(function: Callable[..., float], n: int = 2, returns: Any = types.int64) -> int:
    """Compile a function of two structs and `n` numbers, or load it, and return its address."""
    signature = (StructType(Jobs), StructType(Sim), *[types.int64] * n), returns
    compiled: Any = CFunc(function, signature, {}, {"error_model": "numpy"})
    compiled._cache = cache_of(function) or compiled._cache
    compiled.compile()
    return int(compiled.address)


def address_of_field(show: Callable[..., float], n: int) -> Any:
    """Return where the kernel of an observation field lies; it where nothing is compiled."""
    return address_of(show, n, types.float64) if IS_COMPILED else show


def _call(returns: Any, *given: Any) -> tuple[Any, Any]:
    """Type a call with these structs and numbers behind the address; say how it is compiled."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        pointers = [builder.ptrtoint(pointer, number) for pointer in arguments[1:3]]
        taken = [*pointers, *arguments[3:]]
        result = context.get_value_type(returns)
        function = ir.FunctionType(result, [number] * len(taken)).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], function), taken)

    return returns(types.int64, *given), generate


def _caller(typed: Callable[..., tuple[Any, Any]]) -> Any:
    """Make a call of what lies at an address, or of a function where nothing is compiled."""
    return intrinsic(typed) if IS_COMPILED else lambda function, *given: function(*given)


_whole, _real = types.int64, types.float64
_by_address = _caller(lambda _, at, jobs, sim, task, more: _call(_whole, jobs, sim, _whole, _whole))
show_of_job = _caller(lambda _, at, jobs, sim, job: _call(_real, jobs, sim, _whole))
"""Call the kernel of a field of a job: address, `jobs`, `sim` and the job."""
show_of_cluster = _caller(lambda _, at, jobs, sim: _call(_real, jobs, sim))
"""Call the kernel of a field of the cluster: address, `jobs` and `sim`."""


def _caller_of(field: str, name_of: Callable[[int], str]) -> Any:
    """Make what kernels call in place of a module's `work`, whose address is a field of `Jobs`.

    Python sets the field to a number, by which `name_of` names the module. The call takes the
    address, `jobs`, `sim`, a task and a further number, and returns a number.
    """

    def call(number: int, *given: Any) -> Any:
        return loaders.module(name_of(number)).work(*given)  # nothing has an address

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
