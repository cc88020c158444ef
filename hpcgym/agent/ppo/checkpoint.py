"""Checkpoints of a training, from which it goes on as if it had not been cut off.

A checkpoint holds Python objects, pickled: load none that you have not written yourself. What goes
on a shelf is `.npz`.
"""

from __future__ import annotations

import pickle
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hpcgym.agent.ppo.config import PPOConfig
from hpcgym.agent.sb3 import HPCBatchVecEnv
from hpcgym.errors import HpcgymError
from hpcgym.output import writing
from hpcgym.scenario.build import Episodes

FORMAT = 2
"""Version of the files."""


@dataclass
class Checkpoint:
    """A training between two rollouts.

    Attributes:
        config: Its hyper-parameters.
        seed: Its seed.
        validation: Weeks of its validations.
        env: Its environments, in the middle of their episodes.
        model: What the model knows besides its networks.
        policy: Parameters of the networks.
        optimizer: State of the optimiser.
        progress: State of the callback.
        randomness: States of the generators of Python, numpy and torch.
        version: Version of the file.
    """

    config: PPOConfig
    seed: int
    validation: tuple[Episodes, ...]
    env: HPCBatchVecEnv
    model: dict[str, Any]
    policy: dict[str, Any]
    optimizer: dict[str, Any]
    progress: dict[str, Any]
    randomness: tuple[Any, ...]
    version: int = FORMAT

    def restore(self, model: Any) -> None:
        """Put a fresh model where this one was.

        Args:
            model: A model of the same configuration, on `env`.

        Writes:
            The model, and the states of the generators of random numbers.
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
    config: PPOConfig,
    seed: int,
    validation: tuple[Episodes, ...],
    progress: dict[str, Any],
) -> Checkpoint:
    """Take down a training between two rollouts.

    Args:
        model: The model.
        config: Its hyper-parameters.
        seed: Its seed.
        validation: Weeks of its validations.
        progress: State of the callback.

    Returns:
        The checkpoint; its parts are the model's own until it is written.

    Source:
        House rule: long runs can be cut off.
    """
    kept = ("num_timesteps", "_n_updates", "_last_obs", "_last_episode_starts")
    known = {key: getattr(model, key) for key in kept}
    return Checkpoint(
        config=config,
        seed=seed,
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

    Args:
        checkpoint: The checkpoint.
        path: The file.

    Raises:
        OutputError: It cannot be written.

    Source:
        House rule: a file is whole or absent.
    """
    with writing(path, force=True) as partial:
        torch.save(checkpoint, partial)


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint that you have written.

    Args:
        path: The file.

    Returns:
        The checkpoint.

    Raises:
        HpcgymError: No such file, or not a checkpoint of this version.

    Source:
        House rule: long runs can be cut off.
    """
    try:
        found = torch.load(path, map_location="cpu", weights_only=False)
    except OSError as error:
        raise HpcgymError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (pickle.UnpicklingError, RuntimeError, EOFError, AttributeError, ImportError) as error:
        raise HpcgymError(f"{path}: not a checkpoint of this hpcgym: {error}") from None
    if not isinstance(found, Checkpoint) or found.version != FORMAT:
        raise HpcgymError(f"{path}: not a checkpoint of this hpcgym")
    return found


def randomness() -> tuple[Any, ...]:
    """Return the states of the generators that learners share.

    Returns:
        Those of Python, numpy and torch.

    Source:
        Stable-Baselines3 draws from all three.
    """
    return random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002


def set_randomness(states: tuple[Any, ...]) -> None:
    """Put the generators that learners share where they were.

    Args:
        states: What `randomness` returned.

    Source:
        House rule: a training leaves the generators of its caller as they were.
    """
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    torch.set_rng_state(states[2])
