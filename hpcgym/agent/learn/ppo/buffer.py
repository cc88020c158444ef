"""Rollouts whose advantages are normalised within groups that play the same episodes.

Observations are kept without their empty slots, as networks take them: most slots are empty, and a
minibatch of whole observations is 14 MB.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from hpcgym.agent.learn.ppo.plackett_luce import ranks_of
from hpcgym.agent.learn.ppo.torch_networks import Packed

LONGEST = 2**24  # more than the decisions of an episode


class _InGroups:
    """What all buffers share; `group_size` adjacent environments play the same episodes.

    An advantage is less the mean over its group's episode, or, `by_decision`, over the group's
    decisions at the same place of the episode: what comes later is as hard for all of them.
    """

    def __init__(
        self, *args: Any, group_size: int, by_decision: bool = False, **kwargs: Any
    ) -> None:
        self._group_size, self._by_decision = group_size, by_decision
        super().__init__(*args, **kwargs)
        # `LONGEST` for each episode that an environment has begun, and `by_decision` 1 for each
        # decision since, shape (n_envs,).
        self.ordinal = np.zeros(self.n_envs, dtype=np.int64)  # type: ignore[attr-defined]

    def reset(self: Any) -> None:
        """Empty the buffer; episodes go on."""
        self._ordinals = np.zeros((self.buffer_size, self.n_envs), dtype=np.int64)
        super().reset()  # type: ignore[misc]

    def add(self: Any, *args: Any, **kwargs: Any) -> None:
        """Add a step, as the buffer of Stable-Baselines3 does."""
        begins, next_episode = np.asarray(args[3]) > 0, self.ordinal // LONGEST + 1
        self.ordinal = np.where(begins, next_episode * LONGEST, self.ordinal + self._by_decision)
        self._ordinals[self.pos] = self.ordinal
        super().add(*args, **kwargs)  # type: ignore[misc]

    def compute_returns_and_advantage(self: Any, last_values: Any, dones: Any) -> None:
        """Compute returns, and normalise advantages within groups and episodes."""
        super().compute_returns_and_advantage(last_values, dones)  # type: ignore[misc]
        group = np.arange(self.n_envs) // self._group_size
        if self._group_size == 1:
            group, self._ordinals = np.zeros_like(group), np.zeros_like(self._ordinals)
        self.advantages = normalised(self.advantages, group, self._ordinals)


class _Packing(_InGroups):
    """Keeps observations as networks take them."""

    policy: Any  # has packed the observations of the step that is added
    observations: Any

    def reset(self: Any) -> None:
        """Empty the buffer; episodes go on."""
        super().reset()
        self.observations = {}  # those that the learner would keep
        self._steps: list[Packed] = []

    def add(self: Any, *args: Any, **kwargs: Any) -> None:
        """Add a step, as the buffer of Stable-Baselines3 does."""
        self._steps.append(self.policy.packed)
        super().add(*args, **kwargs)

    def get(self: Any, batch_size: int | None = None) -> Any:
        """Yield minibatches, with observations as `Packed`."""
        if not self.generator_ready:
            self._flatten()
        yield from super().get(batch_size)  # type: ignore[misc]

    def _flatten(self: Any) -> None:
        """Join the steps; decisions are in the order of Stable-Baselines3's buffers."""
        parts: Any = Packed(*zip(*self._steps, strict=True))  # type: ignore[arg-type]
        mask, cluster = torch.stack(parts.mask), torch.stack(parts.cluster)
        n_jobs = mask.sum(dim=2).cpu().numpy()
        begin = n_jobs.cumsum().reshape(n_jobs.shape) - n_jobs
        self._n_jobs, self._begin = n_jobs.T.ravel(), begin.T.ravel()
        self._mask, self._cluster = (
            tensor.transpose(0, 1).flatten(0, 1) for tensor in (mask, cluster)
        )
        self._jobs = torch.cat(parts.jobs)
        self._rank = None
        if self.actions.shape == mask.shape:  # of an order
            self._rank = torch.as_tensor(ranks_of(self.actions), device=mask.device)[mask]

    def _get_samples(self: Any, batch_inds: NDArray[np.int64], env: Any = None) -> Any:
        """Return the samples of a minibatch."""
        samples = super()._get_samples(batch_inds, env)  # type: ignore[misc]
        n_jobs, device = self._n_jobs[batch_inds], self._mask.device
        before = n_jobs.cumsum() - n_jobs
        places = np.repeat(self._begin[batch_inds] - before, n_jobs) + np.arange(n_jobs.sum())
        owner = np.repeat(np.arange(len(n_jobs)), n_jobs)
        rows, chosen = (torch.as_tensor(array, device=device) for array in (places, batch_inds))
        packed = Packed(
            self._jobs.index_select(0, rows),
            torch.as_tensor(owner, device=device),
            self._cluster.index_select(0, chosen),
            self._mask.index_select(0, chosen),
            None if self._rank is None else self._rank.index_select(0, rows),
        )
        return samples._replace(observations=packed)


class GroupBuffer(_Packing, DictRolloutBuffer):
    """Rollouts for `stable_baselines3.PPO`."""


class FlatGroupBuffer(_InGroups, RolloutBuffer):
    """Rollouts for `stable_baselines3.PPO` with a policy of its own, of flat observations."""


class MaskedGroupBuffer(_Packing, MaskableDictRolloutBuffer):
    """Rollouts for `sb3_contrib.MaskablePPO`."""


def normalised(
    advantage: NDArray[np.float32], group: NDArray[np.int64], episode: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return advantages of mean 0 in a group's episode and of standard deviation 1 in a group.

    Between logs advantages differ by a factor of hundreds: with one unit for all groups, a single
    heavy week would silence the others.

    Args:
        advantage: Shape (n_steps, n_envs).
        group: Group of each environment, shape (n_envs,).
        episode: Ordinal of the episode of each step, shape (n_steps, n_envs).

    Source: Specification, section 10, "Learnability kit".
    """
    key = group * (int(episode.max()) + 1) + episode
    _, pair = np.unique(key, return_inverse=True)
    pair = pair.ravel()
    mean = np.bincount(pair, advantage.ravel().astype(np.float64)) / np.bincount(pair)
    centred = advantage - mean[pair].reshape(advantage.shape)
    size = np.bincount(group) * len(advantage)
    unit = np.sqrt(np.bincount(group, (centred**2).sum(axis=0)) / size)
    return np.asarray(centred / (unit[group] + 1e-8), dtype=np.float32)
