"""Measure how fast hpcgym is, with the plain-Python reference in the same run.

Rates are the best of several runs, because machines are shared: compare the ratios, not the rates.
The page docs/appendices/performance.md has the rates.
Logs are those that `hpcgym traces list` shows as found; without any, the bundled one is used.
"""

import argparse
import sys
from pathlib import Path

import hpcgym
from hpcgym.base.errors import TraceError
from research import benchmark, nodes_benchmark, step_benchmark, training_benchmark
from research.tables import Tables, csv_option

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import reference

LOGS = (
    "KTH-SP2-1996-2.1-cln",
    "CTC-SP2-1996-3.1-cln",
    "SDSC-SP2-1998-4.2-cln",
    "SDSC-BLUE-2000-4.2-cln",
    "HPC2N-2002-2.2-cln",
    "SDSC-Par-1996-3.1-cln",
    "CEA-Curie-2011-2.1-cln",
)


def found_logs() -> list[hpcgym.Workload]:
    """Return the main logs that are at hand, or the bundled one."""
    logs = []
    for name in LOGS:
        try:
            logs.append(hpcgym.load_workload(name))
        except TraceError:
            continue
    return logs or [hpcgym.load_workload("synthetic-256")]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each measurement")
    parser.add_argument("--longest", type=int, default=16_000, help="longest burst of jobs")
    parser.add_argument(
        "--longest-log", type=int, default=1_000_000, help="jobs of a generated log"
    )
    parser.add_argument("--episodes", type=int, default=100, help="episodes stepped through")
    parser.add_argument("--vectors", type=int, default=200, help="weight vectors on every week")
    parser.add_argument("--most-envs", type=int, default=4_096, help="environments in a vector")
    parser.add_argument(
        "--longest-queue", type=int, default=100_000, help="jobs waiting while a step is measured"
    )
    parser.add_argument(
        "--jobs-on-nodes", type=int, default=500_000, help="jobs on sites of 1,000 and 10,000 nodes"
    )
    parser.add_argument(
        "--largest-pass",
        type=int,
        nargs=2,
        default=(1_000, 10_000),
        metavar=("WAITING", "NODES"),
        help="queue and largest machine on which a pass is measured",
    )
    parser.add_argument(
        "--before", type=Path, nargs="*", default=(), help="checkouts to train beside this one"
    )
    csv_option(parser)
    asked = parser.parse_args()
    tables, logs = Tables(asked.csv), found_logs()
    main = next((log for log in logs if log.name.startswith("SDSC-SP2")), logs[0])
    scenario = "synthetic-256-weeks" if len(logs) == 1 else "sdsc-sp2-weeks"
    tables.show("reference", benchmark.against_reference(main, reference.simulate, asked.repeats))
    tables.show("logs", benchmark.over_logs(logs, asked.repeats))
    tables.show("modes", benchmark.over_modes(main, min(asked.repeats, 2)))
    tables.show("caps", benchmark.over_caps(logs, min(asked.repeats, 3)))
    tables.show("loads", benchmark.over_loads(main, asked.repeats))
    tables.show("queue_lengths", benchmark.over_queue_lengths(asked.longest, asked.repeats))
    tables.show(
        "lengths",
        benchmark.over_lengths(asked.longest_log, asked.repeats),
        rows=("100,000", f"{asked.longest_log:,}"),
        columns=("jobs", "FCFS, Mjobs/s", "SAF, Mjobs/s", "waiting, at most", "peak, MB"),
    )
    tables.show("many", benchmark.many(scenario, asked.vectors))
    tables.show("stepping", step_benchmark.stepping(scenario, asked.episodes))
    tables.show(
        "numbers",
        step_benchmark.over_numbers(scenario, asked.most_envs, asked.repeats),
        rows=("1", "16", "64", "4,096"),
    )
    tables.show("bytes", step_benchmark.over_bytes(scenario, asked.most_envs))
    tables.show("parts", step_benchmark.over_parts(scenario, 64, asked.repeats))
    bundled = ("synthetic-256-weeks", "synthetic-busy-weeks")
    tables.show("actions", step_benchmark.over_actions(bundled, 64, 4 * asked.repeats))
    tables.show("sync", step_benchmark.against_sync(scenario, 64, asked.repeats))
    tables.show("losses_in_sync", step_benchmark.losses_in_sync(8, 4 * asked.repeats + 1))
    tables.show("waiting", step_benchmark.over_waiting(asked.longest_queue, asked.repeats))
    few = min(asked.repeats, 2)
    tables.show("nodes", nodes_benchmark.over_nodes(asked.jobs_on_nodes, few))
    tables.show(
        "node_settings",
        nodes_benchmark.over_node_settings(asked.jobs_on_nodes // 10, few),
        rows=("easy", "conservative"),
        columns=("backfill", "placement", "us/pass"),
    )
    tables.show("waiting_on_nodes", nodes_benchmark.over_waiting_on_nodes(*asked.largest_pass))
    tables.show(
        "steps_on_nodes",
        nodes_benchmark.steps_on_nodes("hetero-64-weeks", (1, 16, 64), asked.repeats),
    )
    trained = [scenario] if len(logs) < 5 else list(training_benchmark.SCENARIOS)
    before = [path.resolve() for path in asked.before]
    tables.show("training", training_benchmark.training(trained, before, asked.repeats))
