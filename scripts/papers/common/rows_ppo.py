"""PPO of Stable-Baselines3 with the network shared over rows: one training loop for scripts.

It averages networks, validates the average, keeps the best of these as `best.zip`, ends in time,
and goes on from `last.zip`.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from hpcgym.agent.sb3 import HPCBatchVecEnv
from hpcgym.agent.shared_rows import SharedRowsPolicy
from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import make_folder
from papers.common.playing import Chooses

Judge: TypeAlias = Callable[[Chooses], tuple[float, str]]
"""Says what validation thinks of an agent: a number, lower is better, and it in words."""


def best_actions(model: Any) -> Chooses:
    return lambda shown: model.predict(shown, deterministic=True)[0]


def trained(folder: Path) -> Chooses:
    """Return the best network that a training has left in a folder."""
    if not (folder / "best.zip").is_file():
        raise HpcgymError(f"{folder}: no training has left a best.zip there")
    return best_actions(PPO.load(folder / "best.zip", device="cpu"))


class Progress(BaseCallback):
    """Averages networks, validates the average, keeps the best, and ends in time."""

    def __init__(
        self, folder: Path, judge: Judge, minutes: float, every: int, keeps: float
    ) -> None:
        super().__init__()
        self.folder, self.judge, self.minutes, self.every = folder, judge, minutes, every
        self.keeps = keeps
        self.average: dict[str, torch.Tensor] = {}
        self.state = {"minutes": 0.0, "best": float("inf"), "rollouts": 0}
        self.since = time.process_time()

    def done(self) -> float:
        return (self.state["minutes"] + (time.process_time() - self.since) / 60) / self.minutes

    def load(self) -> None:
        """Go on from what a training has left."""
        self.average = torch.load(self.folder / "average.pt")
        self.state = json.loads((self.folder / "state.json").read_text())

    def _on_rollout_start(self) -> None:
        new = {key: value.clone() for key, value in self.model.policy.state_dict().items()}
        old = self.average or new
        self.average = {key: self.keeps * old[key] + (1 - self.keeps) * new[key] for key in new}
        self.state["rollouts"] += 1
        if (self.state["rollouts"] - 1) % self.every == 0:
            self._on_training_end()

    def _on_training_end(self) -> None:
        """Judge the average, and write all that goes on needs."""
        new = {key: value.clone() for key, value in self.model.policy.state_dict().items()}
        self.model.save(self.folder / "last.zip", exclude=["lr_schedule"])
        self.model.policy.load_state_dict(self.average)
        value, words = self.judge(best_actions(self.model))
        if value < self.state["best"]:
            self.state["best"] = value
            self.model.save(self.folder / "best.zip", exclude=["lr_schedule"])
        self.model.policy.load_state_dict(new)
        torch.save(self.average, self.folder / "average.pt")
        self.state["minutes"], self.since = self.done() * self.minutes, time.process_time()
        (self.folder / "state.json").write_text(json.dumps(self.state))
        told = f"{self.state['minutes']:5.1f} min, {self.num_timesteps:>10,} steps"
        print(f"{told}: {words}", flush=True)

    def _on_step(self) -> bool:
        return self.done() < 1


def train(
    folder: Path,
    envs: HPCBatchVecEnv,
    judge: Judge,
    *,
    minutes: float,
    every: int,
    seed: int = 0,
    resume: bool = False,
    defaults: bool = False,
    n_steps: int = 32,
    rate: float = 2e-3,
    keeps: float = 0.9,
) -> None:
    """Train, or go on with a training.

    Args:
        folder: Where networks are kept.
        envs: What is played; each array an observation.
        judge: Validates.
        minutes: Of processor time, those before a `resume` included.
        every: Rollouts between validations.
        seed: Of networks and episodes.
        resume: Whether to go on from the folder, where it holds a training.
        defaults: Whether to train SB3's defaults, "MlpPolicy" and all, in its stead.
        n_steps: Decisions of each environment between two rounds of learning.
        rate: Learning rate at the start; it falls to a fiftieth in the time given.
        keeps: What averages of networks keep at each rollout.
    """
    torch.set_num_threads(1)
    told = Progress(make_folder(folder), judge, minutes, every, keeps)
    goes_on = resume and (folder / "last.zip").exists()
    learner: Any = {"seed": seed, "device": "cpu"}
    scaled: Any = envs
    if not defaults:
        learner |= {"n_steps": n_steps, "n_epochs": 4, "gamma": 0.99}
        learner |= {"gae_lambda": 0.95, "ent_coef": 0.002, "vf_coef": 0.05, "target_kl": 0.05}
        learner["batch_size"] = envs.num_envs * n_steps // 4
        scaled = VecNormalize(envs, norm_obs=False, gamma=learner["gamma"])
    if goes_on:
        model = PPO.load(folder / "last.zip", scaled, device="cpu")
        told.load()
    else:
        model = PPO("MlpPolicy" if defaults else SharedRowsPolicy, scaled, **learner)
    if not defaults:
        model.lr_schedule = lambda _: rate * max(0.02, 1 - told.done())
    model.learn(10**9, callback=told, log_interval=10**9, reset_num_timesteps=not goes_on)
