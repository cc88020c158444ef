"""Records of arrays that kernels take as one pointer, and whose uses they do not count.

Numba passes a named tuple of forty arrays as some three hundred numbers at every call, and counts
a reference, by an atomic instruction, at most uses of a field. Both cost far more than the work of
an event. So kernels take a record: a table in memory with the descriptors of its arrays, made in
Python once and given as its address. Whoever makes a record keeps it, and its arrays, alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar, cast, get_args, get_type_hints

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, models, register_model
from numpy.typing import NDArray

FieldsT = TypeVar("FieldsT", bound=NamedTuple)

IS_COMPILED = not cast(Any, numba.config).DISABLE_JIT


class UncountedArray(types.Array):
    """Type of an array whose uses are not counted; for the rest an array like any other."""


@register_model(UncountedArray)
class UncountedArrayModel(models.StructModel):
    """Layout of an array; its owner is a bare pointer that numba's runtime does not follow."""

    def __init__(self, manager: Any, array: Any) -> None:
        """Lay out the same members as numba does for its own arrays."""
        sizes = types.UniTuple(types.intp, array.ndim)
        members = [
            ("meminfo", types.voidptr),
            ("parent", types.voidptr),
            ("nitems", types.intp),
            ("itemsize", types.intp),
            ("data", types.CPointer(array.dtype)),
            ("shape", sizes),
            ("strides", sizes),
        ]
        super().__init__(manager, array, members)  # type: ignore[no-untyped-call]


class RecordType(types.Type):
    """Type of a record: the name and type of each of its arrays, in order."""

    def __init__(self, name: str, arrays: dict[str, UncountedArray]) -> None:
        """Name the type by its fields, so that kernels of one layout are compiled once."""
        self.arrays = arrays
        super().__init__(name=f"{name}({', '.join(f'{k}: {v}' for k, v in arrays.items())})")


@register_model(RecordType)
class RecordModel(models.OpaqueModel):
    """A record is one pointer."""


@infer_getattr
class RecordAttribute(AttributeTemplate):
    """Fields of a record are its arrays."""

    key = RecordType

    def generic_resolve(self, record: RecordType, name: str) -> Any:  # type: ignore[override]
        """Return the type of a field."""
        return record.arrays.get(name)


@lower_getattr_generic(RecordType)  # type: ignore[untyped-decorator]
def _load_field(context: Any, builder: Any, record: RecordType, pointer: Any, name: str) -> Any:
    """Load the descriptor of an array out of the table."""
    layout = ir.LiteralStructType([context.get_value_type(one) for one in record.arrays.values()])
    table = builder.bitcast(pointer, layout.as_pointer())
    place = [context.get_constant(types.int32, n) for n in (0, list(record.arrays).index(name))]
    return builder.load(builder.gep(table, place))


class Record(Generic[FieldsT]):
    """A record as Python holds it.

    Attributes:
        fields: The arrays.
        address: What kernels take in their place: where the table lies, or the arrays themselves
            where compilation is off (`NUMBA_DISABLE_JIT=1`).
    """

    def __init__(self, fields: FieldsT) -> None:
        """Write the table of descriptors.

        Args:
            fields: The arrays, of the types that their annotations state.

        Source:
            House rule: kernels read like prose and cost like C.
        """
        self.fields = fields
        self.address: Any = fields
        if IS_COMPILED:
            words: list[int] = []
            for array in cast("tuple[NDArray[Any], ...]", fields):
                assert array.flags.c_contiguous
                words += [0, 0, array.size, array.itemsize, array.ctypes.data]
                words += [*array.shape, *array.strides]
            self._table = np.array(words, dtype=np.int64)
            self.address = self._table.ctypes.data


def opener(fields: type[FieldsT]) -> Callable[[Any], FieldsT]:
    """Make the kernel function that opens records of one kind.

    Args:
        fields: A named tuple class, each field annotated with the element type and number of axes
            of its array: `Annotated[NDArray[...], "int64", 1]`.

    Returns:
        A function for use in kernels: from the address of a `Record` to the record.

    Source:
        House rule: kernels read like prose and cost like C.
    """
    if not IS_COMPILED:
        return lambda address: cast(FieldsT, address)
    arrays = {}
    for name, hint in get_type_hints(fields, include_extras=True).items():
        _, element, n_axes = get_args(hint)
        arrays[name] = UncountedArray(getattr(types, element), n_axes, "C")
    record = RecordType(fields.__name__, arrays)

    def typed(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(record))

        return record(types.intp), generate

    return cast("Callable[[Any], FieldsT]", intrinsic(typed))
