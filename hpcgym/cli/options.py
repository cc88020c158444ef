"""Options that several subcommands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.machine import Machine

MachineFile = Annotated[
    Path | None,
    typer.Option("--machine", metavar="TOML", help="A machine of nodes, in place of --processors."),
]
Placement = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="With --machine: which nodes a job gets: lowest, tightest, fewest-groups, contiguous, "
        "local, best-effort-contiguous, best-effort-local.",
    ),
]
RequestedMemory = Annotated[
    bool,
    typer.Option(
        "--requested-memory",
        help="With --machine: jobs of an SWF log need the memory of its field 10.",
    ),
]

NO_THRESHOLD = "none"
"""Value of `--threshold` where no job goes first for its wait."""


def read_machine(path: Path | None, placement: str) -> Machine | None:
    """Return the machine of `--machine`, or None; refuse a placement without one.

    Raises:
        HpcgymError: The file has an error, or `--placement` is given without it.
    """
    if path is None and placement != "lowest":
        raise HpcgymError("--placement goes with --machine only; counted processors have no place")
    if path is None:
        return None
    from hpcgym.machine import Machine

    return Machine.from_toml(path)


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
