"""The one call from the event engine to the kernels of nodes, through an address.

The engine is the same for every machine. Where it works on nodes it calls `work` by the address in
`Jobs.nodes_pass`. So the kernels of nodes are compiled when a machine first has nodes, and once for
all functions that schedule; a machine without nodes never pays for them.
"""

from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.struct import ADDRESS_OF, IS_COMPILED


def _typed(
    typing_context: Any, address: Any, jobs: Any, sim: Any, task: Any, job: Any
) -> tuple[Any, Any]:
    """Type the call, and say how it is compiled."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        function = ir.FunctionType(number, [number] * 4).as_pointer()
        places = [builder.ptrtoint(pointer, number) for pointer in arguments[1:3]]
        return builder.call(builder.inttoptr(arguments[0], function), [*places, *arguments[3:]])

    return types.int64(types.int64, jobs, sim, types.int64, types.int64), generate


def _call(address: int, jobs: Jobs, sim: Sim, task: int, job: int) -> int:
    """Call the kernel where compilation is off."""
    from hpcgym.core.kernels.nodes.work import work

    return work(cast(int, jobs), cast(int, sim), task, job)  # no addresses without compilation


ask_nodes: Any = intrinsic(_typed) if IS_COMPILED else _call
"""Call `hpcgym.core.kernels.nodes.work.work` at an address, with a task `NODES_*` and a job."""


def _address() -> int:
    """Compile the kernel in this process, unless that is done, and return its address."""
    from hpcgym.core.kernels.nodes import work

    return work.address()


ADDRESS_OF["nodes_pass"] = _address
