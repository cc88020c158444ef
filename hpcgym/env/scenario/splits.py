"""Which episodes to train, to choose and to judge on, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hpcgym.base.errors import ScenarioError, unknown_name

SPLITS = ("train", "validation", "test")  # names of the parts, in time order
SHARES = (0.6, 0.8)  # where training ends and where validation does, as shares of the episodes
LEAST = 6  # fewest episodes that can be split, so that there are some to test on


def split_of(numbers: Sequence[int], part: str) -> tuple[int, ...]:
    """Return the numbers of the episodes of a part, given all in time order.

    One episode between validation and test is in no part: jobs of a week may run into the next.

    Raises:
        ScenarioError: Fewer episodes than `LEAST`.

    Source: Specification, section 10, "Episodes".
    """
    n = len(numbers)
    if n < LEAST:
        raise ScenarioError(
            f"{n} episodes are too few to split in train, validation and test: at least {LEAST} "
            "are needed; name episodes by their numbers"
        )
    trained, chosen = (int(share * n) for share in SHARES)
    begin, end = {"train": (0, trained), "validation": (trained, chosen), "test": (chosen + 1, n)}[
        part
    ]
    return tuple(numbers[begin:end])


def named_part(text: str, what: str) -> tuple[str | None, int | None]:
    """Return the part that a text names, and how many of its first weeks; None = not stated.

    Raises:
        ScenarioError: The number behind the colon is none, or 0; or a word that is no part.

    Example:
        >>> named_part("test:30", "weeks"), named_part("test", "weeks"), named_part("3-5", "weeks")
        (('test', 30), ('test', None), (None, None))
    """
    part, colon, n_first = str(text).partition(":")
    if part not in SPLITS:
        if part.isalpha():
            raise ScenarioError(f"{what}: {unknown_name('part', part, SPLITS)}; or numbers: 1-3,5")
        return None, None
    if colon and not re.fullmatch(r"0*[1-9]\d{0,9}", n_first):
        raise ScenarioError(
            f'{what} "{text}": behind the colon stands how many, such as "{part}:30", '
            f"got {n_first!r}"
        )
    return part, int(n_first) if colon else None


def with_more(
    numbers: tuple[int, ...],
    n_first: int,
    parts: Mapping[str, Sequence[int]],
    selectable: Sequence[int],
    what: str,
) -> tuple[int, ...]:
    """Return the first numbers of a part, and those that follow where there are more at will.

    Args:
        numbers: Numbers of the part.
        n_first: How many are wanted.
        parts: Numbers of all parts, where the scenario states them.
        selectable: All numbers that there are; a range = weeks that a generator makes.
        what: What messages begin with.

    Raises:
        ScenarioError: There are not so many, or they would run into the next part.
    """
    if n_first <= len(numbers):
        return numbers[:n_first]
    last, n_more = numbers[-1], n_first - len(numbers)
    most = len(numbers)
    if isinstance(selectable, range):
        later = [number for part in parts.values() for number in part if number > last]
        most += min(later, default=selectable.stop) - last - 1
    if n_first > most:
        raise ScenarioError(f"{what}: {n_first} are asked for, and there are at most {most}")
    return (*numbers, *range(last + 1, last + 1 + n_more))
