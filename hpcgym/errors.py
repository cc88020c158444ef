"""The errors that hpcgym raises on purpose: each says what came, where, and what is allowed."""

import difflib
from collections.abc import Iterable


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


class ActionError(HpcgymError, ValueError):
    """An action outside the action space."""


class OutputError(HpcgymError, OSError):
    """A file that cannot be written, or must not be overwritten."""


LARGEST_SEED = 2**32 - 1
"""The largest seed that numpy's old generator accepts; the other generators accept more."""


def refuse_seed(seed: int) -> None:
    """Raise HpcgymError unless a seed is from 0 to LARGEST_SEED."""
    if not 0 <= seed <= LARGEST_SEED:
        raise HpcgymError(f"a seed must be a whole number from 0 to {LARGEST_SEED}, got {seed}")


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
    return f"unknown {kind} {name!r}{hint} Allowed: {', '.join(names) or '(none)'}"
