"""Synthetic user estimates: how many, which, how often, and never below the run time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.base.errors import TraceError
from hpcgym.trace import tsafrir_estimates
from hpcgym.trace.estimates import (
    HEAD_S,
    HOUR_S,
    estimate_distribution,
    head_rank_shares,
    n_distinct_estimates,
)

LONGEST_S = 60 * HOUR_S


@pytest.mark.parametrize(
    ("n_jobs", "distinct"),
    [
        *((1, 1), (20, 10), (110, 15), (200, 20), (1000, 35), (10_000, 90), (70_000, 340)),
        *((250_000, 565), (500_000, round(0.653566 * 500_000**0.547761))),
    ],
)
def test_number_of_distinct_estimates_follows_the_model(n_jobs, distinct):
    assert n_distinct_estimates(n_jobs) == distinct


def test_number_of_distinct_estimates_never_falls():
    numbers = [n_distinct_estimates(n) for n in [*range(1, 3000), *range(240_000, 260_000, 37)]]
    assert (np.diff(numbers) >= 0).all()


def test_head_ranks_follow_the_exponential_and_sum_to_their_share():
    shares = head_rank_shares()
    assert len(shares) == 20
    assert abs(shares.sum() - 0.89) < 1e-12
    for rank in range(2, 21):
        percent = 14.0491 * np.exp(-0.177531 * rank) + 0.462513
        assert abs(shares[rank - 1] - percent / 100) < 1e-12
    assert shares[0] == shares.max()


def test_tail_ranks_follow_the_power_law_and_share_the_rest():
    values, shares = estimate_distribution(10_000, np.random.default_rng(0), LONGEST_S)
    tail = shares[20:]
    assert abs(tail.sum() - 0.11) < 1e-12
    ranks = np.arange(21, 21 + len(tail))
    assert np.allclose(tail / tail[0], (ranks / 21) ** -2.267)
    assert len(values) == len(set(values.tolist())) == len(shares)
    assert 88 <= len(values) <= 90


def test_head_values_are_the_maximum_and_the_round_ones():
    values = estimate_distribution(10_000, np.random.default_rng(0), LONGEST_S)[0]
    assert values[:20].tolist() == [LONGEST_S, *HEAD_S]
    assert len(HEAD_S) == 19
    assert HEAD_S[:8] == (300, 600, 900, 1200, 1800, 2700, 3600, 7200)


def test_round_values_above_the_maximum_are_replaced_by_others_below():
    values = estimate_distribution(10_000, np.random.default_rng(0), 18 * HOUR_S)[0]
    head = values[:20]
    assert head[0] == 18 * HOUR_S == head.max()
    assert len(set(head.tolist())) == 20
    kept = [value for value in HEAD_S if value < 18 * HOUR_S]
    assert head[1 : 1 + len(kept)].tolist() == kept
    assert all(value % HOUR_S == 0 for value in head[1 + len(kept) :])


def test_tail_values_are_the_models_fractions_of_the_maximum():
    n_distinct = n_distinct_estimates(70_000)
    values = estimate_distribution(70_000, np.random.default_rng(0), LONGEST_S)[0]
    a = 1 + 12.1039 * n_distinct**-0.6026
    x = np.arange(1, n_distinct - 20 + 1) / (n_distinct - 20 + 1)
    expected = set(np.ceil(LONGEST_S * (a - 1) * x / (a - x)).astype(int).tolist())
    assert set(values[20:].tolist()) == expected - set(values[:20].tolist())


def test_shares_of_short_jobs_estimates_are_the_models():
    """With jobs of 1 s every estimate fits, so the shares are those of the model."""
    n_jobs = 10_000
    requests = tsafrir_estimates(np.ones(n_jobs), np.random.default_rng(1), maximum=LONGEST_S)
    shares = head_rank_shares()
    for value, share in zip([LONGEST_S, *HEAD_S], shares, strict=True):
        assert abs(np.sum(requests == value) - share * n_jobs) <= 1


run_times = st.lists(st.integers(0, 200_000), min_size=1, max_size=60)


@given(run_times, st.integers(0, 5), st.none() | st.integers(1, 300_000))
def test_no_job_asks_for_less_than_it_runs(run, seed, maximum):
    requests = tsafrir_estimates(run, np.random.default_rng(seed), maximum=maximum)
    assert (requests >= np.maximum(run, 1)).all()
    longest = max(run)
    limit = max(longest, maximum or 0) if maximum else max(-(-longest // 3600), 1) * 3600
    assert requests.max() <= limit


def test_longest_estimate_is_whole_hours_unless_stated():
    runs = [10, 3601]
    generator = np.random.default_rng
    assert tsafrir_estimates(runs, generator(0)).max() <= 2 * HOUR_S
    assert tsafrir_estimates([3601] * 9, generator(0))[0] == 2 * HOUR_S
    assert tsafrir_estimates([3601] * 9, generator(0), maximum=3600)[0] == 3601
    assert len(tsafrir_estimates([], generator(0))) == 0
    with pytest.raises(TraceError, match="at least 1 s, got 0"):
        tsafrir_estimates(runs, generator(0), maximum=0)


def test_huge_maximum_costs_nothing():
    requests = tsafrir_estimates([5] * 100, np.random.default_rng(0), maximum=738_738_720)
    assert requests.max() == 738_738_720


def test_same_seed_gives_the_same_estimates():
    runs = np.random.default_rng(0).integers(1, 50_000, 2000)
    first, again, other = (tsafrir_estimates(runs, np.random.default_rng(k)) for k in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_estimates_of_equal_jobs_are_handed_out_evenly():
    """Chance decides which of two equal jobs gets the longer estimate."""
    runs = np.full(400, 100)
    totals = sum(tsafrir_estimates(runs, np.random.default_rng(k)) for k in range(200))
    halves = totals[:200].mean() / totals[200:].mean()
    assert abs(halves - 1) < 0.02
