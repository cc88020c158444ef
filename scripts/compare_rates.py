"""Measure how fast this checkout is beside another: both run each part in turn, compiled before.

    python scripts/compare_rates.py ../hpcgym-before --log synthetic-256 --num-envs 64 256

A ratio is the median of pairs. Wall time counts, so leave the machine alone.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
WORKER = """
import json, sys, time, gymnasium, hpcgym
options, parts = json.loads(sys.argv[1]), {}
def simulation(log, **settings):
    settings = hpcgym.SchedulerSettings(backfill=options["backfill"], **settings)
    simulator = hpcgym.Simulator(hpcgym.load_workload(log), settings)
    return lambda: (simulator.reset(), simulator.run(), len(simulator.start_time))[2]
def vector(num_envs, calls, **keywords):
    keywords |= {"num_envs": num_envs, "scenario": options["scenario"]}
    keywords |= {"action": "weights", "reward": "bsld", "n_slots": 128}
    envs = gymnasium.make_vec("HPCBatch-v0", **keywords)
    envs.action_space.seed(0)
    envs.reset(seed=0)
    actions = [envs.action_space.sample() for _ in range(32)]
    def run(calls=calls):
        for call in range(calls):
            envs.step(actions[call % 32])
        return num_envs * calls
    run(options["warm_up"])
    return run
for log in options["log"]:
    parts[f"{log}, FCFS"] = simulation(log)
    parts[f"{log}, SAF"] = simulation(log, policy="SAF", threshold=200_000)
parts["one environment, SyncVectorEnv"] = vector(1, 3_000, vectorization_mode="sync")
for num_envs in options["num_envs"]:
    for copy in True, False:
        calls = max(200_000 // num_envs, 32)
        parts[f"{num_envs:,} environments, copy={copy}"] = vector(num_envs, calls, copy=copy)
for run in parts.values():
    run()
print(json.dumps(list(parts)), flush=True)
for part in sys.stdin:
    begun = time.perf_counter()
    done = parts[part.strip()]()
    print(done / (time.perf_counter() - begun), flush=True)
"""
"""A process that measures parts on request; it uses nothing that earlier versions lack."""


class Worker:
    """A process in a checkout.

    Args:
        checkout: The folder.
        options: What is measured.
    """

    def __init__(self, checkout: Path, options: dict[str, Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER, json.dumps(options)],
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._asked, self._printed = self._process.stdin, self._process.stdout
        self.parts: list[str] = json.loads(self._line())

    def rate(self, part: str) -> float:
        """Measure a part once; return jobs or steps per second."""
        print(part, file=self._asked, flush=True)
        return float(self._line())

    def _line(self) -> str:
        """Read a line that the process prints."""
        return self._printed.readline() or sys.exit("compare_rates: a checkout failed; see above")


def compare(other: Path, options: dict[str, Any], rounds: int) -> Table:
    """Measure every part so often; the checkouts begin in turn."""
    ours, theirs = Worker(ROOT, options), Worker(other, options)
    table = Table("part", "a second here", "there", "ratio", "quartiles")
    for part in ours.parts:
        pairs = []
        for number in range(rounds):
            order = (ours, theirs) if number % 2 else (theirs, ours)
            rates = {worker: worker.rate(part) for worker in order}
            pairs.append((rates[ours], rates[theirs]))
        low, middle, high = statistics.quantiles([one / two for one, two in pairs])
        here, there = (statistics.median(column) for column in zip(*pairs, strict=True))
        cells = f"{here:,.0f}", f"{there:,.0f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}"
        table.add_row(part, *cells)
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="folder of another checkout of hpcgym")
    parser.add_argument("--log", nargs="*", default=["synthetic-256"])
    parser.add_argument("--backfill", default="easy", help="backfilling mode of these logs")
    parser.add_argument("--scenario", default="synthetic-256-weeks")
    parser.add_argument("--num-envs", nargs="*", type=int, default=[64, 256])
    parser.add_argument("--warm-up", type=int, default=1_200, help="steps taken before")
    parser.add_argument("--rounds", type=int, default=20, help="pairs of each part")
    given = vars(parser.parse_args())
    Console(width=100).print(compare(given.pop("checkout").resolve(), given, given.pop("rounds")))
