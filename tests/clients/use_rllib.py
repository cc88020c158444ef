"""RLlib: PPO on its new API stack, by id with the compiled vector and by a name of one's own.

Two runners begin with an empty cache of kernels, so that the first training has to wait for them.
"""

from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import ray
from client import check_returns, example, refuse_infinite, report
from ray.rllib.algorithms.ppo import PPOConfig

returns: list[float] = []


def keep_return(*, episode: Any, **_: Any) -> None:
    """Keep the return of an episode, which is minus its ratio to SAF."""
    returns.append(episode.get_return())
    assert np.isclose(-returns[-1], episode.get_infos(-1)["ratio"], rtol=1e-4)


def train(config: PPOConfig) -> int:
    """Train once and return how many episodes ended."""
    returns.clear()
    algorithm = config.copy(copy_frozen=False).callbacks(on_episode_end=keep_return).build_algo()
    learners = algorithm.train()["learners"]["default_policy"]
    assert np.isfinite([float(learners[key]) for key in learners if "loss" in key]).all()
    refuse_infinite(algorithm.get_module().parameters())
    algorithm.stop()
    return check_returns(returns)


def train_by_two(config: PPOConfig) -> int:
    """Train once with runners in other processes; return how many steps they took."""
    ray.shutdown()
    with TemporaryDirectory() as folder:
        ray.init(runtime_env={"env_vars": {"NUMBA_CACHE_DIR": folder}})
        algorithm = config.build_algo()
        result = algorithm.train()
        algorithm.stop()
        ray.shutdown()
    check_returns([result["env_runners"]["episode_return_mean"]])
    return int(result["env_runners"]["num_env_steps_sampled"])


if __name__ == "__main__":
    made = example("RLlib")
    for key, how in {"config": "id and compiled vector", "own": "register_env"}.items():
        report(f"PPO by {how}, 2,048 steps, episodes ended: {train(made[key])}")
    n_steps = train_by_two(made["two"])
    report(f"PPO by two runners that compile their kernels first, {n_steps:,} steps")
