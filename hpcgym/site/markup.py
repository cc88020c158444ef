"""HTML out of texts that other people wrote: elements that escape, tables, numbers as people read.

`Markup` is text that is HTML already. Every other string that `tag` takes is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

VOID = {"input", "line", "rect", "circle", "path", "br"}
UNKNOWN = "–"


class Markup(str):
    """HTML that needs no escape."""

    __slots__ = ()


def tag(name: str, *children: str | None, **attributes: str | float | bool | None) -> Markup:
    """Return an element; `data_v` is the attribute `data-v`, and one that is None is left out.

    Example:
        >>> tag("td", "<b>", class_="name", data_v=1.5)
        '<td class="name" data-v="1.5">&lt;b&gt;</td>'
    """
    opening = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        shown = "" if value is True else f'="{escape(_attribute(value))}"'
        opening += f" {key.rstrip('_').replace('_', '-')}{shown}"
    if name in VOID:
        return Markup(f"<{opening}>" if name in ("input", "br") else f"<{opening}/>")
    return Markup(f"<{opening}>{join(children)}</{name}>")


def join(children: Iterable[str | None]) -> Markup:
    """Return texts and elements after each other, texts escaped."""
    return Markup("".join(c if isinstance(c, Markup) else escape(c) for c in children if c))


def _attribute(value: str | float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str  # what is read
    value: float | str | None = None  # what the column is sorted by; None is below all others
    class_: str | None = None


@dataclass(frozen=True)
class Rows:
    """Rows of a table that stay together."""

    rows: Sequence[Sequence[Cell]]
    title: str = ""  # a line above them
    classes: Sequence[str] = ()  # one a row: how it looks


def table(
    caption: str,
    heads: Sequence[str],
    groups: Sequence[Rows],
    *,
    sortable: bool = True,
    class_: str = "scroll",
) -> Markup:
    """Return a table in a box that scrolls; the first cell of each row is its head.

    Args:
        caption: What a screen reader says first.
        heads: Of the columns; a second line after a line feed is small.
        class_: Of the box.
    """
    first = next((row for group in groups for row in group.rows), ())
    numeric = [(cell.class_ or "").split(" ")[0] == "n" for cell in first]
    titles = [_head(head, is_n) for head, is_n in zip(heads, numeric, strict=False)]
    bodies = []
    for group in groups:
        lines = [_row(row, _nth(group.classes, i)) for i, row in enumerate(group.rows)]
        if group.title:
            head = tag("th", group.title, colspan=len(heads), scope="rowgroup")
            lines.insert(0, tag("tr", head, class_="group"))
        bodies.append(tag("tbody", *lines))
    whole = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *titles)),
        *bodies,
        class_="sortable" if sortable else None,
    )
    return tag("div", whole, class_=class_, tabindex="0", role="region", aria_label=caption)


def _head(head: str, is_number: bool) -> Markup:
    title, _, second = head.partition("\n")
    small = tag("small", second) if second else None
    return tag("th", title, small, scope="col", class_="n" if is_number else None)


def _row(row: Sequence[Cell], class_: str) -> Markup:
    cells = [
        tag(
            "td" if i else "th",
            cell.text,
            class_=cell.class_,
            scope=None if i else "row",
            data_v=cell.value,
        )
        for i, cell in enumerate(row)
    ]
    return tag("tr", *cells, class_=class_ or None)


def _nth(texts: Sequence[str], i: int) -> str:
    return texts[i] if i < len(texts) else ""


def is_known(value: float | None) -> bool:
    """Tell whether a number is there."""
    return value is not None and math.isfinite(value)


def hours(value: float | None) -> str:
    """Return hours as people say them.

    Example:
        >>> hours(None), hours(0), hours(0.01), hours(0.5), hours(2.345), hours(50)
        ('–', '0', '36 s', '30 min', '2.3 h', '2.1 d')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    size = abs(value)
    minus = "−" if value < 0 else ""
    if size * 3600 < 0.5:
        return "0"
    if size * 60 < 1:
        return f"{minus}{size * 3600:.0f} s"
    if size * 60 < 59.5:
        return f"{minus}{size * 60:.0f} min"
    return f"{minus}{size:.1f} h" if size < 48 else f"{minus}{size / 24:,.1f} d"


def change(hours_less: float | None) -> str:
    """Return by how much less or more jobs wait.

    Example:
        >>> change(0.5), change(-50), change(0.0)
        ('30 min less', '2.1 d more', 'the same')
    """
    if hours_less is None or not math.isfinite(hours_less):
        return UNKNOWN
    if hours(hours_less) == "0":
        return "the same"
    return f"{hours(abs(hours_less))} {'less' if hours_less > 0 else 'more'}"


def share(value: float | None) -> str:
    """Return a share as per cent.

    Example:
        >>> share(0.346), share(0.0041), share(0), share(None)
        ('35%', '0.4%', '0%', '–')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:.1%}" if 0 < abs(value) < 0.0995 else f"{value:.0%}"


def number(value: float | None, digits: int = 0) -> str:
    """Return a number with its thousands apart."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:,.{digits}f}"


def date(seconds: float | None, utc: bool) -> str:
    """Return a day: of the calendar, or of a log without one.

    Example:
        >>> date(0, True), date(100_000, False)
        ('1 January 1970', 'day 2')
    """
    if seconds is None:
        return UNKNOWN
    if not utc:
        return f"day {int(seconds // 86400) + 1:,}"
    return f"{datetime.fromtimestamp(seconds, UTC):%-d %B %Y}"
