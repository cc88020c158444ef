"""Packed files: what packs them, and their bytes, unpacked whole, in pieces or at the beginning."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from hpcgym.base.errors import TraceError, unreadable
from hpcgym.base.output import note_input


class Packing(NamedTuple):
    """How a file is packed: by what, its first bytes, and what reads it as a stream."""

    name: str
    magic: bytes
    opened: Callable[[Any], Any]


PACKINGS = {
    ".gz": Packing("gzip", b"\x1f\x8b", lambda packed: gzip.GzipFile(fileobj=packed)),
    ".bz2": Packing("bzip2", b"BZh", bz2.BZ2File),
    ".xz": Packing("xz", b"\xfd7zXZ\x00", lzma.LZMAFile),
}
"""Packings that logs are read in, by the ending of a file's name."""


def packing_of(begin: bytes) -> Packing | None:
    """Return how a file is packed that begins so, None = not at all."""
    return next((each for each in PACKINGS.values() if begin.startswith(each.magic)), None)


def unpacked_name(path: str | Path) -> str:
    """Return a file's name without the ending of a packing."""
    path = Path(path)
    return path.stem if path.suffix in PACKINGS else path.name


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file, unpacked where it is packed by gzip, bzip2 or xz.

    Raises:
        TraceError: It cannot be read, is empty, or is named as packed but is not. Or it is damaged
            or ends early; the message then says in which line.
    """
    note_input(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TraceError(unreadable(path, error)) from None
    if not content:
        raise TraceError(f"{path}: the file is empty")
    if packing := packing_of(content):
        return _unpacked(path, content, packing)
    if path.suffix in PACKINGS:
        name = PACKINGS[path.suffix].name
        raise TraceError(f"{path}: named {path.suffix} but not {name}; unpacked logs end in .swf")
    return content


def read_pieces(path: Path, size: int = 2**20) -> Iterator[bytes]:
    """Yield what `read_bytes` returns, piece by piece. TraceError: as `read_bytes`."""
    note_input(path)
    try:
        with path.open("rb") as file:
            begin = file.read(size)
            packing = packing_of(begin)
            if packing is not None:
                file.seek(0)
                yield from _unpacked_pieces(path, packing.opened(file), packing)
                return
            if not begin or path.suffix in PACKINGS:
                read_bytes(path)  # says what is wrong
            while begin:
                yield begin
                begin = file.read(size)
    except OSError as error:
        raise TraceError(unreadable(path, error)) from None


def read_head(path: Path, size: int) -> bytes:
    """Return the beginning of a file, unpacked, as far as it can be read."""
    head = b""
    with suppress(OSError, EOFError, lzma.LZMAError, zlib.error), path.open("rb") as file:
        begin = file.read(size)
        packing = packing_of(begin)
        if packing is None:
            return begin
        stream = packing.opened(io.BytesIO(begin + file.read()))
        while len(head) < size and (piece := stream.read1(size - len(head))):
            head += piece
    return head


def _unpacked(path: Path, content: bytes, packing: Packing) -> bytes:
    """Unpack a file, and say in which line it is damaged."""
    unpacked = bytearray()
    for piece in _unpacked_pieces(path, packing.opened(io.BytesIO(content)), packing):
        unpacked += piece
    return bytes(unpacked)


def _unpacked_pieces(path: Path, stream: Any, packing: Packing) -> Iterator[bytes]:
    """Yield pieces of an unpacked stream, and say in which line it is damaged."""
    line = 1
    try:
        while piece := stream.read1():
            line += piece.count(b"\n")
            yield piece
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        what = "ends early" if isinstance(error, EOFError) else "is damaged"
        raise TraceError(f"{path}:{line}: the {packing.name} stream {what} here") from None
