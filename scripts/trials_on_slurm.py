"""Run sleeping jobs on a real Slurm 24.11 with trials and without, beside what is foretold.

    python scripts/trials_on_slurm.py --chroot FOLDER [--pairs 5] [--output runs/trials-on-slurm]

As root. FOLDER becomes Debian 13 with Slurm, by debootstrap, unless it is already. Each pair takes
about ten minutes; its two runs of 80 jobs go side by side, and so do `--at-once` pairs. Runs that
are recorded already are not run again. Where no such folder can be had, it says why and exits 0.
"""

import argparse
import sys
from pathlib import Path

from hpcgym.base.errors import HpcgymError
from research.slurm_chroot import make_chroot, version_of
from research.tables import Tables, csv_option
from research.trials_on_slurm import RECIPE, foretold_of_many, interval, pairs, run_arms

COLUMNS = (
    *("plain, slowdown", "trials, slowdown", "ratio", "foretold"),
    *("kills", "waste", "longest"),
)
"""What is written of each pair."""

MANY = 200
"""Draws beside those that were run, which say what is foretold on average."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chroot", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=5, help="of seeds 1, 2, ...; default 5")
    parser.add_argument("--at-once", type=int, default=1, help="pairs; default 1")
    parser.add_argument("--output", type=Path, default=Path("runs/trials-on-slurm"))
    csv_option(parser)
    given = parser.parse_args()
    try:
        chroot = make_chroot(given.chroot)
    except HpcgymError as error:
        sys.exit(print(f"skipped: {error}"))
    seeds = range(1, given.pairs + 1)
    try:
        for first in range(0, len(seeds), given.at_once):
            run_arms(chroot, given.output, seeds[first : first + given.at_once], RECIPE)
        table = pairs(given.output, seeds)
    except HpcgymError as error:
        sys.exit(f"trials_on_slurm: {error}")
    texts = table.map("{:.2f}".format).reset_index(names="pair")
    title, heads = f"Slurm {version_of(chroot)}", ["pair", *COLUMNS]
    Tables(given.csv).show(
        "trials_on_slurm", texts, title, rows=list(map(str, seeds)), columns=heads
    )
    for what, ratios in (
        ("Seen", table["ratio"][:-1]),
        ("Foretold of these", table["foretold"][:-1]),
        (f"Foretold of {MANY} others", foretold_of_many(range(1001, 1001 + MANY))),
    ):
        mean, low, high = interval(list(ratios))
        print(f"{what}: {mean:.2f} [{low:.2f}, {high:.2f}]")


if __name__ == "__main__":
    main()
