"""Search the weights of an order on weeks of one or more scenarios; write the agent's card.

    python scripts/tune_weights.py --trainer tuned-network --scenario kth-sp2-weeks --name MINE

This is `hpcgym tune` with the same options, for a clone in which the command is not installed.
`--help` lists them, and docs/training.md explains them.
"""

import sys

from hpcgym.cli import app

if __name__ == "__main__":
    app(["tune", *sys.argv[1:]], prog_name="hpcgym")
