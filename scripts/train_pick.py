"""Train the network shared over rows on the problem `pick`, by Stable-Baselines3's PPO.

    python scripts/train_pick.py --minutes 25 --output runs/pick
    python scripts/train_pick.py --judge runs/pick

Between rollouts it prints the geometric mean of ratios to SAF-REG under EASY, with its interval, on
30 validation windows; the best average of networks by these is `best.zip`. Minutes are of processor
time. --resume goes on from `last.zip`. --defaults trains SB3's defaults, "MlpPolicy" and all, in
its stead. --judge prints the table of the test windows, with the best network in it.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from hpcgym.agent.sb3 import HPCBatchVecEnv
from hpcgym.agent.shared_rows import SharedRowsPolicy
from hpcgym.env.registration import PROBLEMS
from hpcgym.output import make_folder
from hpcgym.text_table import machine_text
from research.pick import SCENARIO, Chooses, geometric, of_rule, played, table_of

ENVS, WINDOWS, KEEPS = 128, 30, 0.9
"""Environments (8 with SB3's defaults), windows of validation, and what averages keep."""


def best_actions(model: Any) -> Chooses:
    return lambda shown: model.predict(shown, deterministic=True)[0]


class Progress(BaseCallback):
    """Averages networks, validates the average, keeps the best, and ends in time."""

    def __init__(self, folder: Path, minutes: float, every: int) -> None:
        super().__init__()
        self.folder, self.minutes, self.every = folder, minutes, every
        self.average: dict[str, torch.Tensor] = {}
        self.state = {"minutes": 0.0, "best": float("inf"), "rollouts": 0}
        self.base = of_rule("SAF-REG", "easy", "validation", WINDOWS)
        self.since = time.process_time()

    def done(self) -> float:
        return (self.state["minutes"] + (time.process_time() - self.since) / 60) / self.minutes

    def _on_rollout_start(self) -> None:
        new = {key: value.clone() for key, value in self.model.policy.state_dict().items()}
        old = self.average or new
        self.average = {key: KEEPS * old[key] + (1 - KEEPS) * new[key] for key in new}
        if self.state["rollouts"] % self.every == 0 or self.done() >= 1:
            self.state["minutes"] = self.done() * self.minutes
            self.model.save(self.folder / "last.zip", exclude=["lr_schedule"])
            self.model.policy.load_state_dict(self.average)
            bsld = played(best_actions(self.model), "validation", WINDOWS)
            ratio = float(np.exp(np.log(bsld / self.base).mean()))
            if ratio < self.state["best"]:
                self.state["best"] = ratio
                self.model.save(self.folder / "best.zip", exclude=["lr_schedule"])
            self.model.policy.load_state_dict(new)
            torch.save(self.average, self.folder / "average.pt")
            (self.folder / "state.json").write_text(json.dumps(self.state))
            told = f"{self.state['minutes']:5.1f} min, {self.num_timesteps:>10,} steps: "
            print(f"{told}{geometric(bsld, self.base)} of SAF-REG", flush=True)
            self.since = time.process_time()
        self.state["rollouts"] += 1

    def _on_step(self) -> bool:
        return self.done() < 1


def train(given: argparse.Namespace) -> None:
    """Train, or go on with a training."""
    torch.set_num_threads(1)
    keywords: Any = PROBLEMS["Windows-pick"].keywords | {"observation": "flat", "weeks": "train"}
    if not given.defaults:
        keywords["baseline"] = "SAF-REG"  # what all its actions have in common is taken off
    n_envs = 8 if given.defaults else ENVS
    envs: Any = HPCBatchVecEnv(SCENARIO, num_envs=n_envs, threads=1, **keywords)
    folder = make_folder(given.output)
    told = Progress(folder, given.minutes, given.every)
    settings: Any = {"seed": given.seed, "device": "cpu"}
    if not given.defaults:
        envs = VecNormalize(envs, norm_obs=False)
        settings |= {"n_steps": 64, "batch_size": 1024, "n_epochs": 3, "gamma": 0.997}
        settings |= {"gae_lambda": 0.97, "ent_coef": 0.002, "vf_coef": 0.05, "target_kl": 0.05}
    if given.resume and (folder / "last.zip").exists():
        model = PPO.load(folder / "last.zip", envs, device="cpu")
        told.average = torch.load(folder / "average.pt")
        told.state = json.loads((folder / "state.json").read_text())
    else:
        model = PPO("MlpPolicy" if given.defaults else SharedRowsPolicy, envs, **settings)
    if not given.defaults:
        model.lr_schedule = lambda _: 1e-3 * max(0.02, 1 - told.done())
    model.learn(10**9, callback=told, log_interval=10**9, reset_num_timesteps=not given.resume)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("runs/pick"), metavar="FOLDER")
    parser.add_argument("--minutes", type=float, default=25, help="of processor time")
    parser.add_argument("--every", type=int, default=25, help="rollouts between validations")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="go on from the folder")
    parser.add_argument("--defaults", action="store_true", help="SB3's defaults in its stead")
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="print the test windows")
    given = parser.parse_args()
    if given.judge is None:
        train(given)
    else:
        best = PPO.load(given.judge / "best.zip", device="cpu")
        print(machine_text(table_of({"trained": best_actions(best)}), "markdown"))
