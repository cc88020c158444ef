"""The errors that hpcgym raises on purpose: each says what came, where, and what is allowed."""

import difflib
import math
import numbers
import os
import re
import textwrap
from collections.abc import Collection, Iterable
from itertools import islice
from pathlib import Path


class HpcgymError(Exception):
    """Base of every error hpcgym raises on purpose."""


class WorkloadError(HpcgymError, ValueError):
    """A job table, an estimate or a machine size that cannot be simulated."""


class MachineError(HpcgymError, ValueError):
    """A machine of nodes that is misspelt, impossible or contradicts itself."""


class PolicyError(HpcgymError, ValueError):
    """An unknown policy, backfilling mode or setting of the scheduler."""


class TraceError(HpcgymError, ValueError):
    """A log that cannot be found, read, verified or cleaned."""


class ScenarioError(HpcgymError, ValueError):
    """A scenario that is unknown, misspelt or contradicts itself."""


class CardError(HpcgymError, ValueError):
    """An agent card that is unknown or cannot be used."""


class EvaluationError(HpcgymError, ValueError):
    """An evaluation that compares nothing, or cannot be paired."""


class LiveError(HpcgymError, ValueError):
    """A reading of a live cluster that is cut short, contradicts itself or is no answer."""


class ActionError(HpcgymError, ValueError):
    """An action outside the action space."""


class OutputError(HpcgymError, OSError):
    """A file that cannot be written, or must not be overwritten."""


LARGEST_WHOLE = 2**52
"""The largest time (s), size or count: twice as much is still exact in float64."""

MOST_NAMED = 200  # valid names that a message lists

FEW_NAMED = 12
"""Valid names that it lists where a command lists them, too; of more it names the nearest."""

MOST_NEAR = 5  # names, and files of a folder, that are called near
MOST_FILES = 10_000  # files of a folder among which the nearest is looked for

LARGEST_SEED = 2**32 - 1
"""The largest seed that numpy's old generator accepts; the other generators accept more."""


def refuse_seed(seed: int) -> None:
    """Raise HpcgymError unless a seed is from 0 to LARGEST_SEED."""
    if not 0 <= seed <= LARGEST_SEED:
        raise HpcgymError(f"a seed must be a whole number from 0 to {LARGEST_SEED}, got {seed}")


def refuse_unless_whole(
    name: str,
    value: object,
    least: int = 0,
    most: float = LARGEST_WHOLE,
    error: type[HpcgymError] = HpcgymError,
) -> None:
    """Raise an error unless a value is a whole number in a range; True and False are none.

    Example:
        >>> refuse_unless_whole("n_slots", 0, 1, 8)
        Traceback (most recent call last):
        hpcgym.base.errors.HpcgymError: n_slots must be a whole number from 1 to 8, got 0
    """
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not (is_whole and least <= value <= most):  # type: ignore[operator]
        to = f" to {most}" if most < math.inf else ""
        raise error(f"{name} must be a whole number from {least}{to}, got {value!r}")


def refuse_unless_a(
    kind: type | tuple[type, ...],
    name: str,
    value: object,
    meant: str,
    error: type[HpcgymError] = HpcgymError,
) -> None:
    """Raise an error that says what is meant, unless a value is of a type.

    Example:
        >>> refuse_unless_a(str, "policy", 5, "a name")
        Traceback (most recent call last):
        hpcgym.base.errors.HpcgymError: policy must be a name, got 5
    """
    if not isinstance(value, kind):
        raise error(f"{name} must be {meant}, got {textwrap.shorten(repr(value), 80)}")


def refuse_unless_new(
    kind: str, name: str, taken: Collection[str], error: type[HpcgymError]
) -> None:
    """Raise an error unless a name for a part of a user's own is well-formed, and not taken."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise error(f"{kind} name {name!r}: a letter, then letters, digits, '_' or '-'")
    if name.casefold() in map(str.casefold, taken):
        raise error(f"{kind} {name!r} is taken; names taken: {', '.join(taken)}")


def unknown_name(kind: str, name: object, allowed: Iterable[str], *listed_by: str) -> str:
    """Compose the message for an unknown name, with the nearest valid one.

    Args:
        kind: What the name is of.
        name: What came.
        allowed: The valid names.
        *listed_by: Commands that list them; the message then has the nearest of many names only.
            What can only mean a file is one that is not there.

    Example:
        >>> unknown_name("policy", "SFA", ["FCFS", "SAF"])
        "unknown policy 'SFA'; did you mean 'SAF'? Allowed: FCFS, SAF"
        >>> unknown_name("log", "swf", map(str, range(99)), "hpcgym traces list")
        "unknown log 'swf'. All 99: `hpcgym traces list`"
    """
    if listed_by and is_path(str(name)) and not os.path.exists(os.path.expanduser(str(name))):
        return no_such_file(str(name))
    names = list(allowed)
    near = _nearest(name, names)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    if listed_by:
        near += [each for each in _alike(str(name), names) if each not in near]
    if listed_by and len(names) > FEW_NAMED:
        also = f" Near it: {', '.join(near[:MOST_NEAR])}." if near else ""
        commands = ", ".join(f"`{command}`" for command in listed_by)
        return f"unknown {kind} {name!r}{hint}{also} All {len(names)}: {commands}"
    shown = names if len(names) <= MOST_NAMED else [*names[:MOST_NAMED], f"and {len(names)} in all"]
    return f"unknown {kind} {name!r}{hint} Allowed: {', '.join(shown) or '(none)'}"


def _nearest(name: object, names: Iterable[str]) -> list[str]:
    """Return the names that are near one, the nearest first, in whatever case it is."""
    by_folded = {candidate.casefold(): candidate for candidate in names}
    folded = str(name).casefold()
    near = difflib.get_close_matches(folded, by_folded, n=MOST_NEAR)
    near.sort(key=lambda candidate: sorted(candidate) != sorted(folded))  # swapped letters first
    return [by_folded[candidate] for candidate in near]


def _alike(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that have one in them, or begin with a word that is near it."""
    folded = name.casefold()
    words = {each: each.casefold().replace("_", "-").partition("-")[0] for each in names}
    near = difflib.get_close_matches(folded, set(words.values()))
    return [each for each, word in words.items() if folded in each.casefold() or word in near]


def is_path(name: str | os.PathLike[str]) -> bool:
    """Tell whether what was given can only mean a file: it has a folder, or a file's ending.

    Example:
        >>> is_path("jobs.txt"), is_path("logs/"), is_path("KTH-SP2-1996-2.1-cln")
        (True, True, False)
    """
    text = str(name)
    in_folder = text.endswith(os.sep) or len(Path(os.path.expanduser(text)).parts) > 1
    return in_folder or bool(_ENDING.search(text))


_ENDING = re.compile(r"\w\.[A-Za-z][A-Za-z0-9]{0,9}$")


def no_such_file(path: str | os.PathLike[str]) -> str:
    """Compose the message for a file that is not there, with the nearest name in its folder.

    Example:
        >>> no_such_file("no/such/folder/jobs.txt")
        'no/such/folder/jobs.txt: no such file; there is no folder no'
    """
    given, file = Path(path), Path(os.path.expanduser(path))
    for folder in [*file.parents][::-1]:
        if not os.path.isdir(folder):
            is_there = os.path.lexists(folder)
            why = f"{folder} is no folder" if is_there else f"there is no folder {folder}"
            return f"{path}: no such file; {why}"
    try:
        with os.scandir(file.parent) as entries:
            near = _nearest(file.name, [entry.name for entry in islice(entries, MOST_FILES)])
    except OSError:
        near = []
    return f"{path}: no such file" + (
        f"; did you mean {str(given.with_name(near[0]))!r}?" if near else ""
    )


def unreadable(path: str | os.PathLike[str], error: OSError) -> str:
    """Compose the message for a file that cannot be read."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return no_such_file(path)
    return f"{path}: cannot be read: {error.strerror or ' '.join(str(error).split())}"
