"""RL Baselines3 Zoo: its command, with the hyper-parameters of scripts/rl_zoo3_ppo.py."""

import csv
import subprocess
import sys
from pathlib import Path

from client import OF_PRICE, PAGE, check_returns, refuse_infinite, report
from stable_baselines3 import PPO

N_STEPS = 10_752
"""Steps in place of the hyper-parameters' own 5,300,000: one rollout."""


def command() -> list[str]:
    """Return the command of the page, with fewer steps."""
    section = PAGE.read_text(encoding="utf-8").partition("## RL Baselines3 Zoo\n")[2]
    line = section.partition("```bash network\n")[2].partition("\n")[0]
    python, *arguments = line.split()
    assert python == "python" and "rl_zoo3.train" in arguments
    return [sys.executable, *arguments, "-n", str(N_STEPS), "--seed", "0"]


if __name__ == "__main__":
    Path("scripts").symlink_to(PAGE.parents[1] / "scripts")  # the folder is an empty one
    subprocess.run(command(), check=True)
    (saved,) = Path("logs/ppo").glob("*/hpcgym-Price-train-v0.zip")
    model = PPO.load(saved)
    assert model.num_timesteps == N_STEPS and model.gamma == 0.999 and model.n_steps == 168
    refuse_infinite(model.policy.parameters())
    returns = []
    for file in saved.parent.glob("*.monitor.csv"):
        rows = csv.DictReader(file.read_text().splitlines()[1:])  # its first line is no table
        returns += [float(row["r"]) for row in rows]
    n_ended = check_returns(returns, OF_PRICE)
    report(f"PPO at the price, {N_STEPS:,} steps, episodes ended: {n_ended}")
