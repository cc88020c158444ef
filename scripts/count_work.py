"""Count the work of a step of vectors: instructions, and misses of caches that valgrind simulates.

    python scripts/count_work.py [CHECKOUT ...] --scenario sdsc-sp2-weeks --num-envs 1024

Counts hardly change from run to run, whatever else the machine does. Other checkouts of hpcgym are
counted beside this one. One thread steps, in kernels compiled for any processor.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
STEPS = """
import json, os, subprocess, sys
import gymnasium, hpcgym
options, is_counted = json.loads(sys.argv[1]), len(sys.argv) > 2
def tell(what):
    if is_counted:
        subprocess.run(["callgrind_control", what, str(os.getpid())], check=True, stdout=-3)
keywords = {"num_envs": options["num_envs"], "scenario": options["scenario"]}
keywords |= options["keywords"]
envs = gymnasium.make_vec("HPCBatch-v0", copy=False, threads=1, **keywords)
envs.action_space.seed(0)
envs.reset(seed=0)
actions = [envs.action_space.sample() for _ in range(32)]
for call in range(options["warm_up"] if is_counted else 1):
    envs.step(actions[call % 32])
tell("--instr=on")
envs.step(actions[0])
tell("--zero")
for call in range(options["calls"]):
    envs.step(actions[call % 32])
tell("--instr=off")
"""
"""A process that takes steps; it uses nothing that earlier versions lack."""

VALGRIND = [
    "valgrind",
    "--tool=callgrind",
    "--instr-atstart=no",
    "--cache-sim=yes",
    "--callgrind-out-file=/dev/null",
    "--D1=32768,8,64",
    "--LL=524288,8,64",
]
"""Caches of 32 kB and 512 kB, eight ways each, lines of 64 bytes: those of many processors."""

COUNTED = {
    "instructions": ("Ir",),
    "loads": ("Dr",),
    "stores": ("Dw",),
    "misses of 32 kB": ("D1mr", "D1mw"),
    "misses of 512 kB": ("DLmr", "DLmw"),
}
"""Sums of what callgrind calls by these names."""


def count(checkout: Path, options: dict[str, Any]) -> list[float]:
    """Count the work of a step in a checkout, in the order of `COUNTED`."""
    command = [sys.executable, "-c", STEPS, json.dumps(options)]
    paths = {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    # Valgrind knows fewer instructions than this machine has.
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    where: Any = {"cwd": checkout, "env": os.environ | paths | generic, "check": True}
    subprocess.run(command, **where)  # compiles
    run = subprocess.run([*VALGRIND, *command, "counted"], stderr=-1, text=True, **where)
    names, numbers = (
        re.findall(rf"{line} *: (.*)", run.stderr)[-1].split() for line in ("Events", "Collected")
    )
    counted = dict(zip(names, map(int, numbers), strict=False))
    n_steps = options["calls"] * options["num_envs"]
    return [sum(counted[name] for name in names) / n_steps for names in COUNTED.values()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", nargs="*", type=Path, help="folders of other checkouts")
    parser.add_argument("--scenario", default="synthetic-256-weeks")
    parser.add_argument("--num-envs", type=int, default=1_024)
    parser.add_argument("--warm-up", type=int, default=400, help="calls before those counted")
    parser.add_argument("--calls", type=int, default=3, help="calls that are counted")
    parser.add_argument("--action", default="weights", help="kind of action")
    parser.add_argument("--backfill", help="backfilling mode; else that of the action")
    parser.add_argument("--weeks", help="episodes, as the environment's `weeks`; else for training")
    given = vars(parser.parse_args())
    keywords = {"action": given.pop("action"), "reward": "bsld", "n_slots": 128}
    keywords |= {key: each for key in ("backfill", "weeks") if (each := given.pop(key))}
    given["keywords"] = keywords
    if shutil.which("valgrind") is None:
        sys.exit("count_work: valgrind was not found; install it, as by `apt install valgrind`")
    table = Table("of a step", title=f"{given['num_envs']:,} environments, {given['scenario']}")
    columns = []
    for folder in (ROOT, *given.pop("checkouts")):
        table.add_column(folder.resolve().name, justify="right")
        columns.append(count(folder.resolve(), given))
    for name, *cells in zip(COUNTED, *columns, strict=True):
        table.add_row(name, *(f"{cell:,.0f}" for cell in cells))
    Console(width=100).print(table)
