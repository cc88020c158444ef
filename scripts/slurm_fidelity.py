"""Run sleeping jobs on a real Slurm, and compare the waits that it recorded with simulated ones.

    python scripts/slurm_fidelity.py --runs 10 --output runs/slurm

Slurm must be there, with two nodes of 16 CPUs, FCFS (priority/basic) and sched/backfill with
bf_interval=1, and nobody else on it. A run of 60 jobs takes about five minutes. Runs that are
recorded already are not run again, so Ctrl-C loses one run at most; `--runs` of those needs no
Slurm. Prints two tables in Markdown: by setting over all runs, and the mean wait of each run.

With `--single` it has 16 nodes of one CPU and any SchedulerParameters. The mode `slurm` is then
among the settings, with the parameters that Slurm says it has.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from hpcgym.base.errors import HpcgymError
from hpcgym.base.progress import shown
from research.slurm_fidelity import (
    LATE_S,
    compared,
    counted,
    markdown,
    means_by_run,
    punctual,
    simulated,
)
from research.toy_slurm import record_run

HEADS = ["waits, s", "mean", "difference", "low", "high", "ratio", "off", "correlation"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10, help="runs, of seeds 1, 2, ...; default 10")
    parser.add_argument("--single", action="store_true", help="nodes have one CPU each")
    parser.add_argument("--output", type=Path, default=Path("runs/slurm"))
    given = parser.parse_args()
    try:
        with shown():
            seeds = range(1, given.runs + 1)
            paths = [record_run(seed, given.output, single=given.single) for seed in seeds]
            waits = counted if given.single else simulated
            found = {path.stem: waits(path) for path in paths}
    except HpcgymError as error:
        sys.exit(f"slurm_fidelity: {error}")
    print(markdown(compared(found), HEADS), "\n")
    means = means_by_run(found)
    means["load"] = [
        float(path.with_name(f"load-{path.stem[4:]}.txt").read_text()) for path in paths
    ]
    print(markdown(means, ["run", *means]), "\n")
    if given.single:
        return
    for whole, what in ((True, "whole nodes"), (False, "the cpus they need")):
        share = np.mean([punctual(path, whole=whole) for path in paths])
        print(
            f"{share:.0%} of the jobs started within {LATE_S} s of a plan that begins with what "
            f"ran and reserves {what}."
        )


if __name__ == "__main__":
    main()
