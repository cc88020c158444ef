"""Times in a format of the site's own (SLURM_TIME_FORMAT), as the whole column tells it.

Source: Specification, section 14, "Times".
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from hpcgym.trace.accounting.cells import NO_TIME

FIRST_YEAR, LAST_YEAR = 1971, 2099  # years of accounting; those of two digits are of this century

_SECONDS = re.compile(r"\d{1,11}(?:\.\d*)?")
_DATE_ALONE = re.compile(r"(?:19[789]|20\d)\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?(?:\s*([AaPp])\.?[Mm]\.?)?")
_ZONE = re.compile(r"\s*(Z|UTC|GMT|[+-]\d\d:?\d\d)$")
_TOKEN = re.compile(r"[^\W\d_]+|\d+")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL = re.compile(r"(\d{4})(\d\d)(\d\d)[T_ -]?(\d\d)(\d\d)(\d\d)?")
_SHORT = re.compile(r"(\d\d)(\d\d)(\d\d)[T_ -]?(\d\d)(\d\d)(\d\d)")
_ZONES = dict.fromkeys(("Z", "UTC", "GMT"), "+00:00")
_ORDERS = {
    "year, month, day": (0, 1, 2),
    "day, month, year": (2, 1, 0),
    "month, day, year": (2, 0, 1),
}
"""Orders that people write dates in, and the places of year, month and day in each."""


class Spelling(NamedTuple):
    """How times are written: each text as ISO 8601 says it, and the order of their dates."""

    iso: dict[str, str]
    order: str


class _Parts(NamedTuple):
    """What a text says: three numbers of a date in its order, clock, weekday and zone.

    `long_year` and `named_month` are the places of a year of four digits and of a month by name.
    """

    date: tuple[int, ...]
    long_year: int | None
    named_month: int | None
    clock: str
    weekday: int | None
    zone: str


def is_plain(text: str) -> bool:
    """Tell whether a time is read without a look at others: ISO 8601, seconds since 1970, none.

    Example:
        >>> is_plain("2026-02-01 08:00:00"), is_plain("1769932800.0"), is_plain("01/02/2026 08:00")
        (True, True, False)
    """
    if text in NO_TIME:
        return True
    if _SECONDS.fullmatch(text):
        return not _DATE_ALONE.fullmatch(text)
    try:
        return ":" in text and "-" in text and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def spelling_of(texts: Collection[str]) -> Spelling | None:
    """Return how times are written where none is plain; None where some are, or there are none.

    Raises:
        ValueError: They name no year, or their dates can be read in two ways.
    """
    dates = sorted(set(texts) - NO_TIME)
    if not dates or any(map(is_plain, dates)):
        return None
    parts = {text: said for text in dates if (said := _parts(text)) is not None}
    if 2 * len(parts) <= len(dates):
        odd = next(text for text in dates if text not in parts)
        raise ValueError(
            f"times such as {odd!r} do not tell year, month, day and clock in numbers or in English"
        )
    ways = {order: _all_iso(parts, places) for order, places in _ORDERS.items()}
    read = {order: iso for order, iso in ways.items() if iso is not None}
    if not read:
        raise ValueError(f"times such as {dates[0]!r} are no dates in any order")
    if len({tuple(iso.values()) for iso in read.values()}) > 1:
        orders = " or ".join(read)
        raise ValueError(
            f"times such as {dates[0]!r} can be read as {orders}, and no row tells which"
        )
    order, iso = next(iter(read.items()))
    return Spelling(iso, order)


def _all_iso(parts: dict[str, _Parts], places: tuple[int, ...]) -> dict[str, str] | None:
    """Return every text in ISO 8601 where dates are in an order, None where one is no date then."""
    iso = {}
    for text, said in parts.items():
        if said.long_year not in (None, places[0]) or said.named_month not in (None, places[1]):
            return None
        year, month, day = (said.date[position] for position in places)
        year += 2000 if said.long_year is None else 0
        try:
            moment = datetime.fromisoformat(f"{year:04}-{month:02}-{day:02}T{said.clock}")
        except ValueError:
            return None
        if not FIRST_YEAR <= year <= LAST_YEAR or said.weekday not in (None, moment.weekday()):
            return None
        iso[text] = moment.isoformat() + said.zone
    return iso


def _parts(text: str) -> _Parts | None:
    """Take a text apart; None where it lacks a clock, or three parts of a date."""
    if (full := _FULL.fullmatch(text)) and FIRST_YEAR <= int(full[1]) <= LAST_YEAR:
        clock = ":".join(part or "00" for part in full.groups()[3:])
        return _Parts((int(full[1]), int(full[2]), int(full[3])), 0, None, clock, None, "")
    if short := _SHORT.fullmatch(text):
        text = f"{' '.join(short.groups()[:3])} {':'.join(short.groups()[3:])}"
    zone = _ZONE.search(text)
    text = text[: zone.start()] if zone else text
    clocks = list(_CLOCK.finditer(text))
    if len(clocks) != 1:
        return None
    tokens = _TOKEN.findall(f"{text[: clocks[0].start()]} {text[clocks[0].end() :]}")
    days = [day for token in tokens if (day := _named(token, _WEEKDAYS)) is not None]
    tokens = [t for t in tokens if t != "T" and _named(t, _WEEKDAYS) is None]
    months = [_named(token, _MONTHS) for token in tokens]
    tokens = [t if m is None else str(m + 1) for t, m in zip(tokens, months, strict=True)]
    if len(tokens) != 3 or not all(t.isdecimal() and len(t) in (1, 2, 4) for t in tokens):
        return None
    years = [position for position, token in enumerate(tokens) if len(token) == 4]
    named = [position for position, month in enumerate(months) if month is not None]
    if max(len(years), len(named), len(days)) > 1:
        return None
    return _Parts(
        tuple(map(int, tokens)),
        years[0] if years else None,
        named[0] if named else None,
        _clock(clocks[0]),
        days[0] if days else None,
        _ZONES.get(zone[1], zone[1]) if zone else "",
    )


def _clock(match: re.Match[str]) -> str:
    """Return a time of day of 24 hours."""
    hour, half = int(match[1]), (match[4] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour:02}:{match[2]}:{match[3] or '00'}"


def _named(token: str, names: tuple[str, ...]) -> int | None:
    """Return which of some names a word is, in full or its first three letters, in English."""
    folded = token.casefold()
    return names.index(folded[:3]) if folded.isalpha() and folded[:3] in names else None
