"""Proximal policy optimisation on Stable-Baselines3; needs the extra `train`."""

from hpcgym.agent.learn.ppo.config import PPOConfig, overridden, preset
from hpcgym.agent.learn.ppo.train import PPOTrainer, Trained, resume, train

__all__ = ["PPOConfig", "PPOTrainer", "Trained", "overridden", "preset", "resume", "train"]
