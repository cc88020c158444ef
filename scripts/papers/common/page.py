"""Pages of reruns in Markdown: published numbers beside ours, and verdicts on claims."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from papers.common.claims import HOLDS, Claim


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lay out a table in Markdown, columns of numbers aligned right.

    Floats have two decimals below 100 and one from there on; thousands are separated.

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
    """Lay out the verdicts on the same claims, in the same order, by name of the reading.

    A claim that holds needs no count of its cases.

    Example:
        >>> from papers.common.claims import counted
        >>> print(claims_table({"here": [counted("SAF is first", "Table 3", 4, 4)]}))
        | claim | where | here |
        |---|---|---|
        | SAF is first | Table 3 | **holds** |
    """
    rows = [
        [same[0].text, same[0].where, *map(_verdict, same)]
        for same in zip(*readings.values(), strict=True)
    ]
    return table(("claim", "where", *readings), rows)


def prose(text: str) -> str:
    """Remove the indentation and the line breaks of source code, but for lists and tables."""
    paragraphs = textwrap.dedent(text).strip().split("\n\n")
    return "\n\n".join(
        re.sub(r"\n(?![|]|- )", " ", re.sub(r"\n +", " ", paragraph)) for paragraph in paragraphs
    )


def document(sections: Iterable[str]) -> str:
    """Join headings, paragraphs and tables into a page."""
    return "\n\n".join(sections) + "\n"


def _verdict(claim: Claim) -> str:
    """Show the verdict on a claim, and what was measured."""
    holds = claim.verdict == HOLDS
    finding = re.sub(r"^(\d+) of \1(; |$)", "", claim.finding) if holds else claim.finding
    return f"**{claim.verdict}**: {finding}" if finding else f"**{claim.verdict}**"


def _shown(cell: object) -> str:
    """Show one cell."""
    if isinstance(cell, float):
        return f"{cell:,.2f}" if abs(cell) < 100 else f"{cell:,.1f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
