"""Submit jobs to a real Slurm, and compare the starts that `hpcgym advise` expects with real ones.

    python scripts/live_advice.py --runs 3

Slurm must be there, with two nodes of 16 CPUs, sched/backfill with bf_interval=1, accounting, no
weight of fair share, and nobody else on it. A run of 40 jobs takes about six minutes; one more goes
before, so that the accounting knows of jobs. Prints a table in Markdown, over all runs. With --past
it runs nothing: it puts made jobs before the accounting in a file.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from hpcgym.base.errors import HpcgymError
from research.live_advice import errors_of_run, with_past
from research.slurm_fidelity import markdown

HEADS = ["expected start, s after the real one", "mean", "median size", "largest size", "jobs"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3, help="runs, of seeds 1, 2, ...; default 3")
    parser.add_argument("--jobs", type=int, default=40, help="jobs of each; default 40")
    parser.add_argument(
        "--any-node", action="store_true", help="jobs take their cpus on whatever nodes"
    )
    parser.add_argument("--past", type=Path, metavar="FILE", help="what sacct printed of a toy")
    given = parser.parse_args()
    if given.past:
        given.past.write_text(with_past(given.past.read_text()))
        return
    try:
        runs = [
            errors_of_run(seed, given.jobs, any_node=given.any_node)
            for seed in range(given.runs + 1)
        ][1:]
    except HpcgymError as error:
        sys.exit(f"live_advice: {error}")
    over_all = {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}
    rows = {
        name: [late.mean(), np.median(np.abs(late)), np.abs(late).max(), len(late)]
        for name, late in over_all.items()
    }
    print(markdown(pd.DataFrame.from_dict(rows, orient="index"), HEADS))


if __name__ == "__main__":
    main()
