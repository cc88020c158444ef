"""Paired ratios and their bootstrap intervals."""

import numpy as np
import pytest

from hpcgym.errors import EvaluationError
from hpcgym.evaluation.statistics import (
    draw_weeks,
    log_ratio_over_logs,
    mean_log_ratio,
    ratio_of_sums,
    ratio_over_logs,
)


def test_every_sample_draws_as_many_weeks_as_there_are() -> None:
    counts = draw_weeks(7, resamples=500, seed=3)
    assert counts.shape == (500, 7)
    assert np.array_equal(counts.sum(axis=1), np.full(500, 7.0))
    assert counts.min() == 0


def test_one_seed_draws_the_same_weeks_again_and_another_does_not() -> None:
    assert np.array_equal(draw_weeks(9, seed=5), draw_weeks(9, seed=5))
    assert not np.array_equal(draw_weeks(9, seed=5), draw_weeks(9, seed=6))


def test_ratio_sums_the_weeks_after_averaging_the_replicas() -> None:
    """Week 1: agent (2, 4) -> 3, baseline (2, 2) -> 2. Week 2: 9 against 10. 12 / 12 = 1."""
    agent = np.array([[2.0, 4.0], [8.0, 10.0]])
    baseline = np.array([[2.0, 2.0], [10.0, 10.0]])
    assert ratio_of_sums(agent, baseline, draw_weeks(2)).value == 1.0


def test_log_ratio_averages_replica_by_replica() -> None:
    agent = np.array([[1.0, 4.0], [2.0, 2.0]])
    baseline = np.array([[2.0, 2.0], [2.0, 2.0]])
    assert mean_log_ratio(agent, baseline, draw_weeks(2)).value == pytest.approx(0.0, abs=1e-15)


def test_interval_of_two_weeks_spans_both() -> None:
    """Of the samples, a quarter holds week 1 twice, a quarter week 2 twice: both tails."""
    agent = np.array([[1.0], [6.0]])
    baseline = np.array([[2.0], [4.0]])
    ratio = ratio_of_sums(agent, baseline, draw_weeks(2))
    assert (ratio.low, ratio.high) == (0.5, 1.5)
    logs = mean_log_ratio(agent, baseline, draw_weeks(2))
    assert (logs.low, logs.high) == pytest.approx((np.log(0.5), np.log(1.5)))


def test_reference_against_itself_is_exactly_one() -> None:
    values = np.random.default_rng(0).gamma(2.0, 3.0, size=(20, 4)) + 1
    ratio = ratio_of_sums(values, values, draw_weeks(20))
    assert (ratio.value, ratio.low, ratio.high) == (1.0, 1.0, 1.0)


def test_one_week_says_so_instead_of_giving_an_interval() -> None:
    ratio = ratio_of_sums(np.array([[1.0, 3.0]]), np.array([[2.0, 2.0]]), draw_weeks(1))
    assert (ratio.value, ratio.low, ratio.high) == (1.0, None, None)
    assert str(ratio) == "1.000 (one week: no interval)"


def test_logs_count_alike_whatever_their_weeks() -> None:
    """One log halves, of two heavy weeks; the other doubles, of three light ones."""
    heavy, light = np.full((2, 1), 100.0), np.ones((3, 1))
    pairs = [(heavy / 2, heavy), (light * 2, light)]
    draws = [draw_weeks(2, seed=(0, 0)), draw_weeks(3, seed=(0, 1))]
    ratio, logs = ratio_over_logs(pairs, draws), log_ratio_over_logs(pairs, draws)
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((1.0, 1.0, 1.0))
    assert (logs.value, logs.low, logs.high) == pytest.approx((0.0, 0.0, 0.0), abs=1e-15)
    assert ratio.n_weeks == logs.n_weeks == 5


def test_interval_over_logs_spans_the_extremes_of_both() -> None:
    """Each log's sample is week 1 twice with 1/4; both at once with 1/16, more than the tail."""
    one = (np.array([[1.0], [6.0]]), np.array([[2.0], [4.0]]))
    ratio = ratio_over_logs([one, one], [draw_weeks(2, seed=(0, log)) for log in range(2)])
    assert (ratio.low, ratio.high) == pytest.approx((0.5, 1.5))
    assert ratio.value == pytest.approx(7 / 6)


def test_log_of_one_week_leaves_all_logs_without_an_interval() -> None:
    pairs = [(np.ones((n, 1)), np.full((n, 1), 2.0)) for n in (1, 3)]
    ratio = ratio_over_logs(pairs, [draw_weeks(1), draw_weeks(3)])
    assert (ratio.value, ratio.low, ratio.high) == (0.5, None, None)
    assert str(ratio) == "0.500 (a log of one week: no interval)"


def test_pairing_removes_the_spread_between_easy_and_hard_weeks() -> None:
    """An agent better by a tenth everywhere is known exactly, however the weeks differ."""
    baseline = np.random.default_rng(1).lognormal(2.0, 2.0, size=(30, 3)) + 1
    ratio = ratio_of_sums(0.9 * baseline, baseline, draw_weeks(30))
    assert (ratio.low, ratio.high) == pytest.approx((0.9, 0.9))


def test_interval_covers_the_true_ratio_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(2)
    draws = draw_weeks(60, resamples=1000)
    covered = 0
    for _ in range(200):
        baseline = generator.gamma(3.0, 2.0, size=(60, 1)) + 1
        agent = baseline * generator.uniform(0.6, 1.0, size=(60, 1))
        ratio = ratio_of_sums(agent, baseline, draws)
        assert ratio.low is not None and ratio.high is not None
        covered += ratio.low <= 0.8 <= ratio.high
    assert 0.89 <= covered / 200 <= 0.99


@pytest.mark.parametrize(
    ("agent", "baseline", "message"),
    [
        (np.ones((3, 2)), np.ones((3, 1)), r"agent \(3, 2\) and baseline \(3, 1\) must both be"),
        (np.ones((2, 2)), np.ones((2, 2)), "with n_weeks = 3 as drawn"),
        (np.ones(3), np.ones(3), r"must both be of shape \(n_weeks, n_replicas\)"),
        (np.full((3, 1), np.nan), np.ones((3, 1)), "the agent's metric must be finite"),
        (np.ones((3, 1)), np.zeros((3, 1)), "the baseline's metric must be finite and positive"),
    ],
    ids=["replicas differ", "not as drawn", "flat", "nan", "zero"],
)
def test_tables_that_cannot_be_paired_are_refused(
    agent: np.ndarray, baseline: np.ndarray, message: str
) -> None:
    draws = draw_weeks(3, resamples=10)
    for compare in (ratio_of_sums, mean_log_ratio):
        with pytest.raises(EvaluationError, match=message):
            compare(agent, baseline, draws)


def test_a_bootstrap_of_nothing_is_refused() -> None:
    with pytest.raises(EvaluationError, match="at least 1 week"):
        draw_weeks(0)
