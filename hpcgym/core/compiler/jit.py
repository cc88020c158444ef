"""Compilation of kernels: one decorator with the project's flags, and a cache that stays valid.

Numba's own cache watches only the file that holds a function: after an edit of a callee elsewhere
it silently returns the old code. So the cache folder is named by a digest of every file of
`hpcgym/core`, numba's version and its bounds check. All kernels are in `hpcgym/core`.
"""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, cast, overload

import numba
from llvmlite.binding import Linkage
from numba.core import event, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.sigutils import normalize_signature

from hpcgym.base.own_files import digest_of
from hpcgym.core.compiler.kernel_cache import KernelCache
from hpcgym.core.compiler.progress import Compilations

KernelT = TypeVar("KernelT", bound=Callable[..., Any])

_config: Any = numba.config  # its names are set at run time, which type checkers cannot see

_CORE = os.path.join(Path(__file__).parents[1], "")
"""Folder of the kernels, with a separator behind it."""

UNUSED_CACHE_LIFE_S = 30 * 86_400
"""A cache folder that no process has used for this long is removed when a new one is made."""


@overload
def kernel(function: KernelT) -> KernelT: ...


@overload
def kernel(*, parallel: bool = False, inlined: bool = False) -> Callable[[KernelT], KernelT]: ...


def kernel(
    function: KernelT | None = None, *, parallel: bool = False, inlined: bool = False
) -> KernelT | Callable[[KernelT], KernelT]:
    """Compile a function in nopython mode, once per set of argument types, and cache it on disk.

    The GIL is released, division by zero follows IEEE 754 as in numpy, and there is no fastmath, so
    floating-point operations keep their order. Indices are checked only if `NUMBA_BOUNDSCHECK=1`.

    Args:
        function: The function, when used as `@kernel`.
        parallel: Whether threads share the work of `prange` loops.
        inlined: Whether callers always inline the code. That costs compile time at every call, so
            it is for what every event runs through; elsewhere the compiler chooses.
    """
    if function is None:
        return lambda wrapped: _compiled(wrapped, parallel, inlined)
    return _compiled(function, parallel, inlined)


def _compiled(function: KernelT, parallel: bool, inlined: bool) -> KernelT:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "parallel": parallel}
    pipeline = _ParallelCompiler if parallel else Compiler
    compiled: Any = numba.njit(**options, pipeline_class=pipeline)(function)
    if hasattr(compiled, "get_call_template"):  # not where compilation is off
        compiled._cache = cache_of(function) or compiled._cache
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": inlined}

        @cache
        def part() -> Any:
            made: Any = numba.njit(**options, pipeline_class=_PartCompiler)(function)
            made.compile = partial(_compile_part, made)
            made.find = _without_constants(made.get_call_template)
            return made

        compiled.get_call_template = lambda *types_of: part().find(*types_of)
        compiled.get_overload = lambda signature: part().get_overload(signature)
    return cast(KernelT, compiled)


def cache_of(function: Callable[..., Any]) -> KernelCache | None:
    """Return where a function's compiled versions are kept; None if nowhere."""
    file = function.__code__.co_filename
    if CACHE_FOLDER is None or not os.path.isfile(file):
        return None
    suffix = "" if file.startswith(_CORE) else f"-{digest_of(Path(file))[:16]}"
    return KernelCache(function, CACHE_FOLDER, suffix)


def _compile_part(part: Any, signature: Any) -> Any:
    """Compile a kernel as part of others, as numba's dispatchers do but without their clocks.

    Numba starts two clocks for each function that it compiles, and tells all of them of each call
    of LLVM. Kernels are compiled from inside each other, so that took a tenth of the time.
    """
    arguments, return_type = normalize_signature(signature)
    existing = part.overloads.get(tuple(arguments))
    if existing is None:
        details = {"dispatcher": part, "args": arguments, "return_type": return_type}
        told = event.trigger_event("numba:compile", data=details)
        with global_compiler_lock, part._compiling_counter, told:
            existing = part._compiler.compile(arguments, return_type)
            part.add_overload(existing)
    return existing.entry_point


class _PartLibrary(JITCodeLibrary):
    """The code of a kernel as part of those that call it.

    Numba optimises the code of each function together with all that it calls, and makes machine
    code of it, at every level anew. But Python calls few kernels. So the others are kept as they
    were translated, until a kernel that Python calls takes them in with all that they call.
    """

    @property
    def codegen(self) -> Any:
        """Return numba's code generator, but for the call that needs machine code."""
        return _WithoutEnvironments(self._codegen)

    def add_linking_library(self, library: Any) -> None:
        """Note that the code calls another library's."""
        self._linking_libraries.append(library)

    def finalize(self) -> None:
        """Leave the code as it is."""
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return that there is no machine code."""
        return 0

    def _get_module_for_linking(self) -> Any:
        """Return the code with all that it calls."""
        if self._shared_module is None:
            code = self._own_module()
            whole = code.clone()
            for library in self._called():
                self._reload_init.update(library._reload_init)
                is_part = isinstance(library, _PartLibrary)
                module = library._own_module() if is_part else library._get_module_for_linking()
                whole.link_in(module, preserve=True)
            self._shared_module = whole
        return self._shared_module

    def _own_module(self) -> Any:
        """Return the code of the kernel alone, of which a program may have several copies."""
        module = self._final_module
        for function in module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"
        return module

    def _called(self) -> list[Any]:
        """Return the libraries of all that the code calls, each once."""
        called: dict[Any, None] = {}
        pending = list(self._linking_libraries)
        while pending:
            library = pending.pop()
            if library not in called and library is not self:
                called[library] = None
                if isinstance(library, _PartLibrary):
                    pending += library._linking_libraries
        return list(called)


class _WithoutEnvironments:
    """A code generator that gives no function its environment: objects of Python, for errors.

    Kernels raise nothing, so they never look at theirs.
    """

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        """Return what numba's code generator has."""
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing."""


class _PartCompiler(Compiler):
    """Numba's compiler, but what it makes is part of other kernels."""

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        """Take a library of parts in place of numba's."""
        part: Any = _PartLibrary(target.codegen(), "part")  # type: ignore[no-untyped-call]
        super().__init__(typing, target, part, *others)  # type: ignore[no-untyped-call]


class _ParallelCompiler(Compiler):
    """Numba's compiler, but loops for threads are parts of the kernel that holds them.

    Numba optimises such a loop, with all that it calls, two times before the kernel itself.
    """

    def compile_extra(self, function: Any) -> Any:
        """Compile the kernel; meanwhile every library that numba asks for is of parts."""
        codegen = self.state.targetctx.codegen()
        self.state.library = codegen.create_library(function.__qualname__)
        self.state.library.enable_object_caching()
        codegen.create_library = partial(_PartLibrary, codegen)
        try:
            return super().compile_extra(function)  # type: ignore[no-untyped-call]
        finally:
            del codegen.create_library


def _without_constants(find: Callable[..., Any]) -> Callable[..., Any]:
    """Have calls with different constants share one compiled version of a function.

    Numba compiles a function anew for every constant that a caller passes, and whatever it calls
    with it. Inlined code knows its constants all the same.
    """

    def find_without_constants(arguments: Any, keywords: Any) -> Any:
        plain = tuple(types.unliteral(argument) for argument in arguments)
        named = {key: types.unliteral(argument) for key, argument in dict(keywords).items()}
        return find(plain, named)

    return find_without_constants


def _source_digest() -> str:
    """Return a digest of all that compiled code depends on: `core`, numba, and the bounds check."""
    digest = hashlib.sha256(f"{numba.__version__} {_config.BOUNDSCHECK}".encode())
    core = Path(__file__).parents[1]
    for source in sorted(core.rglob("*.py")):
        digest.update(f"\0{source.relative_to(core).as_posix()}\0".encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _cache_root() -> Path:
    """Return `NUMBA_CACHE_DIR` where it is set, else the user's cache folder."""
    if _config.CACHE_DIR:
        return Path(_config.CACHE_DIR)
    import pooch

    return Path(pooch.os_cache("hpcgym"))


def _cache_folder() -> tuple[Path | None, bool]:
    """Return the folder of this digest, or None, and whether it can be written; create it."""
    try:
        folder = _cache_root() / f"kernels-{_source_digest()}"
    except RuntimeError:  # nobody knows where this user's home is
        return None, False
    try:
        is_new = not os.path.isdir(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:  # a full disk shows here, not later
            probe.write(bytes(4096))
    except OSError:
        return (folder if os.path.isdir(folder) else None), False
    if is_new:
        _remove_unused(folder.parent)
    return folder, True


def _remove_unused(root: Path) -> None:
    """Remove cache folders that no process has used lately."""
    for folder in root.glob("kernels-*"):
        with suppress(OSError):  # another process may be removing it, too
            if folder.stat().st_mtime < time.time() - UNUSED_CACHE_LIFE_S:
                shutil.rmtree(folder)


CACHE_FOLDER, _IS_WRITABLE = _cache_folder()
"""Where compiled kernels are, or None where there is no folder and none can be made."""

_WHAT = f"{CACHE_FOLDER} cannot" if CACHE_FOLDER else "no cache folder can"
NOT_KEPT = "" if _IS_WRITABLE else f"{_WHAT} be written; set NUMBA_CACHE_DIR to a folder that can"
"""Why compiled kernels are not kept; "" where they are."""

_KEPT = f"in every process: {NOT_KEPT}" if NOT_KEPT else f"kept in {CACHE_FOLDER}"
event.register("numba:compile", Compilations(__name__.partition(".")[0], _KEPT))
