"""Check the whole project: lint, types, documentation, tests, doctests, kernels uncompiled.

    python3 scripts/check.py
    python3 scripts/check.py --quick

Needs Python 3.11 or newer with pip and venv, and nothing else: it installs hpcgym with all that
the tests need into `.venv` (or into the virtual environment it is started in). Every step runs,
also after one that failed. Where HPCGYM_TRACES names a folder of real logs, they are tested too.
One process compiles most kernels for all workers while the short steps run.

`--quick` takes three minutes on two cores: lint, types, all tests that are not marked `long`, with
few drawn cases and without real logs, and the pages that a change since main touches.

HPCGYM_CHECK_MINUTES bounds the time on slow machines: the tests come before all that has not begun
in its first quarter, and what it leaves no time for is named as left out.
"""

import argparse
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BEGAN = time.time()
EXTRAS = "dev,docs,render,report,train"
TESTS = ["pytest", "-q", "-m", "not slow"]
NOT_LONG = ["pytest", "-q", "-m", "not slow and not long"]
APART = ["-n", "2", "--dist", "worksteal"]
FEW = "golden or larger_state or refused or drawn_machines"
FEW_CASES = {"HYPOTHESIS_PROFILE": "few", "HPCGYM_TRACES": "", "OMP_NUM_THREADS": "1"}
BOUNDS = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1", **FEW_CASES}
NODES = "tests/core/test_nodes_parity.py"
SIMULATOR = ["tests/core/test_every_mode.py", "tests/core/test_pairs.py", NODES]
SIMULATOR += ["tests/core/test_nodes_lives.py", "tests/env/test_vector.py"]
SIMULATOR += ["tests/env/test_twin.py"]
SPHINX = ["sphinx", "--fail-on-warning", "--keep-going", "--fresh-env", "--quiet"]
SHORT_STEPS = [
    ("lint", ["ruff", "check", "."], {}),
    ("format", ["ruff", "format", "--check", "."], {}),
    ("types", ["mypy"], {}),
    ("documentation", [*SPHINX, "docs", "build/docs"], {}),
    (
        "kernels uncompiled",
        [*TESTS, "tests/core/test_golden_cases.py", NODES, "tests/env/test_vector.py", "-k", FEW],
        {"NUMBA_DISABLE_JIT": "1", "HPCGYM_TRACES": ""},
    ),
]
LONG_STEPS = [
    ("tests and doctests", [*TESTS, *APART], {"OMP_NUM_THREADS": "1"}),
    ("kernels with bounds checked", [*NOT_LONG, *APART, *SIMULATOR], BOUNDS),
]
QUICK_STEPS = [*SHORT_STEPS[:3], ("quick tests", [*NOT_LONG, *APART], FEW_CASES)]


def main():
    """Install, run every step, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="an answer in three minutes")
    short, (tests, *last) = SHORT_STEPS, LONG_STEPS
    if parser.parse_args().quick:
        *short, tests, last = *QUICK_STEPS, []
    seconds = 60 * float(os.environ.get("HPCGYM_CHECK_MINUTES", "inf"))
    install = [sys.executable, os.path.join(ROOT, "scripts", "install.py"), EXTRAS]
    ready = subprocess.run(install, stdout=subprocess.PIPE)
    if ready.returncode:
        return ready.returncode
    python = ready.stdout.decode().strip()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would parse all anew
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # threads that wait would keep the other worker out
    aside = [compile_aside(python, variables) for variables in ({}, *(step[2] for step in last))]
    runs = [(step, run(python, step, seconds / 4, seconds)) for step in short]
    aside[0].wait()
    runs.append((tests, run(python, tests, seconds, seconds)))
    aside[-1].wait()
    later = [step for step, code in runs if code is None and step is not tests] + last
    runs += [(step, run(python, step, seconds, seconds)) for step in later]
    codes = {title: code for (title, *_), code in runs}
    failed = [name for name, code in codes.items() if code or (code is None and name == tests[0])]
    left_out = [title for title, code in codes.items() if code is None and title not in failed]
    print(f"check: {'FAILED: ' + ', '.join(failed) if failed else 'all passed'}", flush=True)
    if left_out:
        print(f"check: LEFT OUT for want of time: {', '.join(left_out)}", flush=True)
    return len(failed)


def compile_aside(python, variables):
    """Start compiling kernels; what fails there fails in the long steps, too."""
    return subprocess.Popen(
        [python, os.path.join("scripts", "compile_kernels.py")],
        cwd=ROOT,
        env=dict(os.environ, **variables),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def run(python, step, begin, end):
    """Run a step that begins and ends within these seconds; return its code, None = left out."""
    title, command, variables = step
    started = time.time()
    if started - BEGAN > begin:
        return None
    print(f"check: {title}: {' '.join(command)}", flush=True)
    process = subprocess.Popen(
        [python, "-m", *command], cwd=ROOT, env=dict(os.environ, **variables)
    )
    try:
        code = process.wait(None if end == float("inf") else max(BEGAN + end - started, 1))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        code = None
    took = f"took {time.time() - started:.0f} s" if code is not None else "was stopped"
    print(f"check: {title} {took}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
