"""XNES finds the least of functions it knows nothing of."""

import numpy as np
import pytest

from hpcgym.agent.evolution import XNES
from hpcgym.errors import HpcgymError


def quadratic(points):
    """An ellipsoid turned by 45 degrees, 100 times longer than wide, least at (3, -2, 1)."""
    moved = points - np.array([3.0, -2.0, 1.0])
    along, across = moved[:, 0] + moved[:, 1], moved[:, 0] - moved[:, 1]
    return along**2 + 100 * across**2 + moved[:, 2] ** 2


def searched(seed, generations, fitness=quadratic):
    """Return a search after some generations."""
    search = XNES(np.zeros(3), 1.0, np.random.default_rng(seed))
    for _ in range(generations):
        search.tell(fitness(search.ask()))
    return search


@pytest.mark.parametrize("seed", range(5))
def test_search_finds_the_least_of_a_turned_quadratic(seed):
    search = searched(seed, 400)
    assert np.allclose(search.mean, [3.0, -2.0, 1.0], atol=1e-3)
    assert search.best_fitness < 1e-6
    assert quadratic(search.best[np.newaxis])[0] == search.best_fitness


def test_same_generator_gives_the_same_search():
    assert np.array_equal(searched(1, 20).mean, searched(1, 20).mean)
    assert not np.array_equal(searched(1, 20).mean, searched(2, 20).mean)


def test_only_ranks_of_the_fitness_count():
    bent = searched(3, 30, lambda points: np.exp(0.01 * quadratic(points)))
    assert np.array_equal(bent.mean, searched(3, 30).mean)


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


def test_malformed_searches_are_refused():
    generator = np.random.default_rng(0)
    for mean, step, n in (([[1.0]], 1.0, None), ([1.0], 0.0, None), ([1.0], 1.0, 1)):
        with pytest.raises(HpcgymError):
            XNES(mean, step, generator, candidates=n)
    search = XNES([0.0, 0.0], 1.0, generator)
    with pytest.raises(HpcgymError, match="must be asked for"):
        search.tell(np.zeros(6))
    search.ask()
    with pytest.raises(HpcgymError, match="must be 6 numbers, none NaN"):
        search.tell([1.0, 2.0, 3.0, 4.0, 5.0, np.nan])
