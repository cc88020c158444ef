"""Calls of kernels that few simulations need, through addresses.

The event engine is the same for all. Where it works on nodes, backfills otherwise than EASY, or
orders by other rules than weights and keys, it calls one function by an address in `Jobs`. So these
kernels are compiled when a simulation first needs them, each mode's and order's alone, and once for
all functions that schedule; others never pay for them. A step of the environment calls the kernel
of its kind of action likewise, and observations those of fields of a user's own.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.ccallback import CFunc
from numba.core.typing.templates import Signature
from numba.extending import intrinsic
from numpy.typing import NDArray

from hpcgym.core import loaders
from hpcgym.core.compiler.jit import cache_of, kernel
from hpcgym.core.compiler.struct import ADDRESS_OF, IS_COMPILED, StructType
from hpcgym.core.constants import BACKFILL_PART, RULE_CALLED
from hpcgym.core.kernels.types import ActionSpec, Jobs, Sim

_functions: list[Any] = [None]  # where compilation is off, places in this list are addresses


@cache
def _of(returns: Any, n: int) -> Signature:
    """Return the types of a function of jobs, a simulation and so many whole numbers."""
    typed: Signature = returns(StructType(Jobs), StructType(Sim), *[types.int64] * n)
    return typed


@cache
def _of_act() -> Signature:
    """Return the types of `act`, which kinds of action have."""
    structs = StructType(Jobs), StructType(Sim), StructType(ActionSpec)
    slot, values = types.Array(types.int64, 1, "C"), types.Array(types.float32, 1, "C")
    return types.void(*structs, slot, types.int64, values)


@cache
def address_of(function: Callable[..., Any], signature: Signature) -> int:
    """Compile a function, or load it, and return its address."""
    if not IS_COMPILED:
        _functions.append(function)
        return len(_functions) - 1
    typed = signature.args, signature.return_type
    compiled: Any = CFunc(function, typed, {}, {"error_model": "numpy"})
    compiled._cache = cache_of(function) or compiled._cache
    compiled.compile()
    return int(compiled.address)


def address_of_field(show: Callable[..., float], n: int) -> int:
    """Return where the kernel of an observation field of so many numbers lies."""
    return address_of(show, _of(types.float64, n))


def _typed(signature: Signature) -> tuple[Any, Any]:
    """Type a call by an address, which comes first, and say how it is compiled."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        kinds = signature.return_type, *signature.args
        result, *given = map(context.get_value_type, kinds)
        function = ir.FunctionType(result, given).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], function), arguments[1:])

    return signature.return_type(types.int64, *signature.args), generate


def _caller(typed: Callable[..., tuple[Any, Any]]) -> Any:
    """Make a call of what lies at an address."""
    return intrinsic(typed) if IS_COMPILED else lambda at, *given: _functions[at](*given)


call = _caller(lambda typing, at, jobs, sim, task, argument: _typed(_of(types.int64, 2)))
"""Call the function at an address, with `jobs`, `sim`, a task and a further number."""
show_of_job = _caller(lambda typing, at, jobs, sim, job: _typed(_of(types.float64, 1)))
"""Call the kernel of a field of a job: address, `jobs`, `sim` and the job."""
show_of_cluster = _caller(lambda typing, at, jobs, sim: _typed(_of(types.float64, 0)))
"""Call the kernel of a field of the cluster: address, `jobs` and `sim`."""
take_action = _caller(
    lambda typing, at, jobs, sim, action_spec, slot, index, values: _typed(_of_act())
)
"""Have the kernel of a kind of action take an action; `hpcgym.core.actions` explains the call."""


def _part(number: int) -> int:
    """Return the address of the part of a mode or an event, by its number."""
    return _work_of(loaders.PARTS[number - BACKFILL_PART])


def _work_of(module: str) -> int:
    """Return the address of a module's `work`."""
    return address_of(loaders.module(module).work, _of(types.int64, 2))


ADDRESS_OF["nodes_pass"] = lambda number: _work_of(loaders.NODES)
ADDRESS_OF["mode_pass"] = _part
ADDRESS_OF["event_pass"] = lambda numbers: np.array(list(map(_part, numbers)), dtype=np.int64)
ADDRESS_OF["act"] = lambda module: address_of(loaders.module(module).act, _of_act())
ADDRESS_OF["orders"] = lambda number: ORDERS

ORDERS: NDArray[np.int64] = np.zeros(1024, dtype=np.int64)
"""Addresses of orders, by rule; 0 = not loaded in this process."""


def rule_of(order: str | Callable[..., None]) -> int:
    """Return the rule of an order, whose function is compiled, or loaded; one's own is listed."""
    text = order if isinstance(order, str) else f"{order.__module__}:{order.__name__}"
    loaders.ORDERS.setdefault(text, ())
    rule = RULE_CALLED + [*loaders.ORDERS].index(text)
    ORDERS[rule] = address_of(loaders.load(text), _of(types.void, 2))
    return rule


@kernel(inlined=True)
def has_nodes(jobs: Jobs) -> bool:
    """Tell whether jobs are placed on nodes, and not on counted processors."""
    return jobs.nodes_pass != 0


ask_nodes = call  # have the kernels of nodes do a task `NODES_*`; the further number is a job

ask_mode = call
"""Have the part of a backfilling mode do a task; `hpcgym.core.parts` says which there are."""

ask_event = call  # have the part of an event do a task; `hpcgym.core.events` says which there are


@kernel(inlined=True)
def ask_order(jobs: Jobs, sim: Sim, which: int, rule: int, n: int) -> None:
    """Have an order write keys in order `which` of the first n jobs in `scratch`."""
    call(jobs.orders[rule], jobs, sim, which, n)  # what it returns means nothing
