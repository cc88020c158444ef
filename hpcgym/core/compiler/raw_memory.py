"""Kernel functions for bytes at an address: to copy, to clear, to count, to fetch ahead."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from hpcgym.core.compiler.struct import (
    DATA,
    IS_COMPILED,
    LINE_BYTES,
    STRIDES,
    layout_of,
    load_descriptor,
)


def fetcher(n_lines: int) -> Callable[[int], None]:
    """Make a kernel function that asks for so many lines of the cache from an address on.

    It returns at once; what is asked for comes while other work is done.
    """
    if not IS_COMPILED:
        return lambda address: None

    def typed(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            for line in range(n_lines):
                _ask_for(builder, builder.add(arguments[0], ir.IntType(64)(line * LINE_BYTES)))
            return context.get_dummy_value()

        return types.void(types.intp), generate

    return cast("Callable[[int], None]", intrinsic(typed))


def row_fetcher(fields: type[Any], mark: str) -> Callable[[Any, int], None]:
    """Make a kernel function that asks for a row of each array of a struct that has a mark.

    It asks for the line in which the row begins and, where rows are declared longer than a line,
    for that of the next row. The row may lie behind the last.
    """
    if not IS_COMPILED:
        return lambda struct, row: None

    def typed(typing_context: Any, struct: Any, row: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number, marks = ir.IntType(64), layout_of(fields).marks
            for name, array in struct.arrays.items():
                if mark not in marks[name]:
                    continue
                descriptor = load_descriptor(context, builder, struct, arguments[0], name)
                stride = builder.extract_value(descriptor, [STRIDES, 0])
                begin = builder.ptrtoint(builder.extract_value(descriptor, DATA), number)
                begin = builder.add(begin, builder.mul(stride, arguments[1]))
                _ask_for(builder, begin)
                known = [max(-length, 0) for length in struct.words[name].lengths[1:]]
                if math.prod(known) * array.dtype.bitwidth // 8 > LINE_BYTES:
                    _ask_for(builder, builder.add(begin, stride))
            return context.get_dummy_value()

        return types.void(struct, types.intp), generate

    return cast("Callable[[Any, int], None]", intrinsic(typed))


def _ask_for(builder: Any, address: Any) -> None:
    """Ask for the line of the cache that holds an address."""
    byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    pointer = builder.inttoptr(address, byte)
    builder.call(prefetch, [pointer, flag(0), flag(3), flag(1)])  # to read; keep; data


def _copy_bytes_typed(typing_context: Any, to: Any, source: Any, n: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        places = [builder.inttoptr(argument, byte) for argument in arguments[:2]]
        cgutils.raw_memcpy(builder, places[0], places[1], arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate


def _clear_bytes_typed(typing_context: Any, address: Any, n: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        cgutils.memset(builder, builder.inttoptr(arguments[0], byte), arguments[1], 0)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), generate


def _next_number_typed(typing_context: Any, address: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = ir.IntType(64)
        at = builder.inttoptr(arguments[0], whole.as_pointer())
        return builder.atomic_rmw("add", at, whole(1), "monotonic")

    return types.intp(types.intp), generate


def _next_number(address: int) -> int:
    """Do what `next_number` does, where compilation is off."""
    counter = ctypes.c_int64.from_address(int(address))
    counter.value += 1
    return counter.value - 1


def _copy(to: int, source: int, n: int) -> None:
    """Do what `copy_bytes` does, where compilation is off."""
    ctypes.memmove(int(to), int(source), int(n))


def _clear(address: int, n: int) -> None:
    """Do what `clear_bytes` does, where compilation is off."""
    ctypes.memset(int(address), 0, int(n))


copy_bytes: Callable[[int, int, int], None] = cast(
    Any, intrinsic(_copy_bytes_typed) if IS_COMPILED else _copy
)
"""Copy to an address, from an address, so many bytes; a kernel function."""

clear_bytes: Callable[[int, int], None] = cast(
    Any, intrinsic(_clear_bytes_typed) if IS_COMPILED else _clear
)
"""Write zeros from an address on, so many bytes; a kernel function."""

next_number: Callable[[int], int] = cast(
    Any, intrinsic(_next_number_typed) if IS_COMPILED else _next_number
)
"""Return the counter at an address and add one to it, in a single step for all threads."""
