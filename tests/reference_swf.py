"""The Standard Workload Format in plain Python: its reading, and which rows held processors.

Source: Specification, section 1, "Reading SWF".
"""

from __future__ import annotations

from typing import NamedTuple

DIGITS = "0123456789"
MOST = 2.0**53
GWF = 29  # fields of a line of the Grid Workloads Archive, which is another format


class Read(NamedTuple):
    """Numbers of each good line, numbers of bad lines (from 1), and comment lines as found."""

    records: list[list[float]]
    bad_lines: list[int]
    comments: list[str]


def read(content: bytes) -> Read | None:
    """Read the bytes of an unpacked log; None if it is no text."""
    if content[:3] == bytes([0xEF, 0xBB, 0xBF]):
        content = content[3:]
    if 0 in content:
        return None
    found = Read([], [], [])
    lengths = [len(line.split(";")[0].split()) for line in content.decode("latin-1").split("\n")]
    lengths = [n for n in lengths if n >= 18]
    is_long = bool(lengths) and all(18 < n < 36 and n != GWF for n in lengths)
    for number, line in enumerate(content.decode("latin-1").split("\n"), start=1):
        before = line.split(";")[0]
        if ";" in line and not before.strip():
            found.comments.append(line.rstrip("\r"))
        fields = before.split()[: 18 if is_long else None]
        numbers = [number_of(field) for field in fields]
        good = [one for one in numbers if one is not None and abs(one) < MOST]
        if len(good) == len(fields) == 18:
            found.records.append(good)
        elif fields:
            found.bad_lines.append(number)
    return found


def number_of(text: str) -> float | None:
    """Return a decimal number: sign, digits with at most one point, exponent; None for others."""
    mantissa, _, exponent = text.replace("E", "e").partition("e")
    if "e" in text.replace("E", "e") and not is_whole(exponent):
        return None
    mantissa = mantissa[1:] if mantissa[:1] in ("+", "-") else mantissa
    whole, _, decimals = mantissa.partition(".")
    if not (whole + decimals) or any(sign not in DIGITS for sign in whole + decimals):
        return None
    return float(text)


def is_whole(text: str) -> bool:
    """Tell whether a text is digits, perhaps with a sign."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits != "" and all(sign in DIGITS for sign in digits)


def held(records: list[list[float]]) -> list[bool]:
    """Tell of each record of a log, run times not below 0, whether it held processors."""
    rows = [(record[3], record[4], record[10] == 5) for record in records]
    says_so = any(given > 0 for _, given, _ in rows)
    named = [run for run, given, cancelled in rows if cancelled and given > 0]
    at_once, soon = named.count(0), sum(1 for run in named if 1 <= run <= 60)
    is_request = at_once >= 30 and at_once > soon
    found = []
    for run, given, cancelled in rows:
        if run > 0:
            found.append(True)
        elif given > 0:
            found.append(not (cancelled and is_request))
        else:
            found.append(not says_so and not cancelled)
    return found
