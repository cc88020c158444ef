"""Options that several subcommands have."""

from __future__ import annotations

from hpcgym.errors import HpcgymError

NO_THRESHOLD = "none"
"""Value of `--threshold` where no job goes first for its wait."""


def parse_threshold(text: str) -> int | None:
    """Return the starvation threshold of `--threshold`, s; None = no threshold.

    Raises:
        HpcgymError: It is neither whole seconds nor "none".

    Example:
        >>> parse_threshold("0"), parse_threshold("200000"), parse_threshold("none")
        (0, 200000, None)
    """
    if text.strip().casefold() == NO_THRESHOLD:
        return None
    if not text.strip().isdecimal():
        raise HpcgymError(
            f"--threshold {text!r}: allowed are whole seconds, at least 0, and {NO_THRESHOLD!r}"
        )
    return int(text)
