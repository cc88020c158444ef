"""Intervals hold what they are of as often as they say, on drawn weeks whose truth is known."""

import math

import pytest

from research import interval_coverage
from research.interval_coverage import generated

DRAWS = 300
WEEKS = generated(*interval_coverage.LIKE_MOST)
LOGS = [generated(spread, 0.4) for spread in (0.6, 0.7, 0.8, 0.9, 1.0)]


def off(share: float, draws: int = DRAWS) -> float:
    """Return four standard errors of a share of draws."""
    return 4 * math.sqrt(share * (1 - share) / draws)


@pytest.mark.parametrize("n", [2, 3, 4, 9])
def test_a_ratio_is_held_in_92_percent_and_a_mean_log_ratio_in_95(n: int) -> None:
    """A ratio is that of few heavy weeks: a little less than what its interval says."""
    assert interval_coverage.of_ratios(WEEKS, n, DRAWS) >= 0.92 - off(0.92)
    assert interval_coverage.of_log_ratios(WEEKS, n, DRAWS) >= 0.95 - off(0.95)


def test_these_bounds_would_tell_a_percentile_bootstrap() -> None:
    bounds = 0.95 - off(0.95, 100)
    assert interval_coverage.of_ratios(WEEKS, 4, DRAWS, resampled=True) < 0.92 - off(0.92)
    assert interval_coverage.of_pairs(skewed=False, n=2, draws=100, resampled=True) < bounds
    assert interval_coverage.of_rows(0.5, 4, 100, resampled=True) < bounds


def test_a_geometric_mean_over_five_logs_is_held_in_95_percent() -> None:
    assert interval_coverage.of_means(LOGS, 3, 100) >= 0.95 - off(0.95, 100)


@pytest.mark.parametrize("n", [3, 9])
def test_the_best_of_five_that_are_no_better_is_seldom_called_better(n: int) -> None:
    among, alone = (
        interval_coverage.falsely_better(WEEKS, n, DRAWS, among)
        for among in (interval_coverage.AGENTS, None)
    )
    assert among <= 0.025 + off(0.025) < alone


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("skewed", [False, True])
def test_the_difference_of_pairs_of_days_is_held_in_95_percent(skewed: bool, n: int) -> None:
    assert interval_coverage.of_pairs(skewed, n, DRAWS) >= 0.95 - off(0.95)


@pytest.mark.parametrize("n", [4, 13])
def test_the_gain_of_a_report_is_held_by_weeks_that_resemble_the_week_before(n: int) -> None:
    assert interval_coverage.of_rows(0.5, n, DRAWS) >= 0.95 - off(0.95)
