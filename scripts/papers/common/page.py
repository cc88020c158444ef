"""Pages of reruns in Markdown: tables of published beside measured, and what became of claims."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold here"
"""What can become of a claim."""

YARDSTICK = (
    "A claim with cases holds if all of them do, in part if at least half do. A figure holds "
    "within a tenth, in part within a third."
)
"""What `counted` and `near` go by, as pages say it."""


class Claim(NamedTuple):
    """What a paper says, and what became of it.

    Attributes:
        text: The claim, with the published figure.
        where: Where the paper makes it.
        verdict: One of `HOLDS`, `IN_PART`, `FAILS`.
        figure: The measured figure.
    """

    text: str
    where: str
    verdict: str
    figure: str


def counted(text: str, where: str, held: int, of: int, figure: str = "") -> Claim:
    """Judge a claim by how many of its cases hold: all, at least half of them, or fewer.

    Args:
        text: The claim.
        where: Where the paper makes it.
        held: Cases that hold.
        of: Cases there are.
        figure: What to say besides the count.

    Returns:
        The claim with its verdict.

    Source:
        House rule: one yardstick for all claims.

    Example:
        >>> counted("SAF is first", "Table 3", 3, 4).verdict
        'holds in part'
    """
    verdict = HOLDS if held == of else IN_PART if 2 * held >= of else FAILS
    count = f"{held} of {of} cases"
    return Claim(text, where, verdict, f"{count}; {figure}" if figure else count)


def near(text: str, where: str, published: float, measured: float, unit: str = "") -> Claim:
    """Judge a claimed figure: within a tenth of it, within a third of it, or farther.

    Args:
        text: The claim.
        where: Where the paper makes it.
        published: The paper's figure, not 0.
        measured: Ours.
        unit: What follows both figures.

    Returns:
        The claim with its verdict.

    Source:
        House rule: one yardstick for all claims.

    Example:
        >>> near("best gain", "V-A", 83.4, 78.0, " %").verdict
        'holds'
    """
    off = abs(measured / published - 1.0)
    verdict = HOLDS if off <= 0.1 else IN_PART if off <= 1 / 3 else FAILS
    return Claim(text, where, verdict, f"{measured:.4g}{unit} against {published:.4g}{unit}")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lay out a table.

    Args:
        columns: Titles.
        rows: Cells; floats are shown with two decimals, three digits at least.

    Returns:
        The table in Markdown, numbers to the right.

    Source:
        House rule: every figure in a page is printed by a command named beside it.

    Example:
        >>> print(table(["log", "jobs"], [["KTH", 28475], ["CTC", 1.0]]))
        | log | jobs |
        |---|---:|
        | KTH | 28,475 |
        | CTC | 1.00 |
    """
    lines = [list(row) for row in rows]
    is_text = [
        all(isinstance(line[column], str) for line in lines) for column in range(len(columns))
    ]
    rule = ["---" if text else "---:" for text in is_text]
    shown = [columns, *([_shown(cell) for cell in line] for line in lines)]
    body = [f"| {' | '.join(cells)} |" for cells in shown]
    return "\n".join([body[0], f"|{'|'.join(rule)}|", *body[1:]])


def claims_table(readings: Mapping[str, Sequence[Claim]]) -> str:
    """Lay out what became of the same claims under one or several readings.

    Args:
        readings: Name of each reading -> its claims, in the same order.

    Returns:
        The table in Markdown.

    Source:
        House rule: a claim that does not hold is shown like one that does.

    Example:
        >>> print(claims_table({"here": [counted("SAF is first", "Table 3", 4, 4)]}))
        | claim | where | here |
        |---|---|---|
        | SAF is first | Table 3 | **holds**: 4 of 4 cases |
    """
    rows = [
        [same[0].text, same[0].where, *(f"**{claim.verdict}**: {claim.figure}" for claim in same)]
        for same in zip(*readings.values(), strict=True)
    ]
    return table(("claim", "where", *readings), rows)


def prose(text: str) -> str:
    """Take the indentation and the line breaks of source code out of paragraphs.

    Args:
        text: Paragraphs, parted by empty lines.

    Returns:
        The paragraphs, one line each.

    Source:
        House rule: pages are plain text.
    """
    paragraphs = textwrap.dedent(text).strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)


def _shown(cell: object) -> str:
    """Show one cell."""
    if isinstance(cell, float):
        return f"{cell:,.2f}" if abs(cell) < 100 else f"{cell:,.1f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
