"""Choosing episodes by number: "65-100", "1,3,5-7"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpcgym.errors import ScenarioError


def parse_numbers(text: str, available: Sequence[int], *, what: str = "weeks") -> tuple[int, ...]:
    """Read a selection of episodes, such as "65-100" or "1,3,5-7".

    Both ends of a range count. A number named twice counts once; the answer is ascending, since
    episodes are always taken in time order.

    Args:
        text: Numbers and ranges, parted by commas.
        available: Every number there is.
        what: What is numbered, for the message.

    Returns:
        The numbers chosen.

    Raises:
        ScenarioError: The text is not understood, a range runs backwards, or a number does not
            exist.

    Source:
        House rule: a selection that cannot be met is an error, never a shorter selection.

    Example:
        >>> parse_numbers("1,3,5-7", range(1, 11))
        (1, 3, 5, 6, 7)
    """
    chosen: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None:
            raise ScenarioError(
                f'{what} "{text}": {part.strip()!r} is neither a number nor a range; '
                'write them as "65-100" or "1,3,5-7"'
            )
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        if last < first:
            raise ScenarioError(
                f'{what} "{text}": the range {first}-{last} runs backwards; '
                f"did you mean {last}-{first}?"
            )
        if last - first > max(available, default=0):
            raise ScenarioError(f'{what} "{text}": allowed are {number_ranges(available)}')
        chosen.update(range(first, last + 1))
    missing = sorted(chosen - set(available))
    if missing:
        raise ScenarioError(
            f'{what} "{text}": there is no {number_ranges(missing)}; '
            f"allowed are {number_ranges(available)}"
        )
    return tuple(sorted(chosen))


def number_ranges(numbers: Sequence[int]) -> str:
    """Write ascending numbers briefly, as `parse_numbers` reads them.

    Args:
        numbers: Ascending whole numbers.

    Returns:
        Text such as "1-3,5"; "(none)" for no numbers.

    Source:
        House rule: errors say what is allowed, on one line.

    Example:
        >>> number_ranges([1, 2, 3, 5])
        '1-3,5'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs) or "(none)"
