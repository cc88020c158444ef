"""Hourly prices of energy: generated, or read from a file of times and prices.

A generated price has a mean of about 1 and a standard deviation of about .4. It is made up: two
peaks a working day, a trough at night, cheaper weekends, days that resemble the day before.

Source: Specification, section 17, "Prices".
"""

from __future__ import annotations

import csv
import math
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import MachineError, no_such_file, unreadable

HOUR_S, DAY_H, WEEK_H = 3600, 24, 168

MILLIONTHS = 1_000_000  # prices are whole numbers of millionths, so that sums of them are exact
LARGEST = 1_000_000  # largest price, either side of 0

PEAKS = (
    (0.55, 8.5, 2.2),
    (0.75, 19.0, 2.6),
    (-0.35, 3.0, 3.0),
    (-0.1, 13.5, 1.8),
    (-0.35, 27.0, 3.0),
)
"""Height, hour and width of what a day's course is the sum of."""

AMPLITUDE = 0.4 / math.sqrt(2.0)  # root mean square of that course

LEVEL, USUAL, LEAST = 1.05, -0.045, 0.05
"""Of a working day before what moves it; what corrects the mean of that; the least price."""

OF_WEEKDAY = (0.0, 0.0, 0.0, 0.0, 0.0, 0.17, 0.22)  # what the level is lower by, Monday first
WEEKEND_COURSE = 0.75  # what a day's course is multiplied by at weekends
OF_ERRORS = 0.85  # how much of the error of a forecast's hour is left in the next one

OF_DAYS, OF_HOURS = (0.7, 0.18), (0.85, 0.06)
"""How much of a day's (an hour's) deviation is left the next day (hour), and what is drawn anew."""


def course_of_a_day() -> NDArray[np.float64]:
    """Return the deviation of each hour of a working day, shape (24,), of mean 0."""
    hour = np.arange(DAY_H)
    course = sum(height * np.exp(-(((hour - at) / width) ** 2)) for height, at, width in PEAKS)
    course = course - course.mean()
    scaled: NDArray[np.float64] = course * AMPLITUDE / np.sqrt((course**2).mean())
    return scaled


@lru_cache(maxsize=4096)
def generated(seed: tuple[int, ...], first_hour: int, n_hours: int) -> NDArray[np.int64]:
    """Draw a price for each of so many hours, in millionths.

    Args:
        seed: Equal seeds draw equal prices; more hours begin as fewer do.
        first_hour: Hour of the week of the first one, 0 = Monday from midnight on.
        n_hours: How many.
    """
    generator, course = np.random.default_rng(seed), course_of_a_day()
    price: NDArray[np.int64] = np.empty(n_hours, dtype=np.int64)
    of_day = of_hour = 0.0
    for ahead in range(n_hours):
        if ahead % DAY_H == 0:
            of_day = OF_DAYS[0] * of_day + OF_DAYS[1] * generator.standard_normal()
        of_hour = OF_HOURS[0] * of_hour + OF_HOURS[1] * generator.standard_normal()
        weekday, hour = divmod((first_hour + ahead) % WEEK_H, DAY_H)
        moves = (1.0 if weekday < 5 else WEEKEND_COURSE) * course[hour]
        level = (LEVEL - OF_WEEKDAY[weekday]) * (1.0 + moves)
        drawn = max(level * math.exp(of_day + of_hour + USUAL), LEAST)
        price[ahead] = round(MILLIONTHS * drawn)
    price.setflags(write=False)
    return price


def errors(seed: tuple[int, ...], noise: float, price: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw by how much a forecast misses each hour's price, for each hour that it is ahead.

    Args:
        seed: Equal seeds draw equal errors.
        noise: Relative standard deviation of a forecast a day ahead.
        price: Prices, in millionths, as what is returned.

    Source: Specification, section 17, "Forecast".
    """
    drawn = np.random.default_rng(seed).standard_normal(len(price))
    deviation = drawn.copy()
    for hour in range(1, len(price)):
        new = math.sqrt(1 - OF_ERRORS**2) * drawn[hour]
        deviation[hour] = OF_ERRORS * deviation[hour - 1] + new
    missed: NDArray[np.int64] = np.rint(noise / DAY_H * price * deviation).astype(np.int64)
    return missed


def read_prices(path: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read times, s, and the prices from then on, in millionths: CSV, a row for each change.

    The first row is `time,price`. Times ascend; they are seconds since 1970 or, for a log without a
    date, of the log's clock, or dates such as 2024-03-01T13:00:00+01:00.

    Raises:
        MachineError: A file that cannot be read, or a row that is no time and price; the message
            names the line.
    """
    if not Path(path).is_file():
        raise MachineError(no_such_file(path))
    return _read(path, Path(path).stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _read(path: str, _changed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read a file, once while it stays as it is."""
    try:
        rows = list(csv.reader(Path(path).read_text(encoding="utf-8").splitlines()))
    except OSError as error:
        raise MachineError(unreadable(path, error)) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise MachineError(f"{path}: no text of rows time,price: {error}") from None
    if not rows or [cell.strip() for cell in rows[0]] != ["time", "price"]:
        raise MachineError(f"{path}: line 1: the first row must be time,price")
    times: list[int] = []
    prices: list[int] = []
    for line, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        try:
            time, price = row
            times.append(_seconds(time.strip()))
            prices.append(round(MILLIONTHS * float(price)))
        except (ValueError, OverflowError):
            raise MachineError(
                f"{path}: line {line}: must be a time and a price, as 1709294400,0.085 or "
                f"2024-03-01T12:00:00Z,0.085; got {','.join(row)!r}"
            ) from None
        if abs(prices[-1]) > MILLIONTHS * LARGEST:
            raise MachineError(f"{path}: line {line}: a price must be within +-{LARGEST}")
        if len(times) > 1 and times[-1] <= times[-2]:
            raise MachineError(f"{path}: line {line}: times must ascend; got {row[0]!r}")
    if not times:
        raise MachineError(f"{path}: no row follows the first, time,price")
    return np.array(times, dtype=np.int64), np.array(prices, dtype=np.int64)


def _seconds(text: str) -> int:
    """Return a time as seconds; a date needs its zone."""
    if text.lstrip("-").isdecimal():
        return int(text)
    date = datetime.fromisoformat(text)
    if date.tzinfo is None:
        raise ValueError(text)
    return int(date.timestamp())


def prices_of(path: str, start: int, n_hours: int) -> NDArray[np.int64]:
    """Return the price in force at the beginning of each of so many hours from an instant on.

    Raises:
        MachineError: As `read_prices`, or a file that begins after the instant.
    """
    times, prices = read_prices(path)
    hours = start + HOUR_S * np.arange(n_hours)
    at = np.searchsorted(times, hours, side="right") - 1
    if at[0] < 0:
        raise MachineError(
            f"{path}: line 2: prices begin at {times[0]} s, and these jobs at {start} s; state "
            "earlier prices"
        )
    return prices[at]
