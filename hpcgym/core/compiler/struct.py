"""Structs of arrays that kernels take as one pointer, with their numbers as attributes.

Numba passes a named tuple of forty arrays as some three hundred numbers at every call. At most uses
of a field it also counts references by atomic instructions. Both cost far more than the work of an
event. So kernels take a struct: a table in memory with the descriptors of its arrays. Python makes
the table once and passes its address. Whoever makes a struct keeps it, and its arrays, alive.

A class declares the fields of a struct, each by its annotation:

| annotation | field | in kernels |
|---|---|---|
| `Annotated[NDArray[...], Array("int64", 2)]` | an array with two axes | `sim.key[order, entry]` |
| `Annotated[int, Array("int64", 0)]` | a number: an array without axes | `action_spec.kind` |
| `Annotated[int, Column("counter")]` | a number: the next column of `counter` | `sim.now += 1` |
| `Annotated[float, Column("backfill_parameter", 3)]` | a number: column 3 | `sim.tolerance` |

The arrays of a `Columned` struct lie in one block of memory, of which there are many alike. So they
share one table, which says how far from the front of its block each array begins. The first word of
a block is the address of that table. Arrays of known lengths lie at known places behind it.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast, get_args, get_type_hints

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, models, register_model
from numba.np.arrayobj import load_item, store_item
from numpy.typing import NDArray

from hpcgym.core.compiler.uncounted import UncountedArray

FieldsT = TypeVar("FieldsT")

IS_COMPILED = not cast(Any, numba.config).DISABLE_JIT

NITEMS, ITEMSIZE, DATA, SHAPE, STRIDES = 2, 3, 4, 5, 6
"""Members of an array's descriptor, behind two that say who owns it."""


class Array(NamedTuple):
    """Element type and number of axes of an array; a number has none."""

    element: str
    n_axes: int


class Address(NamedTuple):
    """A number that says where a kernel lies, or a table of these; Python sets a number or a name.

    That is the kernel's, 0 = there is none. With an axis it may be an array of them. A kernel lies
    elsewhere in every process, so its address is looked up when a struct is made.
    """

    kernel: str
    n_axes: int = 0
    element: str = "int64"


ADDRESS_OF: dict[str, Callable[[Any], Any]] = {}
"""Functions that return where the kernels lie that structs may name, by number or name."""


class Column(NamedTuple):
    """Array and place of a number that is one of its columns; no place = the next one."""

    array: str
    place: int | None = None


class Layout(NamedTuple):
    """The fields of a struct by name, in the order of their declaration.

    `axes` has what the class says of an array's axes, `added_by` the class that adds an array.
    `aliases` are names that additions give to columns of this class, which change no other kernel.
    `marks` are what annotations say of an array besides, such as when its rows are fetched.
    """

    arrays: dict[str, Array | Address]
    columns: dict[str, Column]
    axes: dict[str, Any]
    added_by: dict[str, type[Any]]
    aliases: set[str]
    marks: dict[str, list[str]]

    def columns_of(self, array: str) -> list[str]:
        """Return the names of the columns of an array."""
        return [name for name, column in self.columns.items() if column.array == array]


class Words(NamedTuple):
    """Where a table holds what is known of an array, as numbers of words.

    What is known when kernels are compiled is no word but a negative number: of `lengths` a length
    that the class declares, and of `data` the bytes from the front of a block.
    """

    data: int
    lengths: tuple[int, ...]


LINE_BYTES = 64  # bytes of a line of the cache

WORD_BYTES = 8
"""Arrays of a block begin at multiples of so many bytes; the first word is the table's address."""


@functools.cache
def words_of(fields: type[Any]) -> dict[str, Words]:
    """Lay out the table of a struct: the data of all arrays, then lengths.

    So what nearly every use of an array needs lies close together. In a block, arrays whose lengths
    are known lie at the front, in the order of their declaration.
    """
    layout, known, places = layout_of(fields), {}, {}
    known_bytes, n_data = WORD_BYTES, 0
    for name, array in layout.arrays.items():
        known[name] = _known_lengths(fields, name, array.n_axes)
        if issubclass(fields, Columned) and None not in known[name]:
            places[name] = -known_bytes
            known_bytes += whole_words(array.element, cast("tuple[int, ...]", known[name]))
        else:
            places[name] = n_data
            n_data += 1
    words, next_word = {}, n_data
    for name, word in places.items():
        lengths: list[int] = []
        for length in known[name]:
            lengths.append(next_word if length is None else -length)
            next_word += length is None
        words[name] = Words(word, tuple(lengths))
    return words


def _known_lengths(fields: type[Any], name: str, n_axes: int) -> tuple[int | None, ...]:
    """Return the lengths of an array's axes, None for each that its struct does not declare."""
    axes = getattr(layout_of(fields).axes[name], "lengths", (None,) * n_axes)
    # An array of numbers of their own has a place for each.
    n_columns = len(layout_of(fields).columns_of(name)) or None
    return tuple(axis if isinstance(axis, int) else n_columns for axis in axes)


def whole_words(element: str, shape: Sequence[int]) -> int:
    """Return the bytes of an array, rounded up to words."""
    return -(-math.prod(shape) * np.dtype(element).itemsize // WORD_BYTES) * WORD_BYTES


@functools.cache
def table_size(fields: type[Any]) -> int:
    """Return how many words the table of a struct has."""
    words = words_of(cast(Any, fields))
    return 1 + max(max((each.data, *each.lengths)) for each in words.values())


_layouts: dict[Any, Layout] = {}


def layout_of(fields: type[Any]) -> Layout:
    """Read the declarations of a class, once."""
    if fields in _layouts:
        return _layouts[fields]
    layout = _layouts[fields] = Layout({}, {}, {}, {}, set(), {})
    _declare(layout, fields, get_type_hints(fields, include_extras=True))
    for kind in fields.additions() if issubclass(fields, Columned) else ():
        _declare(layout, fields, _added_hints(cast(Any, kind)), kind)
    return layout


def add_aliases(fields: type[Any], kind: type[Any]) -> bool:
    """Let kernels know the names that a late addition gives to columns; False if it adds more."""
    layout = layout_of(fields)
    known = layout.columns | layout.arrays
    new = {name: hint for name, hint in _added_hints(cast(Any, kind)).items() if name not in known}
    if any(getattr(get_args(hint)[1], "place", None) is None for hint in new.values()):
        return False
    _declare(layout, fields, new, kind)
    return True


@functools.cache
def _added_hints(kind: type[Any]) -> dict[str, Any]:
    """Return the declarations of an addition, without those of its bases."""
    alone = type(kind.__name__, (), {"__module__": kind.__module__})
    alone.__annotations__ = kind.__annotations__  # since 3.14 not in vars(kind)
    return get_type_hints(alone, include_extras=True)


def _declare(
    layout: Layout, fields: type[Any], hints: Mapping[str, Any], added: type[Any] | None = None
) -> None:
    for name, hint in hints.items():
        _, field, *marks = get_args(hint)
        layout.marks[name] = marks
        if name in layout.arrays or (name in layout.columns and name not in layout.aliases):
            raise TypeError(f"{(added or fields).__name__} declares {name!r}, which another does")
        if isinstance(field, (Array, Address)):
            layout.arrays[name] = field
            layout.axes[name] = vars(added or fields).get(name)
            if added is not None:
                layout.added_by[name] = added
            continue
        if added is not None and field.place is not None:
            layout.aliases.add(name)
        column = len(layout.columns_of(field.array)) if field.place is None else field.place
        layout.columns[name] = Column(field.array, column)
        if issubclass(fields, Columned):
            setattr(fields, name, _attribute(layout.columns[name]))


class StructType(types.Type):
    """Type of a struct: the types of its arrays and numbers by name.

    Attributes:
        arrays: Type of each array.
        columns: Array and place of each number.
        words: Where the table holds each array's data, and each of its lengths: the number of a
            word. A length that the class declares is no word but known: a negative number.
        is_block: Whether the arrays lie in one block, whose first word names the table.
    """

    def __init__(self, fields: type) -> None:
        """Name the type by its fields, so that kernels of one layout are compiled once."""
        layout = layout_of(fields)
        arrays, self.columns = layout.arrays, layout.columns
        self.arrays = {
            name: UncountedArray(getattr(types, array.element), array.n_axes, "C")
            for name, array in arrays.items()
        }
        self.words = words_of(cast(Any, fields))
        self.is_block = issubclass(fields, Columned)
        typed = ", ".join(
            f"{name}: {kind} {self.words[name]}" for name, kind in self.arrays.items()
        )
        numbers = ", ".join(
            f"{name}: {column.array}[{column.place}]"
            for name, column in self.columns.items()
            if name not in layout.aliases
        )
        # The name is part of the symbol of every kernel, so it is a digest and not the fields.
        digest = hashlib.sha256(f"{typed} {numbers}".encode()).hexdigest()[:8]
        super().__init__(name=f"{fields.__name__}_{digest}")

    def place_of(self, name: str) -> tuple[UncountedArray, int | None]:
        """Return the array that holds a field, and the place of a number in it."""
        if name in self.columns:
            block, column = self.columns[name]
            return self.arrays[block], column
        array = self.arrays[name]
        return array, None if array.ndim else 0


@register_model(StructType)
class StructModel(models.OpaqueModel):
    """A struct is one pointer."""


@infer_getattr
class StructAttribute(AttributeTemplate):
    """Fields of a struct are its attributes."""

    key = StructType

    def generic_resolve(self, struct: StructType, name: str) -> Any:  # type: ignore[override]
        """Return the type of a field."""
        if name not in struct.columns and name not in struct.arrays:
            return None
        array, column = struct.place_of(name)
        return array if column is None else array.dtype


@lower_getattr_generic(StructType)
def _load_field(context: Any, builder: Any, struct: StructType, pointer: Any, name: str) -> Any:
    """Load a number, or the descriptor of an array."""
    array, column = struct.place_of(name)
    if column is None:
        return load_descriptor(context, builder, struct, pointer, name)
    address = _address_of_number(context, builder, struct, pointer, name)
    return load_item(context, builder, array, address)


@lower_setattr_generic(StructType)
def _store_field(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    """Store a number; an array of a struct is never replaced."""
    struct, kind = signature.args
    array, column = struct.place_of(name)
    assert column is not None, f"{name} is an array: only its elements can be stored"
    value = context.cast(builder, arguments[1], kind, array.dtype)
    address = _address_of_number(context, builder, struct, arguments[0], name)
    store_item(context, builder, array, value, address)


def _address_of_number(
    context: Any, builder: Any, struct: StructType, pointer: Any, name: str
) -> Any:
    block = struct.columns[name].array if name in struct.columns else name
    data = _data_of(context, builder, struct, pointer, block)
    _, column = struct.place_of(name)
    return builder.gep(data, [ir.Constant(ir.IntType(64), column)], inbounds=True)


def _unchanged(builder: Any, pointer: Any) -> Any:
    """Load what never changes while a struct lives."""
    loaded = builder.load(pointer)
    # So the compiler may keep what it has loaded, whatever is stored in between.
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def _word(builder: Any, struct: StructType, pointer: Any, word: int, kind: Any) -> Any:
    """Load a word of the table."""
    table = builder.bitcast(pointer, kind.as_pointer())
    if struct.is_block:
        table = _unchanged(builder, builder.bitcast(pointer, kind.as_pointer().as_pointer()))
    at = builder.gep(table, [ir.Constant(ir.IntType(64), word)], inbounds=True)
    return _unchanged(builder, at)


def _data_of(context: Any, builder: Any, struct: StructType, pointer: Any, name: str) -> Any:
    """Return where the elements of an array lie; a number without axes lies in the table."""
    array = struct.arrays[name]
    kind = context.get_data_type(array.dtype).as_pointer()
    data_word = struct.words[name].data
    if struct.is_block:
        begins = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        number = ir.IntType(64)
        if data_word < 0:
            bytes_before = ir.Constant(number, -data_word)
        else:
            bytes_before = _word(builder, struct, pointer, data_word, number)
        return builder.bitcast(builder.gep(begins, [bytes_before], inbounds=True), kind)
    if array.ndim:
        return _word(builder, struct, pointer, data_word, kind)
    table = builder.bitcast(pointer, kind)
    return builder.gep(table, [ir.Constant(ir.IntType(64), data_word)], inbounds=True)


def load_descriptor(context: Any, builder: Any, struct: StructType, pointer: Any, name: str) -> Any:
    """Return the descriptor of an array, made of its words; what is not used costs nothing."""
    array = struct.arrays[name]
    number = ir.IntType(64)
    lengths = [
        ir.Constant(number, -word) if word <= 0 else _word(builder, struct, pointer, word, number)
        for word in struct.words[name].lengths
    ]
    itemsize = ir.Constant(number, context.get_abi_sizeof(context.get_data_type(array.dtype)))
    strides = [itemsize]
    for length in reversed(lengths[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    parts = {
        NITEMS: functools.reduce(builder.mul, lengths),
        ITEMSIZE: itemsize,
        DATA: _data_of(context, builder, struct, pointer, name),
        SHAPE: cgutils.pack_array(builder, lengths, number),
        STRIDES: cgutils.pack_array(builder, strides, number),
    }
    descriptor = ir.Constant(context.get_value_type(array), None)  # zeros: nobody owns it
    for member, value in parts.items():
        descriptor = builder.insert_value(descriptor, value, member)
    return descriptor


class Columned:
    """Arrays by name, whose columns are attributes: a struct as Python sees it."""

    @classmethod
    def additions(cls) -> Sequence[type[Any]]:
        """Return classes that declare further fields of this struct."""
        return ()

    def __init__(self, arrays: Iterable[NDArray[Any]]) -> None:
        """Take the arrays, in the order of their declaration."""
        self.__dict__.update(zip(layout_of(type(self)).arrays, arrays, strict=True))

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter(self.__dict__.values())


def _attribute(column: Column) -> property:
    block, number = column

    def load(self: Columned) -> Any:
        return self.__dict__[block][number]

    def store(self: Columned, value: Any) -> None:
        self.__dict__[block][number] = value

    return property(load, store)


def block_types() -> list[str]:
    """Name the types of all structs that parts add to; a name tells the whole layout."""
    return [StructType(fields).name for fields in Columned.__subclasses__()]


class Struct(Generic[FieldsT]):
    """A struct as Python holds it.

    Attributes:
        fields: The arrays and numbers.
        address: What kernels take: where the table lies, or the block, or `fields` where
            compilation is off (`NUMBA_DISABLE_JIT=1`).
    """

    def __init__(self, fields: FieldsT, block: int | None = None) -> None:
        """Write the table of an array's places, unless the arrays lie in a block at an address."""
        self.fields = fields
        declared = layout_of(type(fields)).arrays
        called = {
            name: ADDRESS_OF[each.kernel](getattr(fields, name))
            for name, each in declared.items()
            if isinstance(each, Address) and _is_set(getattr(fields, name))
        }
        self.address: Any = cast(Any, fields)._replace(**called) if called else fields
        if IS_COMPILED:
            self.address = self._write_table(self.address) if block is None else block

    def _write_table(self, fields: Any) -> int:
        """Write the table, keep the arrays that it points to, and return its address."""
        kind = type(fields)
        declared, words = layout_of(kind).arrays, words_of(cast(Any, kind))
        self._arrays = []
        self._table = np.zeros(table_size(cast(Any, kind)), dtype=np.int64)
        for field, (name, each) in zip(fields, declared.items(), strict=True):
            # Another type would be copied, and kernels would write into the copy unseen.
            assert each.n_axes == 0 or field.dtype == each.element
            array = np.asarray(field, dtype=each.element)
            assert array.flags.c_contiguous
            if each.n_axes == 0:
                self._table[words[name].data] = int(array.view(np.int64))
                continue
            self._arrays.append(array)
            _write_words(self._table, words[name], address_of(array), array.shape)
        return address_of(self._table)


def _is_set(named: Any) -> bool:
    """Tell whether a field names a kernel."""
    return bool(named.size if isinstance(named, np.ndarray) else named)


def address_of(array: NDArray[Any]) -> int:
    """Return where the elements of an array begin."""
    return int(array.__array_interface__["data"][0])


def _write_words(table: NDArray[np.int64], words: Words, data: int, shape: Sequence[int]) -> None:
    for word, number in zip((words.data, *words.lengths), (data, *shape), strict=True):
        if word >= 0:
            table[word] = number
        else:
            assert number == -word, f"{number} is declared as {-word}"


def lay_out_block(
    fields: type[Any], shapes: Mapping[str, Sequence[int]]
) -> tuple[NDArray[np.int64], dict[str, int], int]:
    """Lay out blocks of arrays of these shapes.

    Returns:
        The table that the blocks share, the bytes from the front of a block to each array, and the
        bytes of a block, a multiple of `LINE_BYTES`.
    """
    layout, words = layout_of(fields), words_of(cast(Any, fields))
    begins = {name: -each.data for name, each in words.items() if each.data < 0}
    size = {name: whole_words(layout.arrays[name].element, shapes[name]) for name in words}
    end = WORD_BYTES + sum(size[name] for name in begins)
    for name in words:
        if name not in begins:
            begins[name] = end
            end += size[name]
    table = np.zeros(table_size(cast(Any, fields)), dtype=np.int64)
    for name, each in words.items():
        _write_words(table, each, begins[name], shapes[name])
    return table, begins, -(-end // LINE_BYTES) * LINE_BYTES


def opener(fields: type[FieldsT]) -> Callable[[Any], FieldsT]:
    """Make the kernel function that turns the address of a `Struct` of one kind into the struct."""
    if not IS_COMPILED:
        return lambda address: cast(FieldsT, address)

    def typed(typing_context: Any, address: Any) -> Any:
        struct = StructType(fields)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(struct))

        return struct(types.intp), generate

    return cast("Callable[[Any], FieldsT]", intrinsic(typed))
