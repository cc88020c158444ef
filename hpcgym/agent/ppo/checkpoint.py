"""Checkpoints, from which a training goes on as if it had not been interrupted.

A checkpoint holds pickled Python objects: load none that you have not written yourself. Agents on a
shelf are `.npz` files.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hpcgym.agent.ppo.config import PPOConfig, texts_of
from hpcgym.agent.sb3 import HPCBatchVecEnv
from hpcgym.errors import HpcgymError, refuse_seed
from hpcgym.output import writing
from hpcgym.ranges import number_ranges
from hpcgym.scenario.augment import Augmentation
from hpcgym.scenario.episodes import Episodes

FORMAT = 4
"""Version of the files."""

MAY_CHANGE = ("steps", "minutes", "threads")
"""Hyper-parameters that may change when a training goes on."""

_NOT_OURS = (
    *(pickle.UnpicklingError, RuntimeError, EOFError),
    *(AttributeError, ImportError, TypeError),  # classes that are gone, or have other fields
)
"""What reading a file raises that is no checkpoint, or one of another hpcgym."""


@dataclass(frozen=True)
class TrainingSettings:
    """The settings of a training: what it is made of and cannot change later.

    Attributes:
        config: Hyper-parameters.
        seed: Seed of everything.
        weeks: Numbers of all weeks, ascending, by scenario, those of validation included.
        kept: Numbers of the weeks of validation, likewise.
        augmentation: How the weeks that are played are changed at every draw; None = not at all.

    Raises:
        HpcgymError: A seed out of range.
    """

    config: PPOConfig
    seed: int
    weeks: dict[str, tuple[int, ...]]
    kept: dict[str, tuple[int, ...]]
    augmentation: Augmentation | None

    def __post_init__(self) -> None:
        """Refuse a seed that no training can have."""
        refuse_seed(self.seed)

    @classmethod
    def of(
        cls,
        config: PPOConfig,
        seed: int,
        episodes: Sequence[Episodes],
        validation: Sequence[Episodes],
        augmentation: Augmentation | None,
    ) -> TrainingSettings:
        """Return the settings of a training on episodes that are not yet augmented."""
        weeks, kept = _numbers_of([*episodes, *validation]), _numbers_of(validation)
        return cls(config, seed, weeks, kept, augmentation)

    def refuse_other(self, asked: TrainingSettings) -> None:
        """Refuse to go on with settings that differ in more than steps, minutes and threads.

        Raises:
            HpcgymError: They do; the message names the first difference.
        """
        ours, theirs = self._stated(), asked._stated()
        for what in ours | theirs:
            mine, came = ours.get(what, "none"), theirs.get(what, "none")
            if mine != came:
                raise HpcgymError(
                    f"{what}: got {came}, yet the checkpoint has {mine}; a training goes on as it "
                    "began, but for steps, minutes and threads"
                )

    def _stated(self) -> dict[str, str]:
        """Return as texts what stays when a training goes on."""
        found = {"scenario": ", ".join(self.weeks), "seed": str(self.seed)}
        for what, weeks in (("weeks", self.weeks), ("validation weeks", self.kept)):
            found |= {f"{what} of {name}": number_ranges(own) for name, own in weeks.items()}
        found |= {k: v for k, v in texts_of(self.config).items() if k not in MAY_CHANGE}
        changes = texts_of(self.augmentation or Augmentation())
        return found | {f"augment {key}": text for key, text in changes.items()}


def _numbers_of(sets: Iterable[Episodes]) -> dict[str, tuple[int, ...]]:
    """Return the numbers of episodes, ascending, by scenario."""
    found: dict[str, set[int]] = {}
    for one in sets:
        found.setdefault(one.scenario.name, set()).update(one.numbers)
    return {name: tuple(sorted(numbers)) for name, numbers in found.items()}


@dataclass
class Checkpoint:
    """A training between two rollouts.

    Attributes:
        env: Its environments, in the middle of their episodes.
        model: What the model knows besides its networks.
        progress: State of the callback.
        randomness: States of the generators of Python, numpy and torch.
        version: Version of the file.
    """

    settings: TrainingSettings
    validation: tuple[Episodes, ...]
    env: HPCBatchVecEnv
    model: dict[str, Any]
    policy: dict[str, Any]
    optimizer: dict[str, Any]
    progress: dict[str, Any]
    randomness: tuple[Any, ...]
    version: int = FORMAT

    def restore(self, model: Any) -> None:
        """Put a fresh model of the same configuration, on `env`, where this one was.

        Writes the model, and the states of the generators of random numbers.
        """
        model.policy.load_state_dict(self.policy)
        model.policy.optimizer.load_state_dict(self.optimizer)
        known = dict(self.model)
        model.rollout_buffer.ordinal = known.pop("ordinal")
        for key, value in known.items():
            setattr(model, key, value)
        set_randomness(self.randomness)


def checkpoint_of(
    model: Any,
    settings: TrainingSettings,
    validation: tuple[Episodes, ...],
    progress: dict[str, Any],
) -> Checkpoint:
    """Return a checkpoint whose parts are the model's own until it is written."""
    kept = ("num_timesteps", "_n_updates", "_last_obs", "_last_episode_starts")
    known = {key: getattr(model, key) for key in kept}
    return Checkpoint(
        settings=settings,
        validation=validation,
        env=model.env,
        model=known | {"ordinal": model.rollout_buffer.ordinal},
        policy=model.policy.state_dict(),
        optimizer=model.policy.optimizer.state_dict(),
        progress=progress,
        randomness=randomness(),
    )


def write_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint over the one before.

    Raises:
        OutputError: It cannot be written.
    """
    with writing(path, force=True) as partial:
        torch.save(checkpoint, partial)


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint that you have written.

    Raises:
        HpcgymError: No such file, or not a checkpoint of this version.
    """
    try:
        found = torch.load(path, map_location="cpu", weights_only=False)
    except OSError as error:
        raise HpcgymError(f"{path}: cannot be read: {error.strerror or error}") from None
    except _NOT_OURS as error:
        raise HpcgymError(f"{path}: not a checkpoint of this hpcgym: {error}") from None
    if not isinstance(found, Checkpoint) or found.version != FORMAT:
        raise HpcgymError(f"{path}: not a checkpoint of this hpcgym")
    return found


def randomness() -> tuple[Any, ...]:
    """Return the states of the generators that learners share: Python's, numpy's and torch's."""
    return random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002


def set_randomness(states: tuple[Any, ...]) -> None:
    """Set the generators that learners share to what `randomness` returned."""
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    torch.set_rng_state(states[2])
