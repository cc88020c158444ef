"""Records of arrays that kernels take by reference, and arrays that they do not count."""

import sys
from typing import Any, NamedTuple, TypeVar, cast

import numba
from numba import types
from numba.core import cgutils
from numba.experimental import structref
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

RecordT = TypeVar("RecordT", bound=type[NamedTuple])

IS_COMPILED = not cast(Any, numba.config).DISABLE_JIT


def by_reference(record: RecordT) -> RecordT:
    """Let kernels take a record of arrays as one pointer.

    Numba passes a plain named tuple of forty arrays as some three hundred numbers at every call,
    which made an event twenty times dearer. Its struct references cost one. Fields read the same
    either way; where compilation is off (`NUMBA_DISABLE_JIT=1`) the named tuple itself serves.

    Args:
        record: A named tuple class, its fields arrays.

    Returns:
        A class made and read like the named tuple in kernels; opaque to Python outside them.

    Source:
        House rule: kernels read like prose and cost like C.
    """
    if not IS_COMPILED:
        return record
    name = f"{record.__name__}Type"
    place = {"__module__": record.__module__, "__doc__": record.__doc__}
    # Numba's disk cache pickles types by name, so the type must stand where its name says.
    struct_type = type(name, (types.StructRef,), place)
    setattr(sys.modules[record.__module__], name, structref.register(struct_type))
    proxy = type(record.__name__, (structref.StructRefProxy,), place)
    define_proxy: Any = structref.define_proxy
    define_proxy(proxy, struct_type, list(cast(Any, record)._fields))
    return cast(RecordT, proxy)


def _borrowed(array: Any) -> Any:
    """Return the array itself: where compilation is off, Python counts."""
    return array


def _borrowed_typed(typing_context: Any, array: Any) -> Any:
    """Compile `borrowed`: the same array without the reference to its owner."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), generate


borrowed: Any = intrinsic(_borrowed_typed) if IS_COMPILED else _borrowed
"""Kernel function: an array as a view that holds no reference to its owner.

Counting references is an atomic instruction at each use of a field. The simulator that makes a
record owns its arrays and outlives it, so the fields of a record need no counting.
"""
