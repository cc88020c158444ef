"""The known logs: where each one lies on this machine, and where the archive publishes it.

Digests are of the uncompressed text, so that another compression makes no difference.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import tempfile
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, Literal, cast

from hpcgym.base import registry
from hpcgym.base.errors import (
    OutputError,
    TraceError,
    is_path,
    no_such_file,
    refuse_unless_a,
    unknown_name,
)
from hpcgym.base.output import make_folder, writing
from hpcgym.base.progress import steps
from hpcgym.trace.generated import checked, is_made, make_log
from hpcgym.trace.packing import read_bytes, unpacked_name
from hpcgym.trace.swf import read_swf

FOLDERS_VARIABLE = "HPCGYM_TRACES"
"""The environment variable that names folders of logs, separated as in PATH."""

UNVERIFIED_VARIABLE = "HPCGYM_UNVERIFIED"
"""The environment variable that, set to 1, accepts any log under the name of a known one."""

ARCHIVE_REQUEST = (
    "name the Parallel Workloads Archive as the source and cite D. G. Feitelson, D. Tsafrir, "
    "D. Krakov: Experience with using the Parallel Workloads Archive, J. Parallel Distrib. "
    "Comput. 74(10), 2014"
)
"""What the archive requests of those who use one of its logs."""

STATED = {"memory": "requested_memory", "queue": "queue", "partition": "partition"}
"""What jobs of a log may state for a machine of nodes, and the field that says so."""

_VERSIONED = re.compile(r"(.+-\d{4})-\d+(\.\d+)*(-cln)?", re.IGNORECASE)
"""How the archive names a log: machine, year, version, and whether it is cleaned."""

_CHUNK_BYTES = 65_536

_accepted: set[tuple[str, Path, int, int]] = set()
"""Logs that this process has found to be those on record, with size and time of change."""


@dataclass(frozen=True)
class TraceEntry:
    """The description of one log in the catalogue or on the shelf; None where it is unknown.

    Attributes:
        name: Name of the log, and of its file without `.swf`, `.csv` and `.gz`.
        description: The machine and the site, or how the log was made.
        version: Version of the log in the archive.
        jobs: Jobs in the file.
        processors: Processors of the machine.
        span_days: First submit to last end, days.
        utilisation: Processor-seconds used, over those available in the span.
        states: What its jobs state for a machine of nodes, of `STATED`.
        url: Where the archive publishes it, or None where it does not.
        acknowledge: The acknowledgement that its provider requests.
        sha256: Digest of the uncompressed text, or None where the archive's own text is not held.
        notes: What to know before using it.
        folder: The shelf folder it is bundled in, or None.
        generated: How it is made at first use, as `hpcgym.trace.generated` reads it, or None.
    """

    name: str
    description: str
    version: str = ""
    jobs: int | None = None
    processors: int | None = None
    span_days: float | None = None
    utilisation: float | None = None
    states: tuple[str, ...] = ()
    url: str | None = None
    acknowledge: str = ""
    sha256: str | None = None
    notes: str = ""
    folder: Path | None = None
    generated: dict[str, Any] | None = None


@dataclass(frozen=True)
class Verification:
    """Whether a file is the log on record: "unverified" where no digest is on record."""

    name: str
    path: Path
    status: Literal["ok", "differs", "unverified"]
    sha256: str


def catalogue() -> dict[str, TraceEntry]:
    """List the known logs by name: those of `catalogue.toml`, then the bundled ones.

    Raises:
        TraceError: An entry has an unknown key, or lacks its description.

    Example:
        >>> catalogue()["KTH-SP2-1996-2.1-cln"].processors
        100
    """
    entries: dict[str, TraceEntry] = {}
    for folder in registry.shelf_folders("traces"):
        path = folder / "catalogue.toml"
        if path.is_file():
            for name, table in registry.read_toml(path, TraceError).items():
                entries[name] = _entry(path, name, table)
    for name, path in registry.shelf_entries("traces").items():
        entries[name] = _entry(path, name, registry.read_toml(path, TraceError), folder=path.parent)
    return entries


def entry(name: str) -> TraceEntry:
    """Return the entry of one log; its name may be in any case.

    Raises:
        TraceError: The name is not known; the message gives the nearest one.

    Example:
        >>> entry("tiny").jobs
        8
    """
    entries = catalogue()
    for known, known_entry in entries.items():
        if known.casefold() == str(name).casefold():
            return known_entry
    raise TraceError(unknown_name("trace", name, entries, "hpcgym traces list"))


def find_trace(name_or_path: str | Path) -> Path:
    """Find the file of a log: a path, then `HPCGYM_TRACES`, the user's cache, the shelf.

    A log that the shelf says how to make is made in the cache, if it is nowhere. A name with a
    separator, or ending as a file does, is a path only.

    Raises:
        TraceError: There is no such file, or it is a folder; for a known log the message says how
            to get it.
        OutputError: A log is to be made, and the cache cannot be written to.

    Example:
        >>> find_trace("tiny").name
        'tiny.swf'
    """
    refuse_unless_a((str, os.PathLike), "a log", name_or_path, "a name or a path", TraceError)
    path = Path(os.path.expanduser(name_or_path))  # leaves the name of an unknown user as it is
    if path.is_file():
        return path
    if path.exists() and not path.is_dir():
        raise TraceError(f"{path}: is no file that can be read again; copy what it holds into one")
    name, is_file = str(name_or_path), is_path(name_or_path)
    if not is_file and (path_here := _here(name)):
        return path_here
    if path.is_dir() and (is_file or name.casefold() not in map(str.casefold, catalogue())):
        raise TraceError(
            f"{path}: is a folder; a log is a file (.swf, .swf.gz): name one in it, or set "
            f"{FOLDERS_VARIABLE} to the folder and give a log's name"
        )
    if is_file:
        raise TraceError(no_such_file(name_or_path))
    try:
        known = entry(name)
    except TraceError as error:
        raise TraceError(f"{error}. As a file: {no_such_file(name)}") from None
    if path_here := _here(known.name):
        return path_here
    if known.generated is not None:
        return _made(known)
    where = ", ".join(str(folder) for folder in log_folders())
    get = f"; `hpcgym traces download {name}` fetches it from {known.url}" if known.url else ""
    raise TraceError(
        f"{name} is not here (looked in {where}){get}, or set {FOLDERS_VARIABLE} to its folder"
    )


def find_log(name_or_path: str | Path) -> Path:
    """Find the file of a log as `find_trace` does; refuse another under the name of a known log.

    What a path names is taken as it is. The digest of a file is computed once, and kept in the
    user's cache by path, size and time of change.

    Raises:
        TraceError: As `find_trace`; or the text is not the one on record.
    """
    path, name = find_trace(name_or_path), str(name_or_path)
    if os.environ.get(UNVERIFIED_VARIABLE) == "1" or Path(os.path.expanduser(name)).is_file():
        return path
    status = path.stat()
    key = (name, path, status.st_size, status.st_mtime_ns)
    if key in _accepted:
        return path
    by_folded = {known.casefold(): entry for known, entry in catalogue().items()}
    known = by_folded.get(name.casefold())
    if known is None or known.sha256 is None or known.sha256 == _kept_digest_of(path):
        _accepted.add(key)
        return path
    digest = digest_of(path)
    ours = cache_folder() / f"{known.name}.swf"
    if digest != known.sha256 and known.generated and path == ours and is_made(path):
        digest = digest_of(_made(known))  # an older version of the entry made the file
    if digest == known.sha256:
        return path
    others = [other.name for other in by_folded.values() if other.sha256 == digest]
    raise TraceError(
        f"{path}: is not {known.name}: sha256 of its text is {digest}, "
        + (f"that of {others[0]}" if others else f"on record is {known.sha256}")
        + f"; to use it nevertheless, give its path, or set {UNVERIFIED_VARIABLE}=1"
    )


def _made(known: TraceEntry) -> Path:
    """Make a generated log, and return its file."""
    assert known.generated is not None and known.jobs is not None and known.processors is not None
    return make_log(cache_folder(), known.name, known.jobs, known.processors, **known.generated)


def _kept_digest_of(path: Path) -> str:
    """Return the digest of a file's text, from the user's cache where it has not changed since."""
    cache, status = cache_folder() / "digests.json", path.stat()
    key, state = str(path.resolve()), [status.st_size, status.st_mtime_ns]
    kept: dict[str, list[Any]] = {}
    with suppress(OSError, ValueError, TypeError, RecursionError):
        kept = dict(json.loads(cache.read_bytes()))
    if key in kept and kept[key][:2] == state:
        return str(kept[key][2])
    digest = digest_of(path)
    with suppress(OutputError), writing(make_folder(cache.parent) / cache.name, force=True) as file:
        file.write_text(json.dumps(kept | {key: [*state, digest]}))
    return digest


def _here(name: str) -> Path | None:
    """Return a log's file in the first folder that has one, or None."""
    for folder in log_folders():
        for suffix in (".swf.gz", ".swf", ".csv.gz", ".csv"):
            if (file := folder / f"{name}{suffix}").is_file():
                return file
    return None


def log_folders() -> list[Path]:
    """Return the folders where logs are searched by name, in order."""
    stated = os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)
    try:
        stated_folders = [Path(folder).expanduser() for folder in stated if folder]
    except RuntimeError:
        raise TraceError(
            f"{FOLDERS_VARIABLE}={os.pathsep.join(stated)}: there is no such user; name folders"
        ) from None
    return [*stated_folders, cache_folder(), *registry.shelf_folders("traces")]


def cache_folder() -> Path:
    """Return the folder of downloads, in the system's place for caches; it may not exist yet."""
    import pooch

    return Path(pooch.os_cache("hpcgym")) / "traces"


def download(
    name: str,
    *,
    unverified: bool = False,
    mirror: str | None = None,
    folder: str | Path | None = None,
) -> Path:
    """Download a log from the archive, unless a good copy is in the folder already.

    The file is checked in a temporary folder and then moved, so a wrong one leaves nothing behind.

    Args:
        unverified: Whether to accept a log without a digest on record.
        mirror: Address of a folder that holds `<name>.swf.gz`, instead of the archive.
        folder: Where the file goes; default the user's cache, where `find_trace` looks.

    Raises:
        TraceError: The name is not known, or the archive does not publish the log. No digest is on
            record and `unverified` is False. The download fails, or its text is not the one on
            record.
        OutputError: The folder cannot be written to.
    """
    known = entry(name)
    if known.url is None:
        where = f"; it is here: {find_trace(known.name)}" if known.folder else ""
        raise TraceError(f"{known.name} is not published by the archive{where}")
    url = known.url if mirror is None else f"{mirror.rstrip('/')}/{known.name}.swf.gz"
    target = make_folder(cache_folder() if folder is None else folder) / f"{known.name}.swf.gz"
    if target.is_file() and _is_good(known, target):
        return target
    if known.sha256 is None and not unverified:
        raise TraceError(
            f"{known.name} is unverified: no digest of the archive's own text is on record; "
            f"to take what {url} sends, say --unverified (unverified=True)"
        )
    with tempfile.TemporaryDirectory(prefix="hpcgym-") as scratch:
        fetched = _fetch(url, Path(scratch) / target.name)
        verification = _status(known, fetched)
        if verification.status == "differs":
            raise TraceError(
                f"{url}: not the log on record: sha256 of the uncompressed text is "
                f"{verification.sha256}, expected {known.sha256}; nothing was kept"
            )
        if verification.status == "unverified":
            read_swf(fetched)
        with writing(target, force=True) as file:
            file.write_bytes(fetched.read_bytes())
    return target


def verify(names: Iterable[str] | None = None) -> list[Verification]:
    """Compare logs with the digests on record; by default all that are on this machine.

    Raises:
        TraceError: A name is not known, a named log is not here, or a file cannot be read.

    Example:
        >>> verify(["tiny"])[0].status
        'ok'
    """
    if names is not None:
        return [_status(entry(name), find_trace(name)) for name in names]
    here = {known.name: _here(known.name) for known in catalogue().values()}
    verifications = []
    with steps(len(here), "verifying logs", "logs") as work:
        for name, path in here.items():
            if path is not None:
                verifications.append(_status(entry(name), path))
            work.advance()
    return verifications


def name_without_version(name_or_path: str | Path) -> str | None:
    """Return machine and year, in lower case, or None where the archive would not name a log so.

    All versions of a log share this name, and hold the same weeks.
    """
    name = unpacked_name(name_or_path).removesuffix(".swf").removesuffix(".csv")
    match = _VERSIONED.fullmatch(name)
    return None if match is None else match[1].casefold()


def digest_of(path: Path) -> str:
    """Return the sha256 of a log's uncompressed text, in hexadecimal.

    Raises:
        TraceError: It cannot be read.
    """
    return hashlib.sha256(read_bytes(path)).hexdigest()


def is_same_text(path: Path, other: Path) -> bool:
    """Tell whether two files hold the same log; False where one cannot be read.

    They are read only as far as they agree.
    """
    try:
        if path.samefile(other):
            return True
        with _unpacked(path) as first, _unpacked(other) as second:
            while chunk := first.read(_CHUNK_BYTES):
                if chunk != second.read(_CHUNK_BYTES):
                    return False
            return not second.read(1)
    except (OSError, EOFError, zlib.error):
        return False


def _unpacked(path: Path) -> IO[bytes]:
    """Open a plain or gzipped file for reading its uncompressed bytes."""
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"  # as gzip begins
    return cast(IO[bytes], gzip.open(path)) if is_packed else path.open("rb")


def _status(known: TraceEntry, path: Path) -> Verification:
    """Compare one file with the digest on record."""
    digest = digest_of(path)
    if known.sha256 is None:
        return Verification(known.name, path, "unverified", digest)
    status: Literal["ok", "differs"] = "ok" if digest == known.sha256 else "differs"
    return Verification(known.name, path, status, digest)


def _is_good(known: TraceEntry, path: Path) -> bool:
    """Tell whether a file is whole and does not differ from the log on record."""
    try:
        return _status(known, path).status != "differs"
    except TraceError:
        return False


def _fetch(url: str, target: Path) -> Path:
    """Download one file with pooch; turn its errors into TraceError."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    try:
        with steps(1, f"downloading {target.name}"):
            pooch.retrieve(url, known_hash=None, fname=target.name, path=target.parent)
    except (OSError, ValueError) as error:
        raise TraceError(f"{url}: cannot be fetched: {error}") from None
    return target


def _entry(path: Path, name: str, table: dict[str, Any], folder: Path | None = None) -> TraceEntry:
    """Make an entry of a TOML table; refuse unknown keys."""
    allowed = [field.name for field in fields(TraceEntry) if field.name not in ("name", "folder")]
    if not isinstance(table, dict):
        raise TraceError(f"{path}: {name!r} must be a table, got {table!r}")
    for key in table:
        if key not in allowed:
            raise TraceError(f"{path}: {name}: {unknown_name('key', key, allowed)}")
    if "description" not in table:
        raise TraceError(f"{path}: {name}: the key description is missing")
    states = tuple(table.get("states", ()))
    for key in states:
        if key not in STATED:
            raise TraceError(f"{path}: {name}: states: {unknown_name('field', key, STATED)}")
    read: dict[str, Any] = {"states": states}
    if "generated" in table:
        read["generated"] = checked(table["generated"], f"{path}: {name}")
        if table.get("jobs") is None or table.get("processors") is None:
            raise TraceError(f"{path}: {name}: a generated log needs jobs and processors")
    return TraceEntry(name=name, folder=folder, **table | read)
