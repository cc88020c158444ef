"""Ranges of starts: quantiles against plain loops, coverage by drawing, and what is told apart."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest

from hpcgym.site.live.ranges import FEWEST, Range, backtest, conformal, in_words, n_apart, ranges
from hpcgym.site.live.replay import Forecasts


def plain_conformal(errors, held):
    """Count ranks one by one: as many of n + 1 places lie beyond each end as are allowed there."""
    beyond, ranked = (1 - held) / 2, sorted(errors)
    n = len(ranked)
    low, high = 0.0, math.inf
    for k in range(1, n + 1):
        if k / (n + 1) <= beyond + 1e-12:
            low = ranked[k - 1]
        if 1 - k / (n + 1) <= beyond + 1e-12:
            high = min(high, ranked[k - 1])
    return (low, high) if high < math.inf else (0.0, math.inf)


@pytest.mark.parametrize("n", [1, 8, 9, 10, 18, 19, 20, 57, 200])
@pytest.mark.parametrize("held", [0.5, 0.8, 0.9])
def test_quantiles_are_those_of_a_plain_count(n, held):
    errors = np.random.default_rng(n).lognormal(size=n)
    low, middle, high = conformal(errors, held=held)
    assert (low, high) == plain_conformal(errors.tolist(), held)
    assert middle == np.median(errors)


@pytest.mark.parametrize("n", [9, 29, 100])
def test_exchangeable_errors_are_held_as_often_as_said(n):
    rng, draws = np.random.default_rng(n), 4_000
    errors = rng.lognormal(sigma=2, size=(draws, n + 1))
    ends = np.array([conformal(row[:-1]) for row in errors])
    held = np.mean((ends[:, 0] <= errors[:, -1]) & (errors[:, -1] <= ends[:, 2]))
    upper = math.ceil((n + 1) * 0.9 - 1e-9)
    exact = (2 * upper - n - 1) / (n + 1)
    assert exact >= 0.8 - 1e-9
    assert abs(held - exact) < 4 * math.sqrt(exact * (1 - exact) / draws)


def test_errors_that_say_nothing_new_widen_the_range():
    """Ten queues of ten like errors each: the rank is that of ten, so the range is the widest."""
    errors = np.repeat(np.arange(1.0, 11.0), 10)
    assert conformal(errors, apart=10)[::2] == (1.0, 10.0)
    assert conformal(errors)[::2] == (1.0, 10.0)
    assert conformal(np.arange(1.0, 101.0), apart=9)[::2] == (1.0, 100.0)
    assert conformal(np.arange(1.0, 101.0))[::2] == (10.0, 91.0)


def test_waits_that_do_not_overlap_are_counted_as_a_plain_search_does():
    rng = np.random.default_rng(3)
    for _ in range(40):
        begin = np.sort(rng.integers(0, 30, 7))
        wait = rng.integers(1, 12, 7).astype(float)
        wait[rng.random(7) < 0.2] = math.inf
        finite = [(b, b + w) for b, w in zip(begin.tolist(), wait.tolist(), strict=True)]
        finite = [each for each in finite if each[1] < math.inf]
        most = max(
            size
            for size in range(len(finite) + 1)
            for chosen in combinations(sorted(finite), size)
            if all(a[1] <= b[0] for a, b in pairwise(chosen))
        )
        assert n_apart(begin, wait) == most


def forecasts(expected, came, *, is_new=False, apart=100_000):
    """Return forecasts at instants that far apart, s."""
    n = len(expected)
    instant = np.arange(n, dtype=np.int64) * apart
    columns = (np.array(column, dtype=np.int64) for column in (expected, came))
    return Forecasts(instant, np.full(n, is_new), *columns)


def test_range_is_of_like_forecasts_in_proportion():
    """Of waits of 1,000 s, as many came as 11 x 60 s to 19 x 60 s less 60; others are unlike."""
    came = [60 * k - 60 for k in range(11, 20)]
    known = forecasts([1_140] * 9 + [30_000] * 9, came + [1] * 9)
    near, far, few = ranges(known, [1_140, 2_340, 5], is_new=False)
    assert (near.low, near.middle, near.high, near.usual) == (600, 840, 1_080, 840)
    assert (far.low, far.high) == (1_260, 2_220)
    assert few is None
    assert list(ranges(known, [1_140], is_new=True)) == [None]
    assert FEWEST == 9


def test_range_tells_where_it_is_no_wider_than_the_wait_of_like_jobs():
    assert Range(100, 200, 300, usual=200).tells
    assert not Range(100, 200, 301, usual=200).tells
    assert not Range(100, 200, math.inf, usual=math.inf).tells


def test_what_has_not_started_by_now_is_never():
    known = forecasts([100] * 20, [100] * 16 + [10**6] * 4)
    (of_all,) = ranges(known, [100], is_new=False)
    (by_now,) = ranges(known, [100], is_new=False, now=int(known.instant[-1]) + 1)
    assert (of_all.high, by_now.high) == (round(1_000_060 / 160 * 160 - 60), math.inf)


def test_backtested_ranges_are_of_what_came_before():
    rng = np.random.default_rng(5)
    expected = rng.integers(700, 3_000, 60)
    known = forecasts(expected, expected // 2, apart=10_000)
    before = backtest(known, False, 300_000, 10_000)
    later = known.came.copy()
    later[45:] *= 9
    after = backtest(known._replace(came=later), False, 300_000, 10_000)
    assert len(before.came) == 30
    assert before.has_range.all()
    assert np.array_equal(before.high[:16], after.high[:16])
    assert not np.array_equal(before.high[16:], after.high[16:])
    assert before.holds.mean() > after.holds.mean()


def test_words_say_how_often_ranges_held_or_why_there_are_none():
    short = forecasts([100] * 5, [50] * 5)
    assert in_words(short).startswith("no ranges: the accounting shows 5 past waits")
    expected = np.random.default_rng(6).integers(700, 3_000, 60)
    known = forecasts(expected, expected // 2)
    said, span = in_words(known), 59 * 100_000 + 1
    assert "from 60 queues of the accounting" in said
    found = backtest(known, False, span // 2, span // 20 + 1)
    holds, told = found.holds, found.holds[found.tells]
    assert f"held in the second {holds.mean():.0%} of {len(holds)} waits" in said
    share = f"{len(told) / len(holds):.0%} tell a start, of which {told.mean():.0%} held"
    assert said.endswith(share if len(told) else "waits")


def test_ranges_that_tell_hold_as_often_among_those_that_tell():
    """Short forecasts are too short more often, and it is theirs whose ranges are narrow."""
    rng = np.random.default_rng(2)
    expected = rng.integers(3_600, 21_000, 900)
    came = (expected * rng.lognormal(0.5 * (expected < 7_000), 0.3)).round()
    likely = list(ranges(forecasts(expected, came), expected.tolist(), is_new=False))
    low, high, tells = np.array([(each.low, each.high, each.tells) for each in likely]).T
    holds, tells = (low <= came) & (came <= high), tells == 1
    low, _, high = np.outer(conformal((came + 60) / (expected + 60)), expected + 60) - 60
    assert tells.mean() > 0.2 and holds[tells].mean() > 0.8
    assert ((low <= came) & (came <= high))[tells].mean() < 0.7  # if all were of one class
