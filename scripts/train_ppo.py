"""Train a network by PPO on weeks of one or more scenarios; write its weights and its card.

    python scripts/train_ppo.py --scenario kth-sp2-weeks --minutes 8 --name MINE --output runs/ppo

This is `hpcgym train` with the same options, for a clone in which the command is not installed.
`--help` lists them, and docs/training.md explains them.
"""

import sys

from hpcgym.cli import app

if __name__ == "__main__":
    app(["train", *sys.argv[1:]], prog_name="hpcgym")
