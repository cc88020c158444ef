"""Records of arrays that kernels take by reference."""

import sys
from typing import Any, NamedTuple, TypeVar, cast

import numba
from numba import types
from numba.experimental import structref

RecordT = TypeVar("RecordT", bound=type[NamedTuple])


def by_reference(record: RecordT) -> RecordT:
    """Let kernels take a record of arrays as one pointer.

    Numba passes a plain named tuple of forty arrays as some three hundred numbers at every call,
    which made an event twenty times dearer. Its struct references cost one. Fields read the same
    either way; where compilation is off (`NUMBA_DISABLE_JIT=1`) the named tuple itself serves.

    Args:
        record: A named tuple class, its fields arrays or records.

    Returns:
        A class made and read like the named tuple in kernels; opaque to Python outside them.

    Source:
        House rule: kernels read like prose and cost like C.
    """
    if cast(Any, numba.config).DISABLE_JIT:
        return record
    name = f"{record.__name__}Type"
    place = {"__module__": record.__module__, "__doc__": record.__doc__}
    # Numba's disk cache pickles types by name, so the type must stand where its name says.
    struct_type = type(name, (types.StructRef,), place)
    setattr(sys.modules[record.__module__], name, structref.register(struct_type))
    proxy = type(record.__name__, (structref.StructRefProxy,), place)
    structref.define_proxy(proxy, struct_type, list(cast(Any, record)._fields))
    return cast(RecordT, proxy)
