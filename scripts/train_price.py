"""Train Stable-Baselines3's PPO on hpcgym/Price-train-v0, and keep the network.

    python scripts/train_price.py --seed 0 --minutes 5 --output runs/price-0.npz

Minutes are of one core's time. Needs the extra `sb3`. `scripts/price.py` judges what is kept.
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

from hpcgym.agent.learn.ppo.buffer import FlatGroupBuffer
from hpcgym.agent.sb3 import HPCBatchVecEnv
from hpcgym.env.registration import PROBLEMS
from research.clock import Clock

GAMMA, RATE, LIMIT = 0.999, 5e-4, 10.0
N_ENVS, GROUP, N_STEPS = 64, 8, 168

SETTINGS: dict[str, Any] = {
    "device": "cpu",
    "n_steps": N_STEPS,
    "batch_size": 2688,
    "n_epochs": 6,
    "gamma": GAMMA,
    "gae_lambda": 0.98,
    "ent_coef": 0.0,
    "rollout_buffer_class": FlatGroupBuffer,
    "rollout_buffer_kwargs": {"group_size": GROUP, "by_decision": True},
    "policy_kwargs": {"net_arch": [64, 64], "log_std_init": -2.3},
}
"""Of PPO; the learning rate falls to a twentieth while the time runs out."""


class Told(Clock):
    """A clock that says how far it is."""

    def _on_rollout_end(self) -> None:
        super()._on_rollout_end()
        ended = [info["r"] for info in self.model.ep_info_buffer or ()]
        print(f"{self.num_timesteps} {1 - self.left:.0%} {np.mean(ended or [0]):+.3f}", flush=True)


def network_of(model: PPO, envs: VecNormalize) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays that `hpcgym.agent.price.PriceNet` reads."""
    weights = {name: value.numpy() for name, value in model.policy.state_dict().items()}
    layers = ["mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net"]
    statistics = envs.obs_rms
    arrays = {
        "mean": statistics.mean.astype(np.float32),
        "deviation": np.sqrt(statistics.var + envs.epsilon).astype(np.float32),
        "limit": np.array(LIMIT, dtype=np.float32),
    }
    for number, layer in enumerate(layers):
        arrays[f"w{number}"] = weights[f"{layer}.weight"].T.copy()
        arrays[f"b{number}"] = weights[f"{layer}.bias"].copy()
    return arrays


def main() -> None:
    """Train, and write the network."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=5.0, help="of one core")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    keywords: Any = PROBLEMS["Price"].keywords | {
        "weeks": "train",
        "observation": "flat",
    }  # those of the id
    envs = HPCBatchVecEnv("price-weeks", num_envs=N_ENVS, threads=1, **keywords)
    normal = VecNormalize(VecMonitor(envs), gamma=GAMMA, clip_obs=LIMIT)
    model = PPO("MlpPolicy", normal, learning_rate=RATE, seed=options.seed, **SETTINGS)
    envs.seed_each([1000 * options.seed + env // GROUP for env in range(N_ENVS)])
    clock = Told(options.minutes, RATE)
    with suppress(KeyboardInterrupt):  # Ctrl-C keeps what there is
        model.learn(10**9, callback=clock)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    np.savez(options.output, **network_of(model, normal))
    spent = time.process_time() - clock.begun
    rate = model.num_timesteps / spent
    print(f"{model.num_timesteps} decisions in {spent:.0f} s of one core, {rate:.0f} a second")


if __name__ == "__main__":
    main()
