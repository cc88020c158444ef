"""Environments and models, built from a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger, configure

from hpcgym.agent.learn.ppo.buffer import GroupBuffer, MaskedGroupBuffer
from hpcgym.agent.learn.ppo.config import PPOConfig
from hpcgym.agent.learn.ppo.policy import MaskedSchedulingPolicy, SchedulingPolicy
from hpcgym.agent.sb3 import HPCBatchVecEnv
from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import make_folder
from hpcgym.env.scenario.augment import AugmentedEpisodes
from hpcgym.env.scenario.episodes import Episodes

GROWTHS = 7  # steps in which windows grow from the shortest to the longest
GROWN = 1_000_000  # what each step adds to the seed of the environments


def env_of(config: PPOConfig, episodes: Sequence[Episodes]) -> HPCBatchVecEnv:
    """Make the environments. Scenarios are dealt out to the groups in turn, one per group.

    Raises:
        HpcgymError: No episodes, or more scenarios than groups.

    Source: Specification, section 10, "Learnability kit": common random numbers.
    """
    n_groups = config.n_envs // config.group_size
    if not 1 <= len(episodes) <= n_groups:
        raise HpcgymError(
            f"{len(episodes)} scenarios cannot be dealt out to {n_groups} groups; n_envs is "
            f"{config.n_envs}, group_size {config.group_size}"
        )
    dealt = [episodes[env // config.group_size % len(episodes)] for env in range(config.n_envs)]
    keywords = config.env_keywords
    keywords["reward"] = config.reward
    keywords["baseline"] = config.paired_with
    return HPCBatchVecEnv(dealt, num_envs=config.n_envs, threads=config.threads, **keywords)


def seed_groups(env: HPCBatchVecEnv, config: PPOConfig, seed: int) -> None:
    """Seed the environments at their next reset; those of a group alike."""
    env.seed_each([1_000 * seed + number // config.group_size for number in range(config.n_envs)])


def grow_windows(model: Any, config: PPOConfig, done: float) -> bool:
    """Set the length of growing windows; return whether all episodes were begun anew for it.

    Windows grow in GROWTHS steps as `done` goes from 0 to 1. At each step every environment is
    reset and seeded once more, so that those of a group go on playing the same episodes.

    Writes `progress` of the episodes, the environments, and the model's last observations.

    Source: Specification, section 10, "Learnability kit"; short windows before long ones: Zhang et
    al. 2020 (RLScheduler).
    """
    configs = {id(env_config): env_config for env_config in model.env.envs.configs}
    growing = [
        env_config.episodes
        for env_config in configs.values()
        if isinstance(env_config.episodes, AugmentedEpisodes)
        and env_config.episodes.augmentation.growing
    ]
    step = min(int(done * (GROWTHS + 1)), GROWTHS)
    if all(episodes.progress == step / GROWTHS for episodes in growing):
        return False
    for episodes in growing:
        episodes.progress = step / GROWTHS
    seed_groups(model.env, config, model.seed + GROWN * step)
    model._last_obs = model.env.reset()
    model._last_episode_starts[:] = True
    model.rollout_buffer.ordinal[:] = model.rollout_buffer.ordinal.max()
    return True


def model_of(config: PPOConfig, env: HPCBatchVecEnv, seed: int, output: str | Path | None) -> Any:
    """Make the model that learns: PPO of Stable-Baselines3; for `job`, MaskablePPO of sb3-contrib.

    TensorBoard's files go to the folder `output`, if there is one.

    Source: Schulman et al. 2017; Huang and Ontanon 2022, invalid action masking.
    """
    is_masked = config.action == "job"
    learner: Any = MaskablePPO if is_masked else PPO
    model = learner(
        MaskedSchedulingPolicy if is_masked else SchedulingPolicy,
        env,
        learning_rate=config.learning_rate,
        n_steps=config.n_steps,
        batch_size=config.batch_size,
        n_epochs=config.n_epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        normalize_advantage=False,  # the buffer does, in groups
        ent_coef=config.ent_coef,
        vf_coef=config.vf_coef,
        max_grad_norm=config.max_grad_norm,
        target_kl=config.target_kl or None,
        rollout_buffer_class=MaskedGroupBuffer if is_masked else GroupBuffer,
        rollout_buffer_kwargs={key: getattr(config, key) for key in ("group_size", "by_decision")},
        policy_kwargs={
            "spec": config.spec,
            "n_ranked": config.n_ranked,
            "log_std": config.log_std,
            "with_entropy": config.ent_coef > 0,
        },
        seed=seed,
        device=config.device,
    )
    model.rollout_buffer.policy = model.policy
    logger = Logger(None, [])
    if output is not None:
        logger = configure(str(make_folder(output)), ["tensorboard"])
    model.set_logger(logger)
    return model
