"""Tables as text that fits a width: no name wraps, no number breaks.

Where a table is too wide, long names are shortened in the middle and the least important columns
go; a last line says which. Prose is wrapped, in the last column only.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console, ConsoleOptions, RenderResult

Kind: TypeAlias = Literal["number", "name", "word", "prose"]
"""What a column holds: a "number" stands to the right, a "name" may be shortened, "prose" may be
wrapped."""

LEAST_NAME = 14  # names are shortened to this before a column goes
LEAST_PROSE = 24  # prose is made narrower, down to this, before a column goes
DEFAULT_WIDTH = 80  # width where there is no terminal and no COLUMNS


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    title: str  # its head; lines are split at line feeds
    cells: Sequence[str]  # texts
    kind: Kind = "number"
    rank: int = 0  # those of the highest rank go first; 0 stays

    @cached_property
    def width(self) -> int:
        """Return the width of the widest line."""
        return max(len(line) for text in (self.title, *self.cells) for line in text.split("\n"))

    @property
    def label(self) -> str:
        r"""Return the title in one line, without the hyphen of a word that goes over two.

        Example:
            >>> Column("utili-\nsation", []).label, Column("pp-\nbsld", []).label
            ('utilisation', 'pp-bsld')
        """
        return re.sub(r"(\w{4,})-\n", r"\1", self.title).replace("-\n", "-").replace("\n", " ")


@dataclass(frozen=True)
class TextTable:
    """A table that rich prints in the width there is."""

    columns: Sequence[Column]  # its columns, all of one length
    title: str = ""  # a line above
    notes: Sequence[str] = ()  # lines below, wrapped
    bold: Sequence[int] = ()  # positions of rows to print bold
    elsewhere: str = "--format csv has all"  # how to see columns that were left out

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines for rich."""
        from rich.text import Text

        for line, style in self.lines(options.max_width):
            yield Text(line, style=style, no_wrap=True, overflow="ignore")

    def __str__(self) -> str:
        return "\n".join(line for line, _ in self.lines(DEFAULT_WIDTH))

    def lines(self, width: int) -> Iterator[tuple[str, str]]:
        """Yield the lines and their styles."""
        columns = [_printable(column) for column in self.columns]
        kept = _fitting(columns, width)
        left_out = [column.label for column in columns if column not in kept]
        kept = _narrowed(kept, width)
        if self.title:
            yield from ((line, "bold") for line in wrapped(printable(self.title), width))
        yield from _body(kept, self.bold, width)
        for note in self.notes:
            yield from ((line, "dim") for line in wrapped(printable(note), width))
        if left_out:
            plural = "s" if len(left_out) > 1 else ""
            what = f"{len(left_out)} column{plural} left out ({', '.join(left_out)})"
            yield from ((line, "dim") for line in wrapped(f"{what}; {self.elsewhere}", width))


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with characters that steer a terminal, or cannot be seen, as escapes.

    `keep` holds those that stay.

    Example:
        >>> printable("gpu\x1b[2J\n\u202e"), printable("zwei Jäger")
        ('gpu\\x1b[2J\\n\\u202e', 'zwei Jäger')
    """
    if text.isprintable():
        return text
    return "".join(
        letter if _is_seen(letter) or letter in keep else ascii(letter)[1:-1] for letter in text
    )


def _is_seen(letter: str) -> bool:
    """Tell whether a character has a shape, or is a space of some width."""
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _printable(column: Column) -> Column:
    """Return a column as it may be printed; prose keeps its paragraphs, titles their lines."""
    keep = "\n" if column.kind == "prose" else ""
    cells = [printable(cell, keep) for cell in column.cells]
    return replace(column, title=printable(column.title, "\n"), cells=cells)


def _fitting(columns: Sequence[Column], width: int) -> Sequence[Column]:
    """Return the columns that remain in a width, the least important of the others left out.

    Of equals, the rightmost goes first.
    """
    kept = list(columns)
    while _least_width(kept) > width:
        lowest = max(column.rank for column in kept)
        if lowest == 0:
            break
        position = max(position for position, column in enumerate(kept) if column.rank == lowest)
        del kept[position]
    return kept


def _least_width(columns: Sequence[Column]) -> int:
    """Return the width of a table whose names and prose are as short as they may be."""
    least = {"name": LEAST_NAME, "prose": LEAST_PROSE}
    widths = [min(column.width, least.get(column.kind, column.width)) for column in columns]
    return sum(widths) + len(columns) - 1


def _width(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + len(columns) - 1


def _narrowed(columns: Sequence[Column], width: int) -> list[Column]:
    """Wrap prose, then shorten names, as far as a width asks for it."""
    made = list(columns)
    for kind, least in (("prose", LEAST_PROSE), ("name", LEAST_NAME)):
        for position, column in enumerate(made):
            over = _width(made) - width
            if column.kind == kind and over > 0:
                made[position] = _cut(column, max(column.width - over, least))
    return made


def _cut(column: Column, width: int) -> Column:
    """Return a column whose cells are narrower; names stay apart from each other."""
    if column.kind == "prose":
        cells = ["\n".join(wrapped(cell, width)) for cell in column.cells]
    else:
        cells = [shortened(cell, width) for cell in column.cells]
        while len(set(cells)) < len(set(column.cells)):
            width += 1
            cells = [shortened(cell, width) for cell in column.cells]
    return Column(column.title, cells, "word", column.rank)


def _body(columns: Sequence[Column], bold: Sequence[int], width: int) -> Iterator[tuple[str, str]]:
    """Yield the lines of heads and rows, and their styles."""
    gap = "  " if _width(columns) + len(columns) - 1 <= width else " "
    heads = [column.title.split("\n") for column in columns]
    depth = max(map(len, heads))
    rows = [[[""] * (depth - len(head)) + head for head in heads]]
    cells = zip(*(column.cells for column in columns), strict=True)
    rows += [[cell.split("\n") for cell in row] for row in cells]
    for number, row in enumerate(rows):
        style = "bold" if number == 0 or number - 1 in bold else ""
        for line in zip_longest(*row, fillvalue=""):
            parts = [
                text.rjust(column.width) if column.kind == "number" else text.ljust(column.width)
                for column, text in zip(columns, line, strict=True)
            ]
            yield gap.join(parts).rstrip(), style


def shortened(text: str, width: int) -> str:
    """Shorten a text in the middle.

    Example:
        >>> shortened("clairvoyant SPF", 10), shortened("SAF", 10)
        ('clairv…SPF', 'SAF')
    """
    if len(text) <= width:
        return text
    end = max((width - 1) // 3, 1)
    return f"{text[: width - 1 - end].rstrip()}…{text[-end:].lstrip()}"


def hung(line: str, width: int) -> list[str]:
    """Break a line of columns; what goes on begins below its last column.

    Example:
        >>> hung("  kept     8  run time 0: start and end", 28)
        ['  kept     8  run time 0:', '              start and end']
    """
    begins = max((gap.end() for gap in re.finditer(r"\S {2,}", line)), default=0)
    first, *rest = wrapped(line[begins:], width - begins) or [""]
    return [line[:begins] + first, *(" " * begins + part for part in rest)]


def wrapped(text: str, width: int) -> list[str]:
    """Break a text at spaces and behind slashes; a longer word stands over the width.

    No-break spaces (U+00A0) stay.

    Example:
        >>> wrapped("see logs/of/KTH-SP2.swf.gz", 12)
        ['see logs/of/', 'KTH-SP2.swf.gz']
    """
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for part in re.findall(r"[^ /]*/+|[^ /]+ *| +", paragraph):
            if line and len((line + part).rstrip()) > width:
                lines.append(line.rstrip())
                line = part.lstrip()
            else:
                line += part
        lines.append(line.rstrip())
    return lines


def fixed(values: Sequence[float | None], decimals: int, *, sign: str = "") -> list[str]:
    """Format the numbers of a column alike: fewer decimals where some are large.

    Empty for None and NaN.
    """
    known = [value for value in values if value is not None and value == value]
    largest = max(map(abs, known), default=0.0)
    how = ".2e" if largest >= 1e9 else ",.0f" if largest >= 10_000 else f".{decimals}f"
    return [
        "" if number is None or number != number else format(number, sign + how)
        for number in values
    ]


def duration(seconds: float) -> str:
    """Format a duration in hours and minutes, or in minutes and seconds where it is short.

    Example:
        >>> duration(390_113), duration(95), duration(7.4), duration(0), duration(float("nan"))
        ('108h22m', '1m35s', '7.4s', '0s', '')
    """
    if seconds != seconds:
        return ""
    if seconds < 60:
        return f"{seconds:.1f}s".replace(".0s", "s")
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02}s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,}h{minutes:02}m"


FORMATS = ("table", "csv", "json", "markdown")
"""How a table is printed: for a person, or for programs with all columns."""


def machine_text(frame: pd.DataFrame, how: str) -> str:
    """Return a frame as "csv", "json" (a list of records) or "markdown".

    Example:
        >>> import pandas as pd
        >>> print(machine_text(pd.DataFrame({"agent": ["SAF"], "ratio": [0.1 + 0.2]}), "markdown"))
        | agent | ratio |
        |---|---|
        | SAF | 0.3 |
    """
    if how == "csv":
        return str(frame.to_csv(**csv_style(frame))).rstrip("\n")
    if how == "json":
        return json_text(
            frame.to_json(orient="records", indent=2, double_precision=15, force_ascii=False)
        )
    heads = [_mark(str(name)) for name in frame.columns]
    cells = frame.astype(object).where(frame.notna(), None).to_numpy(object)
    rows = [heads, heads, *([_mark(cell) for cell in row] for row in cells)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines[1] = "|" + "---|" * len(heads)
    return "\n".join(lines)


def csv_style(frame: pd.DataFrame) -> dict[str, Any]:
    """Return how pandas writes a frame as CSV: with quotes where a carriage return needs them."""
    texts = frame.select_dtypes(exclude=["number", "bool"])
    cells = [*frame.columns, *(cell for _, column in texts.items() for cell in column.unique())]
    is_plain = not any("\r" in str(cell) for cell in cells)  # Python's csv quotes line feeds only
    quoting = csv.QUOTE_MINIMAL if is_plain else csv.QUOTE_NONNUMERIC
    return {"index": False, "lineterminator": "\n", "quoting": quoting}


def _mark(value: Any) -> str:
    """Format a cell for Markdown."""
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return printable(text.replace("|", "\\|").replace("\n", " "))


def json_text(text: str) -> str:
    """Return JSON in which what `printable` escapes is escaped, so that it means the same."""

    def escaped(letter: str) -> str:
        units = letter.encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{units[begin : begin + 4]}" for begin in range(0, len(units), 4))

    return "".join(
        letter if _is_seen(letter) or letter == "\n" else escaped(letter) for letter in text
    )
