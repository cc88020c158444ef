"""Calls of kernels that few simulations need, through addresses.

The event engine is the same for all. Where it works on nodes, backfills otherwise than EASY, or
orders by other rules than weights and keys, it calls one function by an address in `Jobs`. So these
kernels are compiled when a simulation first needs them, each mode's and order's alone, and once for
all functions that schedule; others never pay for them.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.ccallback import CFunc
from numba.extending import intrinsic
from numpy.typing import NDArray

from hpcgym.core import loaders
from hpcgym.core.compiler.jit import cache_of, kernel
from hpcgym.core.compiler.struct import ADDRESS_OF, IS_COMPILED, StructType
from hpcgym.core.constants import BACKFILL_PART, RULE_CALLED
from hpcgym.core.kernels.types import Jobs, Sim

_functions: list[Any] = [None]
"""Where compilation is off, places in this list are addresses."""


@cache
def address_of(function: Callable[[Jobs, Sim, int, int], Any], result: Any = types.int64) -> int:
    """Compile a function of two structs and two numbers, or load it, and return its address."""
    if not IS_COMPILED:
        _functions.append(function)
        return len(_functions) - 1
    signature = (StructType(Jobs), StructType(Sim), types.int64, types.int64), result
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


def _call(address: int, jobs: Jobs, sim: Sim, task: int, argument: int) -> Any:
    """Do what `call` does, where compilation is off."""
    return _functions[address](jobs, sim, task, argument)


call: Any = intrinsic(_typed) if IS_COMPILED else _call
"""Call the function at an address, with `jobs`, `sim`, a task and a further number."""

ADDRESS_OF["nodes_pass"] = lambda number: address_of(loaders.module(loaders.NODES).work)
ADDRESS_OF["mode_pass"] = lambda number: address_of(
    loaders.module(loaders.PARTS[number - BACKFILL_PART]).work
)

ORDERS: NDArray[np.int64] = np.zeros(1024, dtype=np.int64)
"""Addresses of orders, by rule; 0 = not loaded in this process."""
ADDRESS_OF["orders"] = lambda number: ORDERS


def rule_of(order: str | Callable[..., None]) -> int:
    """Return the rule of an order, whose function is compiled, or loaded; one's own is listed."""
    text = order if isinstance(order, str) else f"{order.__module__}:{order.__name__}"
    loaders.ORDERS.setdefault(text, ())
    rule = RULE_CALLED + [*loaders.ORDERS].index(text)
    ORDERS[rule] = address_of(loaders.load(text), types.void)
    return rule


@kernel(inlined=True)
def has_nodes(jobs: Jobs) -> bool:
    """Tell whether jobs are placed on nodes, and not on counted processors."""
    return jobs.nodes_pass != 0


ask_nodes = call
"""Have the kernels of nodes do a task `NODES_*`; the further number is a job."""

ask_mode = call
"""Have the part of a backfilling mode do a task; `hpcgym.core.parts` says which there are."""


@kernel(inlined=True)
def ask_order(jobs: Jobs, sim: Sim, which: int, rule: int, n: int) -> None:
    """Have an order write keys in order `which` of the first n jobs in `scratch`."""
    call(jobs.orders[rule], jobs, sim, which, n)  # what it returns means nothing
