"""Gap closed: against a reference in plain Python, and as often held as its interval says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hpcgym.base.errors import EvaluationError
from hpcgym.base.estimate import t_beyond
from hpcgym.evaluation.gap import gap_between, gap_closed, gap_notes, gap_text
from hpcgym.evaluation.statistics import ratio_of_sums
from research.gap_coverage import held, truth_of

DRAWS = 300


def reference(
    static: list[float], agent: list[float], clairvoyant: list[float], saf: list[float]
) -> list[float]:
    """Return the share and the ends of its interval, as the specification words them."""
    n = len(static)

    def share(weeks: list[int]) -> float:
        of = [sum(ratios[week] * saf[week] for week in weeks) for ratios in (static, agent)]
        knows = sum(clairvoyant[week] * saf[week] for week in weeks)
        return (of[0] - of[1]) / (of[0] - knows)

    every = list(range(n))
    left = [share([week for week in every if week != one]) for one in every]
    middle = sum(left) / n
    variance = (n - 1) / n * sum((value - middle) ** 2 for value in left)
    reach = t_beyond(0.05, n - 1) * math.sqrt(variance)
    return [share(every), share(every) - reach, share(every) + reach]


@pytest.mark.parametrize("seed", range(20))
def test_it_equals_the_reference_on_drawn_weeks(seed: int) -> None:
    chance = np.random.default_rng(seed)
    n = int(chance.integers(4, 40))
    static = chance.uniform(0.8, 1.2, n)
    agent = static * chance.uniform(0.5, 1.3, n)
    clairvoyant = static * chance.uniform(0.2, 0.5, n)
    saf = chance.uniform(2, 40, n)
    share = gap_closed(static, agent, clairvoyant, saf)
    expected = reference(*(each.tolist() for each in (static, agent, clairvoyant, saf)))
    assert [share.value, share.low, share.high] == pytest.approx(expected, rel=1e-9)
    assert gap_notes({"A": share}, n) == []
    assert gap_notes({"A": share}, n + 1) == [f"gap closed is of {n} of {n + 1} weeks"]


def test_the_ends_are_0_and_1_in_every_week() -> None:
    static, clairvoyant = np.array([1.0, 0.8, 1.3, 0.9]), np.array([0.5, 0.4, 0.6, 0.3])
    for agent, value in ((static, 0.0), (clairvoyant, 1.0)):
        share = gap_closed(static, agent, clairvoyant, [9.0, 30.0, 2.0, 5.0])
        assert (share.value, share.low, share.high) == pytest.approx((value, value, value))


@pytest.mark.parametrize(
    ("static", "clairvoyant"),
    [
        ([1.0, 1.0, 1.0], [1.0, 0.2, 1.1]),  # in one week only, so not surely
        ([1.0, 1.0], [1.2, 1.3]),
        ([1.0], [0.1]),  # one week tells nothing of others
    ],
)
def test_where_knowing_is_not_surely_worth_anything_there_is_no_number(
    static: list[float], clairvoyant: list[float]
) -> None:
    share = gap_closed(static, static, clairvoyant, np.full(len(static), 7.0))
    assert math.isnan(share.value) and share.ends() is None
    assert gap_text(share) == "no gap"


def test_it_is_the_ratio_of_sums_on_another_scale() -> None:
    """A heavy week counts as much as in the ratio of sums, which stands beside it in tables."""
    saf, agent = np.array([100.0, 1.0, 1.0]), np.array([0.8, 2.0, 2.0])
    static, clairvoyant = np.ones(3), np.array([0.5, 0.6, 0.4])
    of_agent, knows = (
        ratio_of_sums((ratios * saf)[:, None], saf[:, None]).value
        for ratios in (agent, clairvoyant)
    )
    share = gap_closed(static, agent, clairvoyant, saf)
    assert share.value == pytest.approx((1 - of_agent) / (1 - knows)) and share.value > 0
    assert gap_between(static, clairvoyant, saf).value == pytest.approx(1 - knows)


def test_weeks_that_are_not_paired_are_refused() -> None:
    with pytest.raises(EvaluationError, match=r"must be alike, \(n_weeks,\); \(2,\), \(1,\)"):
        gap_closed([1.0, 1.0], [1.0], [0.5, 0.5], [9.0, 9.0])
    with pytest.raises(EvaluationError, match="finite"):
        gap_closed([1.0, 1.0], [1.0, math.nan], [0.5, 0.5], [9.0, 9.0])


@pytest.mark.parametrize("n", [10, 40])
def test_the_truth_is_held_in_95_percent_of_draws(n: int) -> None:
    """Weeks are drawn, and the gap closed by very many of them is known."""
    share = held(n, DRAWS)
    assert share >= 0.915 - 4 * math.sqrt(0.915 * 0.085 / DRAWS)
    assert 0.1 < truth_of() < 0.2
