"""Calls of kernels that few simulations need, through addresses.

The event engine is the same for all. Where it works on nodes, backfills otherwise than EASY, or
orders by other rules than weights and keys, it calls one function by an address in `Jobs`. So these
kernels are compiled when a simulation first needs them, each mode's and order's alone, and once for
all functions that schedule; others never pay for them. So are observation fields of a user's own.
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
def address_of(function: Callable[..., Any], n: int = 2, returns: Any = types.int64) -> int:
    """Compile a function of two structs and `n` numbers, or load it, and return its address."""
    if not IS_COMPILED:
        _functions.append(function)
        return len(_functions) - 1
    signature = (StructType(Jobs), StructType(Sim), *[types.int64] * n), returns
    compiled: Any = CFunc(function, signature, {}, {"error_model": "numpy"})
    compiled._cache = cache_of(function) or compiled._cache
    compiled.compile()
    return int(compiled.address)


def address_of_field(show: Callable[..., float], n: int) -> int:
    """Return where the kernel of an observation field of `n` numbers lies."""
    return address_of(show, n, types.float64)


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
    """Make a call of what lies at an address."""
    return intrinsic(typed) if IS_COMPILED else lambda at, *given: _functions[at](*given)


_whole, _real = types.int64, types.float64
call = _caller(lambda _, at, jobs, sim, task, more: _call(_whole, jobs, sim, _whole, _whole))
"""Call the function at an address, with `jobs`, `sim`, a task and a further number."""
show_of_job = _caller(lambda _, at, jobs, sim, job: _call(_real, jobs, sim, _whole))
"""Call the kernel of a field of a job: address, `jobs`, `sim` and the job."""
show_of_cluster = _caller(lambda _, at, jobs, sim: _call(_real, jobs, sim))
"""Call the kernel of a field of the cluster: address, `jobs` and `sim`."""


def _part(number: int) -> int:
    """Return the address of the part of a mode or an event, by its number."""
    return address_of(loaders.module(loaders.PARTS[number - BACKFILL_PART]).work)


ADDRESS_OF["nodes_pass"] = lambda number: address_of(loaders.module(loaders.NODES).work)
ADDRESS_OF["mode_pass"] = _part
ADDRESS_OF["event_pass"] = lambda numbers: np.array(list(map(_part, numbers)), dtype=np.int64)

ORDERS: NDArray[np.int64] = np.zeros(1024, dtype=np.int64)
"""Addresses of orders, by rule; 0 = not loaded in this process."""
ADDRESS_OF["orders"] = lambda number: ORDERS


def rule_of(order: str) -> int:
    """Return the rule of an order, whose function is compiled, or loaded; one's own is listed."""
    loaders.ORDERS.setdefault(order, ())
    rule = RULE_CALLED + [*loaders.ORDERS].index(order)
    ORDERS[rule] = address_of(loaders.load(order), types.void)
    return rule


@kernel(inlined=True)
def has_nodes(jobs: Jobs) -> bool:
    """Tell whether jobs are placed on nodes, and not on counted processors."""
    return jobs.nodes_pass != 0


ask_nodes = call
"""Have the kernels of nodes do a task `NODES_*`; the further number is a job."""

ask_mode = call
"""Have the part of a backfilling mode do a task; `hpcgym.core.parts` says which there are."""

ask_event = call
"""Have the part of an event do a task; `hpcgym.core.events` says which there are."""


@kernel(inlined=True)
def ask_order(jobs: Jobs, sim: Sim, which: int, rule: int, n: int) -> None:
    """Have an order write keys in order `which` of the first n jobs in `scratch`."""
    call(jobs.orders[rule], jobs, sim, which, n)  # what it returns means nothing
