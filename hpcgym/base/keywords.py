"""Keywords said once: the fields of a dataclass, whose docstring explains them as `name: text`.

A function that passes `**keywords` on to the dataclass takes its signature and the documentation of
its keywords from there. So a new field is a new keyword of all such functions.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Container, Iterable
from dataclasses import fields
from typing import Any, TypeVar

from hpcgym.base.errors import unknown_name

T = TypeVar("T")


def texts_of(declared: type[Any]) -> dict[str, str]:
    """Return the lines of a dataclass's docstring that explain each field, by its name."""
    lines = re.finditer(r"^ {8}(\w+): .*\n(?:\n* {9,}.*\n)*", declared.__doc__ or "", re.MULTILINE)
    texts = {match[1]: match[0] for match in lines}
    return {field.name: texts.get(field.name, "") for field in fields(declared)}


def documented(declared: type[Any]) -> Callable[[T], T]:
    """Explain the fields of a dataclass in place of the line KEYWORDS of a docstring."""

    def explain(what: T) -> T:
        text = "".join(texts_of(declared).values())
        what.__doc__ = (what.__doc__ or "").replace("        KEYWORDS\n", text)
        return what

    return explain


def takes(declared: type[Any], but: Container[str] = ()) -> Callable[[T], T]:
    """Show the fields of a dataclass in place of a function's `**keywords`, but for some."""

    def state(function: T) -> T:
        signature = inspect.signature(function)  # type: ignore[arg-type]
        *named, _ = signature.parameters.values()
        further = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=field.type,
            )
            for field in fields(declared)
            if field.name not in but and field.name not in signature.parameters
        ]
        changed = signature.replace(parameters=[*named, *further])
        function.__signature__ = changed  # type: ignore[attr-defined]
        return documented(declared)(function)

    return state


def refuse_unknown(
    what: str, given: Iterable[str], known: Iterable[str], error: type[Exception] = TypeError
) -> None:
    """Raise an error that names the nearest keyword, unless all that are given are known."""
    allowed = list(known)
    for name in given:
        if name not in allowed:
            raise error(unknown_name(what, name, allowed))
