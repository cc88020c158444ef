"""Rollouts of Stable-Baselines3 whose decisions are compared with those of the same hour."""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.buffers import RolloutBuffer

from hpcgym.agent.learn.ppo.buffer import normalised

EPISODE = 10**6  # more than the decisions of an episode


class Paired(RolloutBuffer):
    """Rollouts of groups of adjacent environments, which play the same weeks.

    What comes later in a week is as hard for all of a group, so an advantage is taken less its mean
    over the group's decisions of the same hour.
    """

    def __init__(self, *args: Any, group_size: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = np.arange(self.n_envs) // group_size
        self.hour = np.zeros(self.n_envs, dtype=np.int64)  # more `EPISODE` for each begun

    def compute_returns_and_advantage(self, last_values: Any, dones: Any) -> None:
        """Compute returns, and advantages within groups and hours."""
        super().compute_returns_and_advantage(last_values, dones)
        hours = []
        for begun in self.episode_starts > 0:
            self.hour = np.where(begun, (self.hour // EPISODE + 1) * EPISODE, self.hour + 1)
            hours.append(self.hour)
        self.advantages = normalised(self.advantages, self.group, np.array(hours))
