"""Read and write `.npz` files of weights: sizes are bounded, and damage is found, before use.

A file ends with a digest of all before it, as the comment of the zip archive, so that numpy reads
the file as any other. Files that numpy wrote have none; each member's own check sum stays.
"""

from __future__ import annotations

import hashlib
import math
import warnings
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import CardError, unreadable
from hpcgym.base.output import writing

MOST_FILE_BYTES = 2**28  # larger files are not read

SMALL_BYTES = 4096
"""Room for one number or name, and for what stands before the numbers of an array."""

_SEAL = b"sha256:"
_SEAL_BYTES = len(_SEAL) + 64


class NpzFile:
    """The named arrays of a file; an array is unpacked when it is asked for.

    Raises:
        CardError: The file cannot be read, is too large, is no archive of arrays, or its content is
            not what was written.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        try:
            if Path(path).stat().st_size > MOST_FILE_BYTES:
                raise CardError(f"{path}: larger than {MOST_FILE_BYTES} bytes: no file of weights")
            content = Path(path).read_bytes()
        except OSError as error:
            raise CardError(unreadable(path, error)) from None
        seal = content[-_SEAL_BYTES:]
        if seal.startswith(_SEAL) and seal != _seal_of(content[:-_SEAL_BYTES]):
            raise CardError(
                f"{path}: damaged: its content is not what was written; put a copy in its place"
            )
        try:
            self._archive = zipfile.ZipFile(BytesIO(content))
        except Exception as error:
            raise self._refusal(error) from None
        self._members = {
            entry.filename.removesuffix(".npy"): entry for entry in self._archive.infolist()
        }
        self.names = tuple(self._members)  # names of the arrays

    def array(self, name: str, most_bytes: int = 0) -> NDArray[Any]:
        """Unpack an array.

        Args:
            name: One of `names`.
            most_bytes: Size of the largest that is allowed, besides `SMALL_BYTES`.

        Raises:
            CardError: It is larger, damaged, or of objects.
        """
        member = self._members[name]
        if member.file_size > most_bytes + SMALL_BYTES:
            raise CardError(
                f"{self._path}: array {name!r} has {member.file_size} bytes; allowed: "
                f"{most_bytes + SMALL_BYTES}"
            )
        try:
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError("packed in a way that numpy does not write")
            return _array_of(self._archive.read(member))
        except Exception as error:
            raise self._refusal(error) from None

    def _refusal(self, error: Exception) -> CardError:
        """Return the error of a file that is damaged, or no file of arrays."""
        reason = " ".join(str(error).split()) or type(error).__name__
        return CardError(f"{self._path}: not a file of named arrays, or damaged: {reason:.200}")


def write_npz(
    path: str | Path, arrays: Mapping[str, Any], *, force: bool = False, packed: bool = False
) -> None:
    """Write named arrays, without pickles, with a digest at the end.

    Raises:
        OutputError: The file cannot be written, or is there and `force` is False.
    """
    file = BytesIO()
    (np.savez_compressed if packed else np.savez)(file, **arrays)
    with writing(path, force=force) as partial:
        partial.write_bytes(sealed(file.getvalue()))


def sealed(archive: bytes) -> bytes:
    """Return a zip archive without a comment with its digest as the comment."""
    head = archive[:-2] + _SEAL_BYTES.to_bytes(2, "little")  # the last field: the comment's length
    return head + _seal_of(head)


def _seal_of(head: bytes) -> bytes:
    """Return the comment that seals all before it."""
    return _SEAL + hashlib.sha256(head).hexdigest().encode()


def _array_of(content: bytes) -> NDArray[Any]:
    """Read one array from its file, of no more bytes than there are."""
    file = BytesIO(content)
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shape, is_fortran, dtype = read[version](file)
    numbers = content[file.tell() :]
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded")
    if math.prod(shape) * dtype.itemsize != len(numbers):
        raise ValueError(f"{len(numbers)} bytes for {dtype} of shape {shape}")
    return np.frombuffer(numbers, dtype).reshape(shape, order="F" if is_fortran else "C").copy()
