"""Arrays whose uses are not counted, and whose indices count from the front."""

import operator
from typing import Any, cast

from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.extending import models, register_model
from numba.np.arrayobj import (
    getitem_array_tuple,
    getitem_arraynd_intp,
    load_item,
    make_array,
    setitem_array,
    store_item,
)


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
    is_whole = all(isinstance(position, types.Integer) for position in indices)
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
    pointer = _element(context, builder, signature, arguments)
    if pointer is not None:
        return load_item(context, builder, signature.args[0], pointer)
    is_tuple = isinstance(signature.args[1], types.BaseTuple)
    get_item = getitem_array_tuple if is_tuple else getitem_arraynd_intp
    return get_item(context, builder, signature, arguments)


@lower_builtin(operator.setitem, UncountedArray, types.Integer, types.Any)
@lower_builtin(operator.setitem, UncountedArray, types.BaseTuple, types.Any)
def _set_element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Store an element; slices are left to numba."""
    pointer = _element(context, builder, signature, arguments)
    if pointer is None:
        return setitem_array(context, builder, signature, arguments)
    array, _, kind = signature.args
    value = context.cast(builder, arguments[2], kind, array.dtype)
    store_item(context, builder, array, value, pointer)
    return context.get_dummy_value()
