"""Check the whole project: lint, types, documentation, tests, doctests, kernels uncompiled.

    python3 scripts/check.py

Needs Python 3.11 or newer with pip and venv, and nothing else: it installs hpcgym with all that
the tests need into `.venv` (or into the virtual environment it is started in). Every step runs,
also after one that failed. Where HPCGYM_TRACES names a folder of real logs, they are tested too.
Most kernels are compiled while the short steps run, each once, and not by every worker of the
long ones.
"""

import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
EXTRAS = "dev,docs,render,report,train"
TESTS = ["pytest", "-q", "-m", "not slow"]
APART = ["-n", "2", "--dist", "worksteal"]
FEW = "golden or larger_state or refused or a_few_drawn"
BOUNDS = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1", "HPCGYM_TRACES": ""}
BOUNDS["HYPOTHESIS_PROFILE"] = "quick"
COMPILING = "golden or larger_state or seeds_alone or single_candidate or cell_does or a_few_drawn"
SIMULATOR = ["tests/core", "tests/env/test_vector.py", "tests/policies/test_dynp.py"]
NO_BOUNDS = [
    "--ignore=tests/core/test_jit.py",  # its processes say themselves what is checked
    "--deselect=tests/core/test_long_logs.py::test_a_long_log_is_generated_replayed_and_summed_up"
    "_in_some_bytes_a_job",  # of memory, in kernels that the tests beside it run
]
NODES = "tests/core/test_nodes_parity.py"
COMPILED_FIRST = ["tests/core/test_golden_cases.py", NODES, *SIMULATOR[1:]]
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
    ("kernels with bounds checked", [*TESTS, *APART, *NO_BOUNDS, *SIMULATOR], BOUNDS),
]


def main():
    """Install, run every step, and sum up."""
    install = [sys.executable, os.path.join(ROOT, "scripts", "install.py"), EXTRAS]
    ready = subprocess.run(install, stdout=subprocess.PIPE)
    if ready.returncode:
        return ready.returncode
    python = ready.stdout.decode().strip()
    around = ["tests/test_batch.py", "tests/policies/test_planner.py"]
    compiling = [compile_aside(python, [*COMPILED_FIRST, *around], {})]
    compiling += [compile_aside(python, COMPILED_FIRST, BOUNDS)]
    failed = [title for title, *step in SHORT_STEPS if not passes(python, title, *step)]
    for process in compiling:
        process.wait()
    failed += [title for title, *step in LONG_STEPS if not passes(python, title, *step)]
    print(f"check: {'FAILED: ' + ', '.join(failed) if failed else 'all passed'}", flush=True)
    return len(failed)


def compile_aside(python, tests, variables):
    """Start compiling kernels; whether the tests that do so pass, the long steps tell."""
    return subprocess.Popen(
        [python, "-m", *TESTS, "-k", COMPILING, *tests],
        cwd=ROOT,
        env=dict(os.environ, **variables),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def passes(python, title, step, variables):
    """Run one step and tell whether it passed."""
    print(f"check: {title}: {' '.join(step)}", flush=True)
    started = time.time()
    code = subprocess.call([python, "-m", *step], cwd=ROOT, env=dict(os.environ, **variables))
    print(f"check: {title} took {time.time() - started:.0f} s", flush=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
