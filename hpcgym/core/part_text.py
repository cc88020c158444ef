"""Parts of the scheduler as text: a name, then a colon and the parameters by key.

Parts are dataclasses whose fields are the parameters: backfilling modes, events and policies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

from hpcgym.base.errors import PolicyError, unknown_name


def read_part(what: str, text: object, shelves: Sequence[Mapping[str, Any]]) -> Any:
    """Read a part of the scheduler, such as a backfilling mode, from its name and parameters.

    Raises:
        PolicyError: An unknown name, key or value; the message names what is allowed.
    """
    name, colon, rest = text.partition(":") if isinstance(text, str) else ("", "", "")
    shelf = next((shelf for shelf in shelves if name in shelf), None)
    if shelf is None:
        known = [key for each in shelves for key in each]
        raise PolicyError(unknown_name(what, name or text, known))
    made = shelf[name]
    if getattr(made, "READS_ONLY", False) or (rest and "=" not in rest and hasattr(made, "read")):
        return made.read(rest)
    keys = {key_of(each): each.type for each in fields(made) if each.name != "trial"}
    return make_part(what, made, _parameters_of(f"{what} {name!r}", rest, keys) if colon else {})


def make_part(what: str, kind: type[Any], given: dict[str, Any]) -> Any:
    """Make a part of a class with parameters."""
    for each in fields(kind):
        key = key_of(each)
        if each.default is MISSING and key not in given:
            raise PolicyError(f"{what} {kind.NAME!r} needs {key}: '{kind.NAME}:{key}=...'")
    names = {key_of(each): each.name for each in fields(kind)}
    return kind(**{names[key]: value for key, value in given.items() if key in names})


def key_of(field: Field[Any]) -> str:
    """Return the key of a parameter in texts: its name, without the "_" behind a word of Python."""
    return field.name.removesuffix("_")


def _parameters_of(part: str, text: str, allowed: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for stated in text.split(","):
        key, equals, value = stated.partition("=")
        if key not in allowed:
            raise PolicyError(unknown_name(f"parameter of {part}", key, list(allowed)))
        if not equals or not value or key in given:
            raise PolicyError(
                f"{part}: write key=value, each key once; got {text!r}. "
                f"Allowed keys: {', '.join(allowed)}"
            )
        given[key] = value if allowed[key] in ("str", str) else _value_of(value)
    return given


def _value_of(text: str) -> int | float | str | tuple[Any, ...]:
    """Read a value: a number where it is one, several where they are parted by "/"."""
    if "/" in text:
        return tuple(_value_of(part) for part in text.split("/"))
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        return text if math.isinf(value) and "inf" not in text.casefold() else value
    return text


def text_of_part(part: Any) -> str:
    """Return the text of a part of the scheduler, which `read_part` reads back."""
    stated = [
        f"{key_of(parameter)}={_text_of(getattr(part, parameter.name))}"
        for parameter in fields(part)
        if parameter.name != "trial" and getattr(part, parameter.name) != parameter.default
    ]
    return ":".join([part.NAME, ",".join(stated)] if stated else [part.NAME])


def _text_of(value: object) -> str:
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)
