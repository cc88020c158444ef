"""Make accounting of a Slurm under load, and measure what `hpcgym report` takes of it.

Each run is a process of its own; a short one before compiles the kernels.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import hpcgym
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine, NodeType
from hpcgym.trace.resample import scale_load
from hpcgym.trace.synthetic import synthetic_workload
from research.slurm_accounting import Columns, write_text

PROCESSORS = 2048
PARTITIONS = "".join(f"PartitionName=part{at} Nodes=ALL\n" for at in range(6))


def scheduled(n: int, load: float, nodes: int) -> Columns:
    """Return what a Slurm that looks at few jobs makes of a generated log, perhaps on nodes."""
    jobs = synthetic_workload(n, np.random.default_rng(1), load=1.0)
    whole = replace(jobs, machine_processors=PROCESSORS)
    jobs = scale_load(whole, load * PROCESSORS / jobs.machine_processors)
    chunks = each = np.ones_like(jobs.processors)
    if nodes:
        machine = Machine((NodeType(nodes, cpus=PROCESSORS // nodes),))
        chunks = -(-jobs.processors // machine.nodes[0].cpus)
        each = -(-jobs.processors // chunks)
        columns = jobs.submit_time, jobs.run_time, jobs.requested_time, chunks * each
        on = {"chunks": chunks, "spread": chunks > 0, "user": jobs.user}
        jobs = Workload.from_arrays(*columns, machine=machine, **on)
    mode = "slurm:max_job_test=30,interval=900"
    made = hpcgym.simulate(jobs, "MULTIFACTOR", backfill=mode, kill_at_limit=False)
    times = np.diff(jobs.submit_time, prepend=0), made.start_time - jobs.submit_time, jobs.run_time
    limits = np.maximum(jobs.requested_time // 60, 1)
    columns = (*times, chunks, jobs.processors // chunks, jobs.user, limits)
    return [each.tolist() for each in columns]


def time_report(folder: Path, columns: Columns, nodes: int) -> None:
    """Print what a report of a log takes, once one of its first jobs has compiled kernels."""
    machine = ["--processors", str(PROCESSORS)]
    if nodes:
        machine = ["--machine", "slurm.conf"]
        lines = f"ClusterName=made\nNodeName=n[1-{nodes}] CPUs={PROCESSORS // nodes}\n"
        (folder / "slurm.conf").write_text(lines + PARTITIONS)
    for n in (1_000, len(columns[0])):
        write_text(folder / "sacct.txt", [column[:n] for column in columns])
        words = ["report", "sacct.txt", *machine, "--force"]
        begin = time.monotonic()
        process = subprocess.Popen([sys.executable, "-m", "hpcgym", *words], cwd=folder)
        _, status, used = os.wait4(process.pid, 0)
        taken, cpu = time.monotonic() - begin, used.ru_utime + used.ru_stime
        said = f"{taken:.1f} s, {cpu:.1f} s of CPU, {used.ru_maxrss / 1024:.0f} MB of memory"
        trusted = json.loads((folder / "report.json").read_text())["trust"]
        tried = ", ".join([f"{trusted['chosen_among']} settings tried", *trusted["told"]])
        print(f"report of {n:,} rows, status {status}: {said}, {tried}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=50_000, help="how many")
    parser.add_argument("--load", type=float, default=1.0, help="of the machine")
    parser.add_argument("--nodes", type=int, default=0, help="of the machine; default none")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        columns = scheduled(arguments.jobs, arguments.load, arguments.nodes)
        time_report(Path(folder), columns, arguments.nodes)
