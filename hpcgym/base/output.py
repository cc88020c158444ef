"""Write files so that each is whole or absent, and none is overwritten unasked.

A file is written under another name in the same folder, and renamed at the end. What a process left
that was killed meanwhile is removed by the next one that writes the file.
"""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hpcgym.base.errors import OutputError

try:
    import fcntl
except ImportError:  # not on Windows, where what a killed process left stays
    fcntl = None  # type: ignore[assignment]


_read: dict[tuple[int, int], str] | None = None
"""Files that a command reads, by device and number there; None outside `keeping_inputs`."""


@contextmanager
def keeping_inputs(paths: Iterable[str | Path | int]) -> Iterator[None]:
    """Refuse inside the block to write over these files, or over those noted meanwhile.

    Other names of them count, and so does `force`. What is no file is left out; a number is an
    open one.
    """
    global _read
    before, _read = _read, {}
    try:
        for path in paths:
            note_input(path)
        yield
    finally:
        _read = before


def note_input(path: str | Path | int) -> None:
    """Note a file that is read, where a command keeps its inputs."""
    with suppress(OSError, ValueError):
        status = None if _read is None else os.stat(path)
        if _read is not None and status is not None and stat.S_ISREG(status.st_mode):
            name = "standard input" if path == 0 else str(path)
            _read.setdefault((status.st_dev, status.st_ino), name)


def ensure_writable(path: str | Path, *, force: bool = False) -> None:
    """Refuse a place where no file can, or should, be written; `force` allows replacing a file.

    A long run calls this first, so that it fails before its work and not after it.

    Raises:
        OutputError: A file is there and `force` is False, or something other than a plain file is
            there, or what the command reads (`keeping_inputs`). Or the folder is a file, or cannot
            be made or written to.
    """
    with _partial(_target_of(path, force=force), path):
        pass


@contextmanager
def writing(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield an empty file in the folder of `path`, and rename it to `path` when the block succeeds.

    Its name ends in that of `path`, so that libraries see the right suffix. Missing folders are
    made. If the block fails or is interrupted, they and the new file are removed and what was at
    `path` stays.

    Raises:
        OutputError: As `ensure_writable`; or the writing failed, as on a full disk.
    """
    target = _target_of(path, force=force)
    with _partial(target, path) as partial:
        try:
            yield partial
            with partial.open("r+b") as file:
                os.fsync(file.fileno())
            _target_of(path, force=force)
            if target.exists():
                shutil.copymode(target, partial)
            partial.replace(target)
        except OutputError:
            raise
        except OSError as error:
            kept = "; the file that was there is untouched" if target.exists() else ""
            raise OutputError(f"{path}: writing failed: {_reason(error)}{kept}") from error


def make_folder(path: str | Path) -> Path:
    """Make a folder and its missing parents, and return it.

    Raises:
        OutputError: A file is in the way, or the place cannot be written to.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot make this folder: {_reason(error)}") from error
    return folder


@contextmanager
def output_folder(path: str | Path) -> Iterator[Path]:
    """Make a folder and yield it; if the block fails, remove what was made and is still empty.

    Raises:
        OutputError: As `make_folder`.
    """
    missing = _missing_folders(Path(path))
    try:
        yield make_folder(path)
    except BaseException:
        _remove_empty(missing)
        raise


def _missing_folders(folder: Path) -> list[Path]:
    """Return which of a folder and its parents are not there, the innermost first."""
    return [each for each in (folder, *folder.parents) if not os.path.exists(each)]


def _remove_empty(folders: Iterable[Path]) -> None:
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _target_of(path: str | Path, *, force: bool) -> Path:
    """Return where `path` leads once links are followed; refuse what must not be replaced."""
    try:
        target = Path(path).resolve()
        if target.is_dir():
            raise OutputError(f"{path}: is a folder; name a file in it")
        if target.exists() and not target.is_file():
            raise OutputError(f"{path}: is not a plain file; name another place")
        if target.exists() and (read := _name_of_input(target)) is not None:
            raise OutputError(f"{path}: is {read}, which this command reads; name another file")
        if target.exists() and not force:
            raise OutputError(
                f"{path}: exists already; name another file, or replace it with force (--force)"
            )
    except OutputError:
        raise
    except (OSError, RuntimeError) as error:
        raise OutputError(f"{path}: cannot be written: {_reason(error)}") from error
    return target


def _name_of_input(target: Path) -> str | None:
    """Return by what name the command reads a file, or None where it does not."""
    status = target.stat()
    return (_read or {}).get((status.st_dev, status.st_ino))


@contextmanager
def _partial(target: Path, path: str | Path) -> Iterator[Path]:
    """Create the empty file that may be renamed to `target`, in the same folder; lock it meanwhile.

    Makes missing folders, and removes those that stay empty, and what killed processes have left.
    """
    missing = _missing_folders(target.parent)
    try:
        make_folder(target.parent)
        with _created(target, path) as partial:
            yield partial
    finally:
        _remove_empty(missing)


@contextmanager
def _created(target: Path, path: str | Path) -> Iterator[Path]:
    """Create the file of `_partial` in a folder that is there."""
    _remove_left(target)
    partial = target.with_name(f".{secrets.token_hex(4)}-{target.name}")
    try:
        lock = partial.open("xb")
    except OSError as error:
        raise OutputError(
            f"{path}: cannot write in the folder {target.parent}: {_reason(error)}"
        ) from error
    with lock:
        if not _lock(lock.fileno()):
            lock.close()  # an open file cannot be renamed on Windows
        try:
            yield partial
        finally:
            partial.unlink(missing_ok=True)


def unfinished_of(target: Path) -> Path:
    """Return where a folder is made until it is finished."""
    return target.with_name(f".{target.name}-unfinished")


@contextmanager
def unfinished_folder(target: Path) -> Iterator[Path]:
    """Make the folder that may be renamed to `target`, or take one that was left, and lock it.

    What is in it stays there if the block fails, but an empty folder goes.

    Raises:
        OutputError: Another process works on it, or it cannot be made.
    """
    folder = make_folder(unfinished_of(target))
    try:
        with _opened(folder) as file:
            if fcntl is not None and not _lock(file):
                raise OutputError(f"{folder}: another process writes {target.name} at the moment")
            yield folder
    finally:
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Keep other processes that lock `target` away; a hidden file beside it is there meanwhile.

    Raises:
        OutputError: Another process has it, or the file cannot be made.
    """
    lock_path = target.with_name(f".{target.name}-lock")
    try:
        file = _lock_file(lock_path)
    except OSError as error:
        raise OutputError(f"{lock_path}: cannot be written: {_reason(error)}") from error
    if file is None:
        raise OutputError(
            f"{target.parent}: another process writes here at the moment; wait for its end, or "
            "name another folder"
        )
    try:
        yield
    finally:
        with suppress(OSError):
            lock_path.unlink()  # while it is locked: who opened it meanwhile sees that it is gone
        os.close(file)


def _lock_file(lock_path: Path) -> int | None:
    """Make, open and lock a file; None where another process has it."""
    while True:
        file = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o666)
        if fcntl is None:
            return file
        if not _lock(file):
            os.close(file)
            return None
        with suppress(FileNotFoundError):
            if os.fstat(file).st_ino == lock_path.stat().st_ino:
                return file
        os.close(file)


def _remove_left(target: Path) -> None:
    """Remove unfinished files that no process works on."""
    for left in target.parent.glob(f".{'[0-9a-f]' * 8}-{glob.escape(target.name)}"):
        with suppress(OSError), _opened(left) as file:
            if _lock(file):
                left.unlink()


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a file or a folder, so that it can be locked; a folder nowhere but on POSIX."""
    file = -1 if fcntl is None else os.open(path, os.O_RDONLY)
    try:
        yield file
    finally:
        if file >= 0:
            os.close(file)


def _lock(file: int) -> bool:
    """Lock an open file or folder until it is closed; tell whether no other process had."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _reason(error: Exception) -> str:
    """Return the system's message, without its number and the new file's name."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
