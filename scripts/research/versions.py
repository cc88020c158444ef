"""hpcgym at the lowest and at the newest versions that pyproject.toml allows, on any Python.

It runs where nothing is installed but Python, so it imports its standard library only.
"""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "datasets" / "versions.csv"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
EXTRAS = ("dev", "record", "render", "report", "tables")
UNUSED = ("array-api-compat", "mypy", "ruff")  # no test calls them; the first needs torch
WHICH = {"lowest": "lowest-direct", "newest": "highest"}
SMOKE = [
    "tests/core/test_golden_cases.py",
    "tests/env/test_checkers.py",
    "tests/env/test_render.py",
    "tests/cli/test_cli_simulate.py",
    "tests/evaluation/test_recording.py",
    "tests/evaluation/pictures/test_schedule_figures.py",
    "tests/agent/test_search.py::test_name_of_a_trainer_is_for_no_card_of_the_shelf",
    "tests/trace/test_catalogue.py",
    "tests/trace/test_swf.py",
    "tests/test_job_tables.py",
    "tests/test_wheel.py",
]
"""They compile most kernels, and call every library of the table."""


def requirements() -> dict[str, str]:
    """Return the lower bound of each library that the tests use; "" where there is none."""
    lines = PROJECT["dependencies"] + [
        line for extra in EXTRAS for line in PROJECT["optional-dependencies"][extra]
    ]
    found = re.findall(r"^([\w-]+)(?:>=([\w.]+))?", "\n".join(lines), re.MULTILINE)
    return {name: bound for name, bound in sorted(found) if name not in UNUSED}


def columns_of(text: str) -> dict[str, dict[str, str]]:
    """Return a table: title of each column, name of each row, cell."""
    head, *rows = csv.reader(io.StringIO(text))
    return {
        title: {row[0]: row[place] for row in rows} for place, title in enumerate(head) if place
    }


def with_column(text: str, title: str, column: dict[str, str]) -> str:
    """Return the text of a table with one column anew; the others stay as they are."""
    known = columns_of(text) | {title: column}
    titles = [f"{python} {which}" for python in PYTHONS for which in WHICH]
    table = {one: known[one] for one in titles if one in known}
    rows = [["library", *table]]
    for name in (*requirements(), "tests", "seconds"):
        rows.append([name, *(cells.get(name, "") for cells in table.values())])
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue()


def write(title: str, column: dict[str, str]) -> None:
    """Write a column into the table."""
    TABLE.write_text(with_column(TABLE.read_text("utf-8"), title, column), "utf-8")


def call(*command: str | Path, **variables: Path) -> tuple[int, str]:
    """Run a program from the checkout; return its exit status and what it printed."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env=kept | {name: str(value) for name, value in variables.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return process.returncode, process.stdout


def need(*command: str | Path) -> str:
    """Run a program that must not fail; return what it printed."""
    code, printed = call(*command)
    if code:
        sys.exit(f"check_versions: {' '.join(map(str, command))} failed:\n{printed}")
    return printed


def tested(uv: Path, python: str, which: str) -> tuple[str, dict[str, str]]:
    """Make an environment, run the tests in it; return the title of its column, and the column."""
    with tempfile.TemporaryDirectory() as folder:
        venv, pins, kernels = (Path(folder) / name for name in ("venv", "pins.txt", "kernels"))
        into, asked = venv / "bin" / "python", [f"--extra={extra}" for extra in EXTRAS]
        need(uv, "venv", "--quiet", "--python", python, venv)
        wheels = ("--only-binary", ":all:", "--resolution", WHICH[which])
        need(uv, "pip", "compile", "-p", into, *wheels, *asked, "-o", pins, "pyproject.toml")
        need(uv, "pip", "install", "-p", into, "-r", pins)
        need(uv, "pip", "install", "-p", into, "--no-build-isolation", "--no-deps", "-e", ROOT)
        begun = time.monotonic()
        tests = ("-q", "-n", "2", "--dist", "loadfile", "-m", "not slow", *SMOKE)
        code, printed = call(into, "-m", "pytest", *tests, NUMBA_CACHE_DIR=kernels)
        seconds = f"{time.monotonic() - begun:.0f}"
        found = dict(re.findall(r"^([\w-]+)==(\S+)", pins.read_text(), re.MULTILINE))
    summary = re.search(r"(\d+ (?:passed|failed).*?)(?:, \d+ warnings?)? in ", printed)
    result = summary[1] if summary else "no test ran"
    print(f"{python} {which}: {result}", flush=True)
    if code:
        print(*printed.splitlines()[-30:], sep="\n", flush=True)
    number = need(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    column = {name: found[name] for name in requirements()}
    column["tests"] = f"FAILED: {result}" if code else result
    return f"{number} {which}", column | {"seconds": seconds}
