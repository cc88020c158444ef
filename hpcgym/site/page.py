"""A report as one HTML file that needs no network, and no scripts for its tables."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.resources import files
from string import Template
from typing import Any

from hpcgym.site.first_screen import first_screen
from hpcgym.site.markup import tag
from hpcgym.site.sections import sections

UNSAFE = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})
"""What could end the element that holds JSON, or a line of it."""

DECIMALS = 4

SCRIPTS = ("base.js", "tables.js", "heat.js", "canvas.js", "queue.js", "day.js", "start.js")
"""In the order in which they need each other."""


def page_html(report: Mapping[str, Any]) -> str:
    """Return a report of the schema "hpcgym-report-1" as a page, less the parts that it lacks."""
    shown = sections(report)
    links = [tag("a", section.title, href=f"#{section.id}") for section in shown]
    kept = {
        "title": tag("title", f"{report['title']}: hpcgym report"),
        "brand": tag("a", str(report["title"]), href="#top", class_="brand"),
        "links": "".join(links),
        "first": first_screen(report),
        "sections": "\n".join(section.html for section in shown),
        "css": _part("page.css"),
        "js": "\n".join(map(_part, SCRIPTS)),
        "data": _embedded(report),
    }
    return Template(_part("page.html")).substitute(kept)


def _part(name: str) -> str:
    return files("hpcgym.site").joinpath("page", name).read_text(encoding="utf-8")


def _embedded(report: Mapping[str, Any]) -> str:
    """Return a report as JSON that may stand within an element of HTML."""
    text = json.dumps(_rounded(report), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(UNSAFE)


def _rounded(value: Any) -> Any:
    """Return values of JSON with fewer decimals; what is no number is null."""
    if isinstance(value, Mapping):
        return {str(key): _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    if isinstance(value, float):
        return round(value, DECIMALS) if math.isfinite(value) else None
    return value
