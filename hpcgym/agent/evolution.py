"""Evolution strategies: each is asked for candidates and told their values, lowest best."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.base.errors import HpcgymError
from hpcgym.base.packages import needing

FloatArray = NDArray[np.float64]


class XNES:
    """Exponential natural evolution strategy: a normal distribution that follows its best samples.

    Only ranks count, so any monotone change of the values leaves the search as it is.

    Args:
        mean: Where the search begins, shape (dimension,).
        step_size: Standard deviation of the first candidates, > 0.
        generator: Source of the random numbers.
        candidates: Candidates per generation, >= 2; default 4 + floor(3 ln dimension).

    Raises:
        HpcgymError: A mean that is no vector, a step size not above 0, fewer than 2 candidates.

    Source: Glasmachers, Schaul, Yi, Wierstra, Schmidhuber 2010 (GECCO), algorithm 1 and table 1.
    """

    def __init__(
        self,
        mean: ArrayLike,
        step_size: float,
        generator: np.random.Generator,
        *,
        candidates: int | None = None,
    ) -> None:
        # Mean of the distribution (mu), shape (dimension,).
        self.mean = _beginning(mean, step_size, candidates)
        dimension = len(self.mean)
        n = 4 + int(3 * np.log(dimension)) if candidates is None else candidates
        self.step_size = float(step_size)  # its scale (sigma)
        # Its shape, a matrix of determinant 1 (B), shape (dimension, dimension).
        self.shape = np.eye(dimension)
        self.best: FloatArray | None = None  # the best candidate told so far, or None
        self.best_value = np.inf  # its value
        self._generator = generator
        self._rate = (9 + 3 * np.log(dimension)) / (5 * dimension * np.sqrt(dimension))
        weight = np.maximum(0.0, np.log(n / 2 + 1) - np.log(np.arange(1, n + 1)))
        self._utility = weight / weight.sum() - 1 / n
        self._drawn: FloatArray | None = None
        self._asked = np.empty((n, dimension))

    def ask(self) -> FloatArray:
        """Draw a generation of candidates, shape (n_candidates, dimension)."""
        self._drawn = self._generator.standard_normal(self._asked.shape)
        self._asked = self.mean + self.step_size * self._drawn @ self.shape.T
        return self._asked.copy()

    def tell(self, values: ArrayLike) -> None:
        """Move the distribution by the values of the last generation, shape (n_candidates,).

        Equal values are ranked in the order in which their candidates were drawn.

        Raises:
            HpcgymError: No generation was asked for, the number of values differs, or one is NaN.
        """
        told = _told(values, 0 if self._drawn is None else len(self._drawn))
        assert self._drawn is not None
        order = np.argsort(told, kind="stable")
        if told[order[0]] < self.best_value:
            self.best_value = float(told[order[0]])
            self.best = self._asked[order[0]].copy()
        drawn, self._drawn = self._drawn[order], None
        dimension = len(self.mean)
        move = self._utility @ drawn
        stretch = (drawn.T * self._utility) @ drawn - self._utility.sum() * np.eye(dimension)
        scale = float(np.trace(stretch)) / dimension
        stretch -= scale * np.eye(dimension)
        self.mean += self.step_size * self.shape @ move
        self.step_size *= float(np.exp(self._rate / 2 * scale))
        values_of_stretch, vectors = np.linalg.eigh(self._rate / 2 * stretch)
        self.shape = self.shape @ ((vectors * np.exp(values_of_stretch)) @ vectors.T)


class CMAES:
    """Covariance matrix adaptation, by the library of its inventors; arguments as of `XNES`.

    Attributes:
        mean: Mean of the distribution, shape (dimension,).

    Raises:
        HpcgymError: The library is not installed, or as of `XNES`.

    Source: Hansen 2016, The CMA evolution strategy: a tutorial; package `cma`.
    """

    def __init__(
        self,
        mean: ArrayLike,
        step_size: float,
        generator: np.random.Generator,
        *,
        candidates: int | None = None,
    ) -> None:
        with needing("CMAES", "cma"):
            import cma
        first = _beginning(mean, step_size, candidates)
        random = np.random.RandomState(int(generator.integers(1, 2**31)))  # not numpy's shared one
        options: dict[str, Any] = {"randn": random.randn, "verbose": -9}
        if candidates is not None:
            options["popsize"] = candidates
        self._search = cma.CMAEvolutionStrategy(first, step_size, options)
        self._asked: list[FloatArray] = []

    @property
    def mean(self) -> FloatArray:
        """Return the mean of the distribution, shape (dimension,)."""
        return np.array(self._search.mean)

    def ask(self) -> FloatArray:
        """Draw a generation of candidates, shape (n_candidates, dimension)."""
        self._asked = self._search.ask()
        return np.array(self._asked)

    def tell(self, values: ArrayLike) -> None:
        """Move the distribution by the values of the last generation, shape (n_candidates,).

        Raises:
            HpcgymError: No generation was asked for, the number of values differs, or one is NaN.
        """
        self._search.tell(self._asked, _told(values, len(self._asked)).tolist())
        self._asked = []


STRATEGIES: dict[str, type[XNES] | type[CMAES]] = {"xnes": XNES, "cma": CMAES}  # searches by name


def _beginning(mean: ArrayLike, step_size: float, candidates: int | None) -> FloatArray:
    """Return the mean that a search begins at; refuse arguments that no search can have."""
    first = np.array(mean, dtype=np.float64)
    if first.ndim != 1 or not len(first) or not np.isfinite(first).all():
        raise HpcgymError(f"a search begins at a vector of finite numbers, got {mean!r}")
    if not (np.isfinite(step_size) and step_size > 0):
        raise HpcgymError(f"a step size must be a number above 0, got {step_size!r}")
    if candidates is not None and candidates < 2:
        raise HpcgymError(f"a generation needs at least 2 candidates, got {candidates}")
    return first


def _told(values: ArrayLike, n_asked: int) -> FloatArray:
    """Return the values of the candidates that were asked for; refuse others."""
    told = np.asarray(values, dtype=np.float64)
    if not n_asked:
        raise HpcgymError("a generation must be asked for before it is told of")
    if told.shape != (n_asked,) or np.isnan(told).any():
        raise HpcgymError(f"values must be {n_asked} numbers, none NaN; got {values!r}")
    return told
