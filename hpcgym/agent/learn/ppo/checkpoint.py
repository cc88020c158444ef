"""Checkpoints, from which a training goes on as if it had not been interrupted.

A checkpoint is a line with a digest, and pickled Python objects, compressed: most of a simulation's
state is zeros. Load none that you have not written yourself. Agents on a shelf are `.npz` files.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import pickle
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BufferedRandom, BufferedReader, BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hpcgym.agent.learn.ppo.config import PPOConfig, texts_of
from hpcgym.agent.network import read_network
from hpcgym.agent.sb3 import HPCBatchVecEnv
from hpcgym.base.errors import CardError, HpcgymError, refuse_seed, unreadable
from hpcgym.base.output import writing
from hpcgym.base.ranges import number_ranges
from hpcgym.env.scenario.augment import Augmentation
from hpcgym.env.scenario.episodes import Episodes

CHECKPOINT = "checkpoint.pt"  # file in the folder of a training from which it can be resumed

FORMAT = b"hpcgym checkpoint 7 sha256 "
"""What files begin with; the digest of what follows it, and the end of the line, come next."""

_HEAD = len(FORMAT) + 64 + 1

_LOGS = "events.out.tfevents.*"  # TensorBoard's files

MAY_CHANGE = ("steps", "minutes", "threads")
"""Hyper-parameters that may change when a training goes on."""

_NOT_OURS = (
    *(pickle.UnpicklingError, RuntimeError, EOFError, ValueError, LookupError),
    *(AttributeError, ImportError, TypeError),  # classes that are gone, or have other fields
)
"""What reading a file raises that is no checkpoint, or one of another hpcgym."""


@dataclass(frozen=True)
class TrainingSettings:
    """The settings of a training: what it is made of and cannot change later.

    Raises:
        HpcgymError: A seed out of range.
    """

    config: PPOConfig
    seed: int
    # Numbers of all weeks, ascending, by scenario, those of validation included.
    weeks: dict[str, tuple[int, ...]]
    kept: dict[str, tuple[int, ...]]  # numbers of the weeks of validation, likewise
    # How the weeks that are played are changed at every draw; None = not at all.
    augmentation: Augmentation | None

    def __post_init__(self) -> None:
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
        texts = {"scenario": ", ".join(self.weeks), "seed": str(self.seed)}
        for what, weeks in (("weeks", self.weeks), ("validation weeks", self.kept)):
            texts |= {
                f"{what} of {name}": number_ranges(numbers) for name, numbers in weeks.items()
            }
        texts |= {k: v for k, v in texts_of(self.config).items() if k not in MAY_CHANGE}
        changes = texts_of(self.augmentation or Augmentation())
        return texts | {f"augment {key}": text for key, text in changes.items()}


def _numbers_of(sets: Iterable[Episodes]) -> dict[str, tuple[int, ...]]:
    """Return the numbers of episodes, ascending, by scenario."""
    by_scenario: dict[str, set[int]] = {}
    for episodes in sets:
        by_scenario.setdefault(episodes.scenario.name, set()).update(episodes.numbers)
    return {name: tuple(sorted(numbers)) for name, numbers in by_scenario.items()}


@dataclass
class Checkpoint:
    """A training between two rollouts."""

    settings: TrainingSettings
    validation: tuple[Episodes, ...]
    env: HPCBatchVecEnv  # its environments, in the middle of their episodes
    model: dict[str, Any]  # what the model knows besides its networks
    networks: bytes  # networks and optimiser, as torch saves them
    progress: dict[str, Any]  # state of the callback
    starts: dict[str, float]  # as of `Trained`
    randomness: tuple[Any, ...]  # states of the generators of Python, numpy and torch
    logs: dict[str, int]  # size of each of TensorBoard's files, bytes

    def restore(self, model: Any) -> None:
        """Put a fresh model of the same configuration, on `env`, where this one was.

        Writes the model, and the states of the generators of random numbers.
        """
        networks = torch.load(BytesIO(self.networks), map_location="cpu")
        model.policy.load_state_dict(networks["policy"])
        model.policy.optimizer.load_state_dict(networks["optimizer"])
        known = dict(self.model)
        model.rollout_buffer.ordinal = known.pop("ordinal")
        for key, value in known.items():
            setattr(model, key, value)
        set_randomness(self.randomness)

    def has_written(self, weights: Path) -> bool:
        """Return whether a file holds the best network so far, or the last."""
        try:
            written = read_network(weights).weights
        except CardError:
            return False
        networks = (self.progress[which] for which in ("best", "average"))
        return any(
            network.keys() == written.keys()
            and all(np.array_equal(network[key], written[key]) for key in network)
            for network in networks
        )


def checkpoint_of(
    model: Any,
    settings: TrainingSettings,
    validation: tuple[Episodes, ...],
    progress: dict[str, Any],
    starts: dict[str, float],
    folder: Path,
) -> Checkpoint:
    """Return a checkpoint for a folder, whose parts are the model's own until it is written."""
    networks, policy = BytesIO(), model.policy
    both = {"policy": policy.state_dict(), "optimizer": policy.optimizer.state_dict()}
    torch.save(both, networks)
    kept = ("num_timesteps", "_n_updates", "_last_obs", "_last_episode_starts")
    known = {key: getattr(model, key) for key in kept}
    return Checkpoint(
        settings=settings,
        validation=validation,
        env=model.env,
        model=known | {"ordinal": model.rollout_buffer.ordinal},
        networks=networks.getvalue(),
        progress=progress,
        starts=starts,
        randomness=randomness(),
        logs={file.name: file.stat().st_size for file in folder.glob(_LOGS)},
    )


def write_checkpoint(checkpoint: object, path: Path) -> None:
    """Write a checkpoint over the one before.

    Raises:
        OutputError: It cannot be written; the one before is still there.
    """
    with writing(path, force=True) as partial, partial.open("w+b") as file:
        file.write(bytes(_HEAD))
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1) as packed:
            pickle.dump(checkpoint, packed, protocol=5)
        digest = _digest_of(file)
        file.seek(0)
        file.write(FORMAT + digest + b"\n")


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint that you have written.

    Raises:
        HpcgymError: No such file, a damaged one, or not a checkpoint of this version.
    """
    try:
        with open(path, "rb") as file:
            checkpoint = _unpacked(file, path)
    except OSError as error:
        raise HpcgymError(
            f"{unreadable(path, error)}; only a training that was begun in this folder can be "
            "resumed"
        ) from None
    except _NOT_OURS as error:
        raise HpcgymError(f"{path}: not a checkpoint of this hpcgym: {error}") from None
    if not isinstance(checkpoint, Checkpoint):
        raise HpcgymError(f"{path}: not a checkpoint of this hpcgym")
    return checkpoint


def _unpacked(file: BufferedReader, path: str | Path) -> object:
    """Return what a file holds, if its digest is right."""
    head = file.read(_HEAD)
    if not head.startswith(FORMAT):
        raise RuntimeError("it begins otherwise")
    if head != FORMAT + _digest_of(file) + b"\n":
        raise HpcgymError(
            f"{path}: damaged: its content is not what was written. Put a copy of the file in its "
            "place and resume, or train anew with --force"
        )
    file.seek(_HEAD)
    with gzip.GzipFile(fileobj=file) as packed:
        return pickle.load(packed)


def _digest_of(file: BufferedReader | BufferedRandom) -> bytes:
    """Digest a file behind its first line."""
    file.seek(_HEAD)
    return hashlib.file_digest(file, "sha256").hexdigest().encode()


def forget(folder: Path) -> None:
    """Remove a training that a folder keeps: its checkpoint and TensorBoard's files."""
    (folder / CHECKPOINT).unlink(missing_ok=True)
    clear_after({}, folder)


def clear_after(logs: dict[str, int], folder: Path) -> None:
    """Remove what a training that was cut off wrote after a checkpoint.

    Args:
        logs: Size of each of TensorBoard's files at the checkpoint, bytes.

    Writes TensorBoard's files, cut to these sizes, and removes halves of checkpoints.
    """
    for half in folder.glob(f".????????-{CHECKPOINT}"):
        half.unlink()
    for file in folder.glob(_LOGS):
        if file.name not in logs:
            file.unlink()
        elif file.stat().st_size > logs[file.name]:
            os.truncate(file, logs[file.name])


def randomness() -> tuple[Any, ...]:
    """Return the states of the generators that learners share: Python's, numpy's and torch's."""
    return random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002


def set_randomness(states: tuple[Any, ...]) -> None:
    """Set the generators that learners share to what `randomness` returned."""
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    torch.set_rng_state(states[2])
