"""Searches find the least of functions they know nothing of."""

import numpy as np
import pytest

from hpcgym.agent.evolution import CMAES, STRATEGIES, XNES
from hpcgym.base.errors import HpcgymError


def quadratic(points):
    """An ellipsoid turned by 45 degrees, 100 times longer than wide, least at (3, -2, 1)."""
    moved = points - np.array([3.0, -2.0, 1.0])
    along, across = moved[:, 0] + moved[:, 1], moved[:, 0] - moved[:, 1]
    return along**2 + 100 * across**2 + moved[:, 2] ** 2


def searched(seed, generations, values_of=quadratic, strategy=XNES):
    """Return a search after some generations."""
    search = strategy(np.zeros(3), 1.0, np.random.default_rng(seed))
    for _ in range(generations):
        search.tell(values_of(search.ask()))
    return search


@pytest.mark.parametrize("seed", range(5))
def test_search_finds_the_least_of_a_turned_quadratic(seed):
    search = searched(seed, 400)
    assert np.allclose(search.mean, [3.0, -2.0, 1.0], atol=1e-3)
    assert search.best_value < 1e-6
    assert quadratic(search.best[np.newaxis])[0] == search.best_value


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_cmaes_finds_it_too(seed):
    assert np.allclose(searched(seed, 100, strategy=CMAES).mean, [3.0, -2.0, 1.0], atol=1e-3)


@pytest.mark.parametrize("strategy", STRATEGIES.values())
def test_same_generator_gives_the_same_search(strategy):
    one, again, other = (searched(seed, 20, strategy=strategy).mean for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("strategy", STRATEGIES.values())
def test_interleaved_searches_do_as_each_does_alone(strategy):
    """Neither draws from a generator that others draw from."""
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    interleaved = [strategy(np.zeros(3), 1.0, np.random.default_rng(seed)) for seed in (1, 2)]
    for _ in range(20):
        for search in interleaved:
            search.tell(quadratic(search.ask()))
    for seed, search in zip((1, 2), interleaved, strict=True):
        assert np.array_equal(search.mean, searched(seed, 20, strategy=strategy).mean)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("strategy", STRATEGIES.values())
def test_only_ranks_of_the_values_count(strategy):
    bent = searched(3, 30, lambda points: np.exp(0.01 * quadratic(points)), strategy)
    assert np.array_equal(bent.mean, searched(3, 30, strategy=strategy).mean)


def test_shape_keeps_its_volume_and_the_step_size_shrinks_near_the_least():
    search = searched(4, 400)
    assert np.linalg.det(search.shape) == pytest.approx(1.0, abs=1e-6)
    assert search.step_size < 1e-3


def test_one_generation_is_that_of_the_formulas():
    """Worked from the formulas, with eta = (9 + 3 ln d) / (5 d sqrt d)."""
    generator, again = np.random.default_rng(5), np.random.default_rng(5)
    search = XNES([1.0, 2.0], 0.5, generator)
    candidates = search.ask()
    drawn = again.standard_normal((6, 2))
    assert np.allclose(candidates, [1.0, 2.0] + 0.5 * drawn)
    search.tell(-candidates[:, 0])
    ranked = drawn[np.argsort(-candidates[:, 0])]
    utility = np.maximum(0, np.log(4) - np.log(np.arange(1, 7)))
    utility = utility / utility.sum() - 1 / 6
    stretch = sum(u * (np.outer(z, z) - np.eye(2)) for u, z in zip(utility, ranked, strict=True))
    eta = (9 + 3 * np.log(2)) / (10 * np.sqrt(2))
    assert np.allclose(search.mean, [1.0, 2.0] + 0.5 * utility @ ranked)
    assert search.step_size == pytest.approx(0.5 * np.exp(eta / 2 * np.trace(stretch) / 2))


VECTOR = "a search begins at a vector of finite numbers"
STEP = "a step size must be a number above 0"
FEW = "a generation needs at least 2 candidates"


@pytest.mark.parametrize("strategy", STRATEGIES.values())
@pytest.mark.parametrize(
    ("mean", "step_size", "candidates", "message"),
    [
        ([[1.0]], 1.0, None, rf"{VECTOR}, got \[\[1.0\]\]"),
        ([], 1.0, None, VECTOR),
        ([1.0, np.nan], 1.0, None, VECTOR),
        ([1.0, 2.0], 0.0, None, f"{STEP}, got 0.0"),
        ([1.0, 2.0], -1.0, None, STEP),
        ([1.0, 2.0], np.nan, None, STEP),
        ([1.0, 2.0], 1.0, 1, f"{FEW}, got 1"),
        ([1.0, 2.0], 1.0, 0, FEW),
    ],
)
def test_malformed_searches_are_refused(strategy, mean, step_size, candidates, message):
    with pytest.raises(HpcgymError, match=message):
        strategy(mean, step_size, np.random.default_rng(0), candidates=candidates)


@pytest.mark.parametrize("strategy", [XNES, CMAES])
def test_what_does_not_fit_the_generation_is_refused(strategy):
    search = strategy([0.0, 0.0], 1.0, np.random.default_rng(0))
    with pytest.raises(HpcgymError, match="must be asked for"):
        search.tell(np.zeros(6))
    search.ask()
    for told in ([1.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0, np.nan]):
        with pytest.raises(HpcgymError, match=r"must be 6 numbers, .*none NaN"):
            search.tell(told)
    search.tell(np.arange(6))
    with pytest.raises(HpcgymError, match="must be asked for"):
        search.tell(np.arange(6))
