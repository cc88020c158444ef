"""Behaviour cloning of the start, by maximum likelihood, for networks that do not begin there."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hpcgym.agent.network import STARTS, NetworkSpec, ranks_as_action


def clone_start(model: Any, updates: int, batch_size: int) -> float:
    """Fit a model's network to the actions of its start; return the last loss, 0 without updates.

    The loss is minus the mean log likelihood of those actions, which the environments also play.

    Args:
        model: PPO or MaskablePPO of Stable-Baselines3, with its environments.
        updates: Steps of the optimiser.
        batch_size: Decisions of each; all environments decide in turn until there are as many.

    Writes the model's network, its optimiser's moments and its environments, which play on.

    Source: Specification, section 10, "Learnability kit".
    """
    env, policy, last = model.get_env(), model.policy, 0.0
    shown = env.reset()
    policy.set_training_mode(True)
    for _ in range(updates):
        batch: list[tuple[dict[str, Tensor], Tensor]] = []
        while len(batch) * env.num_envs < batch_size:
            seen, _ = policy.obs_to_tensor(shown)
            actions = start_actions(policy.scorer.spec, seen)
            batch.append((seen, actions))
            shown, *_ = env.step(actions.cpu().numpy())
        seen = {
            key: torch.cat([observation[key] for observation, _ in batch]) for key in batch[0][0]
        }
        _, log_prob, _ = policy.evaluate_actions(seen, torch.cat([done for _, done in batch]))
        loss = -log_prob.mean()
        last = loss.item()
        policy.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), model.max_grad_norm)
        policy.optimizer.step()
    return last


def start_actions(spec: NetworkSpec, shown: dict[str, Tensor]) -> Tensor:
    """Return the action of a network's start, SAF or Smith's rule, for each observation."""
    mask = shown["action_mask"] > 0.5
    if not spec.scores_jobs:
        if spec.action == "policy":
            return torch.full((len(mask),), spec.start_output, device=mask.device)
        return torch.as_tensor(spec.head_start, device=mask.device).repeat(len(mask), 1)
    column, scale = STARTS[spec.start]
    score = scale * shown["jobs"].reshape(*mask.shape, -1)[:, :, column]
    score = score.masked_fill(~mask, torch.inf)
    if spec.action == "job":
        return score.argmin(dim=1)
    return torch.as_tensor(ranks_as_action(-score.cpu().numpy()), device=mask.device)
