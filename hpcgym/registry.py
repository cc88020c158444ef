"""Shelves: where the entries of `agents/`, `scenarios/` and `traces/` lie, by name.

Only this module knows where a shelf stands: inside the installed package (`_data/<shelf>`), or
beside the package in a checkout, and then in the folders a user adds.
"""

from pathlib import Path
from typing import Literal

from hpcgym.errors import CardError, HpcgymError, ScenarioError, TraceError, unknown_name

Shelf = Literal["agents", "scenarios", "traces"]

SHELVES: tuple[Shelf, ...] = ("agents", "scenarios", "traces")

_ERRORS: dict[Shelf, type[HpcgymError]] = {
    "agents": CardError,
    "scenarios": ScenarioError,
    "traces": TraceError,
}
_NOT_AN_ENTRY = "catalogue"  # traces/catalogue.toml lists the logs that are not bundled
_user_folders: list[Path] = []


def add_folder(folder: str | Path) -> None:
    """Add a folder of the user's own entries, laid out as hpcgym's: `agents/`, `scenarios/` ...

    Args:
        folder: The folder that holds one or more shelves; adding one twice changes nothing.

    Raises:
        HpcgymError: There is no such folder, or no shelf in it.

    Source:
        House rule: a person's own entries need no change to the package.

    Example:
        >>> add_folder("no/such/folder")
        Traceback (most recent call last):
        hpcgym.errors.HpcgymError: no/such/folder is not a folder
    """
    path = Path(folder)
    if not path.is_dir():
        raise HpcgymError(f"{folder} is not a folder")
    if not any((path / shelf).is_dir() for shelf in SHELVES):
        raise HpcgymError(f"{folder} holds none of the shelves {', '.join(SHELVES)}")
    if path.resolve() not in _user_folders:
        _user_folders.append(path.resolve())


def shelf_folders(shelf: Shelf) -> list[Path]:
    """List the folders that make up a shelf.

    Args:
        shelf: Which shelf.

    Returns:
        hpcgym's own folder first, then those of the user that hold such a shelf.

    Source:
        House rule: the wheel carries the shelves as package data; a checkout has them beside it.

    Example:
        >>> shelf_folders("traces")[0].name
        'traces'
    """
    package = Path(__file__).resolve().parent
    packed = package / "_data" / shelf
    own = packed if packed.is_dir() else package.parent / shelf
    added = [folder / shelf for folder in _user_folders]
    return [own, *(folder for folder in added if folder.is_dir())]


def shelf_entries(shelf: Shelf) -> dict[str, Path]:
    """List the entries of a shelf.

    Args:
        shelf: Which shelf.

    Returns:
        The `.toml` file of each entry by its name, in the order of the names.

    Raises:
        HpcgymError: Two folders hold an entry of the same name.

    Source:
        House rule: one entry per file, and the name of an entry is its file's stem.

    Example:
        >>> "tiny" in shelf_entries("scenarios")
        True
    """
    found: dict[str, Path] = {}
    for folder in shelf_folders(shelf):
        for path in folder.glob("*.toml"):
            if path.stem == _NOT_AN_ENTRY:
                continue
            if path.stem in found:
                raise _ERRORS[shelf](
                    f"two entries are called {path.stem!r}: {found[path.stem]} and {path}; "
                    "rename one of the files"
                )
            found[path.stem] = path
    return dict(sorted(found.items()))


def find_entry(shelf: Shelf, name: str) -> Path:
    """Find one entry of a shelf by its name.

    Args:
        shelf: Which shelf.
        name: The entry's name; its case matters only where two entries differ in nothing else.

    Returns:
        Its `.toml` file; what belongs to it (weights, a log) lies beside it.

    Raises:
        HpcgymError: There is no such entry; the message names the nearest one.

    Source:
        House rule: one entry per file, and the name of an entry is its file's stem.

    Example:
        >>> find_entry("scenarios", "tinny")
        Traceback (most recent call last):
        hpcgym.errors.ScenarioError: unknown scenario 'tinny'; did you mean 'tiny'? Allowed: ...
    """
    entries = shelf_entries(shelf)
    matches = [entry for entry in entries if entry.casefold() == name.casefold()]
    if name not in entries and len(matches) != 1:
        raise _ERRORS[shelf](unknown_name(shelf.removesuffix("s"), name, entries))
    return entries[name if name in entries else matches[0]]
