"""Days with and without: which are drawn, and what their jobs waited.

A day is paired with the same day of the next week. Of each pair a seed draws the day with changes,
so that neither a weekday nor a trend is always on one side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from hashlib import sha256
from typing import Any

import pandas as pd

from hpcgym.core.metrics import bsld

SETTLING_H = 6
"""Hours after midnight whose jobs are left out: the queue is still that of the day before."""

WATCHED_H = 20  # hours of a day in which a cycle must have run, for the day to count


@dataclass(frozen=True)
class PairOfDays:
    """A day with changes and one without, a week apart; means over jobs by submission."""

    day_on: date
    day_off: date
    wait: tuple[float, float]  # mean waits with and without, s
    bsld: tuple[float, float]  # mean bounded slowdowns likewise
    jobs: tuple[int, int]  # how many jobs each has


def partner(day: date) -> date:
    """Return the day that a day is paired with: a week later, or a week before."""
    return day + timedelta(7 if _is_first(day) else -7)


def is_on(day: date, seed: int = 0) -> bool:
    """Return whether changes are made on a day; of each pair of days, on one."""
    first = day if _is_first(day) else partner(day)
    drawn = sha256(f"{seed} {first.isoformat()}".encode()).digest()[0] & 1
    return bool(drawn) == (first == day)


def _is_first(day: date) -> bool:
    return day.toordinal() // 7 % 2 == 0


def watched_days(entries: Iterable[Mapping[str, Any]]) -> dict[date, bool]:
    """Return the days that a journal accounts for, and whether changes were made on each.

    A day counts where cycles ran in `WATCHED_H` of its hours or more, all with or all without.
    """
    hours: dict[date, dict[int, set[bool]]] = {}
    for entry in entries:
        if "set" in entry or "off" in entry:
            when = datetime.fromtimestamp(entry["at"])
            hours.setdefault(when.date(), {}).setdefault(when.hour, set()).add("set" in entry)
    kinds = {day: set().union(*of_day.values()) for day, of_day in hours.items()}
    return {
        day: True in kinds[day]
        for day, of_day in hours.items()
        if len(of_day) >= WATCHED_H and len(kinds[day]) == 1
    }


def pairs_of_days(runs: pd.DataFrame, entries: Iterable[Mapping[str, Any]]) -> list[PairOfDays]:
    """Return the pairs of days that the journal and the accounting both have.

    Jobs count on the day of their submission, also where they start on the next one. Those that
    were submitted in the first `SETTLING_H` hours are left out.

    Args:
        runs: A row for each run of a job: `submit_time`, Unix s, `wait_time` and `run_time`.
        entries: Those of the journal.
    """
    began = runs[(runs["wait_time"] >= 0) & (runs["run_time"] >= 0)]
    when = [datetime.fromtimestamp(at) for at in began["submit_time"]]
    table = pd.DataFrame(
        {
            "day": [each.date() for each in when],
            "hour": [each.hour for each in when],
            "wait": began["wait_time"].to_numpy(dtype=float),
            "bsld": bsld(began["wait_time"].to_numpy(), began["run_time"].to_numpy()),
        }
    )
    settled = table[table["hour"] >= SETTLING_H]
    by_day = dict(iter(settled.groupby("day")))
    watched = watched_days(entries)
    pairs = []
    for day in sorted(day for day, with_changes in watched.items() if with_changes):
        other = partner(day)
        if watched.get(other, True) or day not in by_day or other not in by_day:
            continue
        both = by_day[day], by_day[other]
        wait, slowdown = (
            (float(both[0][key].mean()), float(both[1][key].mean())) for key in ("wait", "bsld")
        )
        pairs.append(PairOfDays(day, other, wait, slowdown, (len(both[0]), len(both[1]))))
    return pairs
