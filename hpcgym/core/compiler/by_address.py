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
from numba.extending import intrinsic

from hpcgym.core import loaders
from hpcgym.core.compiler.jit import cache_of, kernel
from hpcgym.core.compiler.struct import ADDRESS_OF, IS_COMPILED, StructType
from hpcgym.core.constants import BACKFILL_PART
from hpcgym.core.kernels.types import ActionSpec, Jobs, Sim


@cache
def address_of(function: Callable[..., Any], signature: Any = None) -> int:
    """Compile a function or load it, and return its address.

    It takes two structs and two numbers and returns a number, unless a signature says others.
    """
    if signature is None:
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


def _typed_act(
    typing: Any, address: Any, jobs: Any, sim: Any, spec: Any, slot: Any, index: Any, values: Any
) -> tuple[Any, Any]:
    """Type the call of a kind of action, and say how it is compiled."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        result, *kinds = map(context.get_value_type, (types.void, *signature.args[1:]))
        function = ir.FunctionType(result, kinds).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], function), arguments[1:])

    return types.void(types.int64, jobs, sim, spec, slot, types.int64, values), generate


def _address_of_act(module: str) -> int:
    """Return the address of the kernel of a kind of action, by its module."""
    slot, values = types.Array(types.int64, 1, "C"), types.Array(types.float32, 1, "C")
    structs = StructType(Jobs), StructType(Sim), StructType(ActionSpec)
    signature = (*structs, slot, types.int64, values), types.void
    return address_of(loaders.module(module).act, signature)


def _act(module: str, *arguments: Any) -> None:
    """Do what `take_action` does, where compilation is off."""
    loaders.module(module).act(*arguments)


ADDRESS_OF["act"] = _address_of_act
take_action: Any = intrinsic(_typed_act) if IS_COMPILED else _act
"""Have the kernel of a kind of action take an action; `hpcgym.core.actions` explains the call."""
