"""Measure what a first use costs: CPU seconds to compile, each use with an empty cache of its own.

    python scripts/first_use.py [CHECKOUT ...]

Other checkouts of hpcgym, such as of an earlier commit, are measured beside this one, in turn.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.table import Table

from research.tables import Tables, csv_option

ROOT = Path(__file__).resolve().parents[1]
SIMULATE = """
import hpcgym
log = hpcgym.load_workload("synthetic-256")
hpcgym.simulate(log, "SAF", threshold=200_000)
"""
STEP = """
import gymnasium, hpcgym
env = gymnasium.make("HPCBatch-v0", scenario="synthetic-256-weeks")
env.reset(seed=0)
env.step(env.action_space.sample())
"""
VECTOR = STEP.replace("gymnasium.make(", "gymnasium.make_vec(num_envs=4, id=")
ALL = """
import gymnasium, hpcgym
from hpcgym.schedule.moldable import simulate_moldable
log = hpcgym.load_workload("tiny")
shifted, queues = "conservative:compress=shift", "multi-queue:bounds=60/3600"
for mode in "none", "depth:k=3", shifted, "look-ahead", "relaxed", "slack:c=1", queues:
    hpcgym.simulate(log, backfill=mode)
hpcgym.register_policy("LONGEST-WAIT", formula=lambda jobs: -jobs.wait)
for policy in "SAF-RECENT", "SMITH-REG", "LONGEST-WAIT", "DYNP", "PLANNER", "BANDIT-UCB":
    hpcgym.simulate(log, policy)
hpcgym.simulate(log, estimates="recent", correction="doubling")
hpcgym.simulate(log, estimates=lambda submission: submission.requested_time)
hpcgym.simulate_many([log], policies=["SAF"])
simulate_moldable(log, [[(1, 3600, 3600), (2, 2400, 2400)]] * len(log))
for action in "weights", "policy", "order", "job":
    env = gymnasium.make("HPCBatch-v0", scenario="tiny", action=action, render_mode="ansi")
    env.reset(seed=0)
    env.render()
    env.step(env.action_space.sample())
for threads in 1, 2:
    envs = gymnasium.make_vec("HPCBatch-v0", num_envs=2, scenario="tiny", threads=threads)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
"""
MANY = "hpcgym.simulate_many([log], policies=['SAF'])"
USES = {
    "`simulate` with EASY": SIMULATE,
    "first `env.step`": STEP,
    "first step of a vector": VECTOR,
    "all three and `simulate_many`": SIMULATE + MANY + STEP + VECTOR,
    "all kernels, but of nodes": ALL,
}
MEGABYTE = 1e6


def measure(checkout: Path, program: str) -> tuple[float, float]:
    """Run a program with an empty cache; return its CPU seconds and the megabytes it leaves."""
    with tempfile.TemporaryDirectory() as cache:
        variables = {"PYTHONPATH": str(checkout), "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
        before = os.times()
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=checkout,
            env=os.environ | variables,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        after = os.times()
        kept = sum(file.stat().st_size for file in Path(cache).rglob("*") if file.is_file())
    spent = after.children_user + after.children_system
    return spent - before.children_user - before.children_system, kept / MEGABYTE


def over_uses(checkouts: list[Path]) -> Table:
    """Measure every use in every checkout."""
    heads = ["", *(f"{checkout.name}, " for checkout in checkouts[1:])]
    columns = [f"{head}{what}" for head in heads for what in ("CPU s", "MB")]
    table = Table("first use", *columns, title="From an empty cache")
    for use, program in USES.items():
        cells = []
        for checkout in checkouts:
            spent, kept = measure(checkout, program)
            cells += [f"{spent:.1f}", f"{kept:.1f}"]
        table.add_row(use, *cells)
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", nargs="*", type=Path, help="folders of other checkouts")
    csv_option(parser)
    given = parser.parse_args()
    others = [path.resolve() for path in given.checkouts]
    table = over_uses([ROOT, *others])
    Tables(given.csv).show("first_use", table, columns=("first use", "CPU s"))
