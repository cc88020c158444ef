"""Compare agents in one process, on Ray and on Slurm, with workers and drivers that are killed.

    python scripts/check_cluster.py --ray --slurm --output runs/cluster

Prints a row for each trial. Ray's two nodes are started at 127.0.0.2 and 127.0.0.3 and ended. Slurm
must be there, with eight CPUs or more; jobs of its user called "hpcgym" are killed and requeued.
Both need the extra `cluster`. It takes about ten minutes on two cores.
"""

import argparse
import sys
from dataclasses import astuple
from pathlib import Path

from hpcgym.base.errors import HpcgymError
from research.cluster import ON_RAY, Comparison, kill_job, kill_node, ray_nodes, requeue_job

OPTIONS = "--agents FCFS,SPF --weeks 1-12 --jitter 600 --seed 1 --replicas"
ON_SLURM = "slurm:jobs=6,time=10"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ray", action="store_true", help="trials on Ray")
    parser.add_argument("--slurm", action="store_true", help="trials on Slurm")
    parser.add_argument("--replicas", default="60", help="copies of each week; default 60")
    parser.add_argument("--output", type=Path, default=Path("runs/cluster"))
    options = parser.parse_args()
    rows = []

    def add(trial) -> None:
        rows.append(trial)
        what, seconds, is_equal, kept, done = astuple(trial)
        again = "" if kept is None else f"{kept} kept, {done} done"
        equal = "equal" if is_equal else "NOT EQUAL"
        print(f"| {what} | {equal} | {again} | {seconds:.0f} |", flush=True)

    try:
        compared = Comparison([*OPTIONS.split(), options.replicas], options.output)
        print("| trial | tables and runs | resumed | s |\n|---|---|---|---|", flush=True)
        add(compared.trial("local", "local:2", "two processes"))
        if options.ray:
            with ray_nodes() as session:
                add(compared.trial("ray", ON_RAY, "Ray, two nodes"))
                what = "Ray, one node of two killed by `kill -9`"
                add(compared.trial("ray-killed", ON_RAY, what, kill_node(session)))
        if options.slurm:
            add(compared.trial("slurm", ON_SLURM, "Slurm"))
            add(compared.trial("slurm-killed", ON_SLURM, "Slurm, a job killed", kill_job))
            what = "Slurm, a job requeued by `scontrol requeue`"
            add(compared.trial("slurm-requeued", ON_SLURM, what, requeue_job))
            what = "Slurm, the command killed by `kill -9` and resumed"
            add(compared.killed_and_resumed("slurm-resumed", ON_SLURM, what))
    except HpcgymError as error:
        sys.exit(f"check_cluster: {error}")
    return int(not all(trial.is_equal for trial in rows))


if __name__ == "__main__":
    sys.exit(main())
