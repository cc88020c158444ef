"""A network that scores each waiting job by the same weights, for learners that use torch.

A row of the observation, with the cluster's fields behind it, becomes one number: the job's logit.
All rows share the weights, so that jobs in other slots get the same numbers, and the number of
weights does not grow with the number of slots. Empty slots have probability 0. The value is
computed from the mean and the sum over the rows, by weights of its own.

`SharedRows` is a plain module with the methods of CleanRL's `Agent`. `SharedRowsPolicy` is the same
network as a policy of Stable-Baselines3's PPO or A2C. Both read masks out of the observation, so no
learner has to know of them. Both are for action `job`.

Source: Zhang et al. 2020 (RLScheduler, SC20), the kernel network, whose critic is no pool; Zaheer
et al. 2017 (Deep Sets), the value; Huang and Ontanon 2022, masks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from hpcgym.base.errors import ScenarioError
from hpcgym.base.packages import needing
from hpcgym.env.observation import flat_places

with needing("SharedRows", "torch", "stable_baselines3"):
    import torch
    from stable_baselines3.common.distributions import CategoricalDistribution, Distribution
    from stable_baselines3.common.policies import ActorCriticPolicy
    from torch import Tensor, nn
    from torch.distributions import Categorical

Shown = Tensor | dict[str, Tensor]

NEVER = -1e9  # logit of an empty slot; its probability is 0 in float32


class SharedRows(nn.Module):
    """Scores of jobs, and the value of an observation.

    Args:
        envs: A vector environment or one environment of action `job`; its spaces are read.
        hidden: Width of each layer.

    Raises:
        ScenarioError: Its actions choose no job of the observation.

    Example:
        >>> import gymnasium, hpcgym
        >>> envs = gymnasium.make_vec("hpcgym/Windows-pick-test-v0", num_envs=3)
        >>> network = SharedRows(envs)
        >>> shown = torch.as_tensor(envs.reset(seed=1)[0])
        >>> network(shown).shape, network.get_value(shown).shape
        (torch.Size([3, 32]), torch.Size([3, 1]))
    """

    def __init__(self, envs: Any, hidden: int = 32) -> None:
        super().__init__()
        shown = getattr(envs, "single_observation_space", envs.observation_space)
        chosen = getattr(envs, "single_action_space", envs.action_space)
        self.n_slots, self.places = _read(shown, chosen)
        n_job, n_cluster = (
            self.places[part].stop - self.places[part].start for part in ("jobs", "cluster")
        )
        n_job //= self.n_slots
        self.jobs, self.cluster = nn.Linear(n_job, hidden), nn.Linear(n_cluster, hidden)
        self.middle, self.logit = nn.Linear(hidden, hidden), nn.Linear(hidden, 1)
        self.value_jobs = nn.Linear(n_job, hidden)
        self.value_cluster = nn.Linear(n_cluster, hidden)
        self.pooled, self.value = nn.Linear(2 * hidden + n_cluster, hidden), nn.Linear(hidden, 1)
        for layer in self.children():
            assert isinstance(layer, nn.Linear)
            nn.init.orthogonal_(layer.weight, 0.01 if layer is self.logit else 2**0.5)
            nn.init.zeros_(layer.bias)

    def forward(self, shown: Shown) -> Tensor:
        """Return the logit of each slot, shape (n, n_slots), of n observations."""
        jobs, cluster, mask = self._parts(shown)
        rows, of = jobs[mask], mask.nonzero()[:, 0]
        h = torch.relu(self.jobs(rows) + self.cluster(cluster)[of])
        h = torch.relu(self.middle(h))
        logits = torch.full_like(mask, NEVER, dtype=h.dtype)
        return logits.masked_scatter(mask, self.logit(h)[:, 0])

    def get_value(self, shown: Shown) -> Tensor:
        """Return the value of each observation, shape (n, 1)."""
        jobs, cluster, mask = self._parts(shown)
        rows, of = jobs[mask], mask.nonzero()[:, 0]
        h = torch.relu(self.value_jobs(rows) + self.value_cluster(cluster)[of])
        total = h.new_zeros(len(mask), h.shape[1]).index_add(0, of, h)
        mean = total / mask.sum(dim=1, keepdim=True).clamp(min=1)
        pooled = self.pooled(torch.cat([mean, total / self.n_slots, cluster], dim=1))
        return torch.as_tensor(self.value(torch.relu(pooled)))

    def get_action_and_value(
        self, shown: Shown, action: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return actions, log likelihoods, entropies and values, each of shape (n,) but values."""
        chances: Any = Categorical(logits=self(shown), validate_args=False)
        action = chances.sample() if action is None else action
        entropy = -(chances.probs * chances.logits).sum(dim=1)
        return action, chances.log_prob(action), entropy, self.get_value(shown)

    def _parts(self, shown: Shown) -> tuple[Tensor, Tensor, Tensor]:
        """Return the fields of jobs, (n, n_slots, n_fields), of clusters, and what holds a job."""
        if isinstance(shown, dict):
            jobs, cluster, mask = (shown[part] for part in ("jobs", "cluster", "action_mask"))
        else:
            jobs, cluster, mask = (shown[:, span] for span in self.places.values())
        return jobs.reshape(len(mask), self.n_slots, -1), cluster, mask > 0.5


class SharedRowsPolicy(ActorCriticPolicy):
    """`SharedRows` as a policy of Stable-Baselines3.

    Of its keywords `hidden` alone is read, beside those of the optimiser.

    Example:
        >>> from stable_baselines3 import PPO
        >>> from hpcgym.agent.sb3 import HPCBatchVecEnv
        >>> envs = HPCBatchVecEnv("tiny", action="job", num_envs=4)
        >>> PPO(SharedRowsPolicy, envs, n_steps=8, batch_size=32).learn(64).num_timesteps
        64
    """

    def __init__(self, *args: Any, hidden: int = 32, **keywords: Any) -> None:
        self.hidden = hidden
        super().__init__(*args, **keywords)

    def _build(self, lr_schedule: Any) -> None:
        """Create the network and the optimiser."""
        self.network = SharedRows(self, self.hidden)
        make: Any = self.optimizer_class
        self.optimizer = make(self.network.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)

    def forward(self, obs: Shown, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Return actions, values and log likelihoods."""
        distribution = self.get_distribution(obs)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, self.predict_values(obs), distribution.log_prob(actions)

    def evaluate_actions(self, obs: Shown, actions: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return values, log likelihoods of actions, and entropies."""
        distribution = self.get_distribution(obs)
        value = self.predict_values(obs)
        return value, distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Shown) -> Distribution:
        """Return the distribution of actions."""
        return CategoricalDistribution(self.network.n_slots).proba_distribution(self.network(obs))

    def predict_values(self, obs: Shown) -> Tensor:
        """Return the values of observations, shape (n, 1)."""
        return self.network.get_value(obs)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        """Return what `save` keeps to make the policy again."""
        return super()._get_constructor_parameters() | {"hidden": self.hidden}


def _read(shown: Any, chosen: Any) -> tuple[int, dict[str, slice]]:
    """Return the slots, and where jobs, cluster and mask are in one array of all numbers."""
    n_slots = int(chosen.n) if isinstance(chosen, spaces.Discrete) else 0
    parts = dict(shown.spaces) if isinstance(shown, spaces.Dict) else {}
    if n_slots and {"jobs", "cluster", "action_mask"} <= parts.keys():
        sizes = [
            int(np.prod(parts[part].shape or ())) for part in ("jobs", "cluster", "action_mask")
        ]
        ends = np.cumsum([0, *sizes]).tolist()
        if sizes[2] == n_slots:
            begun = zip(("jobs", "cluster", "action_mask"), ends[:-1], ends[1:], strict=True)
            return n_slots, {part: slice(begin, end) for part, begin, end in begun}
    if n_slots and not parts:
        places = flat_places(n_slots)
        if shown.shape == (places["action_mask"].stop,):
            return n_slots, places
    raise ScenarioError(
        f"SharedRows scores the jobs of action 'job'; got actions {chosen} and observations "
        f"{shown!s:.200}; with nodes or `fields`, use observation='dict'"
    )
