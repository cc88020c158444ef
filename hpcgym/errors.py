"""Errors a person can act on: every one says what came, where, and what is allowed."""

import difflib
from collections.abc import Iterable


class HpcgymError(Exception):
    """Base of every error hpcgym raises on purpose."""


class WorkloadError(HpcgymError, ValueError):
    """A job table, an estimate or a machine size that cannot be simulated."""


class PolicyError(HpcgymError, ValueError):
    """An unknown policy, backfilling mode or setting of the scheduler."""


class TraceError(HpcgymError, ValueError):
    """A log that cannot be found, read, verified or cleaned."""


class ScenarioError(HpcgymError, ValueError):
    """A scenario that is unknown, misspelt or contradicts itself."""


class CardError(HpcgymError, ValueError):
    """An agent card that is unknown or cannot be honoured."""


class EvaluationError(HpcgymError, ValueError):
    """An evaluation that compares nothing, or cannot be paired."""


class ActionError(HpcgymError, ValueError):
    """An action outside the action space."""


class OutputError(HpcgymError, OSError):
    """A file that cannot be written, or must not be overwritten."""


LARGEST_SEED = 2**32 - 1
"""The largest that every generator of random numbers takes; numpy's old one takes no more."""


def refuse_seed(seed: int) -> None:
    """Refuse a seed that some generator of random numbers would not take.

    Args:
        seed: What came.

    Raises:
        HpcgymError: It is below 0 or above LARGEST_SEED.

    Source:
        House rule: a long run fails before its work and not after it.
    """
    if not 0 <= seed <= LARGEST_SEED:
        raise HpcgymError(f"a seed must be a whole number from 0 to {LARGEST_SEED}, got {seed}")


def unknown_name(kind: str, name: object, allowed: Iterable[str]) -> str:
    """Compose the message for a name that is not known, with the nearest valid one.

    Args:
        kind: What the name stands for, such as "policy".
        name: What came.
        allowed: Every valid name.

    Returns:
        One sentence: what came, the nearest valid name where one is near, and all that is allowed.

    Source:
        House rule: an error says what came, what is allowed, and the nearest valid name.

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
    return f"unknown {kind} {name!r}{hint} Allowed: {', '.join(names) or '(none)'}"
