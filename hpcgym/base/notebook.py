"""What notebooks show of an object: its name, a few numbers, a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 600, 80  # of a picture, pixels


def card(title: str, rows: Mapping[str, str], picture: str = "") -> str:
    """Return HTML; texts are escaped, for names come from files.

    Example:
        >>> card("a<b", {"jobs": "8"})
        '<b>a&lt;b</b><table><tr><th>jobs</th><td>8</td></tr></table>'
    """
    lines = (
        f"<tr><th>{escape(name)}</th><td>{escape(said)}</td></tr>" for name, said in rows.items()
    )
    return f"<b>{escape(title)}</b><table>{''.join(lines)}</table>{picture}"


def steps_picture(shares: Sequence[float], label: str) -> str:
    """Return an SVG of shares of 0 to 1, side by side from left to right.

    Example:
        >>> steps_picture([0.5, 1.0], "busy").count("H")
        2
    """
    width = WIDTH / max(len(shares), 1)
    line = "".join(
        f"V{HEIGHT * (1 - share):.1f}H{width * (number + 1):.1f}"
        for number, share in enumerate(shares)
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" style="max-width:100%" role="img">'
        f"<title>{escape(label)}</title>"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#8888"/>'
        f'<path d="M0 {HEIGHT}{line}V{HEIGHT}Z" fill="#4c8cca"/></svg>'
    )
