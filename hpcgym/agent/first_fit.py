"""What needs no learning where an agent picks jobs: the first job that fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.base import Observation
from hpcgym.core.observation_fields import ClusterField, JobField


@dataclass(frozen=True)
class FirstFit:
    """Picks, of flat observations, a slot that fits: the first, or by the expected index.

    Where none fits it picks among all.
    """

    by_index: bool

    NEEDS: ClassVar[dict[str, Any]] = {
        "action": "job",
        "backfill": "none",
        "observation": "flat",
        "expectations": "regression",
    }

    def predict(
        self,
        observation: Observation,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Choose the slot of each environment, as `hpcgym.agent.base.Agent.predict`."""
        shown = np.asarray(observation)
        there, fits = slots_of(shown)
        places = np.broadcast_to(np.arange(fits.shape[-1]), fits.shape)
        by = fields_of(shown)[..., JobField.LOG_EXPECTED_INDEX] if self.by_index else places
        among = np.where(fits.any(axis=-1, keepdims=True), fits, there)
        return np.asarray(np.where(among, by, np.inf).argmin(axis=-1)), state


FIRST_FITS = {
    "first slot that fits": FirstFit(by_index=False),
    "first that fits by index": FirstFit(by_index=True),
}


def fields_of(shown: NDArray[Any]) -> NDArray[Any]:
    """Return the fields of each slot of flat observations, shape (..., n_slots, n_fields)."""
    n_slots = (shown.shape[-1] - len(ClusterField)) // (len(JobField) + 1)
    return shown[..., : n_slots * len(JobField)].reshape(*shown.shape[:-1], n_slots, -1)


def slots_of(shown: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which slots of flat observations hold a job, and which of these fit now."""
    fields = fields_of(shown)
    there = shown[..., -fields.shape[-2] :] > 0
    return there, there & (fields[..., JobField.FITS_NOW] > 0)
