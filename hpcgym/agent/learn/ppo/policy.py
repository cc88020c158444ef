"""The networks as policies of Stable-Baselines3's PPO, and of sb3-contrib's with masks."""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import Tensor

from hpcgym.agent.learn.ppo.plackett_luce import PlackettLuce
from hpcgym.agent.learn.ppo.torch_networks import Critic, Packed, Scorer, first_layers, pack
from hpcgym.agent.network import EMPTY, NetworkSpec

Shown = dict[str, Tensor] | Packed


class _Networks:
    """What both policies share: our networks in place of Stable-Baselines3's layers.

    `packed` holds the observations of the latest call of `forward`.

    Args:
        *args: Observation space, action space and schedule of the learning rate.
        n_ranked: First ranks of an `order` that are drawn; 0 = all.
        log_std: Initial log standard deviation of a vector of numbers.
        with_entropy: Whether to compute the entropy of an order, which costs time.
    """

    def __init__(
        self,
        *args: Any,
        spec: NetworkSpec,
        n_ranked: int = 0,
        log_std: float = 0.0,
        with_entropy: bool = True,
        **kwargs: Any,
    ) -> None:
        self._spec, self._n_ranked, self._log_std = spec, n_ranked, log_std
        self._with_entropy = with_entropy
        super().__init__(*args, **kwargs)

    def _build(self: Any, lr_schedule: Any) -> None:
        """Create the networks and the optimiser."""
        self.scorer = Scorer(self._spec, self._log_std)
        self.critic = Critic(self._spec)
        if self._spec.action == "order":
            self.action_dist = PlackettLuce(self._spec.n_slots, self._n_ranked)
        self.optimizer = torch.optim.Adam(
            self.parameters(), lr=lr_schedule(1), eps=1e-5, fused=True
        )

    def _distribution(self: Any, packed: Packed, h: Tensor | None = None) -> Distribution:
        output = self.scorer(packed, h)
        if self._spec.scores_jobs:
            divided = output / self._spec.temperature
            output = divided.masked_fill(~packed.mask, float(EMPTY))  # at any temperature
        if self._spec.action == "order":
            return self.action_dist.proba_distribution(output)  # type: ignore[no-any-return]
        if self._spec.draws_numbers:
            log_std = self.scorer.arrays["log_std"]
            return self.action_dist.proba_distribution(output, log_std)  # type: ignore[no-any-return]
        return self.action_dist.proba_distribution(action_logits=output)  # type: ignore[no-any-return]

    def forward(
        self: Any, obs: Shown, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return actions, values and log likelihoods; observations hold the masks."""
        self.packed = packed = pack(obs, self._spec)
        first, of_critic = first_layers(self.scorer, self.critic, packed)
        distribution = self._distribution(packed, first)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, self.critic(packed, of_critic), distribution.log_prob(actions)

    def evaluate_actions(
        self: Any, obs: Shown, actions: Tensor, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return values, log likelihoods of actions, and entropies; observations hold the masks."""
        packed = pack(obs, self._spec)
        first, of_critic = first_layers(self.scorer, self.critic, packed)
        value = self.critic(packed, of_critic)
        is_costly = self._spec.action == "order" and not self._with_entropy
        if is_costly and packed.rank is not None:
            scores = self.scorer.of_rows(packed, first) / self._spec.temperature
            log_prob = self.action_dist.log_prob_of_rows(
                scores, packed.owner, packed.rank, packed.n_jobs
            )
            return value, log_prob, None
        distribution = self._distribution(packed, first)
        entropy = None if is_costly else distribution.entropy()
        return value, distribution.log_prob(actions), entropy

    def get_distribution(self: Any, obs: Shown, action_masks: Any = None) -> Distribution:
        """Return the distribution of actions; observations hold the masks."""
        return self._distribution(pack(obs, self._spec))  # type: ignore[no-any-return]

    def predict_values(self: Any, obs: Shown) -> Tensor:
        """Return the values of observations."""
        return self.critic(pack(obs, self._spec))  # type: ignore[no-any-return]


class SchedulingPolicy(_Networks, ActorCriticPolicy):  # type: ignore[misc]
    """For all but `job`, under `stable_baselines3.PPO`."""


class MaskedSchedulingPolicy(_Networks, MaskableActorCriticPolicy):  # type: ignore[misc]
    """For `job`, under `sb3_contrib.MaskablePPO`."""
