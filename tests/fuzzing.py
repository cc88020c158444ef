"""What tests that draw hostile input share: how many cases, and damage of files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

WAYS = ("flip", "set", "cut", "clear", "repeat", "insert")
Change = tuple[str, int, int]


def many(times: int) -> Callable[[Any], Any]:
    """Draw so many times as many cases as the profile says."""
    default = settings.default
    assert default is not None
    return settings(max_examples=times * default.max_examples)


def changes(size: int) -> st.SearchStrategy[list[Change]]:
    """Draw one to a few changes of a file of about `size` bytes."""
    one = st.tuples(st.sampled_from(WAYS), st.integers(0, size), st.integers(0, 255))
    return st.lists(one, min_size=1, max_size=4)


def damaged(content: bytes, changed: list[Change]) -> bytes:
    """Return a file with changes.

    Example:
        >>> damaged(b"hpc", [("set", 0, 65), ("cut", 2, 0)])
        b'Ap'
    """
    for way, place, value in changed:
        place = min(place, max(len(content) - 1, 0))
        head, one, tail = content[:place], content[place : place + 1], content[place + 1 :]
        content = {
            "flip": head + bytes(byte ^ 1 << value % 8 for byte in one) + tail,
            "set": head + bytes([value]) + tail,
            "cut": head,
            "clear": head + bytes(min(len(one + tail), value)) + (one + tail)[value:],
            "repeat": head + (one + tail)[:value] + one + tail,
            "insert": head + bytes([value]) + one + tail,
        }[way]
    return content
