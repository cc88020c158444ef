"""Small pictures of HTML and SVG that need no scripts: bars, histograms, intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hpcgym.site.markup import Cell, Markup, Rows, hours, is_known, share, table, tag

WIDTH, HEIGHT = 170, 18


def told_class(told: str | None) -> str:
    """Return the class of what is better, worse or neither."""
    return {"better": "better", "worse": "worse"}.get(told or "", "untold")


class IntervalScale:
    """A scale of gains that several rows share; what lies beyond it is clipped with an arrow."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], misfit_h: float | None) -> None:
        self.misfit = misfit_h if misfit_h is not None and is_known(misfit_h) else 0.0
        ends = sorted(abs(end) for row in rows for end in _ends(row))
        usual = ends[int(0.8 * (len(ends) - 1))] if ends else 1.0
        self.most = max(1.3 * self.misfit, 1.15 * usual, 1e-3)

    def x(self, gain: float) -> float:
        """Return where a gain lies, at most at the border."""
        clipped = min(max(gain / self.most, -1.0), 1.0)
        return round(WIDTH / 2 + clipped * (WIDTH / 2 - 7), 1)

    def picture(self, row: Mapping[str, Any]) -> Markup | None:
        """Return a gain and its interval before the band that cannot be told from 0."""
        gain = row["gain_h"]
        if not is_known(gain):
            return None
        band = self.x(self.misfit) - self.x(-self.misfit)
        middle = HEIGHT / 2
        sides: Any = {"x": self.x(-self.misfit), "y": 0, "width": round(band, 1)}
        zero = tag("line", x1=self.x(0), x2=self.x(0), y1=0, y2=HEIGHT, class_="zero")
        parts = [tag("rect", **sides, height=HEIGHT, class_="band"), zero]
        if row.get("interval_h"):
            low, high = (self.x(end) for end in row["interval_h"])
            parts.append(tag("line", x1=low, x2=high, y1=middle, y2=middle, class_="whisker"))
        if abs(gain) <= self.most:
            parts.append(tag("circle", cx=self.x(gain), cy=middle, r=4))
        else:
            tip, back = (2, 9) if gain < 0 else (WIDTH - 2, WIDTH - 9)
            parts.append(tag("path", d=f"M{tip} {middle}L{back} 4V{HEIGHT - 4}Z"))
        looks: Any = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": WIDTH, "height": HEIGHT}
        looks["class_"] = f"interval {told_class(row.get('told'))}"
        return tag("svg", *parts, **looks, aria_hidden="true")

    def cell(self, row: Mapping[str, Any]) -> Cell:
        """Return a cell with the picture, if there is one."""
        return Cell(self.picture(row) or "", row.get("gain_h"), "picture")


def _ends(row: Mapping[str, Any]) -> list[float]:
    """Return the ends of a row's interval, or its gain."""
    if row.get("interval_h"):
        return list(row["interval_h"])
    return [row["gain_h"]] if is_known(row.get("gain_h")) else []


def bar(value: float | None, most: float, class_: str = "") -> Markup | None:
    """Return a horizontal bar."""
    if value is None or not is_known(value) or most <= 0:
        return None
    width = f"width:{min(100 * max(value, 0.0) / most, 100):.1f}%"
    return tag("span", tag("span", style=width), class_=f"bar {class_}".strip(), aria_hidden="true")


def bar_table(
    caption: str, heads: Sequence[str], rows: Sequence[tuple[str, float | None, str, str]]
) -> Markup:
    """Return a table of names, values and bars.

    Args:
        rows: Name, value, the value as text, the class of the bar.
    """
    most = max((value for _, value, _, _ in rows if value is not None), default=0.0)
    cells = []
    for name, value, text, kind in rows:
        drawn = Cell(bar(value, most, kind) or "", value, "wide")
        cells.append([Cell(name, name, "name"), Cell(text, value, "n"), drawn])
    return table(caption, [*heads, ""], [Rows(cells)], sortable=False, class_="scroll bars")


def histogram(caption: str, edges: Sequence[float], shares: Sequence[float]) -> Markup:
    """Return columns for the shares between edges from 0 to 1."""
    most = max(shares, default=0.0) or 1.0
    columns = []
    for low, high, part in zip(edges, edges[1:], shares, strict=False):
        stick = tag("i", style=f"height:{100 * part / most:.1f}%")
        label = tag("small", f"{100 * low:.0f}–{100 * high:.0f}")
        columns.append(tag("li", tag("b", share(part)), tag("span", stick), label))
    return tag("figure", tag("ol", *columns, class_="histogram"), tag("figcaption", caption))


def stacked(name: str, labels: Sequence[str], shares: Sequence[float]) -> Markup:
    """Return one bar of shares that sum to 1."""
    parts, texts = [], []
    for i, (label, part) in enumerate(zip(labels, shares, strict=False)):
        texts.append(f"{label}: {share(part)}")
        shown, width = share(part) if part >= 0.06 else "", f"width:{100 * part:.2f}%"
        parts.append(tag("span", shown, class_=f"k{i}", style=width, title=texts[-1]))
    said = f"{name}: {', '.join(texts)}"
    stack = tag("div", *parts, class_="stack", role="img", aria_label=said)
    return tag("div", tag("span", name, class_="label"), stack, class_="stacked")


def pair(recorded: float | None, simulated: float | None) -> Markup:
    """Return a recorded and a simulated wait, one below the other."""
    known = [value for value in (recorded, simulated) if value is not None]
    most = max(known, default=0.0)
    lines = []
    for kind, value in (("recorded", recorded), ("simulated", simulated)):
        told = (tag("b", hours(value)), tag("span", kind, class_="kind"), bar(value, most, kind))
        lines.append(tag("span", *told, class_="line"))
    return tag("span", *lines, class_="pair")
