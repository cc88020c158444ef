"""Compiled kernels on disk: found by content, written by one process, and never believed damaged.

Numba's own cache files belong to one installation. Two processes at once compile the same kernel
twice, and a damaged file ends every run. Here a file is named by what it was compiled from and for,
so all virtual environments of a user share it. It begins with a digest of its name and the rest, so
that code under another kernel's name, which would crash, is not loaded either. A process that
finds no file locks its name; another that wants the same waits. A folder that cannot be written,
such as of an image of a container, is read alike.

Numba also keeps the code in LLVM's form, for other kernels that may take it in, and prepares all
its parts for compilation before it loads any code. Here a file holds machine code alone, and the
names of the functions elsewhere that it calls: only where one is unknown, numba prepares itself.
"""

import hashlib
import os
import pickle
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite import binding
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from hpcgym.base.errors import OutputError
from hpcgym.base.log import LOG
from hpcgym.base.output import writing
from hpcgym.core.compiler.struct import block_types

try:
    import fcntl
except ImportError:  # Windows: two processes may both compile
    fcntl = None  # type: ignore[assignment]

_rebuild: Any = CompileResult._rebuild
DIGEST_BYTES = hashlib.sha256().digest_size

COMPILER = {"numba": numba.__version__, "llvmlite": llvmlite.__version__}
"""Versions of what compiles."""

_not_kept: set[Path] = set()
"""Folders of which this process has said that kernels cannot be kept there."""


class KernelCache:
    """The compiled versions of one function in a folder, as numba's dispatchers ask for them.

    Args:
        function: The function.
        folder: The folder, which is named by a digest of all sources of the core.
        source: What tells apart the sources of a function outside the core.
    """

    def __init__(self, function: Any, folder: Path, source: str = "") -> None:
        self._name = f"{function.__module__}.{function.__qualname__}{source}"
        self._folder = folder
        self._lock: Any = None

    @property
    def cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the version for a signature; None if this process is to compile it."""
        path = self._path(signature, target)
        version = self._read(path, target)
        if version is None:
            self._take_lock(path)
            version = self._read(path, target)  # another process may have compiled it meanwhile
            if version is not None:
                self._give_lock()
        return version

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write a version, whole or not at all; where that fails, this process goes on without."""
        try:
            if os.access(self._folder, os.W_OK):
                data = _contents_of(result)
                path = self._path(signature, result.target_context)
                with writing(path, force=True) as file:
                    file.write_bytes(digest_of(path, data) + data)
        except OutputError as error:
            _say_not_kept(self._folder, str(error))
        finally:
            self._give_lock()

    def _path(self, signature: Any, target: Any) -> Path:
        """Return the file of a version: by function, types, processor and versions.

        Kernels open structs by their address. So what somebody's own part adds to one counts, too.
        """
        versions = (target.codegen().magic_tuple(), sys.version, llvmlite.__version__)
        made_for = (signature, *versions, block_types())
        digest = hashlib.sha256(repr(made_for).encode()).hexdigest()[:16]
        return self._folder / f"{self._name}-{digest}.kernel"

    def _read(self, path: Path, target: Any) -> Any:
        """Return the version in a file; None if there is none. Remove a damaged one and say so."""
        try:
            content = path.read_bytes()
        except OSError:
            return None
        data = content[DIGEST_BYTES:]
        if digest_of(path, data) == content[:DIGEST_BYTES]:
            with suppress(Exception):  # unpickling may raise anything
                return _version_of(data, target)
        _say_damaged(path)
        with suppress(OSError):
            path.unlink()
        return None

    def _take_lock(self, path: Path) -> None:
        """Wait until no other process compiles what goes into a file."""
        self._give_lock()  # of a kernel that failed to compile
        if fcntl is None:
            return
        with suppress(OSError):  # a folder that cannot be written any more
            self._lock = path.with_suffix(".lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def _give_lock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def digest_of(path: Path, data: bytes) -> bytes:
    """Return the digest of a file's contents under its own name in its own folder."""
    return hashlib.sha256(f"{path.parent.name}/{path.name}\0".encode() + data).digest()


@cache
def _say_damaged(path: Path) -> None:
    """Say so once a process, also of a file that cannot be removed."""
    LOG.warning("%s is damaged; it is compiled again", path)


def _say_not_kept(folder: Path, reason: str) -> None:
    """Say so once a process for each folder: what fails for one kernel fails for the next."""
    if folder not in _not_kept:
        _not_kept.add(folder)
        LOG.warning("compiled kernels cannot be kept: %s", reason)


def _contents_of(result: Any) -> bytes:
    """Return what a file holds of a compiled version."""
    library = result.library
    code = library._final_module
    called = [
        symbol.name
        for symbol in (*code.functions, *code.global_variables)
        if symbol.is_declaration and not symbol.name.startswith("llvm.")
    ]
    # No kernel takes in one that Python calls, so the names of its functions are enough.
    names = [symbol.name for symbol in code.functions if not symbol.is_declaration]
    outline = "\n".join(f'define void @"{name}"() {{ ret void }}' for name in names)
    library._shared_module = binding.parse_assembly(outline)
    contents: bytes = dumps((called, result.reload_init, result._reduce()))
    return contents


def _version_of(contents: bytes, target: Any) -> Any:
    """Return the compiled version that a file holds."""
    called, preparations, reduced = pickle.loads(contents)
    rtsys.initialize(target)
    for prepare in preparations:
        prepare()
    if not all(map(binding.address_of_symbol, called)):
        target.refresh()
    return _rebuild(target, *reduced)
