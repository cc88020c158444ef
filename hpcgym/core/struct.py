"""Records of arrays that kernels take as one pointer, and whose uses they do not count.

Numba passes a named tuple of forty arrays as some three hundred numbers at every call, and counts
a reference, by an atomic instruction, at most uses of a field. Both cost far more than the work of
an event. So kernels take a record: a table in memory with the descriptors of its arrays, made in
Python once and given as its address. Whoever makes a record keeps it, and its arrays, alive.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar, cast, get_args, get_type_hints

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, models, register_model
from numba.np.arrayobj import (
    getitem_array_tuple,
    getitem_arraynd_intp,
    load_item,
    make_array,
    setitem_array,
    store_item,
)
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


def _element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return where an element lies, its indices counted from the front; None for anything else.

    Numba lets an index be negative, which costs a load and a comparison at every use; kernels never
    count from the end. Where bounds are checked (`NUMBA_BOUNDSCHECK=1`) numba's own way serves.
    """
    array, index = signature.args[:2]
    indices = tuple(cast(Any, index)) if isinstance(index, types.BaseTuple) else (index,)
    is_whole = all(isinstance(one, types.Integer) for one in indices)
    if context.enable_boundscheck or len(indices) != array.ndim or not is_whole:
        return None
    values = [arguments[1]]
    if isinstance(index, types.BaseTuple):
        values = cgutils.unpack_tuple(builder, arguments[1], len(indices))
    places = [
        context.cast(builder, value, kind, types.intp)
        for value, kind in zip(values, indices, strict=True)
    ]
    view = make_array(array)(context, builder, arguments[0])
    sizes = cgutils.unpack_tuple(builder, view.shape, array.ndim)
    strides = cgutils.unpack_tuple(builder, view.strides, array.ndim)
    return cgutils.get_item_pointer2(
        context, builder, view.data, sizes, strides, array.layout, places
    )


@lower_builtin(operator.getitem, UncountedArray, types.Integer)
@lower_builtin(operator.getitem, UncountedArray, types.BaseTuple)
def _get_element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Load an element; slices are left to numba."""
    place = _element(context, builder, signature, arguments)
    if place is not None:
        return load_item(context, builder, signature.args[0], place)
    is_tuple = isinstance(signature.args[1], types.BaseTuple)
    get_item = getitem_array_tuple if is_tuple else getitem_arraynd_intp
    return get_item(context, builder, signature, arguments)


@lower_builtin(operator.setitem, UncountedArray, types.Integer, types.Any)
@lower_builtin(operator.setitem, UncountedArray, types.BaseTuple, types.Any)
def _set_element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Store an element; slices are left to numba."""
    place = _element(context, builder, signature, arguments)
    if place is None:
        return setitem_array(context, builder, signature, arguments)
    array, _, kind = signature.args
    value = context.cast(builder, arguments[2], kind, array.dtype)
    store_item(context, builder, array, value, place)
    return context.get_dummy_value()


class StructType(types.Type):
    """Type of a record: the name and type of each of its arrays, in order."""

    def __init__(self, name: str, arrays: dict[str, UncountedArray]) -> None:
        """Name the type by its fields, so that kernels of one layout are compiled once."""
        self.arrays = arrays
        super().__init__(name=f"{name}({', '.join(f'{k}: {v}' for k, v in arrays.items())})")


@register_model(StructType)
class StructModel(models.OpaqueModel):
    """A record is one pointer."""


@infer_getattr
class StructAttribute(AttributeTemplate):
    """Fields of a record are its arrays."""

    key = StructType

    def generic_resolve(self, record: StructType, name: str) -> Any:  # type: ignore[override]
        """Return the type of a field."""
        return record.arrays.get(name)


@lower_getattr_generic(StructType)
def _load_field(context: Any, builder: Any, record: StructType, pointer: Any, name: str) -> Any:
    """Load the descriptor of an array out of the table, number by number.

    The table does not change while a record lives, which each load states: so the compiler keeps
    what it has loaded, whatever is stored in between.
    """
    types_in_table = [context.get_value_type(array) for array in record.arrays.values()]
    table = builder.bitcast(pointer, ir.LiteralStructType(types_in_table).as_pointer())
    unchanging = builder.module.add_metadata([])

    def loaded(place: list[int], kind: Any) -> Any:
        if not isinstance(kind, (ir.LiteralStructType, ir.ArrayType)):
            steps = [ir.Constant(ir.IntType(32), step) for step in (0, *place)]
            number = builder.load(builder.gep(table, steps))
            number.set_metadata("invariant.load", unchanging)
            return number
        whole = ir.Constant(kind, ir.Undefined)
        parts = [kind.element] * kind.count if isinstance(kind, ir.ArrayType) else kind.elements
        for step, part in enumerate(parts):
            whole = builder.insert_value(whole, loaded([*place, step], part), step)
        return whole

    which = list(record.arrays).index(name)
    return loaded([which], types_in_table[which])


class Struct(Generic[FieldsT]):
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
    record = StructType(fields.__name__, arrays)

    def typed(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(record))

        return record(types.intp), generate

    return cast("Callable[[Any], FieldsT]", intrinsic(typed))
