"""Read single values of accounting: times on a local clock, durations, amounts, ids of jobs.

A function that cannot read a text raises a ValueError.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np

from hpcgym.base.errors import TraceError, unknown_name
from hpcgym.core.columns import IntArray
from hpcgym.trace.accounting.rows import PARTITION_LIMIT, UNKNOWN, read_distinct

EMPTY = frozenset({"nan", "NaN", "NaT", "<NA>", "NA", "null", "NULL"})
"""What tables have in place of an empty cell, by what wrote them."""

NO_TIME = EMPTY | {"", "Unknown", "None", "N/A", "INVALID", "0"}
"""What stands where a time is not known, or never came."""

MOST = 10**12  # counts, durations and sizes in MB stay below this

NO_LIMIT = frozenset({"UNLIMITED", "Partition_Limit", "INFINITE"})

_EPOCH = datetime(1970, 1, 1)
_QUARTER_S = 900
_TOO_LONG = 32
_ISO_LENGTH = len("2026-01-01T00:00:00")
_DURATION = re.compile(
    r"(?:(\d{1,9})(?:-| days?,? ))?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?(?:\.\d+)?"
    r"|(\d{1,9}) days?"
)
_SECONDS = re.compile(r"(\d{1,11})(?:\.\d*)?")
_WHOLE = re.compile(r"(\d+)\.0*")
_AMOUNT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([KMGTPE]?)([nc]?)", re.IGNORECASE)
_THOUSANDS = {"K": 1_000, "M": 1_000_000}
_IN_MB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3, "E": 1024.0**4}
_ARRAY_PART = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


class Clock:
    """Local times of a zone as seconds since 1970; None: the zone of this machine.

    Raises:
        TraceError: No such zone is known.
    """

    def __init__(self, zone: str | None = None) -> None:
        try:
            self._zone = None if zone is None else zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            known = sorted(zoneinfo.available_timezones())
            message = unknown_name("time zone", zone, known).partition(" Allowed:")[0]
            raise TraceError(f"{message} Allowed: names such as Europe/Berlin or UTC") from None
        here = datetime.now().astimezone().tzname()
        self.name = f"this machine's ({here})" if zone is None else zone
        self._quarters: dict[int, tuple[int, int]] = {}
        self.used = False

    def read(self, text: str) -> tuple[int, int]:
        """Return a time, and by how much later it is if the clock had been put back before it.

        Digits alone are seconds since 1970 already.
        """
        if text in NO_TIME:
            return UNKNOWN, 0
        if text.isascii() and (since := _SECONDS.fullmatch(text)):
            return int(since[1]), 0
        if ":" not in text:
            raise ValueError(text)
        moment = datetime.fromisoformat(text)
        if moment.year <= _EPOCH.year:
            raise ValueError(text)
        if moment.tzinfo is not None:
            return int(moment.timestamp()), 0
        self.used = True
        local = (moment - _EPOCH) // timedelta(seconds=1)
        quarter = local // _QUARTER_S
        if quarter not in self._quarters:
            begin = _EPOCH + timedelta(seconds=quarter * _QUARTER_S)
            folds = (begin.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1))
            early, late = (int(fold.timestamp()) for fold in folds)
            self._quarters[quarter] = early - quarter * _QUARTER_S, max(late - early, 0)
        shift, later = self._quarters[quarter]
        return local + shift, later

    def read_all(self, texts: Sequence[str]) -> tuple[IntArray, IntArray, set[str]]:
        """Return the times of a column, by how much later each may be, and the texts refused."""
        if all((len(text) == _ISO_LENGTH and text[10] == "T") or text in NO_TIME for text in texts):
            with suppress(ValueError):
                return *self._read_iso(texts), set()
        values, refused = read_distinct(texts, self.read)
        known = [(UNKNOWN, 0) if value is None else value for value in values]
        moments = np.array(known, dtype=np.int64).reshape(-1, 2)
        return moments[:, 0], moments[:, 1], refused

    def _read_iso(self, texts: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Read local times, all in one form."""
        stated = np.array([len(text) == _ISO_LENGTH for text in texts], dtype=bool)
        local = np.array([text for text in texts if len(text) == _ISO_LENGTH], dtype="M8[s]")
        if (local < np.datetime64("1971")).any():
            raise ValueError("before all accounting")
        quarters, places = np.unique(local.astype(np.int64) // _QUARTER_S, return_inverse=True)
        begins = [(_EPOCH + timedelta(seconds=int(quarter) * _QUARTER_S)) for quarter in quarters]
        shifts = np.array([self.read(begin.isoformat()) for begin in begins], dtype=np.int64)
        shifts = shifts.reshape(-1, 2)
        times, late = np.full(len(texts), UNKNOWN), np.zeros(len(texts), dtype=np.int64)
        times[stated] = (shifts[:, 0] - quarters * _QUARTER_S)[places] + local.astype(np.int64)
        late[stated] = shifts[:, 1][places]
        return times, late


@lru_cache(maxsize=100_000)
def seconds(text: str) -> int:
    """Read [D-]HH:MM:SS, HH:MM with days, or MM:SS; "" is unknown. Python writes days as a word.

    Example:
        >>> seconds("1-02:03:04"), seconds("02:03"), seconds("1 days 02:03:04"), seconds("")
        (93784, 123, 93784, -1)
    """
    if text in ("", "INVALID"):
        return UNKNOWN
    match = _DURATION.fullmatch(text)
    if match is None or len(text) > _TOO_LONG or text.partition(".")[0].isdecimal():
        raise ValueError(text)  # a number alone may be seconds or minutes
    days, first, second, third, days_alone = (int(part or 0) for part in match.groups())
    if match[5] is not None:
        return days_alone * 86_400
    if match[1] is not None or match[4] is not None:
        return days * 86_400 + first * 3600 + second * 60 + third
    return first * 60 + second


def limit_of(text: str) -> int:
    """Read a time limit, which may be the partition's."""
    return PARTITION_LIMIT if text in NO_LIMIT else seconds(text)


def limit_of_minutes(text: str) -> int:
    """Read a time limit in minutes."""
    if text in NO_LIMIT:
        return PARTITION_LIMIT
    return UNKNOWN if text == "" else whole(text) * 60


def whole(text: str) -> int:
    """Read a whole number, which may end in K or M for thousands or millions; "" is 0."""
    if text == "":
        return 0
    if text.isascii() and text.isdigit():
        number = int(text)
    elif text.isascii() and (decimal := _WHOLE.fullmatch(text)):  # as pandas writes counts
        number = int(decimal[1])
    else:
        amount = _AMOUNT.fullmatch(text)
        if amount is None or amount[2].upper() not in _THOUSANDS:
            raise ValueError(text)
        number = int(float(amount[1]) * _THOUSANDS[amount[2].upper()])
    if number >= MOST:
        raise ValueError(text)
    return number


@lru_cache(maxsize=100_000)
def megabytes(text: str) -> tuple[float, str]:
    """Read an amount of memory in MB, and "n" of each node, "c" of each cpu, "" in all.

    Example:
        >>> megabytes("62.50G"), megabytes("2000Mc"), megabytes("100000M")
        ((64000.0, ''), (2000.0, 'c'), (100000.0, ''))
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(text)
    amount = float(match[1]) * _IN_MB[match[2].upper() or "M"]
    if amount >= MOST:
        raise ValueError(text)
    return amount, match[3]


CPU, NODE, GPU, MEM = range(4)  # places in what `resources` returns


@lru_cache(maxsize=100_000)
def resources(text: str) -> tuple[float, float, float, float]:
    """Read a list of trackable resources: cpus, nodes, GPUs and MB, each 0 where not named.

    Example:
        >>> resources("billing=8,cpu=8,gres/gpu:a100=2,mem=62.50G,node=1")
        (8.0, 1.0, 2.0, 64000.0)
    """
    amounts: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, sign, value = part.partition("=")
        if not sign:
            raise ValueError(text)
        amounts[key] = value
    of_types = [value for key, value in amounts.items() if key.startswith("gres/gpu:")]
    gpus = [amounts["gres/gpu"]] if "gres/gpu" in amounts else of_types
    return (
        float(whole(amounts.get("cpu", ""))),
        float(whole(amounts.get("node", ""))),
        float(sum(map(whole, gpus))),
        megabytes(amounts["mem"])[0] if "mem" in amounts else 0.0,
    )


def tasks_in(text: str) -> int:
    """Count the tasks of an array's range, such as "5-9%2" or "0-20:4,31"; 1 if it is cut short.

    Example:
        >>> tasks_in("5-9%2"), tasks_in("0-20:4,31"), tasks_in("1,3,...")
        (5, 7, 1)
    """
    count = 0
    for part in text.partition("%")[0].split(","):
        match = _ARRAY_PART.fullmatch(part)
        if match is None:
            return 1
        first, last, step = (int(bound or 0) for bound in match.groups())
        count += max(0, (max(last, first) - first) // max(step, 1) + 1)
    return count
