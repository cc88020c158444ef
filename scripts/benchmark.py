"""How fast hpcgym is, as ratios against the plain-Python judge in the same run.

CPU seconds, best of several runs, because machines are shared: compare the ratios, not the rates.
Logs are those that `hpcgym traces` finds; without any, the bundled one stands in.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

import hpcgym
from hpcgym.core.simulator import SchedulerSettings, Simulator
from hpcgym.core.workload import Workload
from hpcgym.errors import TraceError

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import reference  # noqa: E402

MAIN_LOG = "SDSC-SP2-1998-4.2-cln"
LOGS = (
    "KTH-SP2-1996-2.1-cln",
    "CTC-SP2-1996-3.1-cln",
    MAIN_LOG,
    "SDSC-BLUE-2000-4.2-cln",
    "HPC2N-2002-2.2-cln",
    "SDSC-Par-1996-3.1-cln",
    "CEA-Curie-2011-2.1-cln",
)
FIRST_STEP = "import hpcgym, gymnasium as g; e = g.make('HPCBatch-v0'); e.reset(); e.step([0.0] * 6)"


def cpu_seconds(work: Callable[[], object], before: Callable[[], object], repeats: int) -> float:
    """Return the CPU time of the quickest of several runs, s."""
    taken = []
    for _ in range(repeats):
        before()
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def measured(workload: Workload, repeats: int, **settings: object) -> tuple[float, Simulator]:
    """Return the CPU seconds of a whole simulation, and the simulator."""
    simulator = Simulator(workload, SchedulerSettings(**settings))
    return cpu_seconds(simulator.run, simulator.reset, repeats), simulator


def found_logs(names: tuple[str, ...]) -> list[Workload]:
    """Return the logs that are at hand, or the bundled one."""
    logs = []
    for name in names:
        try:
            logs.append(hpcgym.load_workload(name))
        except TraceError:
            continue
    return logs or [hpcgym.load_workload("synthetic-256")]


def against_the_judge(log: Workload, repeats: int) -> Table:
    """Compare with tests/reference.py on one log."""
    table = Table("policy", "million jobs/s", "judge, jobs/s", "ratio", title=f"{log.name}, EASY")
    fields = (log.submit_time, log.run_time, log.requested_time, log.processors, log.user)
    rows = np.stack(fields, axis=1).tolist()
    for policy in ("FCFS", "SAF"):
        ours, _ = measured(log, repeats, policy=policy)
        judge = cpu_seconds(
            lambda: reference.simulate(rows, log.machine_processors, policy), lambda: None, 1
        )
        rates = (len(log) / ours, len(log) / judge)
        table.add_row(policy, f"{rates[0] / 1e6:.2f}", f"{rates[1]:,.0f}", f"{judge / ours:.0f}x")
    return table


def over_logs(logs: list[Workload], repeats: int) -> Table:
    """Measure FCFS and SAF on every log."""
    columns = ("log", "policy", "jobs", "million jobs/s", "million events/s", "waiting", "at most")
    table = Table(*columns, title="Whole logs, EASY")
    for log in logs:
        for policy in ("FCFS", "SAF"):
            seconds, simulator = measured(log, repeats, policy=policy)
            counts = simulator.counts()
            rates = (len(log) / seconds / 1e6, counts["events"] / seconds / 1e6)
            queue = (f"{counts['mean_waiting']:.0f}", f"{counts['max_waiting']:,.0f}")
            table.add_row(log.name, policy, f"{len(log):,}", *(f"{r:.2f}" for r in rates), *queue)
    return table


def over_queue_lengths(longest: int, repeats: int) -> Table:
    """Measure the cost of a job while the queue doubles: a burst, then one job out, one job in."""
    table = Table("waiting", "FCFS, ns/job", "SAF, ns/job", title="Cost as the queue grows")
    generator = np.random.default_rng(0)
    waiting = 125
    while waiting <= longest:
        n = waiting + 50_000
        run = generator.integers(600, 7_200, n)
        width = generator.integers(1, 65, n)
        gap = float((run * width).mean()) / 256
        submit = np.concatenate([np.zeros(waiting), np.arange(n - waiting) * gap]).astype(int)
        log = Workload.from_arrays(submit, run, 2 * run, width, machine_processors=256)
        row = [measured(log, repeats, policy=policy) for policy in ("FCFS", "SAF")]
        means = [f"{one[1].counts()['mean_waiting']:,.0f}" for one in row]
        table.add_row(" / ".join(means), *(f"{one[0] / n * 1e9:.0f}" for one in row))
        waiting *= 2
    return table


def stepping(scenario: str, episodes: int) -> Table:
    """Measure env.step unwrapped, reset, and a new process up to its first step."""
    env = gymnasium.make("HPCBatch-v0", scenario=scenario).unwrapped
    action = np.array([0, 0, 0, 0, 0, 1], dtype=np.float32)
    for _ in range(2):  # the second round finds its weeks prepared
        env.reset(seed=0)
        steps = resets = stepped = 0.0
        for _ in range(episodes):
            start = time.process_time()
            env.reset()
            resets += time.process_time() - start
            start, over = time.process_time(), False
            while not over:
                over = env.step(action)[2]
                steps += 1
            stepped += time.process_time() - start
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", FIRST_STEP], check=True, env=os.environ)
    first = time.perf_counter() - start
    table = Table("figure", "value", title=f"HPCBatch-v0, {scenario}, weights, 128 slots")
    table.add_row("steps/s, unwrapped", f"{steps / stepped:,.0f}")
    table.add_row("steps/s with resets", f"{steps / (stepped + resets):,.0f}")
    table.add_row("reset of a prepared week, ms", f"{resets / episodes * 1e3:.2f}")
    table.add_row("new process to its first step, s of wall time", f"{first:.2f}")
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each measurement")
    parser.add_argument("--longest", type=int, default=16_000, help="longest queue")
    asked = parser.parse_args()
    console, logs = Console(), found_logs(LOGS)
    main = next((log for log in logs if log.name == MAIN_LOG), logs[0])
    console.print(against_the_judge(main, asked.repeats))
    console.print(over_logs(logs, asked.repeats))
    console.print(over_queue_lengths(asked.longest, asked.repeats))
    console.print(stepping("sdsc-sp2-weeks" if main.name == MAIN_LOG else "tiny", 100))
