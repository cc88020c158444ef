"""Run sleeping jobs on a real Slurm under FCFS and under `--apply` with SAF, and compare.

    sudo python scripts/live_test.py --pairs 5 --output runs/live

Needs root, Slurm's daemons (slurmctld, slurmd, slurm-client) and munge; each run starts a Slurm of
its own in namespaces of its own, with two made-up nodes of 16 CPUs. A run of 60 jobs takes about
five minutes, and `--at-once` pairs go on beside each other. Pairs that are recorded already are not
run again. In the middle of each run the controller is killed; under --apply, so is what applies.

Prints in Markdown what a simulation foretells and what Slurm recorded, with 95 % t intervals over
the pairs, and whether restoring left priorities as they were.
"""

import argparse
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hpcgym.base.errors import EvaluationError, HpcgymError
from hpcgym.base.output import make_folder
from research.live_test import (
    ARMS,
    METRICS,
    apply_for_ever,
    arm_command,
    compared,
    foretold,
    restoring,
    run_arm,
    seen,
    state_of,
)

SCRIPT = Path(__file__).resolve()
HEADS = ["", "FCFS", "SAF applied", "change, %", "low", "high"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=5, help="of seeds 1, 2, ...; default 5")
    parser.add_argument("--at-once", type=int, default=2, help="pairs beside each other; default 2")
    parser.add_argument("--output", type=Path, default=Path("runs/live"))
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    given = parser.parse_args()
    try:
        if given.inside == "agent":
            apply_for_ever(given.output)
        elif given.inside:
            arm, seed = given.inside.split("-")
            run_arm(SCRIPT, given.output, arm, int(seed))
        else:
            report(make_folder(given.output).resolve(), range(1, given.pairs + 1), given.at_once)
    except HpcgymError as error:
        sys.exit(f"live_test: {error}")


def report(output: Path, seeds: range, at_once: int) -> None:
    """Make the runs that are missing, and print the tables."""
    expected = {seed: foretold(seed) for seed in seeds}
    with ThreadPoolExecutor(at_once * len(ARMS)) as pool:
        list(
            pool.map(lambda run: make_run(output, *run), [(s, arm) for s in seeds for arm in ARMS])
        )
    recorded = {seed: seen(output, seed) for seed in seeds}
    print("| " + " | ".join(HEADS) + " |\n" + "|---" * len(HEADS) + "|")
    for what, name in METRICS.items():
        for when, by_seed in (("foretold", expected), ("seen", recorded)):
            cells = " | ".join(f"{value:.2f}" for value in compared(by_seed, what).values())
            print(f"| {name}, {when} | {cells} |")
    changed, same, jobs = restoring(output, seeds)
    print(
        f"\nRestored after what applies and the controller were killed: {changed} of {jobs} "
        f"waiting jobs had a site factor; then {same} of {jobs} had the priority of before."
    )


def make_run(output: Path, seed: int, arm: str) -> None:
    """Make one run, unless it is there."""
    if (output / f"{arm}-{seed}.csv").exists():
        return
    done = subprocess.run(arm_command(SCRIPT, output, seed, arm), capture_output=True, text=True)
    shutil.rmtree(state_of(output, arm, seed), ignore_errors=True)
    if done.returncode:
        raise EvaluationError(f"run {arm}-{seed}: {done.stderr.strip()[-500:]}")


if __name__ == "__main__":
    main()
