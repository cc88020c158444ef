"""Options that several subcommands have, read by one rule."""

from __future__ import annotations

from hpcgym.errors import HpcgymError

NO_THRESHOLD = "none"
"""What `--threshold` says where no wait is too long."""


def parse_threshold(text: str) -> int | None:
    """Read what `--threshold` says.

    Args:
        text: Whole seconds, or "none".

    Returns:
        The wait beyond which a job goes first, s; None = never.

    Raises:
        HpcgymError: It is neither.

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
