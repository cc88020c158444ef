"""Files of somebody's own code: what they import beside them, and whether they changed."""

from __future__ import annotations

import ast
import hashlib
import os
import sysconfig
import time
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import ModuleType

_PACKAGE = Path(str(files("hpcgym"))).resolve()
_STANDARD = tuple(Path(sysconfig.get_path(key)).resolve() for key in ("stdlib", "platstdlib"))
_INSTALLED = ("site-packages", "dist-packages")

loaded_at: dict[str, float] = {}
"""When `hpcgym.base.plugins` loaded a module, by name; others came before this one or later."""

_BEGUN = time.time()


def text_digest(module: ModuleType) -> str:
    """Digest the text of a module's file and of what it imports beside it.

    It is "" for hpcgym, for what comes with Python and for what has no file, and the version of an
    installed package. Text that changed after it was loaded is not what runs; it is equal to no
    other.
    """
    file = getattr(module, "__file__", None)
    path = Path(file or "").resolve()
    if not path.is_file() or _PACKAGE in path.parents:
        return ""
    for position, part in enumerate(path.parts):
        if part in _INSTALLED:
            return _version_of(path.parts[position + 1].partition(".")[0])
    if any(root in path.parents for root in _STANDARD):
        return ""
    if changed_after(with_imports(path), loaded_at.get(module.__name__, _BEGUN)):
        return os.urandom(32).hex()
    return digest_of(path)


def digest_of(path: Path) -> str:
    """Digest the text of a file and of what it imports beside it."""
    digest = hashlib.sha256()
    for file in sorted(with_imports(path)):
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)} ".encode() + content)
    return digest.hexdigest()


def changed_after(paths: set[Path], instant: float) -> bool:
    """Tell whether one of some files was written after an instant."""
    return any(path.stat().st_mtime > instant for path in paths)


def with_imports(file: Path) -> set[Path]:
    """Return a file and those that it imports, directly or not, from its folder or its package."""
    root = file.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    reached: set[Path] = set()
    todo = {file}
    while todo:
        path = todo.pop()
        reached.add(path)
        todo |= _imported_once(path, root, path.stat().st_mtime_ns) - reached
    return reached


@cache
def _imported_once(file: Path, root: Path, written: int) -> frozenset[Path]:
    """Return what a file of an instant imports; it is read once, since every key asks for it."""
    return frozenset(_imported(file, root))


def _imported(file: Path, root: Path) -> Iterator[Path]:
    """Yield the files below a folder that a file imports, those of packages around them too."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):  # compiled code, for one
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(root, name.name) for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = file.parents[node.level - 1] if node.level else root
            names = [(start, f"{node.module or ''}.{name.name}") for name in node.names]
        else:
            continue
        for folder, name in names:
            for part in filter(None, name.split(".")):
                folder = folder / part
                for candidate in (folder / "__init__.py", folder.parent / f"{part}.py"):
                    if candidate.is_file() and _PACKAGE not in candidate.resolve().parents:
                        yield candidate.resolve()


@cache
def _version_of(package: str) -> str:
    """Return the name and version of what a package was installed as."""
    from importlib.metadata import packages_distributions, version

    return " ".join(
        f"{distribution} {version(distribution)}"
        for distribution in packages_distributions().get(package, ())
    )
