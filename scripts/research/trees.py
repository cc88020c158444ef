"""Boosted regression trees in numpy: small, quick to fit, and without a library of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

N_BINS = 32
DEPTH = 3
N_TREES = 80
RATE = 0.1
LEAST = 50
"""Rows that a leaf needs."""


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees of one depth.

    Attributes:
        mean: Prediction before the first tree.
        column: Feature of each inner node, shape (n_trees, 2**DEPTH - 1).
        bound: Largest value that goes left, likewise.
        leaf: What each leaf adds, shape (n_trees, 2**DEPTH).
    """

    mean: float
    column: NDArray[np.int64]
    bound: FloatArray
    leaf: FloatArray

    def predict(self, features: FloatArray) -> FloatArray:
        """Return a prediction for each row, shape (n_rows,)."""
        tree = np.arange(len(self.leaf))
        node = np.zeros((len(features), len(tree)), dtype=np.int64)
        row = np.arange(len(features))[:, np.newaxis]
        for _ in range(DEPTH):
            right = features[row, self.column[tree, node]] > self.bound[tree, node]
            node = 2 * node + 1 + right
        found: FloatArray = self.mean + self.leaf[tree, node - (2**DEPTH - 1)].sum(axis=1)
        return found


def fit(features: FloatArray, target: FloatArray) -> Trees:
    """Fit trees to the squared error by gradient boosting over binned features."""
    n, n_features = features.shape
    edges = np.quantile(features, np.linspace(0, 1, N_BINS + 1)[1:-1], axis=0)
    bins = np.empty((n_features, n), dtype=np.int64)
    for feature in range(n_features):
        bins[feature] = np.searchsorted(edges[:, feature], features[:, feature])
    mean = float(target.mean())
    left = target - mean
    column = np.zeros((N_TREES, 2**DEPTH - 1), dtype=np.int64)
    bound = np.full((N_TREES, 2**DEPTH - 1), np.inf)
    leaf = np.zeros((N_TREES, 2**DEPTH))
    for tree in range(N_TREES):
        node = np.zeros(n, dtype=np.int64)
        for level in range(DEPTH):
            first, width = 2**level - 1, 2**level
            best = np.zeros(width)
            cut = np.full(width, N_BINS)
            for feature in range(n_features):
                cell = (node - first) * N_BINS + bins[feature]
                size = np.bincount(cell, minlength=width * N_BINS).reshape(width, N_BINS)
                total = np.bincount(cell, left, width * N_BINS).reshape(width, N_BINS)
                gain = _gain(size.cumsum(axis=1), total.cumsum(axis=1))
                at = gain.argmax(axis=1)
                better = gain[np.arange(width), at] > best
                best[better] = gain[np.arange(width), at][better]
                column[tree, first : first + width][better] = feature
                cut[better] = at[better]
                there = edges[np.minimum(at, N_BINS - 2), feature]
                bound[tree, first : first + width][better] = there[better]
            own = column[tree, node]
            node = 2 * node + 1 + (bins[own, np.arange(n)] > cut[node - first])
        place = node - (2**DEPTH - 1)
        size = np.bincount(place, minlength=2**DEPTH)
        leaf[tree] = RATE * np.bincount(place, left, 2**DEPTH) / np.maximum(size, 1)
        left = left - leaf[tree, place]
    return Trees(mean, column, bound, leaf)


def _gain(size: NDArray[np.int64], total: FloatArray) -> FloatArray:
    """Return what a cut behind each bin saves of the squared error, shape (n_nodes, N_BINS)."""
    other_size, other = size[:, -1:] - size, total[:, -1:] - total
    gain: FloatArray = total**2 / np.maximum(size, 1) + other**2 / np.maximum(other_size, 1)
    gain -= total[:, -1:] ** 2 / np.maximum(size[:, -1:], 1)
    gain[(size < LEAST) | (other_size < LEAST)] = 0.0
    return gain
