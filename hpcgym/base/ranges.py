"""Numbers of episodes or nodes as text: "65-100", "1,3,5-7"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpcgym.base.errors import HpcgymError, ScenarioError


def parse_numbers(
    text: str,
    available: Sequence[int],
    *,
    what: str = "weeks",
    error: type[HpcgymError] = ScenarioError,
) -> tuple[int, ...]:
    """Return the numbers that a text such as "65-100" or "1,3,5-7" names, ascending, each once.

    Both ends of a range count. What is available ascends. `what` names the numbered things in
    messages, and `error` is raised.

    Raises:
        HpcgymError: The text is not understood, a range runs backwards, or a number is not
            available.
    """
    if not isinstance(text, str):
        raise error(f'{what} must be a text such as "65-100" or "1,3,5-7", got {text!r}')
    chosen: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,4000})\s*(?:-\s*(\d{1,4000})\s*)?", part)
        if match is None:
            raise error(
                f'{what} "{text}": {part.strip()!r} is neither a number nor a range; '
                'write them as "65-100" or "1,3,5-7"'
            )
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        if last < first:
            raise error(
                f'{what} "{text}": the range {first}-{last} runs backwards; '
                f"did you mean {last}-{first}?"
            )
        if last - first > (available[-1] if available else 0):
            raise error(f'{what} "{text}": allowed are {number_ranges(available)}')
        chosen.update(range(first, last + 1))
    known = available if isinstance(available, range) else set(available)
    missing = sorted(number for number in chosen if number not in known)
    if missing:
        raise error(
            f'{what} "{text}": there is no {number_ranges(missing)}; '
            f"allowed are {number_ranges(available)}"
        )
    return tuple(sorted(chosen))


def number_ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as a short text that `parse_numbers` reads; "(none)" for no numbers.

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
