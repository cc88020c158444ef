"""RLlib: PPO on its new API stack, by id with the compiled vector and by a name of one's own."""

from typing import Any

import numpy as np
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


if __name__ == "__main__":
    made = example("RLlib")
    for key, how in {"config": "id and compiled vector", "own": "register_env"}.items():
        report(f"PPO by {how}, 2,048 steps, episodes ended: {train(made[key])}")
