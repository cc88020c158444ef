"""Values of the vectors that a search has tried, kept in a file, so that the search can go on.

A search draws the same vectors again from the same seed. Those whose values are kept are not
simulated again, so a search that goes on finds what one finds that was not cut off, to the bit.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.search import SearchTrainer, Values
from hpcgym.base.errors import EvaluationError
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.store import Store, digest, digest_of_weeks


class KeptValues:
    """Puts a file between a search and its objective.

    Args:
        path: A store; created if it is not there.
        episodes: Training weeks of each log.

    Raises:
        EvaluationError: The file is no store, is damaged, or keeps another search.
        OutputError: It cannot be read or written.
    """

    def __init__(
        self, path: Path, trainer: SearchTrainer, episodes: Sequence[Episodes], seed: int
    ) -> None:
        self.seconds = 0.0  # what the kept values took that this search did not compute, s
        self._store = Store(path)
        weeks = [digest_of_weeks(log) for log in episodes]
        self._search = digest(episodes[0].workload(0), weeks, trainer, seed)
        if self._store.keeps_others_only(self._search):
            raise EvaluationError(
                f"{path}: keeps another search: its scenarios, weeks, trainer, seed or version of "
                "hpcgym differ; start anew with --force, or name another folder by --output"
            )

    def __call__(self, values_of: Values) -> Values:
        """Return what gives kept values, and computes and keeps all others."""

        def remembered(asked: NDArray[np.float64]) -> NDArray[np.float64]:
            key = f"{self._search}-{hashlib.sha256(asked.tobytes()).hexdigest()}"
            if (rows := self._store.find(key)) is None:
                begun = time.monotonic()
                values = values_of(asked)
                seconds = time.monotonic() - begun
                self._store.keep(key, [{"values": values.tolist(), "seconds": seconds}])
                return values
            self.seconds += rows[0]["seconds"]
            return np.array(rows[0]["values"])

        return remembered
