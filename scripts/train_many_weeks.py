"""Train Stable-Baselines3's PPO on the training weeks of many-weeks, and keep the best model.

    python scripts/train_many_weeks.py index --minutes 10 --output runs/index.zip
    hpcgym evaluate -s many-weeks --weeks test --agents runs/index.zip --controls

It begins at the best constant action that the problem's scale knows. Environments of a group play
the same week, and an advantage is less the group's mean at that decision. Between rollouts it says
what the policy reaches on 30 validation weeks; the best by these is kept. Minutes are of processor
time, without validations. Each writes `best.last.zip`, too, which --resume goes on from.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from stable_baselines3 import PPO

from hpcgym.agent.learn.ppo.buffer import FlatGroupBuffer
from hpcgym.agent.sb3 import HPCBatchVecEnv
from hpcgym.base.output import make_folder
from research.clock import Clock, Validations

SHOWN: dict[str, Any] = {"index": "small", "trials": "flat"}
"""Observations by kind of action."""

SETTINGS: dict[str, Any] = {
    "n_steps": 48,
    "batch_size": 2_048,
    "n_epochs": 4,
    "learning_rate": 1e-3,
    "gamma": 1.0,
    "gae_lambda": 0.95,
}
"""An episode of `index` has some 42 decisions, and all of it counts: no discount."""


def main() -> None:
    """Train, and keep the best model."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=SHOWN)
    parser.add_argument("--minutes", type=float, default=10, help="of processor time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--group", type=int, default=16, help="environments that play one week")
    parser.add_argument("--log-std", type=float, default=-1.0, help="of actions at the start")
    parser.add_argument("--output", type=Path, default=Path("runs/best.zip"), metavar="ZIP")
    parser.add_argument("--resume", action="store_true", help="go on from the last validation")
    given = parser.parse_args()
    torch.set_num_threads(1)
    make_folder(given.output.parent)
    keywords = {"action": given.action, "observation": SHOWN[given.action]}
    envs = HPCBatchVecEnv(num_envs=given.num_envs, threads=1, weeks="train", **keywords)
    clock = Clock(given.minutes, SETTINGS["learning_rate"])
    last = given.output.with_suffix(".last.zip")
    validations = Validations(clock, last, best=given.output)
    goes_on = given.resume and last.exists()
    if goes_on:
        model = PPO.load(last, envs, device="cpu")
        validations.goes_on(model)
        torch.manual_seed(model.num_timesteps)
    else:
        model = begun(envs, given)
    seed = 1_000 * given.seed + model.num_timesteps
    envs.seed_each([seed + env // given.group for env in range(given.num_envs)])
    model.learn(10**9, callback=[validations, clock], reset_num_timesteps=not goes_on)


def begun(envs: HPCBatchVecEnv, given: argparse.Namespace) -> PPO:
    """Return an untrained model, at the best constant action that the problem's scale knows."""
    model = PPO(
        "MlpPolicy",
        envs,
        seed=given.seed,
        device="cpu",
        policy_kwargs={"net_arch": [32, 32], "log_std_init": given.log_std},
        rollout_buffer_class=FlatGroupBuffer,
        rollout_buffer_kwargs={"group_size": given.group, "by_decision": True},
        **SETTINGS,
    )
    scale = envs.envs.configs[0].scale
    if scale is not None and len(scale.constant) == model.policy.action_net.out_features > 1:
        with torch.no_grad():
            model.policy.action_net.bias.copy_(torch.tensor(scale.constant))
    return model


if __name__ == "__main__":
    main()
