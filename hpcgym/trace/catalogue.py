"""Which logs exist, where they lie here, and where the archive publishes them."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from hpcgym import registry
from hpcgym.errors import TraceError, unknown_name

FOLDERS_VARIABLE = "HPCGYM_TRACES"
"""Environment variable: folders of logs, separated as in PATH."""

_SUFFIXES = (".swf.gz", ".swf")


@dataclass(frozen=True)
class TraceEntry:
    """What the catalogue, or a shelf entry, says of one log.

    Attributes:
        name: Name of the log and of its file without `.swf` and `.gz`.
        description: The machine and the site, or how the log was made.
        version: Version of the log in the archive.
        jobs: Jobs in the file, or None where we do not know.
        processors: Processors of the machine, or None where we do not know.
        span_days: First submit to last end, days, or None.
        utilisation: Processor-seconds used over those there were in the span, or None.
        url: Where the archive publishes it, or None for a log made by hpcgym.
        acknowledge: The acknowledgement its provider asks for.
        sha256: Digest of the uncompressed text, or None where we do not hold the archive's own.
        notes: What to know before using it.
        folder: The shelf folder it is bundled in, or None.
    """

    name: str
    description: str
    version: str = ""
    jobs: int | None = None
    processors: int | None = None
    span_days: float | None = None
    utilisation: float | None = None
    url: str | None = None
    acknowledge: str = ""
    sha256: str | None = None
    notes: str = ""
    folder: Path | None = None


@dataclass(frozen=True)
class Verification:
    """Whether a log that lies here is the one we know.

    Attributes:
        name: The log.
        path: Its file.
        status: "ok", "differs", or "unverified" where no digest is on record.
        sha256: Digest of its uncompressed text.
    """

    name: str
    path: Path
    status: Literal["ok", "differs", "unverified"]
    sha256: str


def catalogue() -> dict[str, TraceEntry]:
    """List every log known by name: those of `catalogue.toml`, then the bundled ones.

    Returns:
        The entry of each log by its name.

    Raises:
        TraceError: An entry has a key that is not known, or lacks its description.

    Source:
        House rule: one entry per bundled log; the logs of the archive stand together.

    Example:
        >>> catalogue()["KTH-SP2-1996-2.1-cln"].processors
        100
    """
    entries: dict[str, TraceEntry] = {}
    for folder in registry.shelf_folders("traces"):
        path = folder / "catalogue.toml"
        if path.is_file():
            for name, table in _toml(path).items():
                entries[name] = _entry(path, name, table)
    for name, path in registry.shelf_entries("traces").items():
        entries[name] = _entry(path, name, _toml(path), folder=path.parent)
    return entries


def entry(name: str) -> TraceEntry:
    """Return what is known of one log.

    Args:
        name: Its name, in any case.

    Returns:
        The entry.

    Raises:
        TraceError: The name is not known; the message gives the nearest one.

    Source:
        House rule: an error names the nearest valid name.

    Example:
        >>> entry("tiny").jobs
        8
    """
    entries = catalogue()
    for known, found in entries.items():
        if known.casefold() == str(name).casefold():
            return found
    raise TraceError(unknown_name("trace", name, entries))


def find_trace(name_or_path: str | Path) -> Path:
    """Find the file of a log: a path, then `HPCGYM_TRACES`, the user's cache, the shelf.

    Args:
        name_or_path: A file, or the name of a log; a name with a separator or ending in `.swf` or
            `.gz` is taken for a path only.

    Returns:
        The file.

    Raises:
        TraceError: There is no such file; for a known log the message says how to get it.

    Source:
        House rule: what is nearest to the user comes first.

    Example:
        >>> find_trace("tiny").name
        'tiny.swf'
    """
    path = Path(name_or_path).expanduser()
    if path.is_file():
        return path
    name = str(name_or_path)
    if len(path.parts) > 1 or name.endswith((".swf", ".gz")):
        raise TraceError(f"{name_or_path}: no such file")
    for folder in _folders():
        for suffix in _SUFFIXES:
            if (file := folder / f"{name}{suffix}").is_file():
                return file
    known = entry(name)
    if known.name != name:
        return find_trace(known.name)
    where = ", ".join(str(folder) for folder in _folders())
    get = f"; `hpcgym traces download {name}` fetches it from {known.url}" if known.url else ""
    raise TraceError(
        f"{name} is not here (looked in {where}){get}, or set {FOLDERS_VARIABLE} to its folder"
    )


def _folders() -> list[Path]:
    """Return where logs are looked for by name, the nearest to the user first."""
    stated = os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)
    own = [Path(folder).expanduser() for folder in stated if folder]
    return [*own, cache_folder(), *registry.shelf_folders("traces")]


def cache_folder() -> Path:
    """Return the folder that downloads go to, in the place the system keeps caches.

    Returns:
        The folder; it may not exist yet.

    Source:
        House rule: what pooch's `os_cache` says.
    """
    import pooch

    return Path(pooch.os_cache("hpcgym")) / "traces"


def _toml(path: Path) -> dict[str, Any]:
    """Read a TOML file, naming it when it is not one."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: not TOML: {error}") from None


def _entry(path: Path, name: str, table: dict[str, Any], folder: Path | None = None) -> TraceEntry:
    """Make one entry of a TOML table, refusing keys that are not known."""
    allowed = [field.name for field in fields(TraceEntry) if field.name not in ("name", "folder")]
    if not isinstance(table, dict):
        raise TraceError(f"{path}: {name!r} must be a table, got {table!r}")
    for key in table:
        if key not in allowed:
            raise TraceError(f"{path}: {name}: {unknown_name('key', key, allowed)}")
    if "description" not in table:
        raise TraceError(f"{path}: {name}: the key description is missing")
    return TraceEntry(name=name, folder=folder, **table)
