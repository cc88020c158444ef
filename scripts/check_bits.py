"""Compare records of the suite to the bit: without FMA, on other BLAS kernels, in other versions.

    python scripts/check_bits.py [AGENT ...] [--python ../other/.venv/bin/python]...

Each variant runs `hpcgym suite run AGENT --part bundled` in a process, and its weeks are compared
with those of this interpreter: digests of starts, and metrics. `--python` names interpreters of
other virtual environments, with another numba or numpy.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from hpcgym.base.text_table import machine_text

AGENTS = ("SAF", "SMITH-REG", "URGENT-YOUNG", "PPO-ORDER", "PPO-TRIALS")
"""Rules of whole numbers, of logarithms, with trials; networks that order and that set numbers."""

VARIANTS = {
    "glibc without FMA and AVX2": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4,-AVX512F"},
    "numba for any x86-64": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
    "OpenBLAS for Sandy Bridge": {"OPENBLAS_CORETYPE": "Sandybridge"},
    "OpenBLAS for Prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "numpy without AVX2": {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL"},
}
"""Environment variables of each variant."""


def weeks_of(python: str, agent: str, variables: dict[str, str]) -> dict[str, object] | str:
    """Run an agent and return the logs of its record; the last line of an error where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "record.json")
        command = [python, "-m", "hpcgym", "suite", "run", agent, "-p", "bundled", "-o", str(path)]
        done = subprocess.run(
            command, env=os.environ | variables, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["failed"])[-1]
        found: dict[str, object] = json.loads(path.read_text("utf-8"))["logs"]
        return found


def cell(found: object, base: object) -> str:
    """Say how far a record is another's: equal, weeks with other starts, or the error."""
    if not isinstance(found, dict) or not isinstance(base, dict):
        return f"failed: {found}"
    pairs = [
        (week, base[log]["weeks"][number])
        for log, one in found.items()
        for number, week in one["weeks"].items()
    ]
    starts = sum(one["starts"] != other["starts"] for one, other in pairs)
    metrics = sum(one != other for one, other in pairs) - starts
    if starts:
        return f"{starts} of {len(pairs)} weeks start otherwise"
    return f"{metrics} weeks with other metrics" if metrics else "equal"


def main() -> int:
    """Print a row for each variant; exit with 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("agents", nargs="*", default=AGENTS, metavar="AGENT")
    parser.add_argument("--python", action="append", default=[], metavar="PATH")
    given = parser.parse_args()
    runs = [(name, sys.executable, variables) for name, variables in VARIANTS.items()]
    runs += [(python, python, {}) for python in given.python]
    base = {agent: weeks_of(sys.executable, agent, {}) for agent in given.agents}
    rows = []
    for name, python, variables in runs:
        cells = {one: cell(weeks_of(python, one, variables), base[one]) for one in given.agents}
        rows.append({"variant": name} | cells)
        print(f"{name}: {cells}", file=sys.stderr, flush=True)
    print(machine_text(pd.DataFrame(rows), "markdown"))
    return int(any(value != "equal" for row in rows for value in list(row.values())[1:]))


if __name__ == "__main__":
    sys.exit(main())
