"""PufferLib: its emulation of Gymnasium, its vectors and its policy."""

import gymnasium
import numpy as np
import pufferlib.vector
import torch
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.models import Default
from pufferlib.pytorch import sample_logits


def make(buf=None, seed=0) -> GymnasiumPufferEnv:
    """Make an environment for a vector of PufferLib."""
    env = gymnasium.make("hpcgym:hpcgym/Windows-pick-train-v0")
    return GymnasiumPufferEnv(env=env, buf=buf, seed=seed)


envs = pufferlib.vector.make(make, num_envs=4, backend=pufferlib.vector.Serial)
policy = Default(envs.driver_env, hidden_size=64)
observations, _ = envs.reset(seed=0)
ratios = []
for _ in range(600):
    with torch.no_grad():
        logits, _ = policy.forward_eval(torch.as_tensor(observations))
        actions, _, _ = sample_logits(logits)
    observations, _, _, _, infos = envs.step(actions.numpy())
    ratios += [info["ratio"] for info in infos if "ratio" in info]
print(np.mean(ratios))
