"""Which episodes to train, to choose and to judge on, by name."""

from __future__ import annotations

from collections.abc import Sequence

from hpcgym.errors import ScenarioError

SPLITS = ("train", "validation", "test")
"""Names of the parts, in time order."""

SHARES = (0.6, 0.8)
"""Where training ends and where validation does, as shares of the episodes."""

LEAST = 6
"""Fewest episodes that can be split, so that there are some to test on."""


def split_of(numbers: Sequence[int], part: str) -> tuple[int, ...]:
    """Return the numbers of the episodes of a part, given all in time order.

    One episode between validation and test is in no part: jobs of a week may run into the next.

    Raises:
        ScenarioError: Fewer episodes than `LEAST`.

    Source: Specification, section 10, "Episodes".

    Example:
        >>> [split_of(range(1, 18), part) for part in SPLITS]
        [(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), (11, 12, 13), (15, 16, 17)]
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
