"""Backfilling modes as text: wherever a mode is asked for, an object and its text serve alike.

The text is the mode's name, with what differs from its defaults behind a colon: `"easy"`,
`"depth:k=3"`, `"conservative:compress=shift"`, `"multi-queue:bounds=60/3600,delay=600"`.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from hpcgym.core.modes import (
    Backfill,
    Conservative,
    Depth,
    Easy,
    Gang,
    LookAhead,
    MultiQueue,
    NoBackfill,
    Relaxed,
    Slack,
)
from hpcgym.errors import PolicyError, unknown_name

__all__ = [
    "MODES",
    "Backfill",
    "Conservative",
    "Depth",
    "Easy",
    "Gang",
    "LookAhead",
    "MultiQueue",
    "NoBackfill",
    "Relaxed",
    "Slack",
    "as_backfill",
    "order_refused",
]

MODES: dict[str, type[Backfill]] = {
    mode.NAME: mode
    for mode in (
        NoBackfill,
        Easy,
        Depth,
        Conservative,
        MultiQueue,
        LookAhead,
        Relaxed,
        Slack,
        Gang,
    )
}
"""Every mode by the name its text begins with."""


def as_backfill(mode: object) -> Backfill:
    """Read a backfilling mode.

    Args:
        mode: A mode, or its text: `name` or `name:key=value,key=value`.

    Returns:
        The mode.

    Raises:
        PolicyError: An unknown name, key or value; the message names what is allowed.

    Source:
        House rule: one text form for a mode, everywhere.

    Example:
        >>> as_backfill("depth:k=3"), as_backfill("conservative")
        (Depth(k=3), Conservative(compress='rebuild'))
        >>> as_backfill("conservativ")
        Traceback (most recent call last):
        hpcgym.errors.PolicyError: unknown backfill 'conservativ'; did you mean 'conservative'? ...
    """
    if isinstance(mode, Backfill):
        return mode
    name, colon, rest = mode.partition(":") if isinstance(mode, str) else (mode, "", "")
    if not isinstance(name, str) or name not in MODES:
        raise PolicyError(unknown_name("backfill", name, MODES))
    made = MODES[name]
    given = _parameters_of(name, rest, [one.name for one in fields(made)]) if colon else {}
    missing = [one.name for one in fields(made) if one.default is MISSING and one.name not in given]
    if missing:
        raise PolicyError(f"backfill {name!r} needs {missing[0]}: '{name}:{missing[0]}=...'")
    return made(**given)


def order_refused(mode: Backfill) -> str:
    """Compose the message for a backfill order that a mode has no use for.

    Args:
        mode: A mode that takes no order.

    Returns:
        One sentence: what contradicts what, and which modes take an order.

    Source:
        House rule: a setting that would do nothing is an error.

    Example:
        >>> order_refused(Conservative()).partition("; ")[2]
        'modes that take one: easy, depth, relaxed'
    """
    takers = ", ".join(name for name, made in MODES.items() if made.TAKES_ORDER)
    return f'backfill_order contradicts backfill = "{mode}"; modes that take one: {takers}'


def _parameters_of(name: str, text: str, allowed: list[str]) -> dict[str, Any]:
    """Read what stands behind the colon."""
    given: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if key not in allowed:
            raise PolicyError(unknown_name(f"parameter of backfill {name!r}", key, allowed))
        if not equals or not value or key in given:
            raise PolicyError(
                f"backfill {name!r}: write key=value, each key once; got {text!r}. "
                f"Allowed keys: {', '.join(allowed)}"
            )
        given[key] = _value_of(value)
    return given


def _value_of(text: str) -> int | float | str | tuple[Any, ...]:
    """Read a value: a number where it is one, several where they are parted by "/"."""
    if "/" in text:
        return tuple(_value_of(part) for part in text.split("/"))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
