"""Train Stable-Baselines3's PPO on hpcgym/Price-train-v0, and keep the network.

    python scripts/train_price.py --seed 0 --minutes 5 --output runs/price-0.npz

Its parameters are those of `rl_zoo3_ppo.py`; the learning rate falls to a twentieth. Besides, eight
environments play each week, and their mean in the same hour is taken off an advantage. Minutes are
of one core's time, without validations. `scripts/price.py` judges what is kept.
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import suppress
from pathlib import Path
from runpy import run_path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

from hpcgym.agent.learn.ppo.buffer import FlatGroupBuffer
from hpcgym.agent.sb3 import HPCBatchVecEnv
from research.clock import Clock, Validations

ID, ZOO = "hpcgym/Price-train-v0", Path(__file__).with_name("rl_zoo3_ppo.py")
GROUP = 8
IN_GROUPS: dict[str, Any] = {
    "rollout_buffer_class": FlatGroupBuffer,
    "rollout_buffer_kwargs": {"group_size": GROUP, "by_decision": True},
}


def network_of(model: PPO, envs: VecNormalize) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays that `hpcgym.agent.price.PriceNet` reads."""
    weights = {name: value.numpy() for name, value in model.policy.state_dict().items()}
    layers = ["mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net"]
    statistics = envs.obs_rms
    arrays = {
        "mean": statistics.mean.astype(np.float32),
        "deviation": np.sqrt(statistics.var + envs.epsilon).astype(np.float32),
        "limit": np.array(envs.clip_obs, dtype=np.float32),
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
    settings: dict[str, Any] = run_path(str(ZOO))["hyperparams"][ID]
    n_envs, rate = settings.pop("n_envs"), float(settings.pop("learning_rate").split("_")[1])
    del settings["n_timesteps"], settings["normalize"]
    envs = HPCBatchVecEnv(ID, num_envs=n_envs, threads=1)
    normal = VecNormalize(envs, gamma=settings["gamma"])
    model = PPO(
        env=normal, learning_rate=rate, seed=options.seed, device="cpu", **settings, **IN_GROUPS
    )
    envs.seed_each([1000 * options.seed + env // GROUP for env in range(n_envs)])
    clock = Clock(options.minutes, rate)
    with suppress(KeyboardInterrupt):  # Ctrl-C keeps what there is
        model.learn(10**9, callback=[Validations(clock), clock])
    options.output.parent.mkdir(parents=True, exist_ok=True)
    np.savez(options.output, **network_of(model, normal))
    spent = time.process_time() - clock.begun
    each = model.num_timesteps / spent
    print(f"{model.num_timesteps} decisions in {spent:.0f} s of one core, {each:.0f} a second")


if __name__ == "__main__":
    main()
