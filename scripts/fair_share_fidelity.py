"""Run sleeping jobs of four users on a real Slurm under fair share and limits; compare waits.

    python scripts/fair_share_fidelity.py --runs 10 --output runs/fair-share

Slurm must be there, with one node of 32 CPUs and nobody else on it; the command says what its
slurm.conf must state. Two accounts have shares 3 : 1. A user runs at most 6 jobs, the smaller
account at most 16 CPUs, an array of six tasks two. A run of 80 submissions takes about seven
minutes. Runs that are recorded already are not run again, so Ctrl-C loses one run at most; `--runs`
of those needs no Slurm. Prints a table in Markdown: mean waits by user, over all runs.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from hpcgym.base.errors import HpcgymError
from hpcgym.base.progress import shown
from research.fair_share_runs import USERS, record_run, simulated
from research.slurm_fidelity import compared
from research.tables import Tables, csv_option

SHOWN = (
    *("recorded", "FCFS, EASY", "fair share and limits, EASY"),
    *("all three", "all three, cpus free 2 s late"),
)
"""Rows that are written."""


def main() -> None:
    """Record, simulate, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10, help="runs, of seeds 1, 2, ...; default 10")
    parser.add_argument("--output", type=Path, default=Path("runs/fair-share"))
    csv_option(parser)
    given = parser.parse_args()
    try:
        with shown():
            paths = [record_run(seed, given.output) for seed in range(1, given.runs + 1)]
            runs = {path.stem: simulated(path) for path in paths}
    except HpcgymError as error:
        sys.exit(f"fair_share_fidelity: {error}")
    by_user = [compared({run: users[user] for run, users in runs.items()}) for user in USERS]
    everybody = compared(
        {
            run: {
                name: np.concatenate([users[user][name] for user in USERS]) for name in users["man"]
            }
            for run, users in runs.items()
        }
    )
    rows = []
    for name, row in everybody.iterrows():
        means = (f"{of.loc[name, 'mean']:.1f}" for of in [*by_user, everybody])
        interval = f"[{row['difference_low']:+.1f}, {row['difference_high']:+.1f}]"
        apart = "" if name == "recorded" else f"{row['difference']:+.1f} {interval}"
        rows.append([name, *means, apart])
    columns = ["mean wait, s", *USERS, "all", "difference"]
    Tables(given.csv).show("fair_share_runs", pd.DataFrame(rows, columns=columns), rows=SHOWN)


if __name__ == "__main__":
    main()
