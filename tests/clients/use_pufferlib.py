"""PufferLib: its emulation of Gymnasium, its vectors and its policy; its trainer needs CUDA."""

import torch
from client import check_returns, example, refuse_infinite, report

if __name__ == "__main__":
    made = example("PufferLib")
    refuse_infinite(made["policy"].parameters())
    n_ended = check_returns(-ratio for ratio in made["ratios"])
    report(
        f"GymnasiumPufferEnv, Serial of 4, policy Default, 2,400 steps, episodes ended: {n_ended}"
    )
    if not torch.cuda.is_available():
        report("PuffeRL not run: its extension needs CUDA")
