"""The errors that hpcgym raises on purpose: each says what came, where, and what is allowed."""

import difflib
import math
import numbers
import re
import textwrap
from collections.abc import Collection, Iterable

RENAMED = {
    "BANDIT-EPSILON-GREEDY": "BANDIT-EPSILON",
    "CAPPED-COST-BENEFIT-OPEN": "CAP-OPEN",
    "CLAIRVOYANT SAF": "KNOWS-SAF",
    "CLAIRVOYANT SMITH": "KNOWS-SMITH",
    "CLAIRVOYANT SPF": "KNOWS-SPF",
    "H-TRIAL": "URGENT-TRIAL",
    "H-TRIAL-YOUNG": "URGENT-YOUNG",
    "MULTI-QUEUE-ADAPTIVE-DELAY": "MULTI-DELAY",
    "PPO-CONTROLS-OPEN": "PPO-OPEN",
    "PPO-URGENT-OPEN": "PPO-ORDER-OPEN",
    "REG-TRIAL": "SMITH-TRIAL",
    "SAF-REGRESSION": "SAF-REG",
    "SMITH-CAPPED": "SMITH-CAP",
    "SMITH-COST-BENEFIT": "SMITH-BENEFIT",
    "SMITH-REGRESSION": "SMITH-REG",
    "SPF-REGRESSION": "SPF-REG",
    "TUNED-CONTROLS-OPEN": "TUNED-OPEN",
    "URGENT-CAPPED": "URGENT-CAP",
    "URGENT-CAPPED-COST-BENEFIT": "URGENT-BENEFIT",
    "URGENT-CAPPED-COST-BENEFIT-OPEN": "URGENT-OPEN",
}
"""Names that agents, policies, baselines and trainers once had, and those they have now."""


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

MOST_NAMED = 200
"""Valid names that a message lists."""

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
        hpcgym.errors.HpcgymError: n_slots must be a whole number from 1 to 8, got 0
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
        hpcgym.errors.HpcgymError: policy must be a name, got 5
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


def unknown_name(kind: str, name: object, allowed: Iterable[str]) -> str:
    """Compose the message for an unknown name, with the nearest valid one.

    Example:
        >>> unknown_name("policy", "SFA", ["FCFS", "SAF"])
        "unknown policy 'SFA'; did you mean 'SAF'? Allowed: FCFS, SAF"
    """
    names = list(allowed)
    by_folded = {candidate.casefold(): candidate for candidate in names}
    folded = str(name).casefold()
    near = difflib.get_close_matches(folded, by_folded, n=5)
    near.sort(key=lambda candidate: sorted(candidate) != sorted(folded))  # swapped letters first
    hint = f"; did you mean {by_folded[near[0]]!r}?" if near else "."
    if renamed := RENAMED.get(str(name).upper()):
        hint = f"; it is called {renamed} now."
    shown = names if len(names) <= MOST_NAMED else [*names[:MOST_NAMED], f"and {len(names)} in all"]
    return f"unknown {kind} {name!r}{hint} Allowed: {', '.join(shown) or '(none)'}"
