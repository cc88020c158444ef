"""Structs of arrays that kernels take as one pointer, and whose uses they do not count.

Numba passes a named tuple of forty arrays as some three hundred numbers at every call. It also
counts references, with an atomic instruction at most uses of a field. Both cost far more than the
work of an event. So kernels take a struct: a table in memory with the descriptors of its arrays,
written once by Python and passed as its address. Whoever makes a struct must keep it, and its
arrays, alive.
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
    """Type of an array whose uses are not counted; otherwise an array like any other."""


@register_model(UncountedArray)
class UncountedArrayModel(models.StructModel):
    """Layout of an array whose owner is a bare pointer, which numba's runtime does not follow."""

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
    """Return an element's address, indices counted from the front; None leaves it to numba."""
    # Numba allows negative indices, which costs a load and a comparison at every use. Kernels never
    # count from the end. With `NUMBA_BOUNDSCHECK=1` numba's own code serves, to check indices.
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
    """Load an element; leave slices to numba."""
    place = _element(context, builder, signature, arguments)
    if place is not None:
        return load_item(context, builder, signature.args[0], place)
    is_tuple = isinstance(signature.args[1], types.BaseTuple)
    get_item = getitem_array_tuple if is_tuple else getitem_arraynd_intp
    return get_item(context, builder, signature, arguments)


@lower_builtin(operator.setitem, UncountedArray, types.Integer, types.Any)
@lower_builtin(operator.setitem, UncountedArray, types.BaseTuple, types.Any)
def _set_element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Store an element; leave slices to numba."""
    place = _element(context, builder, signature, arguments)
    if place is None:
        return setitem_array(context, builder, signature, arguments)
    array, _, kind = signature.args
    value = context.cast(builder, arguments[2], kind, array.dtype)
    store_item(context, builder, array, value, place)
    return context.get_dummy_value()


class StructType(types.Type):
    """Type of a struct: the name and type of each of its arrays, in order."""

    def __init__(self, name: str, arrays: dict[str, UncountedArray]) -> None:
        """Name the type by its fields, so that kernels are compiled once for each layout."""
        self.arrays = arrays
        super().__init__(name=f"{name}({', '.join(f'{k}: {v}' for k, v in arrays.items())})")


@register_model(StructType)
class StructModel(models.OpaqueModel):
    """Layout of a struct in kernels: one pointer."""


@infer_getattr
class StructAttribute(AttributeTemplate):
    """Typing of a struct's attributes, which are its arrays."""

    key = StructType

    def generic_resolve(self, record: StructType, name: str) -> Any:  # type: ignore[override]
        """Return the type of a field."""
        return record.arrays.get(name)


@lower_getattr_generic(StructType)
def _load_field(context: Any, builder: Any, record: StructType, pointer: Any, name: str) -> Any:
    """Load the descriptor of an array from the table, number by number."""
    types_in_table = [context.get_value_type(array) for array in record.arrays.values()]
    table = builder.bitcast(pointer, ir.LiteralStructType(types_in_table).as_pointer())
    # The table never changes while a struct lives. Saying so at each load lets the compiler keep
    # what it has loaded, whatever is stored in between.
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
    """A struct as Python holds it.

    Attributes:
        fields: The arrays, of the types that their annotations state.
        address: What kernels take: the table's address, or the arrays themselves where
            compilation is off (`NUMBA_DISABLE_JIT=1`).
    """

    def __init__(self, fields: FieldsT) -> None:
        """Write the table of descriptors."""
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
    """Return the function by which kernels turn the address of a `Struct` into its fields.

    `fields` is a named tuple class. Each annotation states an array's element type and number of
    axes: `Annotated[NDArray[...], "int64", 1]`.
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
