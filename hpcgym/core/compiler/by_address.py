"""Calls of kernels that few simulations need, through addresses.

The event engine is the same for all. Where it works on nodes, or backfills otherwise than EASY, it
calls one function by an address in `Jobs`. So these kernels are compiled when a simulation first
needs them, each mode's alone, and once for all functions that schedule; others never pay for them.
A step of the environment calls the kernel of its kind of action likewise.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.ccallback import CFunc
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from hpcgym.core import loaders
from hpcgym.core.compiler.jit import cache_of, kernel
from hpcgym.core.compiler.struct import ADDRESS_OF, IS_COMPILED, StructType
from hpcgym.core.constants import BACKFILL_PART
from hpcgym.core.kernels.types import ActionSpec, Jobs, Sim


def _of_work() -> Signature:
    """Return the types of `work`, which parts and the kernels of nodes have."""
    return types.int64(StructType(Jobs), StructType(Sim), types.int64, types.int64)


def _of_act() -> Signature:
    """Return the types of `act`, which kinds of action have."""
    structs = StructType(Jobs), StructType(Sim), StructType(ActionSpec)
    slot, values = types.Array(types.int64, 1, "C"), types.Array(types.float32, 1, "C")
    return types.void(*structs, slot, types.int64, values)


@cache
def address_of(function: Callable[..., Any], signature: Signature) -> int:
    """Compile a function, or load it, and return its address."""
    typed = signature.args, signature.return_type
    compiled: Any = CFunc(function, typed, {}, {"error_model": "numpy"})
    compiled._cache = cache_of(function) or compiled._cache
    compiled.compile()
    return int(compiled.address)


def _typed(signature: Signature) -> tuple[Any, Any]:
    """Type a call by an address, which comes first, and say how it is compiled."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        kinds = signature.return_type, *signature.args
        result, *given = map(context.get_value_type, kinds)
        function = ir.FunctionType(result, given).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], function), arguments[1:])

    return signature.return_type(types.int64, *signature.args), generate


_work: Any = intrinsic(lambda typing, address, jobs, sim, task, argument: _typed(_of_work()))
_act: Any = intrinsic(
    lambda typing, address, jobs, sim, action_spec, slot, index, values: _typed(_of_act())
)


def _caller_of(field: str, call: Any, signature: Callable[[], Signature], find: Any) -> Any:
    """Make what kernels call in place of a function whose address is a field of a struct.

    Python sets the field to a number or a name, by which `find` finds the function. The call takes
    the address, and what the function takes.
    """
    ADDRESS_OF[field] = lambda name: address_of(find(name), signature())
    # Where compilation is off, nothing has an address.
    return call if IS_COMPILED else lambda name, *arguments: find(name)(*arguments)


@kernel(inlined=True)
def has_nodes(jobs: Jobs) -> bool:
    """Tell whether jobs are placed on nodes, and not on counted processors."""
    return jobs.nodes_pass != 0


ask_nodes: Any = _caller_of(
    "nodes_pass", _work, _of_work, lambda number: loaders.module(loaders.NODES).work
)
"""Have the kernels of nodes do a task `NODES_*`; the further number is a job."""

ask_mode: Any = _caller_of(
    "mode_pass",
    _work,
    _of_work,
    lambda number: loaders.module(loaders.PARTS[number - BACKFILL_PART]).work,
)
"""Have the part of a backfilling mode do a task; `hpcgym.core.parts` says which there are."""

take_action: Any = _caller_of("act", _act, _of_act, lambda module: loaders.module(module).act)
"""Have the kernel of a kind of action take an action; `hpcgym.core.actions` explains the call."""
