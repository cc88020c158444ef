"""Measure what it would cost to schedule counted processors as the cpus of one node.

    python scripts/one_node.py SDSC-SP2-1998-4.2-cln --backfill easy depth:k=2

Starts are equal there, so kernels of nodes could serve both. Rates are per CPU second, the best of
several runs: compare ratios.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import hpcgym
from hpcgym.core.simulator import Simulator
from research.benchmark import cpu_seconds

MODES = ("easy", "depth:k=1", "depth:k=2", "depth:k=8", "conservative")


def on_one_node(workload: hpcgym.Workload) -> hpcgym.Workload:
    """Give the processors to one node, and each job one chunk of it."""
    columns = workload.columns() | {"chunks": np.ones(len(workload), dtype=np.int64)}
    nodes = {"nodes": [{"count": 1, "cpus": workload.machine_processors}]}
    machine = hpcgym.Machine.from_dict(nodes)
    return hpcgym.Workload.from_arrays(**columns, machine=machine)


def over_modes(workload: hpcgym.Workload, modes: list[str], policies: list[str]) -> Table:
    """Schedule a log both ways, under each mode and policy."""
    columns = ("mode", "policy", "counts, jobs/s", "node, jobs/s", "ratio", "other starts")
    table = Table(*columns, title=f"{workload.name}, {len(workload):,} jobs")
    logs = (workload, on_one_node(workload))
    for mode in modes:
        for policy in policies:
            given = hpcgym.SchedulerSettings(policy=policy, backfill=mode)
            runs = [Simulator(log, given) for log in logs]
            spent = [cpu_seconds(run.run, before=run.reset, repeats=5) for run in runs]
            rates = [f"{len(workload) / seconds:,.0f}" for seconds in spent]
            differing = np.count_nonzero(runs[0].start_time != runs[1].start_time)
            table.add_row(mode, policy, *rates, f"{spent[1] / spent[0]:.1f}", str(differing))
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", nargs="?", default="synthetic-256")
    parser.add_argument("--backfill", nargs="+", default=MODES, metavar="MODE")
    parser.add_argument("--policy", nargs="+", default=["FCFS", "SAF"])
    asked = parser.parse_args()
    log = hpcgym.load_workload(asked.log)
    Console().print(over_modes(log, asked.backfill, asked.policy))
