"""Paired ratios and their t intervals, compared with plain Python and with printed tables."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.base.errors import EvaluationError
from hpcgym.base.estimate import t_beyond
from hpcgym.evaluation.statistics import (
    Estimate,
    mean_log_ratio,
    mean_of,
    mean_over_logs,
    pooled_mean,
    ratio_of_sums,
    weekly_interval,
)

T_975 = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 8: 2.3060, 39: 2.0227}
"""What |t| exceeds in one of 20 cases, by degrees of freedom, as printed in tables."""

SLOWDOWNS = st.lists(st.floats(1, 1000), min_size=2, max_size=2)
PAIRS = st.lists(st.tuples(SLOWDOWNS, SLOWDOWNS), min_size=2, max_size=6)


def arrays(weeks: list[tuple[list[float], list[float]]]) -> tuple[np.ndarray, np.ndarray]:
    """Return agent and baseline as functions take them."""
    return np.array([own for own, _ in weeks]), np.array([other for _, other in weeks])


def by_hand(weeks: list[tuple[list[float], list[float]]]) -> tuple[float, float]:
    """Return the logarithm of the ratio of sums, and its jackknife's standard error."""

    def log_ratio(some: list[tuple[list[float], list[float]]]) -> float:
        agent, baseline = (sum(statistics.fmean(week[side]) for week in some) for side in (0, 1))
        return math.log(agent / baseline)

    n = len(weeks)
    without = [log_ratio(weeks[:week] + weeks[week + 1 :]) for week in range(n)]
    spread = sum((one - statistics.fmean(without)) ** 2 for one in without)
    return log_ratio(weeks), math.sqrt((n - 1) / n * spread)


@pytest.mark.parametrize(
    ("tail", "degrees", "printed"),
    [
        *((0.05, degrees, printed) for degrees, printed in T_975.items()),
        *((0.05, 30, 2.0423), (0.05, 120, 1.9799), (0.05, 10**6, 1.9600), (0.5, 4, 0.7407)),
        *((0.1, 1, 6.3138), (0.01, 1, 63.6567), (0.01, 2, 9.9248), (0.01, 39, 2.7079)),
        *((0.001, 1, 636.6192), (0.001, 5, 6.8688), (0.002, 5, 5.8934)),
    ],
)
def test_quantiles_of_t_are_those_of_printed_tables(
    tail: float, degrees: int, printed: float
) -> None:
    assert round(t_beyond(tail, degrees), 4) == printed


@given(st.floats(1e-6, 0.9), st.floats(1, 200))
def test_quantiles_of_t_are_those_of_its_density_added_up(tail: float, degrees: float) -> None:
    """t = sqrt(degrees)·tan(angle) has the density cos(angle)^(degrees - 1)."""
    end = math.atan(t_beyond(tail, degrees) / math.sqrt(degrees))
    points, weights = np.polynomial.legendre.leggauss(200)
    inside = float(weights @ np.cos((points + 1) * end / 2) ** (degrees - 1)) * end / 2
    whole = math.exp(math.lgamma(degrees / 2) - math.lgamma((degrees + 1) / 2))
    assert 1 - 2 * inside / (whole * math.sqrt(math.pi)) == pytest.approx(tail, abs=1e-7)


@given(PAIRS)
def test_interval_of_a_ratio_is_that_of_the_specification(
    weeks: list[tuple[list[float], list[float]]],
) -> None:
    logarithm, error = by_hand(weeks)
    found, reach = ratio_of_sums(*arrays(weeks)), T_975[len(weeks) - 1] * error
    assert found.value == pytest.approx(math.exp(logarithm))
    assert found.error == pytest.approx(error, abs=1e-12)
    assert found.low == pytest.approx(math.exp(logarithm - reach), rel=2e-3)
    assert found.high == pytest.approx(math.exp(logarithm + reach), rel=2e-3)


@given(PAIRS)
def test_interval_of_a_mean_log_ratio_is_that_of_the_specification(
    weeks: list[tuple[list[float], list[float]]],
) -> None:
    logs = [statistics.fmean(math.log(a / b) for a, b in zip(*week, strict=True)) for week in weeks]
    reach = T_975[len(weeks) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    found = mean_log_ratio(*arrays(weeks))
    assert found.value == pytest.approx(statistics.fmean(logs), abs=1e-12)
    assert (found.low, found.high) == pytest.approx(
        (statistics.fmean(logs) - reach, statistics.fmean(logs) + reach), abs=1e-4, rel=1e-4
    )


@given(st.lists(PAIRS, min_size=2, max_size=4))
def test_error_over_logs_adds_up_variances_and_has_welchs_degrees(
    logs: list[list[tuple[list[float], list[float]]]],
) -> None:
    logarithms, errors = zip(*map(by_hand, logs), strict=True)
    found = mean_over_logs([ratio_of_sums(*arrays(weeks)) for weeks in logs])
    total = sum(error**2 for error in errors)
    assert found.value == pytest.approx(math.exp(statistics.fmean(logarithms)))
    assert found.error == pytest.approx(math.sqrt(total) / len(logs), abs=1e-12)
    if total > 1e-12:
        parts = zip(errors, logs, strict=True)
        degrees = total**2 / sum(error**4 / (len(weeks) - 1) for error, weeks in parts)
        assert found.degrees == pytest.approx(degrees, rel=1e-6)


def test_ratio_sums_the_weeks_after_averaging_the_replicas() -> None:
    """Week 1: agent (2, 4) -> 3, baseline (2, 2) -> 2. Week 2: 9 against 10. 12 / 12 = 1."""
    agent = np.array([[2.0, 4.0], [8.0, 10.0]])
    baseline = np.array([[2.0, 2.0], [10.0, 10.0]])
    assert ratio_of_sums(agent, baseline).value == 1.0


def test_log_ratio_averages_replica_by_replica() -> None:
    agent = np.array([[1.0, 4.0], [2.0, 2.0]])
    baseline = np.array([[2.0, 2.0], [2.0, 2.0]])
    assert mean_log_ratio(agent, baseline).value == pytest.approx(0.0, abs=1e-15)


def test_more_copies_of_a_week_are_no_more_weeks() -> None:
    agent, baseline = np.array([[1.0], [6.0], [2.0]]), np.array([[2.0], [4.0], [2.0]])
    once = ratio_of_sums(agent, baseline)
    often = ratio_of_sums(agent.repeat(10, axis=1), baseline.repeat(10, axis=1))
    assert often.ends() == pytest.approx(once.ends())


def test_interval_of_two_weeks_reaches_far_beyond_both() -> None:
    """Without one week the ratio is 1.5 or 0.5: an error of log(3)/2, times 12.7."""
    ratio = ratio_of_sums(np.array([[1.0], [6.0]]), np.array([[2.0], [4.0]]))
    assert ratio.error == pytest.approx(math.log(3) / 2)
    assert ratio.ends() == pytest.approx((7 / 6 / 3**6.353102, 7 / 6 * 3**6.353102))
    assert str(ratio) == "1.167 [0.001, 1.25e+03]"


def test_intervals_of_many_are_wider_so_that_all_cover_at_once() -> None:
    one = Estimate(0.5, 0.1, 2)
    assert one.ends(among=5) == pytest.approx((0.185327, 1.348964), abs=1e-6)
    assert Estimate(0.5, 9.0, 1).ends(among=50) == (0.0, math.inf)


def test_reference_against_itself_is_exactly_one() -> None:
    values = np.random.default_rng(0).gamma(2.0, 3.0, size=(20, 4)) + 1
    assert ratio_of_sums(values, values).columns("ratio") == {
        "ratio": 1.0,
        "ratio_low": 1.0,
        "ratio_high": 1.0,
    }


def test_one_week_says_so_instead_of_giving_an_interval() -> None:
    ratio = ratio_of_sums(np.array([[1.0, 3.0]]), np.array([[2.0, 2.0]]))
    assert (ratio.value, ratio.low, ratio.high) == (1.0, None, None)
    assert str(ratio) == "1.000 (no interval)"


def test_sums_of_zero_have_no_ratio_and_those_of_a_single_week_no_interval() -> None:
    none, once, some = np.zeros((3, 1)), np.array([[0.0], [4.0], [0.0]]), np.ones((3, 1))
    assert str(ratio_of_sums(some, none)) == str(ratio_of_sums(none, none)) == "-"
    assert str(ratio_of_sums(some, once)) == "0.750 (no interval)"
    assert str(ratio_of_sums(once, some)) == "1.333 (no interval)"
    zero = ratio_of_sums(none, some)
    assert str(zero) == "0.000 (no interval)"
    assert str(mean_over_logs([zero, ratio_of_sums(some, some)])) == "0.000 (no interval)"
    assert str(mean_over_logs([ratio_of_sums(some, none), ratio_of_sums(some, some)])) == "-"


def test_logs_count_alike_whatever_their_weeks() -> None:
    """One log halves, of two heavy weeks; the other doubles, of three light ones."""
    heavy, light = np.full((2, 1), 100.0), np.ones((3, 1))
    pairs = [(heavy / 2, heavy), (light * 2, light)]
    ratio = mean_over_logs([ratio_of_sums(*pair) for pair in pairs])
    logs = mean_over_logs([mean_log_ratio(*pair) for pair in pairs])
    assert (ratio.value, *(ratio.ends() or ())) == pytest.approx((1.0, 1.0, 1.0))
    assert (logs.value, *(logs.ends() or ())) == pytest.approx((0.0, 0.0, 0.0), abs=1e-15)


def test_log_of_one_week_leaves_all_logs_without_an_interval() -> None:
    ratios = [ratio_of_sums(np.ones((n, 1)), np.full((n, 1), 2.0)) for n in (1, 3)]
    assert str(mean_over_logs(ratios)) == "0.500 (no interval)"


def test_pairing_removes_the_spread_between_easy_and_hard_weeks() -> None:
    """An agent better by a tenth everywhere is known exactly, however the weeks differ."""
    baseline = np.random.default_rng(1).lognormal(2.0, 2.0, size=(30, 3)) + 1
    assert ratio_of_sums(0.9 * baseline, baseline).ends() == pytest.approx((0.9, 0.9))


def test_a_mean_of_all_jobs_counts_weeks_by_their_jobs() -> None:
    sums, counts = [2.0, 9.0, -1.0], [1, 2, 4]
    without = [8 / 6, 1 / 5, 11 / 3]
    spread = sum((value - statistics.fmean(without)) ** 2 for value in without)
    mean = pooled_mean(np.array(sums), np.array(counts))
    assert (mean.value, mean.degrees) == (10 / 7, 2)
    assert mean.error == pytest.approx(math.sqrt(2 / 3 * spread))
    assert pooled_mean(np.array([2.0]), np.array([4])).ends() is None


def test_a_mean_of_values_has_the_interval_of_student_and_needs_two() -> None:
    mean = mean_of([-3.0, -1.0, -2.0, -2.0])
    error = statistics.stdev([-3.0, -1.0, -2.0, -2.0]) / 2
    assert mean.value == -2.0
    assert mean.ends() == pytest.approx((-2 - 3.182446 * error, -2 + 3.182446 * error))
    assert str(mean_of([1.0])) == "1.000 (no interval)"
    assert str(mean_of([])) == "-"


@pytest.mark.parametrize(
    ("agent", "baseline", "message"),
    [
        (np.ones((3, 2)), np.ones((3, 1)), r"agent \(3, 2\) and baseline \(3, 1\) must both be"),
        (np.ones(3), np.ones(3), r"must both be of shape \(n_weeks, n_replicas\)"),
        (np.ones((0, 2)), np.ones((0, 2)), r"must both be of shape \(n_weeks, n_replicas\)"),
        (np.full((3, 1), np.nan), np.ones((3, 1)), "the agent's metric must be finite"),
        (np.ones((3, 1)), -np.ones((3, 1)), "the baseline's metric must be finite and"),
    ],
    ids=["replicas differ", "flat", "no week", "nan", "negative"],
)
def test_tables_that_cannot_be_paired_are_refused(
    agent: np.ndarray, baseline: np.ndarray, message: str
) -> None:
    for compare in (ratio_of_sums, mean_log_ratio):
        with pytest.raises(EvaluationError, match=message):
            compare(agent, baseline)


def test_a_logarithm_of_zero_is_refused() -> None:
    with pytest.raises(EvaluationError, match="the agent's metric must be finite and positive"):
        mean_log_ratio(np.zeros((3, 1)), np.ones((3, 1)))


def test_the_interval_of_a_gain_takes_three_weeks_for_one() -> None:
    gains, weeks = [1.0, 1.0, 2.0, 4.0, 0.0, 3.0], [0, 0, 0, 1, 3, 4]
    submit = np.array(weeks) * 604_800
    sums, counts = {0: 4.0, 1: 4.0, 3: 0.0, 4: 3.0}, {0: 3, 1: 1, 3: 1, 4: 1}
    without = [(11 - sums[week]) / (6 - counts[week]) for week in sums]
    mean = sum(without) / 4
    error = math.sqrt(3 * 3 / 4 * sum((one - mean) ** 2 for one in without))
    reach = 3.182446 * error
    found = weekly_interval(np.array(gains), submit)
    assert found == pytest.approx([11 / 6 - reach, 11 / 6 + reach], abs=1e-5)
    assert weekly_interval(np.array(gains[:5]), submit[:5]) is None
