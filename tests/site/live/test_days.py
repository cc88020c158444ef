"""Days with and without changes: drawn in pairs, and compared by what jobs waited."""

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from hpcgym.site.live.days import SETTLING_H, is_on, pairs_of_days, partner, watched_days

DAYS = [date(2026, 1, 1) + timedelta(day) for day in range(400)]


def test_of_each_pair_of_days_changes_are_made_on_one():
    for day in DAYS:
        other = partner(day)
        assert partner(other) == day
        assert abs((other - day).days) == 7
        assert is_on(day) != is_on(other)


def test_a_seed_draws_other_days_and_each_weekday_has_both():
    assert [is_on(day) for day in DAYS] != [is_on(day, seed=1) for day in DAYS]
    assert [is_on(day) for day in DAYS] == [is_on(day) for day in DAYS]
    for weekday in range(7):
        share = np.mean([is_on(day) for day in DAYS if day.weekday() == weekday])
        assert 0.4 < share < 0.6


def cycles(day, kind, hours=range(24)):
    """Return entries of a journal, one each hour of a day."""
    begin = datetime(day.year, day.month, day.day)
    return [{"at": int((begin + timedelta(hours=hour)).timestamp()), **kind} for hour in hours]


ON, OFF = {"set": {}}, {"off": True}


def test_a_day_counts_where_cycles_ran_most_of_it_all_alike():
    whole, short, mixed, without = DAYS[:4]
    entries = cycles(whole, ON) + cycles(short, ON, range(19)) + cycles(without, OFF, range(20))
    entries += cycles(mixed, ON, range(12)) + cycles(mixed, OFF, range(12, 24))
    entries += [{"at": entry["at"], "cleared": [1]} for entry in cycles(DAYS[9], {})]
    assert watched_days(entries) == {whole: True, without: False}


def jobs_of(day, waits, hour=12, run_time=100):
    """Return runs of jobs that were submitted in one hour of a day."""
    at = int(datetime(day.year, day.month, day.day, hour).timestamp())
    return pd.DataFrame({"submit_time": at, "wait_time": waits, "run_time": run_time})


def test_pairs_have_means_of_jobs_by_the_day_of_submission():
    on = next(day for day in DAYS if is_on(day))
    off = partner(on)
    lonely = next(day for day in DAYS if is_on(day) and day not in (on, off))
    runs = pd.concat(
        [
            jobs_of(on, [100, 300]),
            jobs_of(on, [9000], hour=SETTLING_H - 1),
            jobs_of(off, [400, 600, 800], hour=23, run_time=2),
            jobs_of(off, [-1]),
            jobs_of(lonely, [5]),
        ]
    )
    entries = [*cycles(on, ON), *cycles(off, OFF), *cycles(lonely, ON)]
    (pair,) = pairs_of_days(runs, entries)
    assert (pair.day_on, pair.day_off, pair.jobs) == (on, off, (2, 3))
    assert pair.wait == (200, 600)
    assert pair.bsld == (pytest.approx(3.0), pytest.approx((402 + 602 + 802) / 30))


def test_days_that_the_journal_has_alike_make_no_pair():
    day = DAYS[0]
    entries = [*cycles(day, ON), *cycles(partner(day), ON)]
    runs = pd.concat([jobs_of(day, [1]), jobs_of(partner(day), [1])])
    assert pairs_of_days(runs, entries) == []
