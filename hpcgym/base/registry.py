"""The shelves `agents/`, `scenarios/` and `traces/`: find their entries by name; and what draws.

A shelf lies inside the installed package (`_data/<shelf>`) or, in a checkout, beside it. Folders
that a user adds extend it. An entry is one `.toml` file and is named by its stem.
"""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from hpcgym.base import plugins
from hpcgym.base.errors import (
    CardError,
    HpcgymError,
    ScenarioError,
    TraceError,
    unknown_name,
    unreadable,
)

Shelf = Literal["agents", "scenarios", "traces"]

SHELVES: tuple[Shelf, ...] = ("agents", "scenarios", "traces")

_ERRORS: dict[Shelf, type[HpcgymError]] = {
    "agents": CardError,
    "scenarios": ScenarioError,
    "traces": TraceError,
}
PICTURES: dict[str, Callable[[], Callable[..., Any]]] = {}
"""What draws, by what is drawn, loaded on first use; `hpcgym/__init__.py` fills it."""

_NOT_AN_ENTRY = "catalogue"  # traces/catalogue.toml lists the logs that are not bundled
_PACKAGE = Path(__file__).resolve().parents[1]
_PACKED = _PACKAGE / "_data"
_user_folders: list[Path] = []


def add_folder(folder: str | Path) -> None:
    """Add a folder of the user's own shelves: `agents/`, `scenarios/` or `traces/`.

    Raises:
        HpcgymError: There is no such folder, or no shelf in it.

    Example:
        >>> add_folder("no/such/folder")
        Traceback (most recent call last):
        hpcgym.base.errors.HpcgymError: no/such/folder is not a folder
    """
    path = Path(folder)
    if not path.is_dir():
        raise HpcgymError(f"{folder} is not a folder")
    if not any((path / shelf).is_dir() for shelf in SHELVES):
        raise HpcgymError(f"{folder} holds none of the shelves {', '.join(SHELVES)}")
    if path.resolve() not in _user_folders:
        _user_folders.append(path.resolve())


def shelf_folders(shelf: Shelf) -> list[Path]:
    """Return the folders of a shelf: hpcgym's own first, then those the user added."""
    shipped = (clone() or _PACKED) / shelf
    added = [folder / shelf for folder in _user_folders]
    return [shipped, *(folder for folder in added if folder.is_dir())]


def clone() -> Path | None:
    """Return the root of the clone that hpcgym runs from; None where it was installed."""
    return None if _PACKED.is_dir() else _PACKED.parents[1]


def has_room(folder: str) -> bool:
    """Tell whether a folder of the package is there; some may be deleted, as tests do."""
    return (_PACKAGE / folder / "__init__.py").is_file()


def shelf_entries(shelf: Shelf) -> dict[str, Path]:
    """Return the `.toml` file of each entry of a shelf, in order of the names.

    Raises:
        HpcgymError: Two folders hold an entry of the same name.
    """
    entries: dict[str, Path] = {}
    for folder in shelf_folders(shelf):
        for path in folder.glob("*.toml"):
            if path.stem == _NOT_AN_ENTRY:
                continue
            if path.stem in entries:
                raise _ERRORS[shelf](
                    f"two entries are called {path.stem!r}: {entries[path.stem]} and {path}; "
                    "rename one of the files"
                )
            entries[path.stem] = path
    return dict(sorted(entries.items()))


def find_entry(shelf: Shelf, name: str) -> Path:
    """Return the `.toml` file of an entry; case counts only where two names differ in it alone.

    Raises:
        HpcgymError: There is no such entry; the message names the nearest one.
    """
    entries = shelf_entries(shelf)
    matches = [entry for entry in entries if entry.casefold() == name.casefold()]
    if name not in entries and len(matches) != 1:
        known = (*entries, *plugins.offered_names(shelf))
        kind, listed_by = shelf.removesuffix("s"), f"hpcgym {shelf} list"
        raise _ERRORS[shelf](unknown_name(kind, name, known, listed_by))
    return entries[name if name in entries else matches[0]]


def read_toml(path: str | Path, error: type[HpcgymError]) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        HpcgymError: Of that class: it cannot be read, or is not TOML; the message names the file.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as reason:
        raise error(unreadable(path, reason)) from None
    except UnicodeDecodeError as reason:
        raise error(f"{path}: not a text file in UTF-8: {reason}") from None
    except (ValueError, RecursionError) as reason:  # also of a number of 5,000 digits
        raise error(f"{path}: not valid TOML: {reason}") from None
