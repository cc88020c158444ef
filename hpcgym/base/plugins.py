"""Parts of your own: from a `.py` file, from `module:Name`, or from an installed package.

A package offers parts by entry points of the groups `hpcgym.agents`, `hpcgym.policies` and
`hpcgym.scenarios`. They are read when a name is not found or a list is printed, and each part is
loaded when it is used. To load a part is to run the file or the package that holds it.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hpcgym.base.errors import HpcgymError, no_such_file, unknown_name
from hpcgym.base.own_files import changed_after, loaded_at, with_imports

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

FILE = re.compile(r"(?P<where>.+\.py)(?::(?P<name>.*))?", re.DOTALL)
MODULE = re.compile(r"(?P<where>\w+(?:\.\w+)*):(?P<name>\w+(?:\.\w+)*)")

_own: dict[str, None] = {}  # names of the modules that parts of somebody's own were loaded from


def is_reference(text: str) -> bool:
    """Tell whether a text names a part by its file or module.

    Example:
        >>> [is_reference(text) for text in ("mine.py", "a/mine.py:Best", "mine.rules:Best")]
        [True, True, True]
        >>> [is_reference(text) for text in ("SAF", "e=1,wait=-0.5", "depth:k=3")]
        [False, False, False]
    """
    return bool(FILE.fullmatch(text) or MODULE.fullmatch(text))


def load_reference(text: str, what: str, *fits: Callable[[object], bool]) -> tuple[str, object]:
    """Import a file or a module; return the name and the object that a text refers to.

    A module is looked for in the working directory, too.

    Args:
        text: `path/to/file.py:Name`, `module:Name`, or a file alone, which must define just one
            part that fits.
        what: What is wanted, for messages, as in "policy, which is a function of the jobs".
        fits: Tell whether an object is wanted. The first that any object of the file passes decides
            which of them is meant. A function without arguments that makes one must be named.

    Raises:
        HpcgymError: There is no such file, module or name; the import fails; or a file alone
            defines none or several.
    """
    match = FILE.fullmatch(text) or MODULE.fullmatch(text)
    assert match is not None, text
    where, name = match["where"], match["name"]
    module = _import_file(where) if where.endswith(".py") else _import_module(where)
    _own.pop(module.__name__, None)  # the latest stands last
    _own[module.__name__] = None
    if name is None:
        return _only_part(module, where, what, fits)
    try:
        part: Any = attrgetter(name)(module)
    except AttributeError:
        names = [known for known, _ in _public(module)]
        raise HpcgymError(f"{where}: {unknown_name('name', name, names)}") from None
    makes_one = inspect.isfunction(part) and takes(part, 0)
    if not (makes_one or any(fit(part) for fit in fits)):
        raise HpcgymError(f"{text} is no {what}; it is {_described(part)}")
    return name, part


def make(part: Any, where: str) -> Any:
    """Return what a class, or a function without arguments, makes; anything else as it is.

    Raises:
        HpcgymError: A class needs arguments, or making fails.
    """
    if not (inspect.isclass(part) or (inspect.isfunction(part) and takes(part, 0))):
        return part
    if not takes(part, 0):
        raise HpcgymError(
            f"{where}: {part.__name__} needs arguments; name a function without arguments that "
            "returns one"
        )
    try:
        return part()
    except (Exception, SystemExit) as error:
        raise HpcgymError(f"{where}: cannot be made: {_reason(error)}") from None


def takes(function: Callable[..., object], number: int) -> bool:
    """Tell whether a function can be called with so many positional arguments.

    Example:
        >>> takes(lambda jobs: jobs, 1), takes(lambda jobs: jobs, 0)
        (True, False)
    """
    try:
        inspect.signature(function).bind(*[None] * number)
    except (TypeError, ValueError):
        return False
    return True


@cache
def offered(kind: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of installed packages, by name, for a kind such as "agents"."""
    from importlib.metadata import entry_points

    entries = {(entry.name, entry.value): entry for entry in entry_points(group=f"hpcgym.{kind}")}
    return tuple(entries[key] for key in sorted(entries))


def offered_names(kind: str) -> tuple[str, ...]:
    """Return the names under which installed packages offer parts of a kind."""
    return tuple(entry.name for entry in offered(kind))


def find_offered(kind: str, name: str) -> EntryPoint | None:
    """Return what a package offers under a name in any case, or None.

    Raises:
        HpcgymError: Two packages offer it.
    """
    folded = name.strip().casefold()
    entries = [entry for entry in offered(kind) if entry.name.casefold() == folded]
    if len(entries) > 1:
        packages = " and ".join(package_of(entry) for entry in entries)
        raise HpcgymError(f"{name!r} of hpcgym.{kind} is offered by {packages}; uninstall one")
    return entries[0] if entries else None


def package_of(entry: EntryPoint) -> str:
    """Return name and version of the package that offers something."""
    return "a package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


def load_offered(entry: EntryPoint) -> object:
    """Load what a package offers. HpcgymError: the package is broken; the message names it."""
    try:
        _own[entry.module] = None
        return entry.load()
    except (Exception, SystemExit) as error:
        raise HpcgymError(
            f"{entry.name!r}, which the package {package_of(entry)} offers as {entry.value}, "
            f"cannot be loaded: {_reason(error)}"
        ) from None


def failure(error: BaseException) -> str | None:
    """Return where a part of somebody's own raised an error, and what; None if none did.

    The part may have run in another process, whose traceback is but a text.
    """
    from traceback import format_exception

    files = {
        getattr(module, "__file__", None)
        for name, module in list(sys.modules.items())
        if any(f"{name}.".startswith(f"{prefix}.") for prefix in _own)
    }
    lines = re.findall(r'(?m)^ *File "(.+)", line (\d+)', "".join(format_exception(error)))
    places = [f"{file}:{line}" for file, line in lines if file in files]
    where = places[-1] if places else _place_called(error)
    return f"{where}: {_named(error)}" if where else None


def _place_called(error: BaseException) -> str | None:
    """Return where the function of a part is that was called with other arguments than it takes."""
    called = re.match(r"([\w.]+)\(\) (?:takes|missing|got)", str(error))
    if called is None or not isinstance(error, TypeError):
        return None
    for module in filter(None, map(sys.modules.get, reversed(_own))):  # the latest first
        try:
            code = attrgetter(f"{called[1]}.__code__")(module)
        except AttributeError:
            continue
        return f"{code.co_filename}:{code.co_firstlineno}"
    return None


def _import_file(where: str) -> ModuleType:
    """Import a file as `import` does from its own folder, which other processes then do, too."""
    from importlib.util import find_spec, module_from_spec

    path = Path(os.path.expanduser(where)).resolve()
    if not path.is_file():
        raise HpcgymError(no_such_file(where))
    _look_in(path.parent)
    try:
        spec = find_spec(path.stem)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.loader is None or Path(spec.origin or "").resolve() != path:
        raise HpcgymError(
            f"{where}: cannot be imported as {path.stem!r}, which "
            + ("is no name of a module" if spec is None else f"is {spec.origin or 'Python'}'s name")
            + "; rename the file"
        )
    if path.stem in sys.modules and not _forget_if_changed(path):
        return sys.modules[path.stem]
    loaded_at[path.stem] = time.time()
    module = sys.modules[path.stem] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[path.stem]
        raise HpcgymError(f"{where} cannot be imported: {_reason(error)}") from None
    return module


def _forget_if_changed(path: Path) -> bool:
    """Let a file that was loaded here, and what it imports, be loaded anew if its text changed."""
    files = with_imports(path)
    if path.stem not in loaded_at or not changed_after(files, loaded_at[path.stem]):
        return False
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "").resolve() in files:
            del sys.modules[name]
    return True


def _import_module(where: str) -> ModuleType:
    """Import a module that is installed, or in the working directory."""
    from pkgutil import resolve_name

    _look_in(Path.cwd())
    try:
        module = resolve_name(f"{where}:")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{where}.".startswith(f"{error.name}."):
            raise HpcgymError(f"{where} cannot be imported: {_reason(error)}") from None
        raise HpcgymError(
            f"no module called {error.name!r} is installed or in the working directory; allowed "
            "are module:Name and path/to/file.py:Name"
        ) from None
    except (Exception, SystemExit) as error:
        raise HpcgymError(f"{where} cannot be imported: {_reason(error)}") from None
    assert isinstance(module, ModuleType)
    return module


def _look_in(folder: Path) -> None:
    """Let modules of a folder be imported, after all others."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _only_part(
    module: ModuleType, where: str, what: str, fits: tuple[Callable[[object], bool], ...]
) -> tuple[str, object]:
    """Return the one object that is defined in a file and fits."""
    for fit in fits:
        parts = {id(part): (name, part) for name, part in _public(module) if fit(part)}
        if len(parts) > 1:
            names = sorted(name for name, _ in parts.values())
            raise HpcgymError(
                f"{where} defines more than one {what.partition(',')[0]}: {', '.join(names)}; add "
                f"the name, as in {where}:{names[0]}"
            )
        if parts:
            return next(iter(parts.values()))
    names = [name for name, _ in _public(module)]
    raise HpcgymError(f"{where} defines no {what}; it defines {', '.join(names) or 'nothing'}")


def _public(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield what a module defines and does not begin with an underscore, but no import."""
    for name, part in vars(module).items():
        home = getattr(part, "__module__", None) if hasattr(part, "__qualname__") else None
        is_hidden = name.startswith("_") or isinstance(part, ModuleType)
        if not is_hidden and home in (None, module.__name__):
            yield name, part


def _described(part: object) -> str:
    if isinstance(part, type):
        return f"the class {part.__name__}"
    return f"the function {part.__name__}" if hasattr(part, "__name__") else f"{part!r:.80}"


def _reason(error: BaseException) -> str:
    """Return file, line and message of an error, as far down as its traceback is in one folder."""
    import traceback

    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {error.msg}"
    ours = _reason.__code__.co_filename
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != ours
        and "importlib" not in frame.filename
        and not frame.filename.endswith("pkgutil.py")
    ]
    text = _named(error)
    if not frames:
        return text
    folder = Path(frames[0].filename).parent
    last = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)][-1]
    return f"{last.filename}:{last.lineno}: {text}"


def _named(error: BaseException) -> str:
    """Return the message of an error in one line, after its name unless it is hpcgym's."""
    text = " ".join(str(error).split())
    if isinstance(error, HpcgymError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
